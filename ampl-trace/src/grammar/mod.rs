//! A sequence of terminals as a grammar: lossless, near-constant in size for loops, built while it grows.
//!
//! Sequitur with repetition counts. Two positions hold equal symbols if they name the same terminal or rule;
//! how often a symbol is repeated belongs to the *position* it stands at, as one count for each expansion of
//! the rule around it. So loops whose inner trip counts vary still share one rule, and the counts of a loop
//! that does not vary take no space.
//!
//! # Source
//! C. G. Nevill-Manning, I. H. Witten, *Identifying Hierarchical Structure in Sequences: A linear-time
//! algorithm*, JAIR 7 (1997). Departures: counts at positions, equal neighbours are one position, and
//! a loop that is already known is followed without touching the grammar.

mod arena;
mod between;
mod builder;
mod check;
mod closed;
mod code;
mod dump;
mod engine;
mod expansions;
mod lists;
mod predict;
mod rules;
mod runs;
mod trim;
mod without;

pub use builder::Builder;
pub use expansions::Expansions;
pub use rules::{Position, Repeats, Rule, Rules};
pub use runs::Runs;

use smallvec::SmallVec;

/// A terminal or a rule: terminal `t` is `t << 1`, rule `r` is `r << 1 | 1`.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Symbol(pub u32);

impl Symbol {
    /// The symbol of a terminal below 2^31.
    pub fn terminal(number: u32) -> Self {
        Self(number << 1)
    }

    /// The number of the terminal; `None` for a rule.
    pub fn as_terminal(self) -> Option<u32> {
        (self.0 & 1 == 0).then_some(self.0 >> 1)
    }

    /// The number of the rule; `None` for a terminal.
    pub fn as_rule(self) -> Option<usize> {
        (self.0 & 1 == 1).then_some((self.0 >> 1) as usize)
    }
}

/// Repetitions of a position, in the order of the sequence: (times, number of expansions of its rule in a row). Mostly
/// there is one run, which takes no memory of its own.
pub type Counts = SmallVec<[(u64, u64); 1]>;

/// One position in a rule, as rules are made of.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Item {
    /// The terminal or rule at the position.
    pub symbol: Symbol,
    /// Repetitions, at least one at each expansion of the rule; lengths of runs add up to the expansions of the rule.
    pub counts: Counts,
}

/// A sequence of terminals as rules.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Grammar {
    /// Rule 0 is the whole sequence. The others have at least two positions, are used, and are numbered by
    /// their first appearance in a walk from rule 0 that goes into each rule where it appears first.
    pub rules: Rules,
}

impl Default for Grammar {
    fn default() -> Self {
        Self { rules: [[]].into_iter().collect() }
    }
}

impl Grammar {
    /// The terminals in the order of the sequence, as runs (terminal, count).
    ///
    /// Neighbours differ in the grammar of a [`Builder`]. Memory: one cursor per list of counts, and the depth.
    pub fn runs(&self) -> Runs<'_> {
        Runs::new(self)
    }

    /// Counts of terminals in the sequence (terminal, count), at most `u64::MAX`: one for each position of a terminal,
    /// whatever the sequence's length.
    pub fn totals(&self) -> impl Iterator<Item = (u32, u64)> {
        self.rules.all().filter_map(|item| {
            let of_one = |sum: u64, &(times, expansions): &(u64, u64)| {
                sum.saturating_add(times.saturating_mul(expansions))
            };
            Some((item.symbol.as_terminal()?, item.counts.iter().fold(0, of_one)))
        })
    }

    /// Terminals in the sequence, each as often as it is repeated; at most `u64::MAX`.
    pub fn len(&self) -> u64 {
        self.totals().fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// True where the sequence has no terminals.
    pub fn is_empty(&self) -> bool {
        self.rules.positions() == 0
    }

    /// Positions in all rules.
    pub fn size(&self) -> usize {
        self.rules.positions()
    }
}
