//! Messages and collectives of a run, matched by their ordinals over all ranks' calls.
//!
//! The n-th send of a channel (sender, receiver, communicator, tag) belongs to its n-th receive: messages do not
//! overtake each other (MPI-4.1 §3.5). A receive from any source is in the channel that its status names. The n-th
//! collective of a communicator is the same call on all of its ranks (MPI-4.1 §6.14). So the calls of all ranks are
//! played at once, each rank until it needs another's call; what has been matched is forgotten.
//!
//! Where a rank's calls are not all known, its channels and collectives stop, and only these.

mod acts;
mod ahead;
mod call;
mod collectives;
mod comms;
mod effects;
mod engine;
mod instances;
mod operations;
mod post;
mod requests;
mod threads;

use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_trace::decode::Timed;
use ampl_trace::steps::{Step, Steps};
use ampl_trace::structure::RankStructure;
use ampl_trace::{RankTrace, Trace};

use crate::messages::Comm;

pub use acts::{Mode, Payload, Terminal};
pub use call::{Element, Number, Peer};
pub use collectives::{Blocks, Collective, Needs, Pairing, Root, is_collective};
pub use comms::Joined;
pub use engine::play;
pub use instances::{Arrival, Instance};
pub use operations::{Channel, Half};

/// Calls and facts of one rank.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its calls.
    pub structure: &'a RankStructure,
    /// Its times and gaps.
    pub trace: &'a RankTrace,
}

impl Source<'_> {
    /// Calls of the thread of that index, in their order: where they are, with their times where these are kept, their
    /// function, and how many they are.
    pub fn calls(&self, index: usize) -> impl Iterator<Item = (At, Function, u64)> {
        let (rank, thread) = (self.structure.rank, &self.structure.threads[index]);
        let steps = Steps::new(self.structure, index, self.trace, true).into_iter().flatten();
        steps.filter_map(move |step| {
            let Step::Calls { seq, terminal, count, time } = step else { return None };
            // Edges of regions and gaps are beyond the table.
            let function = thread.signatures.get(terminal as usize)?.function;
            if usize::from(function) >= FUNCTION_COUNT {
                return None;
            }
            let timed = time.map(|(window, time)| Timed {
                window,
                start_ns: time.start_ns,
                duration_ns: Some(time.duration_ns),
            });
            Some((At { rank, thread: thread.thread, seq, terminal, timed }, Function(function), count))
        })
    }
}

/// Calls of a trace whose structure is taken apart by rank, as [`play`] reads them.
#[derive(Debug)]
pub struct Job<'a> {
    trace: &'a Trace,
    structures: Vec<Option<RankStructure>>,
    /// Ranks of the job.
    pub ranks: u32,
}

impl<'a> Job<'a> {
    /// The calls of `trace`.
    pub fn of(trace: &'a Trace) -> Self {
        let structures = trace.ranks.iter().map(|rank| trace.structure.rank(rank.process.rank)).collect();
        Self { trace, structures, ranks: trace.run.ranks.max(trace.structure.rank_count()) }
    }

    /// The ranks that left calls.
    pub fn sources(&self) -> Vec<Source<'_>> {
        let both = self.trace.ranks.iter().zip(&self.structures);
        both.filter_map(|(trace, own)| Some(Source { structure: own.as_ref()?, trace })).collect()
    }
}

/// A call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Rank of the world.
    pub rank: u32,
    /// Its thread.
    pub thread: u32,
    /// Number in the thread's sequence.
    pub seq: u64,
    /// Index into the thread's signatures.
    pub terminal: u32,
    /// Times, where they are stored and asked for.
    pub timed: Option<Timed>,
}

/// Reason for which a rank's calls are not matched from some call on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lost {
    /// Calls were counted and not recorded.
    Gap,
    /// A call has no arguments on record.
    Arguments,
    /// Its calls end before `MPI_Finalize`.
    End,
    /// It left no record.
    Missing,
}

