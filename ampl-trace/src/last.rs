//! Facts about a run that has not come to its end: where its threads are, and up to when it counts.

use serde::{Deserialize, Serialize};

use crate::current::Role;

/// The call that a thread is in, or was in last.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadPlace {
    /// The thread, 0 for the one that called `MPI_Init`.
    pub thread: u32,
    /// The function's name.
    pub function: String,
    /// Whether the call has not returned.
    pub inside: bool,
    /// When the call was entered, or the last one returned, nanoseconds since T0.
    pub since_ns: i64,
    /// Whether it was later than that: its calls were only counted, and that is when they were looked at last.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// Since when all of its calls were polls that found nothing, nanoseconds since T0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub polling_ns: Option<i64>,
    /// The call's site, innermost first; empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub site: Vec<Place>,
    /// Whom the call is about.
    #[serde(default)]
    pub peer: Peer,
}

impl ThreadPlace {
    /// How long it had been in a call that has not returned, at `end`, nanoseconds; 0 where that is not known.
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

/// Whom a call is about, as recorded: ranks of its communicator, constants as numbers of the standard's ABI.
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
    /// How many requests it names.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// The function that has made the only one: ranks, tag and communicator are that call's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What the system says of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Liveness {
    /// It was not asked, or is another host's.
    #[default]
    Unknown,
    /// The process is there.
    Runs,
    /// It is there, and stopped by a signal or a debugger.
    Stopped,
    /// It is gone.
    Gone,
}

impl Liveness {
    /// Whether nothing is known.
    pub fn is_not_known(&self) -> bool {
        *self == Self::Unknown
    }
}

/// Why the agent of a process gave up while the program went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GaveUp {
    /// It failed.
    Failed,
    /// There was no room for its journal.
    NoRoom,
}

/// Up to when a run counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// Nanoseconds since T0.
    pub at_ns: i64,
    /// How that is known.
    pub basis: EndBasis,
}

/// How the end of a run is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EndBasis {
    /// It has not ended: the time at which it was read.
    Now,
    /// Its launcher returned then.
    Launcher,
    /// The last call that any rank entered or left.
    LastCall,
}
