//! A trace as readers see it.

use std::sync::Arc;

use ampl_core::message::Decision;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::plan::Plan;
use serde::{Deserialize, Serialize};

use crate::buffers::Buffers;
use crate::census::Census;
use crate::error::Damage;
use crate::gaps::Gaps;
use crate::metadata::Metadata;
use crate::places::Places;
use crate::structure::JobStructure;
use crate::totals::Totals;

/// Facts about the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// Version of ampl that recorded it.
    pub ampl_version: String,
    /// The MPI library's own description.
    pub mpi_library: String,
    /// Binary interface that the program was built for, which gives constants their meaning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abi: Option<AbiFamily>,
    /// Ranks in `MPI_COMM_WORLD`.
    pub ranks: u32,
    /// The program's command line.
    pub command: Vec<String>,
    /// Start of window 0 on rank 0, nanoseconds since the Unix epoch.
    pub started_ns: u64,
    /// The resolved configuration as TOML.
    pub config: String,
    /// Metrics in the order of every window's cells: name, event, whether it guides.
    pub metrics: Vec<MetricInfo>,
    /// Groups in the order decisions use: name, members.
    pub groups: Vec<GroupInfo>,
    /// MPI functions that the program or a tool before ampl defines itself: calls of them are not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    /// Extensions of the MPI library (`MPIX_*`) that the program refers to: calls of them are not seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Calls of rank 0 before `MPI_Init`: counted, but not in the sequence.
    #[serde(default)]
    pub early_calls: u64,
    /// Missing parts, a sentence each, of a trace that was put together from journals after the job had died.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recovered: Vec<String>,
    /// Facts about a launch of more processes than the world has ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
    /// Optional metrics that rank 0 could not measure, and why: name and reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<(String, String)>,
    /// True where every rank's gaps are recorded: counted calls that are in none of them are in its sequence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_gaps: bool,
    /// Time up to which a run counts that had not ended when it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// Facts about what ran and where. They have records and a section of their own.
    #[serde(skip)]
    pub metadata: Metadata,
}

/// A process that is a world of its own, one of several that a launcher started together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// Number of processes that the launcher started, by its variable.
    pub processes: u32,
    /// The launcher's number of this one.
    pub number: u32,
    /// The variable: `PMI_SIZE`.
    pub variable: String,
    /// True where the launcher's variables were taken away before the program began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// One summarised metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricInfo {
    /// `mpi.time`
    pub name: String,
    /// `*` or a function.
    pub event: String,
    /// True where its bound sizes the sample.
    pub guide: bool,
}

/// One sampled group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupInfo {
    /// Its name.
    pub name: String,
    /// Its ranks, `0-127`.
    pub members: String,
}

impl RunInfo {
    /// Binary interface that gives constants their meaning, where it is known.
    pub fn abi_family(&self) -> Option<AbiFamily> {
        self.abi.or_else(|| AbiFamily::of_library(&self.mpi_library))
    }

    /// Takes over ranks, settings, metrics and groups of `plan`.
    pub fn describe(&mut self, plan: &Plan) {
        self.ranks = plan.ranks;
        self.config = plan.config.to_toml();
        self.metrics = plan
            .metrics
            .iter()
            .map(|metric| MetricInfo {
                name: metric.name().into(),
                event: metric.event.name().into(),
                guide: metric.guide,
            })
            .collect();
        self.groups = plan
            .groups
            .iter()
            .map(|group| GroupInfo { name: group.name.clone(), members: group.members.to_string() })
            .collect();
    }
}

/// A run read back.
#[derive(Debug, Default)]
pub struct Trace {
    /// The run as a whole.
    pub run: RunInfo,
    /// One entry for each rank that left something, ascending.
    pub ranks: Vec<RankTrace>,
    /// Calls of the ranks.
    pub structure: JobStructure,
    /// Exact totals of calls.
    pub totals: Totals,
    /// Differences of sums over ranks' windows from those of their rounded summaries.
    pub census: Census,
    /// The client's decisions, in order.
    pub decisions: Vec<Decision>,
    /// True where every rank reached `MPI_Finalize` and was merged.
    pub complete: bool,
    /// Bytes of the trace file by what they hold; journals count as they would be stored.
    pub sizes: Sizes,
    /// Missing or damaged parts.
    pub damage: Vec<Damage>,
}

/// Bytes by what they hold: all but the total add up to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The whole file.
    pub total: u64,
    /// Bytes that decoding needs with times off: names, sites, rank headers, calls.
    pub structure: u64,
    /// Streams of argument values beside the structure. There are none in this version, where the structure has them.
    pub values: u64,
    /// Times of kept windows, and their weights where windows have no summaries.
    pub timing: u64,
    /// Exact totals: [`Totals`].
    pub aggregates: u64,
    /// Summaries of ranks' windows, as `output.rank_summaries` asks for them.
    pub summaries: u64,
    /// Places of buffers that the structure does not have, and the addresses of places.
    pub addresses: u64,
    /// Calls that were counted and not recorded.
    pub gaps: u64,
    /// The run's metadata.
    pub metadata: u64,
    /// Facts about the run and its processes, decisions, section table.
    pub other: u64,
}

