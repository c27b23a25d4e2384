//! Arguments of recorded calls, and the bytes that they move.

use std::collections::BTreeSet;

use ampl_core::mpi::traffic::{Ends, Facts, Members, NOBODY, Operands};
use ampl_core::mpi::{FUNCTIONS, Function, Kind, PREDEFINED, Traffic};
use ampl_core::value::{ANY_SOURCE, PROC_NULL, ROOT};
use ampl_trace::args::{self, IN_PLACE, Shape, index_of_predefined, shape};
use ampl_trace::structure::Signature;

use super::objects::{Objects, is_whole};

/// Bytes that a call of `signature` sends, or receives where it sends none; `None` where it moves no message, or
/// where they cannot be computed.
pub fn message_bytes(signature: &Signature, objects: &mut Objects<'_>) -> Option<u64> {
    moved_bytes(signature, objects).map(|(sent, received)| if sent > 0 { sent } else { received })
}

/// Bytes that a call of `signature` sends and receives; `None` where it moves no message, or where they cannot be
/// computed.
pub fn moved_bytes(signature: &Signature, objects: &mut Objects<'_>) -> Option<(u64, u64)> {
    let arguments = Arguments::of(signature).filter(|_| is_whole(signature))?;
    let moves = arguments.function.spec().traffic != Traffic::None;
    arguments.bytes(objects).filter(|_| moves)
}

/// The arguments of a call as C passes them; an array is its number in a list of arrays.
pub struct Arguments<'a> {
    /// The function.
    pub function: Function,
    /// A word for each parameter.
    pub words: Vec<usize>,
    arrays: Vec<&'a [u64]>,
}

impl<'a> Arguments<'a> {
    /// Arguments of a call that succeeded; `None` if its words do not fit the table, and for gaps and regions.
    pub fn of(signature: &'a Signature) -> Option<Self> {
        let function = Function(signature.function);
        let spec = FUNCTIONS.get(usize::from(signature.function))?;
        let mut words = vec![0; spec.params.len()];
        let mut arrays = Vec::new();
        for (param, part) in args::inputs(spec, &mut &signature.words[..])? {
            let at = spec.params.iter().position(|other| other.name == param.name)?;
            words[at] = match shape(param) {
                Shape::Scalar => part.first().map_or(0, |&word| word as usize),
                _ => {
                    arrays.push(part);
                    arrays.len() - 1
                }
            };
        }
        Some(Self { function, words, arrays })
    }

    /// Word of the communicator; `None` where the call names none.
    pub fn comm(&self) -> Option<u64> {
        self.input(Kind::Comm)
    }

    /// Word of the communicator that the call names, itself or by a window; `None` where it names none, or it is not known.
    pub fn comm_word(&self, objects: &Objects<'_>) -> Option<u64> {
        self.comm().or_else(|| objects.window_comm(self.input(Kind::Win)?))
    }

    /// Members of the communicator that the call names, itself or by a window: `None` where it names none, `Some(None)`
    /// where they are not known.
    pub fn members(&self, objects: &Objects<'_>) -> Option<Option<Members>> {
        let by_window = || self.input(Kind::Win).map(|window| objects.window(window));
        self.comm().map(|comm| objects.comm(comm)).or_else(by_window)
    }

    /// The first word of that kind that the call is given.
    fn input(&self, kind: Kind) -> Option<u64> {
        let mut params = self.function.spec().params.iter();
        let at = params.position(|param| param.kind == kind && args::is_input(param))?;
        Some(self.words[at] as u64)
    }

    /// Adds the ranks that the call names as other ends of messages; true where it receives from any.
    pub fn name_peers(&self, peers: &mut BTreeSet<i64>) -> bool {
        let Some(ends) = Ends::of(self.function.spec()) else { return false };
        let named = ends.named(&self.words);
        let mut any = false;
        for end in [named.dest, named.source].into_iter().filter(|&end| end != NOBODY).map(i64::from) {
            match end {
                ANY_SOURCE => any = true,
                PROC_NULL | ROOT => {}
                _ => drop(peers.insert(end)),
            }
        }
        any
    }

    /// Bytes sent and received; `None` where they cannot be computed.
    pub fn bytes(&self, objects: &mut Objects<'_>) -> Option<(u64, u64)> {
        let operands = Operands::of(self.function.spec());
        let mut asked = Asked { arrays: &self.arrays, objects, unknown: false.into() };
        let bytes = operands.bytes(&self.words, &mut asked);
        (!asked.unknown.get()).then_some(bytes)
    }
}

/// Values that a call's bytes depend on, from recorded words.
struct Asked<'a, 'b> {
    arrays: &'a [&'a [u64]],
    objects: &'a mut Objects<'b>,
    /// True once a value was asked for that is not known.
    unknown: std::cell::Cell<bool>,
}

impl Asked<'_, '_> {
    fn known(&self, value: Option<u64>) -> u64 {
        value.unwrap_or_else(|| {
            self.unknown.set(true);
            0
        })
    }

    fn element(&self, array: usize, index: usize) -> Option<u64> {
        self.arrays.get(array)?.get(index).copied()
    }
}

impl Facts for Asked<'_, '_> {
    fn type_bytes(&mut self, datatype: usize) -> u64 {
        let bytes = self.objects.type_bytes(datatype as u64);
        self.known(bytes)
    }

    fn comm(&mut self, comm: usize) -> Members {
        self.objects.comm(comm as u64).unwrap_or_else(|| {
            self.unknown.set(true);
            Members { peers: 0, local: 0, rank: None }
        })
    }

    fn comm_now(&mut self, comm: usize) -> Members {
        self.comm(comm)
    }

    fn degrees(&mut self, _: usize) -> (u64, u64) {
        self.unknown.set(true);
        (0, 0)
    }

    fn count_at(&self, base: usize, index: usize, _: bool) -> u64 {
        self.known(self.element(base, index))
    }

    fn type_at(&self, base: usize, index: usize) -> usize {
        self.known(self.element(base, index)) as usize
    }

    fn is_in_place(&self, buffer: usize) -> bool {
        buffer as u64 == IN_PLACE
    }

    fn is_proc_null(&self, rank: usize) -> bool {
        i64::from(rank as i32) == PROC_NULL
    }

    fn is_root(&self, rank: usize) -> bool {
        i64::from(rank as i32) == ROOT
    }

    fn is_no_op(&self, op: usize) -> bool {
        index_of_predefined(op as u64).is_some_and(|index| PREDEFINED[index].1 == "MPI_NO_OP")
    }
}

#[cfg(test)]
mod tests {
    use ampl_trace::record::GAP;
    use ampl_trace::regions::Edge;
    use ampl_trace::structure::RankStructure;

    use super::*;

    #[test]
    fn gaps_and_regions_have_no_arguments() {
        let rank = RankStructure::default();
        let mut objects = Objects::of(&rank, 4);
        for function in [GAP, Edge::Enter.function(), Edge::Exit.function()] {
            let signature = Signature { function, words: vec![1, 2], ..Signature::default() };
            assert!(Arguments::of(&signature).is_none(), "{function}");
            assert_eq!(message_bytes(&signature, &mut objects), None, "{function}");
        }
    }
}
