//! Calls of a thread that begin iterations of its loop.

use std::sync::Arc;

use super::find::Found;
use super::sequence::{Anchor, Sequence, Token};

/// Iterations of a loop. Positions count calls of a thread, without polls that found nothing and calls that were not
/// recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iterations {
    /// Position of the loop's first call.
    from: u64,
    /// Position behind its last one.
    to: u64,
    begin: Begin,
    /// Meaning of each terminal of the thread.
    tokens: Arc<[Token]>,
}

/// Calls that begin an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Begin {
    /// Calls of the anchor; of neighbours that are one the first.
    At(Anchor),
    /// One of so many.
    Every(u64),
}

impl Iterations {
    /// The iterations of `found`, each with its anchor, of calls whose terminals mean `tokens`; `every` where all have so many
    /// calls and no anchor.
    pub fn of(sequence: &Sequence, found: &Found, every: Option<u64>, tokens: &[Token]) -> Self {
        let from = sequence.calls(&found.before);
        let begin = every.map_or_else(|| Begin::At(found.anchor.clone()), |calls| Begin::Every(calls.max(1)));
        let to = from.saturating_add(sequence.calls(&found.inside));
        Self { from, to, begin, tokens: tokens.into() }
    }

    /// A walk over the thread's calls.
    pub fn walk(&self) -> Walk<'_> {
        Walk { iterations: self, position: 0, follows: false }
    }
}

/// Walk over the calls of a thread, from the first on.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    iterations: &'a Iterations,
    position: u64,
    /// True where the call before is one of the anchor.
    follows: bool,
}

impl Walk<'_> {
    /// Passes calls that were not recorded: those before and behind are no neighbours.
    pub fn pass_gap(&mut self) {
        self.follows = false;
    }

    /// True where the next call, of `terminal`, begins a step.
    pub fn begins(&mut self, terminal: u32) -> bool {
        let Iterations { from, to, begin, tokens } = self.iterations;
        let shape = match tokens.get(terminal as usize) {
            Some(Token::Shape(shape)) => *shape,
            _ => return false,
        };
        let position = self.position;
        self.position += 1;
        if !(*from..*to).contains(&position) {
            return false;
        }
        match begin {
            Begin::Every(calls) => (position - from).is_multiple_of(*calls),
            Begin::At(anchor) => {
                let is_anchor = anchor.shapes.contains(&shape);
                let joins = anchor.merges && std::mem::replace(&mut self.follows, is_anchor);
                is_anchor && !joins
            }
        }
    }
}
