//! Efficiencies per window and of the run, with the slowest rank and host.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ampl_core::window_set::WindowSet;
use ampl_reader::directory;
use ampl_trace::Trace;
use serde::{Deserialize, Serialize};

use super::bounds::Bounds;
use super::imbalance::{Bound, Imbalance, Lost};
use super::run::{RunTimes, run_times, times_in};
use super::shares::Shares;
use crate::coverage::{Coverage, Extent};
use crate::pauses::{self, Pauses};
use crate::programs;
use crate::window_times::{Columns, Times, partial_windows};

/// Data that numbers rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Summaries of all ranks.
    Census,
    /// Summaries of the sampled ranks: the mean is estimated, the greatest is that of the sample.
    Sampled,
    /// Totals by function, which every rank has where summaries are the sample's only.
    Totals,
    /// Summaries where there are any: elsewhere calls were only counted, or ampl was paused, or ranks left none. For
    /// the run, windows that all ranks measured.
    Measured,
}

/// One window, or the run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The window; none for the run.
    pub window: Option<u64>,
    /// Share of the ranks' time that computes; none, as the next two, where too little was measured: of a window, where
    /// any rank that had it did not measure it.
    pub parallel: Option<f64>,
    /// Mean over greatest compute time; none, as the slowest rank and host, in a job of several programs, whose ranks do
    /// different work ([`super::by_program`]).
    pub load_balance: Option<f64>,
    /// Greatest compute time over elapsed time.
    pub communication: Option<f64>,
    /// The rank that the others waited for.
    pub slowest: Option<SlowestRank>,
    /// The host that they waited for, by the mean compute time of its ranks.
    pub slowest_host: Option<SlowestHost>,
    /// Data that the numbers rest on.
    pub basis: Basis,
    /// Share of the ranks' time that the numbers rest on.
    pub coverage: f64,
    /// Bounds of the run's numbers, where not all of it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Time of an average rank that imbalance and MPI cost; the run's row only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
    /// Imbalance of the ranks; the run's row only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imbalance: Option<Imbalance>,
    /// Ranks of the job.
    pub population: u64,
    /// Ranks whose times these are.
    pub reported: u64,
    /// True where the end of the run cut the window off on any rank; windows only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
    /// Pauses of the program, which are in no number; the run's row only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pauses>,
    /// Part of the run that was measured; the run's row only.
    #[serde(skip)]
    pub measured: Option<Coverage>,
}

/// The rank with the most compute time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowestRank {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Windows of the row in which it had the most.
    pub windows: u64,
}

/// The host whose ranks have the most compute time on average.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowestHost {
    /// The host.
    pub host: String,
    /// Its ranks among those that reported.
    pub ranks: u64,
    /// Windows of the row in which it was the slowest.
    pub windows: u64,
    /// Mean compute time of its ranks over that of all.
    pub over_mean: f64,
}

/// Measurements of one window by its ranks.
struct Window {
    times: Vec<Times>,
    basis: Basis,
    /// Lengths of the ranks' windows, and of those that were measured, nanoseconds.
    length_ns: f64,
    measured_ns: f64,
}

/// Efficiencies of `trace`: the run's row, then one per window in which any rank reported times.
pub fn rows(trace: &Trace) -> Vec<Row> {
    let hosts = Hosts::of(trace);
    let run = run_times(trace);
    let mut windows = windows(trace);
    let mut rows = window_rows(trace, &hosts, &run, &mut windows);
    let mut row = run_row(trace, &hosts, &run, &windows.iter().collect::<Vec<_>>(), &rows);
    row.paused = pauses::all(trace);
    rows.insert(0, row);
    rows
}

/// Times of parts of the run, each of some windows, and its row, which is as that of a run of these alone.
pub fn parts(trace: &Trace, parts: &[Range<u64>]) -> Vec<(RunTimes, Row)> {
    let hosts = Hosts::of(trace);
    let mut windows = windows(trace);
    let rows = window_rows(trace, &hosts, &run_times(trace), &mut windows);
    let part = |part: &Range<u64>| {
        let is_in = |row: &&Row| row.window.is_some_and(|window| part.contains(&window));
        let rows: Vec<Row> = rows.iter().filter(is_in).cloned().collect();
        let times = times_in(trace, part);
        let row = run_row(trace, &hosts, &times, &windows.range(part.clone()).collect::<Vec<_>>(), &rows);
        (times, row)
    };
    parts.iter().map(part).collect()
}

/// The windows of `trace` as its ranks measured them.
fn windows(trace: &Trace) -> BTreeMap<u64, Window> {
    let columns = Columns::of(trace);
    let census = directory::plan(&trace.run).is_none_or(|plan| plan.stores_summary(false));
    let without = if census { Basis::Measured } else { Basis::Sampled };
    let mut windows: BTreeMap<u64, Window> = BTreeMap::new();
    let mut bare: BTreeSet<(u64, u64)> = BTreeSet::new();
    for rank in &trace.ranks {
        let columns = columns.of_rank(rank);
        for window in rank.windows.iter_known() {
            if window.is_bare() {
                bare.insert((window.numbers().start, window.numbers().end));
                continue;
            }
            let none =
                || Window { times: Vec::new(), basis: Basis::Census, length_ns: 0.0, measured_ns: 0.0 };
            let found = windows.entry(window.window).or_insert_with(none);
            let times = columns.times(&window);
            let length = columns.length(&window).max(times.map_or(0.0, |times| times.wall));
            found.length_ns += length;
            match times {
                Some(mut times) => {
                    found.measured_ns += length;
                    times.weight = if window.probability > 0.0 { 1.0 / window.probability } else { 1.0 };
                    found.times.push(times);
                }
                None => found.basis = without,
            }
        }
    }
    let bare: WindowSet = bare.into_iter().map(|(first, end)| first..end).collect();
    let lacking = windows.iter_mut().filter(|(number, _)| bare.contains(**number));
    lacking.for_each(|(_, window)| window.basis = without);
    windows
}

