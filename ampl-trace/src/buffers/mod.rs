//! Places of the buffers of calls, where these differ from those of the first call with their signature.
//!
//! A signature has the places of its first call: its first *set* of buffers. Which set comes next follows from the calls
//! before, for programs use their buffers in turns: the one that came behind the present one the last time, and the
//! present one itself the first time. Calls for which that is not so are *moves*. Their sequence is a grammar.
//! So a program that uses the same buffers in the same order takes constant space, whatever its signatures.

mod code;
mod cursor;

use crate::grammar::Grammar;
pub(crate) use cursor::Cursor;

/// Sets of the calls with one signature: which came behind which the last time.
#[derive(Clone, Debug, Default)]
pub struct Followers(Vec<u32>);

impl Followers {
    /// A new set, which is expected to come again behind itself. Sets are numbered from 0.
    pub fn add(&mut self) -> u32 {
        let number = self.0.len() as u32;
        self.0.push(number);
        number
    }

    /// Number of sets.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True where there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline(always)]
    fn behind(&self, set: u32) -> u32 {
        self.0.get(set as usize).copied().unwrap_or(set)
    }
}

/// Position of a signature in the sequence of its sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Set of the latest call.
    pub latest: u32,
    /// Set expected next.
    pub expected: u32,
    /// Calls since the latest move; of one that has none, calls so far.
    pub since: u64,
}

impl Turn {
    /// The position before the first call, which has the set `first`.
    pub fn new(first: u32) -> Self {
        Self { latest: first, expected: first, since: 0 }
    }

    /// A call has the expected set.
    #[inline(always)]
    pub fn pass(&mut self, followers: &Followers) {
        self.latest = self.expected;
        self.expected = followers.behind(self.latest);
        self.since = self.since.wrapping_add(1);
    }

    /// A call has the set `to`, which was not expected.
    pub fn take(&mut self, followers: &mut Followers, to: u32) {
        if let Some(follower) = followers.0.get_mut(self.latest as usize) {
            *follower = to;
        }
        *self = Self { latest: to, expected: followers.behind(to), since: 0 };
    }
}

/// A kind of moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// Index of its signature in [`ThreadBuffers::signatures`].
    pub signature: u32,
    /// Calls with this signature since the move before; 0 for the first move.
    pub since: u64,
    /// Where to: 0 the first set, else one more than the index in [`Varying::sets`].
    pub to: u32,
}

/// A signature whose calls have several sets of buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Varying {
    /// Position in the thread's sequence of its first move.
    pub first_move: u64,
    /// Its sets but the first one: words of [places](crate::places) in the order of the arguments.
    pub sets: Vec<Vec<u64>>,
}

/// Moves of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadBuffers {
    /// The thread.
    pub thread: u32,
    /// Signatures with moves, in the order of their first moves.
    pub signatures: Vec<Varying>,
    /// Terminals of the sequence.
    pub moves: Vec<Move>,
    /// All moves in order.
    pub sequence: Grammar,
}

/// Moves of one rank: threads that have any, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// One entry a thread.
    pub threads: Vec<ThreadBuffers>,
}

impl Buffers {
    /// True where no call has moved.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Moves of `thread`.
    pub fn thread(&self, thread: u32) -> Option<&ThreadBuffers> {
        self.threads.iter().find(|own| own.thread == thread)
    }
}
