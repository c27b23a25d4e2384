//! Properties by which a function's calls repeat earlier ones.

use ampl_agent::repeats::MOST_WORDS;
use ampl_core::mpi::Kind;

/// Part of the short way that is open to a function's calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ShortWay {
    /// No part of it.
    None,
    /// All of it: nothing is followed.
    All,
    /// All of it, for calls that make the only live request of their kind.
    Makes,
    /// All of it, for polls of one request that find nothing.
    Asks,
    /// Its beginning.
    Begins,
}

/// Outputs of a function as they are recorded, but for the request that it makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// No output is.
    Silent,
    /// One is: an integer of 32 bits behind the argument of that index.
    Value(u8),
    /// Anything else.
    Other,
}

/// True where values of `kind` have 32 bits, and the same bits are the same word of the record.
pub(super) fn is_integer(kind: Kind) -> bool {
    matches!(kind, Kind::Int | Kind::Logical | Kind::Rank | Kind::Tag | Kind::IntOrUndefined)
}

/// True where so many [telling](super::HookPlan::telling) words leave room for a value behind them.
pub(super) fn leaves_room(words: u8) -> bool {
    usize::from(words) < MOST_WORDS
}
