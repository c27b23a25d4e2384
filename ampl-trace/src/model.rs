//! A trace as readers see it.

use std::sync::Arc;

use ampl_core::message::Decision;
use ampl_core::mpi::constants::AbiFamily;
use ampl_core::plan::Plan;
use serde::{Deserialize, Serialize};

use crate::cells::Cells;
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
    /// Binary interface that the program was built for, which gives constants their meaning. Not in traces of before
    /// 27 November 2026.
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
    /// True where every rank's gaps are recorded: counted calls that are in none of them are in its sequence. Not in
    /// traces of before 27 November 2026.
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
    /// The client's decisions, in order.
    pub decisions: Vec<Decision>,
    /// True where every rank reached `MPI_Finalize` and was merged.
    pub complete: bool,
    /// Bytes of the trace file by what they hold; journals count as they would be stored.
    pub sizes: Sizes,
    /// Missing or damaged parts.
    pub damage: Vec<Damage>,
}

/// Bytes by what they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The whole file.
    pub total: u64,
    /// Bytes that decoding needs with times off: names, sites, rank headers, calls.
    pub structure: u64,
    /// Times of kept windows, and their weights where windows have no summaries.
    pub timing: u64,
    /// Exact totals: [`Totals`].
    pub aggregates: u64,
    /// Window summaries, addresses, run information, decisions, section table.
    pub other: u64,
    /// Bytes in `other` of summaries of ranks' windows, as `output.rank_summaries` asks for them.
    pub summaries: u64,
    /// Bytes in `other` of the addresses of buffers that structure names by their places.
    pub addresses: u64,
    /// Bytes in `other` of the calls that were counted and not recorded.
    pub gaps: u64,
    /// Bytes in `other` of the run's metadata.
    pub metadata: u64,
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
    /// Window summaries, ascending.
    pub windows: Vec<WindowSummary>,
    /// Times of the calls of stored windows: [`crate::timing`].
    pub times: Vec<u8>,
    /// Addresses of the places that its calls name.
    pub places: Places,
    /// Calls that were counted and not recorded.
    pub gaps: Gaps,
}

