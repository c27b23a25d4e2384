//! Time in MPI by purpose of the calls, of each rank.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::{Class, FUNCTIONS, FunctionSpec, Traffic};
use ampl_trace::Trace;

/// Purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// Files.
    Files,
    /// Asking whether something has arrived.
    Polls,
    /// Windows of memory.
    OneSided,
    /// Messages between two ranks: sending, receiving, and waiting for either.
    Messages,
    /// Calls of all ranks of a communicator that move data or synchronise.
    Collectives,
}

impl Purpose {
    /// Every purpose.
    pub const ALL: [Self; 5] = [Self::Files, Self::Polls, Self::OneSided, Self::Messages, Self::Collectives];

    /// Purpose of the function of that number; `None` for those that take no notable time, or begin and end MPI.
    pub fn of(function: u16) -> Option<Self> {
        let FunctionSpec { name, traffic, class, .. } = FUNCTIONS.get(usize::from(function))?;
        if !class.is_work() {
            return None;
        }
        Some(match (class, traffic) {
            _ if traffic.is_file() || name.starts_with("MPI_File_") => Self::Files,
            _ if traffic.is_window() || name.starts_with("MPI_Win_") => Self::OneSided,
            (Class::Poll, _) => Self::Polls,
            (Class::Completion | Class::Start, _) => Self::Messages,
            (_, Traffic::Send | Traffic::SendInit | Traffic::Recv | Traffic::RecvInit) => Self::Messages,
            (_, Traffic::Sendrecv | Traffic::SendrecvReplace) => Self::Messages,
            (_, Traffic::None) => match *name {
                "MPI_Probe" | "MPI_Mprobe" => Self::Messages,
                "MPI_Barrier" | "MPI_Ibarrier" => Self::Collectives,
                _ if name.starts_with("MPI_Comm_") => Self::Collectives,
                _ => return None,
            },
            _ => Self::Collectives,
        })
    }
}

/// Time and calls of each rank by purpose.
#[derive(Debug, Default)]
pub struct Costs {
    /// Nanoseconds over all threads.
    ns: BTreeMap<(Purpose, u32), f64>,
}

impl Costs {
    /// Costs of `trace` without those `functions`.
    pub fn without(functions: &BTreeSet<u16>, trace: &Trace) -> Self {
        let mut costs = Self::default();
        let shares = trace.totals.shares().filter(|(function, ..)| !functions.contains(function));
        for (function, rank, share) in shares {
            if let Some(purpose) = Purpose::of(function) {
                *costs.ns.entry((purpose, rank)).or_default() += share.time_ns as f64;
            }
        }
        costs
    }

    /// Time of all ranks, nanoseconds.
    pub fn total(&self, purpose: Purpose) -> f64 {
        self.ranks(purpose).map(|(_, ns)| ns).sum()
    }

    /// Time of each rank that has any, nanoseconds.
    pub fn ranks(&self, purpose: Purpose) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.ns.range((purpose, 0)..=(purpose, u32::MAX)).map(|(&(_, rank), &ns)| (rank, ns))
    }

    /// The rank with the most time, and that time.
    pub fn worst(&self, purpose: Purpose) -> Option<(u32, f64)> {
        self.ranks(purpose).reduce(|a, b| if b.1 > a.1 { b } else { a })
    }
}
