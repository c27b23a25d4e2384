//! Reasons for which no skeleton is written.

use std::fmt;

use ampl_core::units::RankSet;

/// Reason for which no skeleton is written: it could not be right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// More ranks or calls than one program is found for, with the reason.
    TooLarge(String),
    /// Time between calls is not known.
    NoTimes,
    /// Ranks without recorded calls.
    Missing(Vec<u32>),
    /// Calls that were counted and not recorded.
    Gap,
    /// Ranks with calls of several threads.
    Threads,
    /// Functions of whose counts only means are there.
    Aggregated(Vec<&'static str>),
    /// No rank has calls.
    Empty,
    /// The run does not begin with `MPI_Init`, or not on all ranks.
    NoInit,
    /// A function that is not written.
    Function(&'static str),
    /// A call that failed.
    Failed(&'static str),
    /// A call that did not return.
    Unfinished(&'static str),
    /// A call whose arguments were not recorded.
    NoArguments(&'static str),
    /// An argument whose object was made before recording began.
    Unseen(&'static str, &'static str),
    /// An argument that names another kind of object on some ranks.
    Differs(&'static str, &'static str),
    /// An argument that is a key, a constant of the machine, or an address.
    Meaningless(&'static str, &'static str),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(reason) => f.write_str(reason),
            Self::NoTimes => f.write_str("no time between calls is recorded"),
            Self::Missing(ranks) => {
                write!(f, "no calls of ranks {} are recorded", RankSet::from_iter(ranks.iter().copied()))
            }
            Self::Gap => f.write_str("some calls were only counted"),
            Self::Threads => f.write_str("several threads of a rank call MPI, whose order is not recorded"),
            Self::Aggregated(names) => {
                write!(f, "only means of the counts of {} are recorded", names.join(", "))
            }
            Self::Empty => f.write_str("no calls are recorded"),
            Self::NoInit => f.write_str("not every rank begins with MPI_Init"),
            Self::Function(name) => write!(f, "{name} is called, which a skeleton cannot repeat"),
            Self::Failed(name) => write!(f, "a call of {name} failed"),
            Self::Unfinished(name) => write!(f, "a call of {name} did not return"),
            Self::NoArguments(name) => write!(f, "the arguments of a call of {name} were not recorded"),
            Self::Unseen(name, param) => {
                write!(f, "the making of the object that {name} names as {param} was not recorded")
            }
            Self::Differs(name, param) => write!(f, "ranks pass different kinds of {param} to {name}"),
            Self::Meaningless(name, param) => {
                write!(f, "{param} of {name} is a number that only the recorded machine gives a meaning")
            }
        }
    }
}

impl std::error::Error for Refusal {}
