//! Objects that a rank makes and frees.

use ampl_core::mpi::{Direction, FUNCTION_COUNT, Function, Kind, Length};
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
    /// A window.
    Window,
    /// A file.
    File,
    /// A group.
    Group,
    /// An operation.
    Operation,
    /// An error handler.
    ErrorHandler,
    /// Hints.
    Info,
}

impl Object {
    /// True where it must be freed before `MPI_Finalize`, as all ranks do so together.
    pub fn must_be_freed(self) -> bool {
        matches!(self, Self::Window | Self::File)
    }

    fn of(kind: Kind) -> Option<Self> {
        Some(match kind {
            Kind::Comm => Self::Communicator,
            Kind::Datatype => Self::Datatype,
            Kind::Win => Self::Window,
            Kind::File => Self::File,
            Kind::Group => Self::Group,
            Kind::Op => Self::Operation,
            Kind::Errhandler => Self::ErrorHandler,
            Kind::Info => Self::Info,
            _ => return None,
        })
    }
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
    let frees = spec.name.ends_with("_free") || matches!(spec.name, "MPI_Comm_disconnect" | "MPI_File_close");
    let keeps = spec.name == "MPI_Comm_get_parent"
        || spec.name.ends_with("_get_errhandler")
        || spec.name.starts_with("MPI_Type_create_f90")
        || spec.name.starts_with("MPI_Type_match_size");
    let concerns = |param: &&ampl_core::mpi::Param| {
        let direction = if frees { Direction::InOut } else { Direction::Out };
        let is_one = is_output(param) && param.length == Length::One && param.direction == direction;
        is_one && Object::of(param.kind).is_some()
    };
    let param = spec.params.iter().find(concerns).filter(|_| !keeps)?;
    let parts = parts(spec, &signature.words)?;
    let mut own = parts.iter().filter(|(other, _)| other.name == param.name);
    let words = if frees { own.next() } else { own.next_back() };
    let word = words?.1.first().copied().filter(|&word| !is_predefined(word) && word != 0)?;
    let object = Object::of(param.kind)?;
    Some(if frees { Effect::Frees(object, word) } else { Effect::Makes(object, word) })
}
