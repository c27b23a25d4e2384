//! Communicators and datatypes that a rank makes and frees.

use ampl_core::mpi::{FUNCTION_COUNT, Function, Kind, Length};
use ampl_trace::args::{is_output, is_predefined, parts};
use ampl_trace::structure::Signature;

use crate::calls::is_whole;

/// Kind of an object that programs free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    /// A communicator.
    Communicator,
    /// A datatype.
    Datatype,
}

/// Effect of a call on objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It makes the object of that word.
    Makes(Object, u64),
    /// It frees it.
    Frees(Object, u64),
}

/// Effect of calls of a signature; `None` where they have none.
pub fn effect(signature: &Signature) -> Option<Effect> {
    if usize::from(signature.function) >= FUNCTION_COUNT || !is_whole(signature) {
        return None;
    }
    let spec = Function(signature.function).spec();
    let object = |kind: Kind| match kind {
        Kind::Comm => Some(Object::Communicator),
        Kind::Datatype => Some(Object::Datatype),
        _ => None,
    };
    let frees = matches!(spec.name, "MPI_Comm_free" | "MPI_Comm_disconnect" | "MPI_Type_free");
    let keeps = spec.name == "MPI_Type_commit"
        || spec.name == "MPI_Comm_get_parent"
        || spec.name.starts_with("MPI_Type_create_f90")
        || spec.name.starts_with("MPI_Type_match_size");
    let concerns = |param: &&ampl_core::mpi::Param| {
        object(param.kind).is_some() && is_output(param) && param.length == Length::One
    };
    let param = spec.params.iter().find(concerns).filter(|_| !keeps)?;
    let parts = parts(spec, &signature.words)?;
    let mut own = parts.iter().filter(|(other, _)| other.name == param.name);
    let words = if frees { own.next() } else { own.next_back() };
    let word = words?.1.first().copied().filter(|&word| !is_predefined(word) && word != 0)?;
    let object = object(param.kind)?;
    Some(if frees { Effect::Frees(object, word) } else { Effect::Makes(object, word) })
}
