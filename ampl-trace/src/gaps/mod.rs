//! Calls that were counted and not recorded: a thread's gaps.
//!
//! The thread's grammar has one terminal for all gaps; a run of it is a gap, as long as it has calls. What these were
//! stands beside the grammar, as a sequence of its own: unrecorded calls by function, site and reason, each with how
//! often. The gaps take from it in their order. So ranks whose gaps differ still share a grammar.
//!
//! Calls behind the last gap's belong to a gap at the thread's end. With them, recorded and unrecorded calls of every
//! function add up to the counted ones, but for functions that are [counted only](ampl_core::mpi::Class::CountOnly).

mod code;
mod cursor;
mod totals;

use std::fmt;

pub(crate) use cursor::Cursor;
pub use cursor::{Gap, Part};
pub use totals::Missing;

use crate::grammar::Grammar;

/// Reason for which a call was counted and not recorded. None has the number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// Recording it would have cost the program more than the agent may take.
    Overhead = 1,
    /// The program had paused ampl.
    Paused = 2,
    /// The policy of its site leaves it out.
    Site = 3,
    /// `trace.structure` leaves it out.
    Structure = 4,
    /// There was no room for it.
    Room = 5,
    /// The program made it within another call of MPI.
    Nested = 6,
    /// It came before the agent.
    Early = 7,
    /// It had not returned, or was about to be written, when the journal was read.
    Unfinished = 8,
    /// The agent had failed.
    Failed = 9,
    /// Not known.
    Unknown = 10,
    /// A limit of memory or of the trace's size was reached.
    Limit = 11,
}

impl Reason {
    /// Number of reasons.
    pub const COUNT: usize = 11;

    /// All of them, by number.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Overhead,
        Self::Paused,
        Self::Site,
        Self::Structure,
        Self::Room,
        Self::Nested,
        Self::Early,
        Self::Unfinished,
        Self::Failed,
        Self::Unknown,
        Self::Limit,
    ];

    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overhead => "overhead",
            Self::Paused => "paused",
            Self::Site => "site",
            Self::Structure => "structure",
            Self::Room => "room",
            Self::Nested => "nested",
            Self::Early => "early",
            Self::Unfinished => "unfinished",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Limit => "limit",
        }
    }

    /// The reason of that number; [`Unknown`](Self::Unknown) for others.
    pub fn from_number(number: u64) -> Self {
        Self::ALL.into_iter().find(|&reason| reason as u64 == number).unwrap_or(Self::Unknown)
    }

    /// Its bit in a set of reasons.
    pub fn bit(self) -> u16 {
        1 << self as u8
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// Unrecorded calls of one function, from one site, for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unrecorded {
    /// Index in the function table.
    pub function: u16,
    /// 0 where the site is not known, else one more than the index in
    /// [`RankStructure::sites`](crate::structure::RankStructure::sites).
    pub site: u32,
    /// Reason.
    pub reason: Reason,
}

/// First and last moment of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Number in the thread's sequence of its first call.
    pub seq: u64,
    /// First moment, nanoseconds since T0.
    pub from_ns: i64,
    /// Last moment.
    pub until_ns: i64,
    /// Bits of the [reasons](Reason::bit) of its calls.
    pub reasons: u16,
}

/// The gaps of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadGaps {
    /// The thread.
    pub thread: u32,
    /// Terminals of the sequence.
    pub kinds: Vec<Unrecorded>,
    /// The unrecorded calls of all gaps, in order.
    pub sequence: Grammar,
    /// Moments of gaps, ascending by the first call; a thread with many has those of the first ones.
    pub spans: Vec<Span>,
    /// First and last moment of all gaps from that one on, which have none of their own.
    pub rest: Option<Span>,
}

/// The gaps of one rank: threads that have any, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// One entry a thread.
    pub threads: Vec<ThreadGaps>,
}

impl Gaps {
    /// True where no call is missing.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Gaps of `thread`.
    pub fn thread(&self, thread: u32) -> Option<&ThreadGaps> {
        self.threads.iter().find(|gaps| gaps.thread == thread)
    }

    /// Number of unrecorded calls.
    pub fn calls(&self) -> u64 {
        self.threads.iter().fold(0, |sum, thread| sum.saturating_add(thread.sequence.len()))
    }
}