impl Sizes {
    /// Bytes of each part: their sum is the whole file.
    pub fn parts(&self) -> [u64; 9] {
        let &Self {
            total: _,
            structure,
            values,
            timing,
            aggregates,
            summaries,
            addresses,
            gaps,
            metadata,
            other,
        } = self;
        [structure, values, timing, aggregates, summaries, addresses, gaps, metadata, other]
    }
}

/// Data of one rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankTrace {
    /// Facts about the process.
    pub process: Process,
    /// Modules that call sites lie in: paths. Shared by ranks that have equal ones.
    pub modules: Arc<[String]>,
    /// Call sites, shared likewise.
    pub sites: Arc<[Site]>,
    /// Window summaries, ascending. Shared by ranks that have equal ones.
    pub windows: WindowSummaries,
    /// Significant bits of the windows' measured values where they are [rounded](crate::rounding); 0 where they are not, and
    /// in what is read back.
    pub digits: u32,
    /// Times of the calls of stored windows: [`crate::timing`].
    pub times: Vec<u8>,
    /// Addresses of the places that its calls name.
    pub places: Places,
    /// Places of buffers where these differ from those of the first call with their signature.
    pub buffers: Buffers,
    /// Calls that were counted and not recorded.
    pub gaps: Gaps,
}

impl RankTrace {
    /// Leaves the summaries of this rank's windows out of a trace file, as `output.rank_summaries` asks: the number of
    /// windows stays, and the weights of stored times.
    pub fn leave_out_summaries(&mut self) {
        self.process.windows = self.windows.end();
    }
}

/// Fit of the clock of a process to rank 0's, where that is another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockFit {
    /// Nanoseconds that are added to it in `MPI_Init`.
    pub offset_ns: i64,
    /// Largest error of its times, nanoseconds.
    pub error_ns: u64,
    /// Nanoseconds that it loses in 10^6, which are made up for; `None` where the job did not come to measure it.
    pub drift_ppm: Option<f64>,
}

/// Facts about a rank's process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Host name.
    pub host: String,
    /// Processors it may run on, `0-3`.
    pub cpus: String,
    /// The program it runs, as its command line has it; empty where that is rank 0's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Process number.
    pub pid: u32,
    /// True where it reached `MPI_Finalize`.
    pub finalized: bool,
    /// Failures of the agent.
    pub agent_failures: u64,
    /// Reason for which the agent gave up; `None` where it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gave_up: Option<GaveUp>,
    /// Processor time that the agent itself took in windows, nanoseconds: for calls, windows and the journal.
    pub own_ns: u64,
    /// Part of that for polls in a row that found nothing, but the first of each row: nobody waited for it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub polling_ns: u64,
    /// The agent's processor time in `MPI_Init` and before, to start the program, nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub begin_ns: u64,
    /// The agent's processor time in `MPI_Finalize`, nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub end_ns: u64,
    /// Time that it waited in `MPI_Finalize` for other ranks, nanoseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub end_wait_ns: u64,
    /// Processor time of the whole process up to `MPI_Finalize`, nanoseconds; 0 where it is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processor_ns: u64,
    /// Processors of the node that are in use; 0 where that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub processors: u64,
    /// Thousandths of a processor that the control group allows; 0 where it allows all.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub quota: u64,
    /// Number of times that its main thread lost the processor to another since `MPI_Init` returned; `None` where they
    /// were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
    /// Time from window 0's start to the last window's end, nanoseconds.
    pub elapsed_ns: u64,
    /// Number of its threads that are in MPI for long: each at least a hundredth as long as the longest. Threads that
    /// do not live at the same time count once. 0 of one thread.
    #[serde(default, skip_serializing_if = "is_none")]
    pub mpi_threads: u32,
    /// Part of its time in MPI that the thread that called `MPI_Init` has, in (0, 1); `None` where no other has any, or
    /// where that one leaves MPI to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub main_share: Option<f64>,
    /// Number of its windows, where their summaries are left out of the trace; otherwise 0.
    #[serde(default, skip_serializing_if = "is_no_window")]
    pub windows: u64,
    /// Calls per function: index in the function table, number; ascending. Stored by the functions' names.
    #[serde(with = "by_name")]
    pub calls: Vec<(u16, u64)>,
    /// Fit of its clock to rank 0's, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockFit>,
    /// Steps of the agent down, and up again, to stay within its cost limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Steps of the program that its windows follow, with `window.marker = "auto"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub followed: Option<Box<FollowedSteps>>,
    /// Ranks that named calls of steps, of the client where it has announced none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unannounced: Option<Box<UnannouncedSteps>>,
    /// Positions of its threads when it ended, or was read; empty of a process that came to its end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadPlace>,
    /// Regions of which it has not recorded all visits, because they were short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regions_left_out: Vec<LeftOutRegion>,
    /// State of the process when it was read, by the system.
    #[serde(default, skip_serializing_if = "Liveness::is_not_known")]
    pub liveness: Liveness,
}