/// Reason for which a channel or a communicator is not matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stop {
    /// A request of it was cancelled.
    Cancelled,
    /// The ranks of its communicator are not known.
    Communicator,
    /// Several threads of a rank use it.
    Threads,
    /// The message of a receive from any source is not known.
    Source,
    /// A rank of it is lost.
    Rank,
    /// Its calls do not fit each other.
    Contradiction,
}

/// A call that waits for what never comes.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// The call.
    pub at: At,
    /// Cause of its wait.
    pub on: Waiting,
}

/// Things that a call waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// A message of that channel, or the receive of one.
    Message {
        /// Channel.
        channel: Channel,
        /// True where it receives.
        receives: bool,
        /// Call that posted it.
        posted: At,
    },
    /// Ranks that do not join a collective.
    Collective {
        /// Number of the communicator.
        comm: u32,
        /// Ranks that have not joined it.
        missing: Vec<u32>,
    },
}

/// A request that was not completed, or not freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The call that made it.
    pub made: At,
    /// True where it is persistent and not active.
    pub inactive: bool,
}

/// Matching of a whole run.
#[derive(Clone, Debug)]
pub struct Outcome<S> {
    /// Messages that are matched.
    pub messages: u64,
    /// Collectives that are matched.
    pub collectives: u64,
    /// Sends and receives without a counterpart whose ranks' calls are all known.
    pub unmatched: Vec<Half<S>>,
    /// Calls that would never return.
    pub stuck: Vec<Stuck>,
    /// Ranks that are lost, with the number of the call from which on and the reason.
    pub lost: Vec<(u32, u64, Lost)>,
    /// Number of sends, receives and collectives that are not matched, by reason.
    pub stopped: Vec<(Stop, u64)>,
    /// Requests that were left.
    pub leaks: Vec<Leak>,
    /// Communicators by their numbers; of `MPI_COMM_SELF` with the rank.
    pub comms: Vec<(Comm, u32)>,
}

impl<S> Default for Outcome<S> {
    fn default() -> Self {
        Self {
            messages: 0,
            collectives: 0,
            unmatched: Vec::new(),
            stuck: Vec::new(),
            lost: Vec::new(),
            stopped: Vec::new(),
            leaks: Vec::new(),
            comms: Vec::new(),
        }
    }
}

/// Reader of what is matched. A stamp is a thread's state at a call; it is passed on with messages.
pub trait Visitor {
    /// Stamp.
    type Stamp: Clone + std::fmt::Debug;

    /// True where times of calls are wanted.
    fn wants_times(&self) -> bool {
        false
    }

    /// A thread enters calls of one terminal; returns its state then.
    fn enter(&mut self, actor: u32, at: &At, count: u64, terminal: &Terminal) -> Self::Stamp;

    /// A thread has waited for what began with a stamp of another.
    fn join(&mut self, _actor: u32, _stamp: &Self::Stamp) {}

    /// The later of two stamps, in `latest`.
    fn latest(_latest: &mut Self::Stamp, _other: &Self::Stamp) {}

    /// A call of the thread of `own` has completed it, and `other` is its counterpart.
    fn completed(&mut self, _own: &Half<Self::Stamp>, _other: &Half<Self::Stamp>, _at: &At) {}

    /// A message, when both of its sides have ended.
    fn message(&mut self, _send: &Half<Self::Stamp>, _receive: &Half<Self::Stamp>) {}

    /// The call `at` of a rank has ended its part of a collective that `needs` those ranks.
    fn ended(&mut self, _actor: u32, _at: &At, _instance: &Instance<Self::Stamp>, _needs: Needs) {}

    /// A collective, when all ranks whose calls are known have begun it; `calls` has its arguments by arrival. False
    /// where its communicator is to be matched no further.
    fn collective(
        &mut self,
        _instance: &Instance<Self::Stamp>,
        _calls: &[&Collective],
        _comm: &Joined<'_>,
    ) -> bool {
        true
    }
}

#[cfg(test)]
pub(crate) mod tests;
