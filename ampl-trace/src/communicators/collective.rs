//! Calls that several ranks make together.

use super::job::CommId;
use super::members::ListId;

/// The number of a collective.
pub type CollectiveId = u32;

/// Calls that are counted together: calls of the same count are one collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Series {
    /// Calls that all ranks of a communicator make.
    All(CommId),
    /// Calls that a group of a communicator makes with a tag.
    Group(CommId, ListId, i64),
}

impl Series {
    /// The communicator that they are calls of.
    pub fn comm(self) -> CommId {
        match self {
            Self::All(comm) | Self::Group(comm, ..) => comm,
        }
    }
}

/// Arrival of a rank at a call.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Index of its script.
    pub rank: u32,
    /// Index into the calls of its script.
    pub call: u32,
    /// The number of what it makes, `NONE` where that is nothing.
    pub made: u32,
    /// The group that it passes.
    pub group: Option<ListId>,
}

/// Meeting point of the leaders of two groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Between {
    /// Communicator that has both leaders.
    pub comm: CommId,
    /// Their ranks in the world, the lower first.
    pub leaders: [u32; 2],
    /// Tag of their calls.
    pub tag: i64,
    /// Number of this call between them, from 1; 0 before it is counted.
    pub before: u32,
}

/// Progress of a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Ranks are missing.
    Open,
    /// All ranks of the group have arrived; the other group, whose leader this is, has not.
    Half(u32),
    /// It is over.
    Over,
}

/// One call that several ranks make together.
#[derive(Debug)]
pub struct Collective {
    /// Series that it is counted in.
    pub series: Series,
    /// Its number in the series, from 1.
    pub count: u32,
    /// Arrivals so far.
    pub arrivals: Vec<Arrival>,
    /// Number of ranks that it needs.
    pub needed: u32,
    /// Its progress.
    pub progress: Progress,
    /// Meeting point of its leader with another.
    pub between: Option<Between>,
}
