//! Reasons for which a replay cannot go on.

use std::fmt;

use super::ffi;
use super::memory::NoMemory;

/// Reason for which a call cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// An object whose making was not recorded.
    Unknown(String),
    /// A constant or predefined object that this MPI lacks.
    NoConstant(String),
    /// A function that this MPI lacks.
    Lacking,
    /// An argument of which nothing is recorded.
    NoArgument(&'static str),
    /// No argument is recorded.
    NoArguments,
    /// The call returned an error that it did not return when it was recorded.
    Failed(i32),
    /// More memory than there is.
    NoMemory(usize),
    /// Counts of two groups, of which only means are there.
    Means,
    /// The program ended all ranks here.
    Aborted,
    /// The trace cannot be read from here on.
    Damaged(String),
}

impl From<NoMemory> for Problem {
    fn from(NoMemory(bytes): NoMemory) -> Self {
        Self::NoMemory(bytes)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(object) => write!(f, "the trace does not have the call that made {object}"),
            Self::NoConstant(name) => write!(f, "this MPI library lacks {name}"),
            Self::Lacking => f.write_str("this MPI library lacks the function"),
            Self::NoArgument(name) => write!(f, "its argument {name} is not recorded"),
            Self::NoArguments => f.write_str("its arguments are not recorded"),
            Self::Failed(code) => {
                write!(f, "it failed, and did not when it was recorded: {}", ffi::error_text(*code))
            }
            Self::NoMemory(bytes) => {
                write!(f, "it needs {bytes} bytes of memory, more than the system gives")
            }
            Self::Means => {
                f.write_str("only means of its counts are recorded, and its communicator has two groups")
            }
            Self::Aborted => f.write_str("the program ended all its ranks with this call, as recorded"),
            Self::Damaged(error) => write!(f, "the trace cannot be read here: {error}"),
        }
    }
}
