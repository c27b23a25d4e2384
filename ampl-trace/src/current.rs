//! Layout of the line in a journal that says which call a thread is in, and since when.
//!
//! The thread writes the call with its arguments first and the time of entry last; the time of return alone when
//! the call is over. A reader that finds a time of return at or behind the time of entry knows that the call has
//! returned, so it needs no lock. Where calls are only counted no clock is read: a bit says that the call is over.

use ampl_core::mpi::{Direction, FunctionSpec, Kind, Length};

/// Words of a line: one of the cache's.
pub const LINE_WORDS: usize = 8;

/// Positions of words in a line.
pub mod at {
    /// The call entered last, as [`super::call`] gives it; 0 before the first, and when the thread has ended.
    pub const CALL: usize = 0;
    /// Ticks at its entry.
    pub const SINCE: usize = 1;
    /// Ticks when the last call returned, or when calls that are only counted were checked last.
    pub const LEFT: usize = 2;
    /// Two arguments that name its peers ([`super::Operands`]), or the number of a request that it names.
    pub const ENDS: usize = 3;
    /// The handle of its communicator, or the number of requests that it names.
    pub const OBJECT: usize = 4;
    /// Ticks since when all calls were polls that found nothing; 0 if the last one was not.
    pub const POLLING: usize = 5;
}

/// Set in the word of a call that is only counted: the ticks are not its own.
pub const COUNTED: u64 = 1 << 14;
/// Set in the word of such a call once it has returned.
pub const RETURNED: u64 = 1 << 15;
/// Numbers of call paths have this bit, and addresses do not.
const PATH: u64 = 1 << 63;
/// Bits below those of the address.
const ADDRESS_AT: u32 = 16;

/// The word of a call of `function` that returns to `address`, which may be a path's number.
#[inline(always)]
pub fn call(function: u16, address: u64) -> u64 {
    address << ADDRESS_AT | address & PATH | u64::from(function)
}

/// The function in the word of a call, and what stands for its return address.
pub fn function_and_address(word: u64) -> (u16, u64) {
    let function = word & (COUNTED - 1);
    (function as u16, (word & !PATH) >> ADDRESS_AT | word & PATH)
}

/// Two arguments of a call in one word.
#[inline(always)]
pub fn ends(first: i32, second: i32) -> u64 {
    u64::from(first as u32) | u64::from(second as u32) << 32
}

/// The arguments in such a word.
pub fn both_ends(word: u64) -> (i32, i32) {
    (word as u32 as i32, (word >> 32) as u32 as i32)
}

/// The part that a rank has in a call that names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A message is to come from it.
    Source,
    /// A message goes to it.
    Dest,
    /// It is the root of a collective.
    Root,
    /// Its window is accessed.
    Target,
}

/// Positions of the arguments that name a call's peers, tag and communicator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// A rank.
    pub peer: Option<(u8, Role)>,
    /// Another one: where a message is received and another sent.
    pub second: Option<(u8, Role)>,
    /// The tag, where there is no second rank.
    pub tag: Option<u8>,
    /// The communicator.
    pub comm: Option<u8>,
}

impl Operands {
    /// Operands of `spec`, by the standard's names.
    pub fn of(spec: &FunctionSpec) -> Self {
        let at = |name: &str, kind: Kind| {
            let is = |param: &ampl_core::mpi::Param| {
                param.name == name
                    && param.kind == kind
                    && param.direction == Direction::In
                    && param.length == Length::One
            };
            spec.params.iter().position(is).map(|at| at as u8)
        };
        let rank = |name, role| at(name, Kind::Rank).map(|index| (index, role));
        let source = rank("source", Role::Source);
        let dest = rank("dest", Role::Dest);
        let others = rank("root", Role::Root)
            .or(rank("target_rank", Role::Target))
            .or(rank("remote_leader", Role::Dest))
            .or(rank("rank", Role::Target).filter(|_| spec.name.starts_with("MPI_Win")));
        let second = source.and(dest);
        let tag = at("tag", Kind::Tag).or(at("recvtag", Kind::Tag));
        Self {
            peer: source.or(dest).or(others),
            second,
            tag: tag.filter(|_| second.is_none()),
            comm: at("comm", Kind::Comm).or(at("local_comm", Kind::Comm)).or(at("comm_old", Kind::Comm)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::mpi::{FUNCTION_COUNT, Function};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn calls_and_ends_come_back(
            function in 0..FUNCTION_COUNT as u16, address in 0..1u64 << 47, path: bool, ends_of: (i32, i32)
        ) {
            let address = address | if path { PATH } else { 0 };
            let word = call(function, address);
            for bits in [0, COUNTED, COUNTED | RETURNED] {
                prop_assert_eq!(function_and_address(word | bits), (function, address));
                prop_assert_eq!((word | bits) & (COUNTED | RETURNED), bits);
            }
            prop_assert_eq!(both_ends(ends(ends_of.0, ends_of.1)), ends_of);
        }
    }

    #[test]
    fn the_word_has_room_for_every_function() {
        assert!(FUNCTION_COUNT < COUNTED as usize);
    }

    #[test]
    fn arguments_are_where_the_standard_puts_them() {
        let of = |name| Operands::of(Function::by_name(name).unwrap().spec());
        let expected = |peer, second, tag, comm| Operands { peer, second, tag, comm };
        assert_eq!(of("MPI_Recv"), expected(Some((3, Role::Source)), None, Some(4), Some(5)));
        assert_eq!(of("MPI_Send"), expected(Some((3, Role::Dest)), None, Some(4), Some(5)));
        let sendrecv = expected(Some((8, Role::Source)), Some((3, Role::Dest)), None, Some(10));
        assert_eq!(of("MPI_Sendrecv"), sendrecv);
        assert_eq!(of("MPI_Bcast"), expected(Some((3, Role::Root)), None, None, Some(4)));
        assert_eq!(of("MPI_Barrier"), expected(None, None, None, Some(0)));
        assert_eq!(of("MPI_Win_lock"), expected(Some((1, Role::Target)), None, None, None));
        assert_eq!(of("MPI_Wait"), expected(None, None, None, None));
    }
}
