//! Facts about a run that has not come to its end: its threads' positions, and the time up to which it counts.

use serde::{Deserialize, Serialize};

use crate::current::Role;

/// The call that a thread is in, or was in last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadPlace {
    /// The thread, 0 for the one that called `MPI_Init`.
    pub thread: u32,
    /// The function's name.
    pub function: String,
    /// True where the call has not returned.
    pub inside: bool,
    /// Time at which the call was entered, or the last one returned, nanoseconds since T0.
    pub since_ns: i64,
    /// True where it came later than `since_ns`: calls were only counted, and were checked then for the last time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// Time since which all of its calls were polls that found nothing, nanoseconds since T0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling_ns: Option<i64>,
    /// The call's site, innermost first; empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub site: Vec<Place>,
    /// Peers of the call.
    #[serde(default)]
    pub peer: Peer,
}

impl ThreadPlace {
    /// Time that it had been in a call that has not returned, at `end`, nanoseconds; 0 where that is not known.
    pub fn inside_ns(&self, end: End) -> i64 {
        if self.inside && !self.at_most { (end.at_ns - self.since_ns).max(0) } else { 0 }
    }
}

/// A place in a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    /// Path of the module.
    pub module: String,
    /// Offset of the return address in the module's file image.
    pub offset: u64,
}

/// Peers of a call, as recorded: ranks of its communicator, constants as numbers of the standard's ABI.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Peer {
    /// Ranks, and the parts they have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranks: Vec<(Role, i64)>,
    /// The tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<i64>,
    /// The word of the communicator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comm: Option<u64>,
    /// Number of requests that it names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// The function that has made the only one: ranks, tag and communicator are that call's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
    /// The requests that it names, by the calls that made them; empty where these are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Pending>,
}

/// Requests that are alike and that no call has completed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Pending {
    /// Number of them.
    pub count: u64,
    /// The function that made them, with its peers.
    pub made: Peer,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// State of a process, by the system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Liveness {
    /// The system was not asked, or the process is another host's.
    #[default]
    Unknown,
    /// The process runs.
    Runs,
    /// The process is there, and stopped by a signal or a debugger.
    Stopped,
    /// The process is gone.
    Gone,
}

impl Liveness {
    /// True where the state is unknown.
    pub fn is_not_known(&self) -> bool {
        *self == Self::Unknown
    }

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Runs => "runs",
            Self::Stopped => "stopped",
            Self::Gone => "gone",
        }
    }
}

/// Reason for which the agent of a process gave up while the program went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GaveUp {
    /// The agent failed.
    Failed,
    /// There was no room for its journal.
    NoRoom,
}

/// Limit of the configuration at which a rank recorded less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Limit {
    /// Memory of a node.
    #[serde(rename = "agent.max_memory")]
    MaxMemory,
    /// Bytes of the trace.
    #[serde(rename = "output.max_bytes")]
    MaxBytes,
}

impl Limit {
    /// The key in the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::MaxMemory => "agent.max_memory",
            Self::MaxBytes => "output.max_bytes",
        }
    }
}

/// Time up to which a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Nanoseconds since T0.
    pub at_ns: i64,
    /// Source of that time.
    pub basis: EndBasis,
}

/// Source of the time of a run's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndBasis {
    /// Time at which the run was read: it has not ended.
    Now,
    /// Time at which its launcher returned.
    Launcher,
    /// The last call that any rank entered or left.
    LastCall,
}
