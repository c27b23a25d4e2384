//! Efficiencies per window and of the run, with whom they waited for.

use std::collections::{BTreeMap, BTreeSet};

use ampl_trace::cells::Cells;
use ampl_trace::{RankTrace, Trace};
use serde::Serialize;

use super::shares::{Shares, Times};
use crate::estimate::partial_windows;
use crate::rundir;

/// What numbers rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Summaries of all ranks.
    Census,
    /// Summaries of the sampled ranks: the mean is estimated, the greatest is that of the sample.
    Sampled,
    /// Totals by function, which every rank has where summaries are the sample's only.
    Totals,
    /// Summaries of what was measured: elsewhere calls were only counted, or ampl was paused. Of the run, the windows
    /// that all ranks measured.
    Measured,
}

/// One window, or the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The window; none for the run.
    pub window: Option<u64>,
    /// Share of the ranks' time that computes.
    pub parallel: Option<f64>,
    /// Mean over greatest compute time.
    pub load_balance: Option<f64>,
    /// Greatest compute time over elapsed time.
    pub communication: Option<f64>,
    /// The rank that the others waited for.
    pub slowest: Option<SlowestRank>,
    /// The host that they waited for, by the mean compute time of its ranks.
    pub slowest_host: Option<SlowestHost>,
    /// Where the numbers come from.
    pub basis: Basis,
    /// Ranks of the job.
    pub population: u64,
    /// Ranks whose times these are.
    pub reported: u64,
    /// Of a window: whether the end of the run cut it off, on any rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
    /// The longest of their times without what ampl took, nanoseconds.
    #[serde(skip)]
    pub elapsed_ns: f64,
}

/// The rank with the most compute time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowestRank {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// In how many of the row's windows it had the most.
    pub windows: u64,
}

/// The host whose ranks have the most compute time on average.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowestHost {
    /// The host.
    pub host: String,
    /// Its ranks among those that reported.
    pub ranks: u64,
    /// In how many of the row's windows it was the slowest.
    pub windows: u64,
    /// Mean compute time of its ranks over that of all.
    pub over_mean: f64,
}

/// Efficiencies of `trace`: the run's row, then one per window in which any rank reported times.
pub fn rows(trace: &Trace) -> Vec<Row> {
    let columns = Columns::of(trace);
    let hosts = Hosts::of(trace);
    let census = rundir::plan(trace).is_none_or(|plan| plan.stores_summary(false));
    let mut windows: BTreeMap<u64, (Vec<Times>, Basis)> = BTreeMap::new();
    for rank in &trace.ranks {
        for window in &rank.windows {
            let (reported, basis) =
                windows.entry(window.window).or_insert_with(|| (Vec::new(), Basis::Census));
            let Some(mut times) = columns.times(rank.process.rank, &window.cells) else {
                *basis = if census { Basis::Measured } else { Basis::Sampled };
                continue;
            };
            times.weight = if window.probability > 0.0 { 1.0 / window.probability } else { 1.0 };
            reported.push(times);
        }
    }
    let partial = partial_windows(trace.ranks.iter());
    let mut rows: Vec<Row> = Vec::new();
    for (window, (mut times, basis)) in windows {
        if times.is_empty() {
            continue; // nobody of the sample got this far
        }
        if basis != Basis::Sampled {
            times.iter_mut().for_each(|times| times.weight = 1.0);
        }
        let row = Row::new(Some(window), &times, basis, trace, &hosts);
        rows.push(Row { partial: Some(partial.contains(&window)), ..row });
    }
    let run = run_times(trace);
    let mut run = Row::new(None, &run.times, run.basis, trace, &hosts);
    if let Some(slowest) = &mut run.slowest {
        let by_it = |row: &&Row| row.slowest.as_ref().is_some_and(|of| of.rank == slowest.rank);
        slowest.windows = rows.iter().filter(by_it).count() as u64;
    }
    if let Some(slowest) = &mut run.slowest_host {
        let by_it = |row: &&Row| row.slowest_host.as_ref().is_some_and(|of| of.host == slowest.host);
        slowest.windows = rows.iter().filter(by_it).count() as u64;
    }
    rows.insert(0, run);
    rows
}

/// Whether calls of some rank were only counted for a while, because more would have cost too much.
pub fn is_only_counted(trace: &Trace) -> bool {
    trace.ranks.iter().flat_map(|rank| &rank.process.steps).any(|step| step.level == "off")
}

/// Times of the whole run.
#[derive(Clone, Debug)]
pub struct RunTimes {
    /// Of every rank that left something.
    pub times: Vec<Times>,
    /// What they rest on.
    pub basis: Basis,
    /// Windows that are left out: not all ranks measured them.
    pub lacking: BTreeSet<u64>,
}

