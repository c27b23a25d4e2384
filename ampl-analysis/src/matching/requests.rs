//! Requests of one rank.

use rustc_hash::FxHashMap;

use super::At;
use super::collectives::Needs;
use super::instances::InstanceId;
use super::operations::OpId;

/// Communication that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// A send or a receive.
    Op(OpId),
    /// A collective: its instance, and the ranks that its end needs.
    Instance(InstanceId, Needs),
}

/// Persistent communication.
#[derive(Clone, Copy, Debug)]
pub struct Prepared {
    /// Thread that made it, by its number in the job.
    pub actor: u32,
    /// Terminal of its arguments.
    pub terminal: u32,
    /// Number of its communicator, where it is known: in the thread's list.
    pub comm: Option<usize>,
    /// Of a collective one more than its constructor's ordinal, of a partitioned message likewise.
    pub ordinal: u64,
    /// Number of starts.
    pub starts: u64,
}

/// A request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The call that made it.
    pub made: At,
    /// Its communication, once it is persistent.
    pub prepared: Option<Prepared>,
    /// Communication that is under way.
    pub pending: Vec<Pending>,
    /// True while it is under way, whether that can be followed or not.
    pub active: bool,
}

/// Requests by number.
pub type Requests = FxHashMap<u64, Request>;