/// A row for each window in which any rank reported times.
fn window_rows(
    trace: &Trace,
    hosts: &Hosts<'_>,
    run: &RunTimes,
    windows: &mut BTreeMap<u64, Window>,
) -> Vec<Row> {
    let partial = partial_windows(trace.ranks.iter());
    let mut rows: Vec<Row> = Vec::new();
    for (&window, Window { times, basis, length_ns, measured_ns }) in windows {
        if times.is_empty() {
            continue; // nobody of the sample got this far
        }
        if *basis != Basis::Sampled {
            times.iter_mut().for_each(|times| times.weight = 1.0);
        }
        // If the rank that computes most is missing, the greatest compute time is another's, however few ranks are
        // missing.
        let misses = *basis != Basis::Sampled && (run.lacking.contains(window) || run.absent() > 0);
        // Calls that ampl does not see count as computing.
        let misses = misses || run.coverage.unseen;
        let known = if misses { None } else { Shares::of(times) };
        let coverage = if *length_ns > 0.0 { *measured_ns / *length_ns } else { 1.0 };
        let coverage = if *basis == Basis::Sampled { 1.0 } else { coverage };
        let row = Row::new(Some(window), times, known, *basis, trace, hosts);
        rows.push(Row { partial: Some(partial.contains(&window)), coverage, ..row });
    }
    rows
}

/// The row of the run, or of a part of it, whose windows have `rows`.
fn run_row(
    trace: &Trace,
    hosts: &Hosts<'_>,
    run: &RunTimes,
    windows: &[(&u64, &Window)],
    rows: &[Row],
) -> Row {
    let known = Shares::of(&run.times).filter(|_| run.extent() != Extent::Little);
    let mut row = Row::new(None, &run.times, known, run.basis, trace, hosts);
    row.coverage = run.coverage.of_run();
    row.bounds = run.bounds;
    row.measured = Some(run.coverage);
    if let Some(slowest) = &mut row.slowest {
        let by_it = |row: &&Row| row.slowest.as_ref().is_some_and(|of| of.rank == slowest.rank);
        slowest.windows = rows.iter().filter(by_it).count() as u64;
    }
    if let Some(slowest) = &mut row.slowest_host {
        let by_it = |row: &&Row| row.slowest_host.as_ref().is_some_and(|of| of.host == slowest.host);
        slowest.windows = rows.iter().filter(by_it).count() as u64;
    }
    if known.is_some() && !hosts.several_programs {
        let whole = windows.iter().filter(|(window, of)| {
            !run.lacking.contains(**window) && of.basis == Basis::Census && !of.times.is_empty()
        });
        let whole: Vec<(u64, &[Times])> =
            whole.map(|&(number, window)| (*number, &window.times[..])).collect();
        let host = |rank: u32| hosts.name(rank);
        (row.lost, row.imbalance) = match Imbalance::of(&run.times, &whole, bound(trace), host) {
            Some((lost, imbalance)) => (Some(lost), imbalance),
            None => (None, None),
        };
    }
    row
}

/// How near the run's imbalance is to the truth by windows like these.
fn bound(trace: &Trace) -> Bound {
    let follows_steps = trace.ranks.iter().any(|rank| rank.process.followed.is_some());
    let by_call = directory::plan(&trace.run).is_some_and(|plan| !plan.config.window.marker.is_clock());
    let by_call = by_call || follows_steps;
    if by_call { Bound::Estimate } else { Bound::AtLeast }
}

/// Hosts of the ranks, and whether these run different programs.
#[derive(Debug)]
struct Hosts<'a> {
    names: BTreeMap<u32, &'a str>,
    /// True where ranks are not compared with each other: they do different work.
    several_programs: bool,
}

impl<'a> Hosts<'a> {
    fn of(trace: &'a Trace) -> Self {
        let names = trace.ranks.iter().map(|rank| (rank.process.rank, rank.process.host.as_str())).collect();
        Self { names, several_programs: programs::of(trace).len() > 1 }
    }

    fn name(&self, rank: u32) -> &'a str {
        self.names.get(&rank).copied().unwrap_or("?")
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
    /// Row of ranks with these times, whose efficiencies are `known`.
    fn new(
        window: Option<u64>,
        times: &[Times],
        known: Option<Shares>,
        basis: Basis,
        trace: &Trace,
        hosts: &Hosts<'_>,
    ) -> Self {
        let compared = known.filter(|_| !hosts.several_programs);
        Self {
            window,
            parallel: known.map(|shares| shares.parallel),
            load_balance: compared.and_then(|shares| shares.load_balance),
            communication: known.map(|shares| shares.communication),
            slowest: compared.and_then(|shares| shares.slowest).map(|rank| SlowestRank {
                rank,
                host: hosts.name(rank).to_owned(),
                windows: 1,
            }),
            slowest_host: compared.and_then(|shares| shares.slowest).and_then(|_| hosts.slowest(times)),
            basis,
            coverage: 1.0,
            bounds: None,
            lost: None,
            imbalance: None,
            population: trace.run.ranks.into(),
            reported: times.len() as u64,
            partial: None,
            paused: None,
            measured: None,
        }
    }
}