/// Times of the whole run of every rank that left something.
pub fn run_times(trace: &Trace) -> RunTimes {
    let columns = Columns::of(trace);
    let windows = || trace.ranks.iter().flat_map(|rank| &rank.windows);
    let has_all = |rank: &RankTrace| {
        rank.windows.iter().all(|window| columns.times(rank.process.rank, &window.cells).is_some())
    };
    if trace.ranks.iter().all(has_all) {
        let lacking = BTreeSet::new();
        let times = trace.ranks.iter().map(|rank| columns.sum(rank, &lacking)).collect();
        RunTimes { times, basis: Basis::Census, lacking }
    } else if is_only_counted(trace) || windows().any(|window| columns.is_paused(&window.cells)) {
        // Totals lack what was only counted, too, and what was not watched at all.
        let lacking = windows().filter(|window| columns.times(0, &window.cells).is_none());
        let lacking = lacking.map(|window| window.window).collect();
        let times = trace.ranks.iter().map(|rank| columns.sum(rank, &lacking)).collect();
        RunTimes { times, basis: Basis::Measured, lacking }
    } else {
        let mut mpi: BTreeMap<u32, f64> = BTreeMap::new();
        for (_, rank, share) in trace.totals.shares() {
            *mpi.entry(rank).or_default() += share.time_ns as f64;
        }
        let times = |rank: &RankTrace| from_totals(rank, mpi.get(&rank.process.rank).copied().unwrap_or(0.0));
        let times = trace.ranks.iter().map(times).collect();
        RunTimes { times, basis: Basis::Totals, lacking: BTreeSet::new() }
    }
}

/// Where the times are among a window's cells.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    wall: Option<usize>,
    mpi: Option<usize>,
    compute: Option<usize>,
}

impl Columns {
    /// Those of `trace`.
    pub fn of(trace: &Trace) -> Self {
        let at = |name: &str| {
            trace.run.metrics.iter().position(|metric| metric.name == name && metric.event == "*")
        };
        Self { wall: at("wall"), mpi: at("mpi.time"), compute: at("compute.time") }
    }

    /// Whether the rank had paused ampl for all of a window with these cells.
    fn is_paused(self, cells: &Cells) -> bool {
        self.wall.and_then(|wall| cells.get(wall)).is_some_and(|wall| wall.n == 0.0)
    }

    /// Times in `cells`; `None` where the window has none.
    pub fn times(self, rank: u32, cells: &Cells) -> Option<Times> {
        if self.is_paused(cells) {
            return None;
        }
        let sum = |at: Option<usize>| Some(cells.get(at?)?.sum);
        Some(Times {
            rank,
            wall: sum(self.wall)?,
            mpi: sum(self.mpi)?,
            compute: sum(self.compute)?,
            weight: 1.0,
        })
    }

    /// Times of all windows of `rank` that have some, but for those that are `lacking`.
    fn sum(self, rank: &RankTrace, lacking: &BTreeSet<u64>) -> Times {
        let none = Times { rank: rank.process.rank, weight: 1.0, ..Times::default() };
        let windows = rank.windows.iter().filter(|window| !lacking.contains(&window.window));
        let windows = windows.filter_map(|window| self.times(rank.process.rank, &window.cells));
        windows.fold(none, |sum, times| Times {
            wall: sum.wall + times.wall,
            mpi: sum.mpi + times.mpi,
            compute: sum.compute + times.compute,
            ..sum
        })
    }
}

fn from_totals(rank: &RankTrace, mpi: f64) -> Times {
    let wall = rank.process.elapsed_ns as f64;
    // Several threads may be in MPI at once.
    let compute = (wall - mpi - rank.process.own_ns as f64).max(0.0);
    Times { rank: rank.process.rank, wall, mpi, compute, weight: 1.0 }
}

/// Which rank is where.
#[derive(Debug)]
struct Hosts<'a>(BTreeMap<u32, &'a str>);

impl<'a> Hosts<'a> {
    fn of(trace: &'a Trace) -> Self {
        Self(trace.ranks.iter().map(|rank| (rank.process.rank, rank.process.host.as_str())).collect())
    }

    fn name(&self, rank: u32) -> &'a str {
        self.0.get(&rank).copied().unwrap_or("?")
    }

    /// The host of the greatest mean compute time; of equals the first by name.
    fn slowest(&self, times: &[Times]) -> Option<SlowestHost> {
        let mut sums: BTreeMap<&str, (f64, f64, u64)> = BTreeMap::new();
        let (mut all, mut weights) = (0.0, 0.0);
        for times in times {
            let (sum, weight, ranks) = sums.entry(self.name(times.rank)).or_default();
            *sum += times.weight * times.compute;
            *weight += times.weight;
            *ranks += 1;
            all += times.weight * times.compute;
            weights += times.weight;
        }
        let mean = all / weights;
        let means = sums.into_iter().map(|(host, (sum, weight, ranks))| (host, sum / weight, ranks));
        let (host, most, ranks) = means.reduce(|a, b| if b.1 > a.1 { b } else { a })?;
        Some(SlowestHost { host: host.to_owned(), ranks, windows: 1, over_mean: most / mean })
    }
}

impl Row {
    fn new(window: Option<u64>, times: &[Times], basis: Basis, trace: &Trace, hosts: &Hosts<'_>) -> Self {
        let shares = Shares::of(times);
        Self {
            window,
            parallel: shares.map(|shares| shares.parallel),
            load_balance: shares.map(|shares| shares.load_balance),
            communication: shares.map(|shares| shares.communication),
            slowest: shares.map(|shares| SlowestRank {
                rank: shares.slowest,
                host: hosts.name(shares.slowest).to_owned(),
                windows: 1,
            }),
            slowest_host: shares.and_then(|_| hosts.slowest(times)),
            basis,
            population: trace.run.ranks.into(),
            reported: times.len() as u64,
            partial: None,
            elapsed_ns: times.iter().map(Times::of_program).fold(0.0, f64::max),
        }
    }
}