impl RankTrace {
    /// Leaves the summaries of this rank's windows out of a trace file, as `output.rank_summaries` asks: the number of
    /// windows stays, and the weights of stored times.
    pub fn leave_out_summaries(&mut self) {
        let end = |window: &WindowSummary| window.window.saturating_add(window.repeat.max(1));
        self.process.windows = self.windows.last().map_or(0, end);
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
    /// do not live at the same time count once. 0 of one thread, and in traces without this count.
    #[serde(default, skip_serializing_if = "is_none")]
    pub mpi_threads: u32,
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
    use std::collections::BTreeMap;

    use ampl_core::mpi::Function;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(calls: &[(u16, u64)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(calls.iter().map(|&(function, calls)| (Function(function).name(), calls)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(u16, u64)>, D::Error> {
        let stored = BTreeMap::<String, u64>::deserialize(deserializer)?;
        let number = |name: &str| Function::by_name(name).map(|function| function.0);
        let each = |(name, calls): (String, u64)| {
            number(&name).map(|number| (number, calls)).ok_or_else(|| D::Error::custom("an unknown function"))
        };
        let mut calls = stored.into_iter().map(each).collect::<Result<Vec<_>, _>>()?;
        calls.sort_unstable();
        Ok(calls)
    }
}

/// Step of the agent: it does less for a call than before, or more again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The window open then.
    pub window: u64,
    /// Time of the step: ticks in a journal, nanoseconds since T0 in a trace.
    pub at: u64,
    /// Level from then on: `kept`, `drawn` (as kept, but windows are decided before they begin), `structure`,
    /// `summaries` or `off`; or [`STEP_CLOCK`].
    pub level: String,
    /// The agent's share of the time that made it step down, or that is expected after a step up.
    pub share: f64,
}

/// The level of a [`Step`] that is about windows only: they end by the clock from there on, for the program has not
/// named the region of the marker.
pub const STEP_CLOCK: &str = "clock";

pub use crate::last::{End, EndBasis, GaveUp, Liveness, Peer, Place, ThreadPlace};

pub use crate::site::{Aggregate, Site, call_path};

/// Number from which strata that last are stored; strata of windows are below.
pub const LASTING_STRATA: u16 = 256;

/// One rank's window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WindowSummary {
    /// Its number.
    pub window: u64,
    /// Start, nanoseconds since T0.
    pub start_ns: i64,
    /// End, nanoseconds since T0.
    pub end_ns: i64,
    /// Time the agent itself took in it, nanoseconds.
    pub own_ns: u64,
    /// True where its calls are stored.
    pub kept: bool,
    /// True where it was drawn: it then stands for 1/probability windows.
    pub drawn: bool,
    /// True where it was not drawn, but kept because a rank that this one exchanges messages with was.
    pub partner: bool,
    /// True where the end of the run closed it.
    pub partial: bool,
    /// Probability with which it was drawn, in [0, 1]: its design weight is 1 over it.
    pub probability: f64,
    /// Probability that the rank or a partner of it was drawn, where that is another: see
    /// [`WindowSummary::inclusion`].
    pub inclusion: Option<f64>,
    /// Stratum that it was drawn in: from 1 where it was decided after its end, or 0 where it was kept in full;
    /// [`LASTING_STRATA`] and the stratum where its group was divided beforehand.
    pub stratum: Option<u16>,
    /// Update whose directive decided.
    pub update: u64,
    /// One cell per metric of [`RunInfo::metrics`]; none where only drawn windows are summarised.
    pub cells: Cells,
    /// Number of windows in a row, this one the first, that were alike; 0 is as good as 1.
    pub repeat: u64,
}

impl WindowSummary {
    /// True where its calls are stored for the sample: its rank was drawn, or a message partner of its rank.
    pub fn is_sampled(&self) -> bool {
        self.drawn || self.partner
    }

    /// Largest number of windows of one rank that are told apart: a damaged file must not ask for memory.
    const MOST: u64 = 1 << 21;

    /// Probability with which its calls are stored because of a draw, in [0, 1]. Their design weight in a total over
    /// everything stored is 1 over it.
    pub fn inclusion(&self) -> f64 {
        self.inclusion.unwrap_or(self.probability)
    }

    /// `windows` with one entry each, where several in a row were stored as one.
    pub fn spread(windows: &mut Vec<Self>) {
        let number = |window: &Self| window.repeat.max(1);
        let all = windows.iter().map(number).fold(0, u64::saturating_add);
        if all == windows.len() as u64 || all > Self::MOST {
            return;
        }
        let each = |first: Self| {
            let all = number(&first);
            let length = first.end_ns.saturating_sub(first.start_ns) as f64 / all as f64;
            (0..all).map(move |index| {
                let at = |index: u64| first.start_ns.saturating_add((length * index as f64) as i64);
                let (start_ns, end_ns) = (at(index), at(index + 1));
                let (window, own_ns) = (first.window.saturating_add(index), first.own_ns / all);
                Self { window, start_ns, end_ns, own_ns, repeat: 1, ..first.clone() }
            })
        };
        *windows = std::mem::take(windows).into_iter().flat_map(each).collect();
    }
}

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

    /// Number of windows: one more than the highest number of any rank.
    pub fn windows(&self) -> u64 {
        self.ranks
            .iter()
            .filter_map(|rank| rank.windows.last())
            .map(|w| w.window.saturating_add(1))
            .max()
            .unwrap_or(0)
    }

    /// Rank-windows whose calls are stored.
    pub fn kept_windows(&self) -> u64 {
        self.ranks.iter().flat_map(|rank| &rank.windows).filter(|w| w.kept).count() as u64
    }

    /// Rank-windows whose calls are stored because a message partner was drawn.
    pub fn partner_windows(&self) -> u64 {
        self.ranks.iter().flat_map(|rank| &rank.windows).filter(|w| w.kept && w.partner).count() as u64
    }

    /// Data of `rank`.
    pub fn rank(&self, rank: u32) -> Option<&RankTrace> {
        let found = self.ranks.binary_search_by_key(&rank, |have| have.process.rank);
        found.ok().map(|index| &self.ranks[index])
    }
}
