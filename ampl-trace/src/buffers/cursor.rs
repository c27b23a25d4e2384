//! The buffers of a thread's calls, in their order.

use rustc_hash::FxHashMap;

use super::{Followers, Move, ThreadBuffers, Turn};
use crate::grammar::Runs;

/// Position in the moves of a thread.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    of: &'a ThreadBuffers,
    runs: Runs<'a>,
    /// The run being read and what is left of it.
    run: (u32, u64),
    followers: Followers,
    /// Signatures that have moved: the number of the first set of each, and the position.
    turns: Vec<(u32, Turn)>,
    /// Index there by the name of the terminal.
    known: FxHashMap<u32, usize>,
}

impl<'a> Cursor<'a> {
    /// A cursor before the first call.
    pub fn new(of: &'a ThreadBuffers) -> Self {
        let (followers, turns, known) = Default::default();
        Self { of, runs: of.sequence.runs(), run: (0, 0), followers, turns, known }
    }

    /// The next move, if there is one.
    fn pending(&mut self) -> Option<Move> {
        while self.run.1 == 0 {
            self.run = self.runs.next()?;
        }
        self.of.moves.get(self.run.0 as usize).copied()
    }

    /// Takes part in the call at that position of the sequence. Terminals with one signature have one `name`. Returns the
    /// places of the call, where these are others than those of its signature.
    pub fn call(&mut self, position: u64, name: u32) -> Option<&'a [u64]> {
        let pending = self.pending();
        let (index, is_first) = match (self.known.get(&name), pending) {
            (Some(&index), _) => (index, false),
            (None, Some(next)) => {
                let index = self.turns.len();
                let varying = self.of.signatures.get(index)?;
                if next.signature as usize != index || varying.first_move != position {
                    return None;
                }
                let first = self.followers.add();
                for _ in &varying.sets {
                    self.followers.add();
                }
                self.known.insert(name, index);
                self.turns.push((first, Turn::new(first)));
                (index, true)
            }
            (None, None) => return None,
        };
        let (first, turn) = &mut self.turns[index];
        match pending.filter(|next| next.signature as usize == index) {
            Some(next) if is_first || next.since == turn.since => {
                turn.take(&mut self.followers, first.saturating_add(next.to));
                self.run.1 -= 1;
            }
            _ => turn.pass(&self.followers),
        }
        let number = (turn.latest - *first) as usize;
        Some(&self.of.signatures[index].sets.get(number.checked_sub(1)?)?[..])
    }
}
