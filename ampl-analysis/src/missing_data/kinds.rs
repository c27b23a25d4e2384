//! Kinds of missing data.

use ampl_core::config::{Marker, SiteTrace};
use ampl_core::units::RankSet;
use ampl_reader::gaps::Recorded;
use ampl_trace::Damage;
use ampl_trace::model::{Alone, GaveUp, Limit};

use crate::short_regions::ShortRegion;

/// A part of a run that its numbers do not cover.
#[derive(Clone, Debug, PartialEq)]
pub enum Missing {
    /// Calls that were counted and not recorded one by one, by reason.
    Calls(Recorded),
    /// Ranks that left nothing that is readable.
    Absent(RankSet),
    /// Ranks that went on without ampl.
    GaveUp {
        /// The ranks.
        ranks: RankSet,
        /// Reason.
        why: GaveUp,
    },
    /// Ranks that did not reach `MPI_Finalize`.
    Unfinished(RankSet),
    /// All ranks ended, and their journals were not merged.
    NotMerged,
    /// Faults in the files.
    Damage {
        /// Number of faults.
        faults: u64,
        /// The first one.
        first: Damage,
    },
    /// Windows without a summary of every rank.
    Windows {
        /// Number of these windows.
        lacking: u64,
        /// Windows of the run.
        all: u64,
    },
    /// The marker ended no window.
    NoWindowEnded(Marker),
    /// Ranks that did not meet the marker.
    MarkerNotMet(RankSet),
    /// Decisions that did not wait for every rank.
    LateDecisions(u64),
    /// Ranks that paused ampl, in windows whose summary is stored.
    Paused {
        /// The ranks.
        ranks: RankSet,
        /// Share of their time.
        share: f64,
        /// The rank with the greatest share, and that share; none of a single rank.
        most: Option<(u32, f64)>,
    },
    /// Ranks that paused ampl for an unknown time.
    PausedUnknown(RankSet),
    /// A counter that ranks could not read.
    Counter {
        /// The metric.
        metric: String,
        /// These ranks, and all; none where no rank read it.
        silent: Option<[u64; 2]>,
        /// Reason, where it is known.
        why: Option<String>,
    },
    /// A guide without an observation other than 0.
    Guide {
        /// The metric.
        metric: String,
        /// Event that it observes.
        event: String,
        /// True where it was observed, and 0.
        observed: bool,
        /// Reason, where it is likely.
        why: Option<GuideReason>,
    },
    /// Ranks that recorded less from some time on.
    DoneLess {
        /// The ranks.
        ranks: RankSet,
        /// Data that their calls lack.
        lacks: Lacks,
        /// Reason.
        why: LessReason,
        /// Time of the first of them, nanoseconds since T0.
        from_ns: u64,
    },
    /// Calls that were counted and not stored, for want of room.
    NotStored {
        /// The ranks.
        ranks: RankSet,
        /// Calls that are not stored.
        missing: u64,
        /// All their calls.
        all: u64,
    },
    /// Ranks whose windows end by the clock, as the marker's region or step does not come.
    ByClock {
        /// The ranks.
        ranks: RankSet,
        /// Time of the first of them, nanoseconds since T0.
        from_ns: u64,
    },
    /// Other ranks meet the marker: windows of one number are of different times.
    DifferentTimes,
    /// Calls that the configuration leaves out.
    Policy {
        /// How they are recorded.
        trace: SiteTrace,
        /// Functions and call sites, as the configuration names them.
        names: Vec<String>,
    },
    /// Regions of which visits are left out, because they are short.
    ShortRegions(Vec<ShortRegion>),
    /// Failures of ampl itself.
    AgentFailures(u64),
    /// ampl took more than `agent.max_overhead`, which is this share.
    TooMuchTime(f64),
    /// More call sites than the table holds.
    FurtherSites,
    /// Calls whose sites were not recorded, for want of room.
    NoSite(u64),
    /// Functions that the program, or a tool loaded before ampl, defines itself.
    Hidden(Vec<String>),
    /// Calls of NCCL or RCCL.
    DeviceCalls {
        /// File names of the libraries.
        libraries: Vec<String>,
        /// True where the job asked for the calls.
        asked_for: bool,
    },
    /// Extensions of this MPI that are not recorded.
    Extensions(Vec<String>),
    /// The run is one of several processes of its launcher, each a world of its own.
    Alone(Alone),
    /// Calls of rank 0 before `MPI_Init`.
    EarlyCalls(u64),
    /// Calls of rank 0 that were made within others.
    NestedCalls(u64),
    /// Processes that the program spawned.
    Spawned,
    /// Functions with calls that did not return.
    NoArguments(Vec<String>),
    /// Several threads call MPI.
    Threads,
}

/// Likely reason why a guide has no observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuideReason {
    /// The program has no event of that name.
    Name,
    /// Threads of a rank were in MPI all the time.
    Threads,
}

/// Data that a rank left out of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks {
    /// Windows to keep were drawn beforehand.
    DrawnBeforehand,
    /// Times were not stored.
    Times,
    /// Calls were not stored.
    Calls,
    /// Calls were only counted.
    AllButCounts,
}

/// Reason why a rank recorded less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LessReason {
    /// More would have taken the program's room.
    RoomOfProgram,
    /// There was no room for more.
    NoRoom,
    /// A limit of the configuration was reached.
    Limit(Limit),
    /// ampl took this share of the time, and may take the other.
    Overhead(f64, Option<f64>),
}
