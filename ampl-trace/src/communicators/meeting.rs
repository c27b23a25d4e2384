//! Calls that several ranks make together.

use super::job::CommId;
use super::members::ListId;

/// The number of a meeting.
pub type MeetingId = u32;

/// Calls that are counted together: the same number of each rank is one meeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Series {
    /// Those that all of a communicator make.
    All(CommId),
    /// Those of a group of it, with a tag.
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

/// Who has come to a call.
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

/// Where the leaders of two groups meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Between {
    /// In which communicator.
    pub comm: CommId,
    /// Their ranks in the world, the lower first.
    pub leaders: [u32; 2],
    /// With which tag.
    pub tag: i64,
    /// For how many times before.
    pub before: u32,
}

/// How far a meeting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not all are there.
    Open,
    /// All are there, but not those of the other group, whose leader this is.
    Half(u32),
    /// It is over.
    Over,
}

/// One call that several ranks make together.
#[derive(Debug)]
pub struct Meeting {
    /// What it is counted among.
    pub series: Series,
    /// The how manieth of that it is, from 1.
    pub count: u32,
    /// Who is there.
    pub arrivals: Vec<Arrival>,
    /// How many must be.
    pub needed: u32,
    /// How far it is.
    pub progress: Progress,
    /// Where its leader meets another.
    pub between: Option<Between>,
}