/// A region of which visits were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LeftOutRegion {
    /// Its name; of a function that of its module's symbols, or its place where there is none.
    pub region: String,
    /// How many visits.
    pub visits: u64,
}

fn is_no_window(number: &u64) -> bool {
    *number == 0
}

fn is_none(number: &u32) -> bool {
    *number == 0
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Calls per function by name, so that the numbers of another table do no harm.
mod by_name {
    use std::fmt;

    use ampl_core::mpi::Function;
    use serde::de::{Error, MapAccess, Visitor};
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(calls: &[(u16, u64)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(calls.iter().map(|&(function, calls)| (Function(function).name(), calls)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u16, u64)>, D::Error> {
        deserializer.deserialize_map(Calls)
    }

    struct Calls;

    impl<'de> Visitor<'de> for Calls {
        type Value = Vec<(u16, u64)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("calls by function")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut calls = Vec::new();
            while let Some((Named(function), number)) = map.next_entry()? {
                calls.push((function, number));
            }
            calls.sort_unstable();
            calls.shrink_to_fit();
            Ok(calls)
        }
    }

    /// A function of that name.
    struct Named(u16);

    impl<'de> Deserialize<'de> for Named {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Name;

            impl Visitor<'_> for Name {
                type Value = Named;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("a function's name")
                }

                fn visit_str<E: Error>(self, name: &str) -> Result<Named, E> {
                    let function = Function::by_name(name).ok_or_else(|| E::custom("an unknown function"))?;
                    Ok(Named(function.0))
                }
            }

            deserializer.deserialize_str(Name)
        }
    }
}

/// Step of the agent: it does less for a call than before, or more again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The window open then.
    pub window: u64,
    /// Time of the step: ticks in a journal, nanoseconds since T0 in a trace.
    pub at: u64,
    /// Level from then on.
    pub level: Level,
    /// The agent's share of the time that made it step down, or that is expected after a step up.
    pub share: f64,
    /// Limit that was reached, where that is not one of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

pub use crate::level::Level;

pub use crate::timestep::{FollowedSteps, UnannouncedSteps};

pub use crate::last::{End, EndBasis, GaveUp, Limit, Liveness, Peer, Pending, Place, ThreadPlace};

pub use crate::site::{Aggregate, Site, call_path};

pub use crate::window_summary::{LASTING_STRATA, WindowIter, WindowSummaries, WindowSummary};

impl Trace {
    /// Calls per function over all ranks, ascending by function index.
    pub fn function_calls(&self) -> Vec<(u16, u64)> {
        let mut totals = std::collections::BTreeMap::new();
        for rank in &self.ranks {
            for &(function, calls) in &rank.process.calls {
                let total: &mut u64 = totals.entry(function).or_insert(0);
                *total = total.saturating_add(calls);
            }
        }
        totals.into_iter().collect()
    }

    /// Calls over all ranks.
    pub fn calls(&self) -> u64 {
        self.function_calls().iter().map(|&(_, calls)| calls).sum()
    }

    /// Time of the rank that ran longest, nanoseconds; 0 without ranks.
    pub fn elapsed_ns(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.process.elapsed_ns).max().unwrap_or(0)
    }

    /// Number of windows: one more than the highest number of any rank.
    pub fn windows(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.windows.end()).max().unwrap_or(0)
    }

    /// Number of rank-windows.
    pub fn rank_windows(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.windows.count()).fold(0, u64::saturating_add)
    }

    /// Number of rank-windows that are `counted`; asked once for each entry.
    pub fn rank_windows_of(&self, counted: impl Fn(&WindowSummary) -> bool) -> u64 {
        self.ranks.iter().map(|rank| rank.windows.count_of(&counted)).fold(0, u64::saturating_add)
    }

    /// Rank-windows whose calls are stored.
    pub fn kept_windows(&self) -> u64 {
        self.rank_windows_of(|window| window.kept)
    }

    /// Rank-windows whose calls are stored because a message partner was drawn.
    pub fn partner_windows(&self) -> u64 {
        self.rank_windows_of(|window| window.kept && window.partner)
    }

    /// Data of `rank`.
    pub fn rank(&self, rank: u32) -> Option<&RankTrace> {
        let found = self.ranks.binary_search_by_key(&rank, |have| have.process.rank);
        found.ok().map(|index| &self.ranks[index])
    }
}
