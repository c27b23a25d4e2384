//! Calls of a thread by function and place, without their arguments.

use std::hash::{Hash, Hasher};

use ampl_core::mpi::FUNCTION_COUNT;
use ampl_trace::record::{CALL_MISS, GAP};
use ampl_trace::site::call_path;
use ampl_trace::structure::{GroupThread, RankGroup, Role};
use rustc_hash::{FxHashMap, FxHasher};

use super::sequence::Token;

/// A return address: module and offset.
pub type Frame<'a> = (&'a str, u64);

/// Longest cycle of functions that call each other.
const LONGEST_RECURSION: usize = 8;
/// Index of the first parameter of the exit part.
const EXIT: u8 = 64;

/// A function of MPI, and the path to the call from there outwards, without the repetitions of recursion.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape<'a> {
    /// Index in the function table.
    pub function: u16,
    /// Return addresses; none where calls are not told apart by place.
    pub path: Vec<Frame<'a>>,
}

/// The terminals of a thread as shapes.
#[derive(Clone, Debug)]
pub struct Shapes<'a> {
    /// Shapes by number.
    pub shapes: Vec<Shape<'a>>,
    /// Meaning of each terminal.
    pub tokens: Vec<Token>,
}

impl<'a> Shapes<'a> {
    /// Shapes of the calls of `thread`, in the order in which they come first.
    pub fn of(group: &RankGroup<'a>, thread: &GroupThread<'a>) -> Self {
        let (sites, modules) = (group.sites(), group.modules());
        let mut numbers: FxHashMap<Shape<'a>, u32> = FxHashMap::default();
        let mut shapes = Vec::new();
        let mut token = |(function, flags, site): (u16, u8, Option<u32>)| {
            if function == GAP {
                return Token::Gap;
            }
            if flags & CALL_MISS != 0 || usize::from(function) >= FUNCTION_COUNT {
                return Token::Left;
            }
            let frames = site.into_iter().flat_map(|site| call_path(sites, site));
            let name = |module: u32| modules.get(module as usize).map_or("", String::as_str);
            let mut path: Vec<Frame<'a>> = frames.map(|frame| (name(frame.module), frame.offset)).collect();
            fold(&mut path);
            let shape = Shape { function, path };
            Token::Shape(*numbers.entry(shape).or_insert_with_key(|shape| {
                shapes.push(shape.clone());
                shapes.len() as u32 - 1
            }))
        };
        let tokens = thread.calls().map(&mut token).collect();
        Self { shapes, tokens }
    }
}

/// Leaves one of the repetitions that recursion makes in a path.
fn fold<T: PartialEq>(path: &mut Vec<T>) {
    for length in 1..=LONGEST_RECURSION {
        let mut at = 0;
        while at + 2 * length <= path.len() {
            let is_again = path[at..at + length] == path[at + length..at + 2 * length];
            if is_again {
                path.drain(at..at + length);
            } else {
                at += 1;
            }
        }
    }
}

/// Hashes of the arguments of each terminal of `thread` as `rank` gives them: which ranks, roots and communicators; and
/// these with the numbers and types of what is sent. `None` of calls that name no rank.
pub fn arguments(thread: &GroupThread<'_>, rank: u32) -> Vec<(Option<u64>, u64)> {
    let of = |terminal: ampl_trace::structure::GroupTerminal<'_>| {
        let (mut partners, mut all) = (FxHasher::default(), FxHasher::default());
        let mut has_rank = false;
        for word in terminal.words.iter().filter(|word| word.param < EXIT) {
            let (is_partner, counts) = match word.role {
                Role::Rank => (true, true),
                Role::Root | Role::Comm => (false, true),
                Role::Number | Role::Datatype | Role::Plain => (false, true),
                _ => (false, false),
            };
            let value = (word.param, word.element, word.argument.of(rank));
            if is_partner || word.role == Role::Comm {
                has_rank |= is_partner;
                value.hash(&mut partners);
            }
            if counts {
                value.hash(&mut all);
            }
        }
        (has_rank.then(|| partners.finish()), all.finish())
    };
    thread.terminals().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_leaves_one_repetition() {
        let folded = |path: &[u32]| {
            let mut path = path.to_vec();
            fold(&mut path);
            path
        };
        assert_eq!(folded(&[1, 2, 3]), [1, 2, 3]);
        assert_eq!(folded(&[1, 2, 2, 2, 3]), [1, 2, 3]);
        assert_eq!(folded(&[1, 2, 3, 2, 3, 2, 3, 4]), [1, 2, 3, 4]);
        // As the depth of recursion grows, the path stays.
        assert_eq!(folded(&[9, 5, 6, 5, 6, 1]), folded(&[9, 5, 6, 1]));
        assert!(folded(&[]).is_empty());
    }
}
