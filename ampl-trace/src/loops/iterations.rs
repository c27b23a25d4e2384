//! Calls of a thread that begin iterations of its loop.

use super::find::Found;
use super::sequence::{Anchor, Sequence, Token};
use crate::grammar::Grammar;

/// Iterations of a loop. Positions count calls of a thread, without polls that found nothing and calls that were not
/// recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Iterations {
    /// Position of the loop's first call.
    from: u64,
    /// Position behind its last one.
    to: u64,
    /// First iterations that are no steps, as they warm up.
    pub warm_up: u64,
    begin: Begin,
}

/// Calls that begin an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Begin {
    /// Calls of the anchor; of neighbours that are one the first.
    At(Anchor),
    /// One of so many.
    Every(u64),
    /// Calls at these positions, ascending.
    Listed(Vec<u64>),
}

impl Iterations {
    /// The iterations of `found`, each with its anchor; `every` where all have so many calls and no anchor.
    pub fn of(sequence: &Sequence, found: &Found, every: Option<u64>) -> Self {
        let from = sequence.calls(&found.before);
        let begin = every.map_or_else(|| Begin::At(found.anchor.clone()), |calls| Begin::Every(calls.max(1)));
        Self { from, to: from.saturating_add(sequence.calls(&found.inside)), warm_up: 0, begin }
    }

    /// The same by positions, for the calls of `grammar`, whose terminals mean `tokens`.
    pub(super) fn listed(&self, grammar: &Grammar, tokens: &[Token]) -> Self {
        let (mut walk, mut listed) = (self.walk(tokens), Vec::new());
        for (terminal, count) in grammar.runs() {
            if matches!(tokens.get(terminal as usize), Some(Token::Gap)) {
                walk.pass_gap();
                continue;
            }
            for _ in 0..count {
                let position = walk.position;
                listed.extend(walk.begins(terminal).then_some(position));
            }
        }
        Self { warm_up: 0, begin: Begin::Listed(listed), ..*self }
    }

    /// A walk over a thread's calls, whose terminals mean `tokens`.
    pub fn walk<'a>(&'a self, tokens: &'a [Token]) -> Walk<'a> {
        Walk { iterations: self, tokens, position: 0, begun: 0, follows: false }
    }
}

/// Walk over the calls of a thread, from the first on.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    iterations: &'a Iterations,
    tokens: &'a [Token],
    position: u64,
    begun: u64,
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
        let Iterations { from, to, warm_up, begin } = self.iterations;
        let shape = match self.tokens.get(terminal as usize) {
            Some(Token::Shape(shape)) => *shape,
            _ => return false,
        };
        let position = self.position;
        self.position += 1;
        if !(*from..*to).contains(&position) {
            return false;
        }
        let begins = match begin {
            Begin::Listed(positions) => positions.binary_search(&position).is_ok(),
            Begin::Every(calls) => (position - from).is_multiple_of(*calls),
            Begin::At(anchor) => {
                let is_anchor = anchor.shapes.contains(&shape);
                let joins = anchor.merges && std::mem::replace(&mut self.follows, is_anchor);
                is_anchor && !joins
            }
        };
        self.begun += u64::from(begins);
        begins && self.begun > *warm_up
    }
}
