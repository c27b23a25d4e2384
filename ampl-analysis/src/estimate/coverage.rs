//! Part of a group's work that is in its window summaries.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use ampl_core::plan::{GroupPlan, Plan};
use ampl_core::units::Rank;
use ampl_core::window_set::WindowSet;
use ampl_trace::model::{Level, WindowSummary};
use ampl_trace::{RankTrace, Trace};

use super::observed::is_measured;
use crate::counted::in_counted_span;
use crate::window_times::partial_windows;

/// Part of a group's work in some windows that was summarised.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Covered {
    /// Share of the ranks' time there, in [0, 1].
    pub share: f64,
    /// Windows summarised by all ranks that had them, and all windows.
    pub windows: [u64; 2],
    /// Rank-windows without a summary whose length is known, and their length together, nanoseconds.
    pub unknown: (u64, f64),
    /// Ranks that reported all they did there.
    pub whole: u64,
    /// Rank-windows that existed, and have no summary.
    pub missing: u64,
    /// True where windows of one number are of different times: they end by the clock on some ranks and by a marker
    /// on others, or with `MPI_Finalize` on some only.
    pub mixed: bool,
}

/// Windows with a summary, for each rank of a group.
#[derive(Debug)]
pub struct Ledger {
    ranks: Vec<Entry>,
    /// Ranks of the group that left nothing.
    absent: u64,
    /// The last window of the job.
    last: u64,
    /// First window that is not of the same time on all ranks.
    mixed_from: Option<u64>,
    /// Windows that are steps on some ranks, and still periods on others.
    partly_steps: Range<u64>,
    /// Windows that the end of the run ended on some ranks, and a marker on others.
    cut_short: BTreeSet<u64>,
    /// Windows that the end of the run ended on some rank.
    partial: BTreeSet<u64>,
    /// Windows summarised by all ranks that had them.
    whole: WindowSet,
}

impl Covered {
    /// True where this is all that a group of `population` ranks did.
    pub fn is_whole(&self, population: u64) -> bool {
        self.whole == population && self.missing == 0 && !self.mixed
    }
}

#[derive(Debug)]
struct Entry {
    /// The last window that it had: its own last one if it reached `MPI_Finalize`, the job's otherwise.
    last: u64,
    /// True where it reached `MPI_Finalize` and the agent never failed.
    finalized: bool,
    /// Windows with a summary.
    summarised: WindowSet,
    /// All windows: in a row where they have no length. `before` has the length of those before each: of all, and of
    /// summarised ones, nanoseconds.
    windows: Vec<Range<u64>>,
    numbers: WindowSet,
    before: Vec<[f64; 2]>,
    /// Time that it ran for behind these windows, nanoseconds; 0 where it is `finalized`.
    tail_ns: f64,
}

impl Entry {
    fn new(plan: &Plan, rank: &RankTrace, last: u64) -> Self {
        let finalized = is_finalized(rank);
        let (mut summarised, mut windows, mut before) = (WindowSet::default(), Vec::new(), vec![[0.0; 2]]);
        let (mut all, mut known) = (0.0, 0.0);
        each_window(plan, rank, |window, is_summarised| {
            let length = window.end_ns.saturating_sub(window.start_ns).max(0) as f64;
            all += length;
            if is_summarised {
                known += length;
                summarised.push(window.numbers());
            }
            windows.push(window.numbers());
            before.push([all, known]);
        });
        let tail_ns = if finalized { 0.0 } else { (rank.process.elapsed_ns as f64 - all).max(0.0) };
        let numbers = windows.iter().cloned().collect();
        Self { last: last_of(rank).unwrap_or(last), finalized, summarised, windows, numbers, before, tail_ns }
    }

    /// Number of windows from `first` to `last`, and their length: of all, and of summarised ones.
    fn between(&self, first: u64, last: u64) -> (u64, [f64; 2]) {
        let end = last.saturating_add(1);
        // Only windows of no length are in a row, so that a part of these needs no share of it.
        let index = |window: u64| self.windows.partition_point(|own| own.end <= window);
        let from = index(first);
        // Numbers of a damaged file may not ascend.
        let to = index(end).max(from);
        let time = |of: usize| self.before[to][of] - self.before[from][of];
        (self.numbers.below(end).saturating_sub(self.numbers.below(first)), [time(0), time(1)])
    }
}

/// True where `rank` reached `MPI_Finalize`, and its last window is the rank's: where the agent failed it need not be.
fn is_finalized(rank: &RankTrace) -> bool {
    rank.process.finalized && rank.process.agent_failures == 0
}

/// The last window that `rank` had; `None` where that is not known.
fn last_of(rank: &RankTrace) -> Option<u64> {
    rank.windows.end().checked_sub(1).filter(|_| is_finalized(rank))
}

/// Passes the windows of `rank`, those of no length in a row, and whether they were summarised, to `take`.
fn each_window(plan: &Plan, rank: &RankTrace, mut take: impl FnMut(&WindowSummary, bool)) {
    // Windows that were not drawn have no summary, whether they were measured or not.
    let in_span = if plan.stores_summary(false) { None } else { in_counted_span(rank) };
    let windows = if in_span.is_some() { rank.windows.iter() } else { rank.windows.iter_known() };
    let is_counted = |window: &WindowSummary| in_span.as_ref().is_some_and(|in_span| in_span(window));
    for window in windows {
        take(&window, is_measured(plan, &window) && !is_counted(&window));
    }
}

impl Ledger {
    /// Ledger of `group`.
    pub fn new(trace: &Trace, plan: &Plan, group: &GroupPlan) -> Self {
        let last = trace.windows().saturating_sub(1);
        let members = trace.ranks.iter().filter(|rank| group.members.contains(Rank(rank.process.rank)));
        let mixed_from = mixed_from(members.clone());
        let follows_steps = members.clone().any(|rank| rank.process.followed.is_some());
        let by_clock = plan.config.window.marker.is_clock() && !follows_steps;
        let cut_short = if by_clock { BTreeSet::new() } else { cut_short(members.clone()) };
        let ranks: Vec<Entry> = members.clone().map(|rank| Entry::new(plan, rank, last)).collect();
        let absent = group.members.len().saturating_sub(ranks.len() as u64);
        Self {
            whole: if absent > 0 { WindowSet::default() } else { whole(&ranks) },
            absent,
            ranks,
            last,
            mixed_from,
            partly_steps: partly_steps(members.clone()),
            cut_short,
            partial: partial_windows(members),
        }
    }

    /// True where the end of the run ended that window on some rank.
    pub fn is_partial(&self, window: u64) -> bool {
        self.partial.contains(&window)
    }

    /// Part of the ranks' work in `windows` that was summarised. With `to_the_end`, a rank that did not reach
    /// `MPI_Finalize` has not reported all.
    pub fn coverage(&self, windows: RangeInclusive<u64>, to_the_end: bool) -> Covered {
        let (first, last) = (*windows.start(), (*windows.end()).min(self.last));
        let count = |last: u64| last.saturating_add(1).saturating_sub(first);
        let missing = self.absent.saturating_mul(count(last));
        let single = first == last && self.cut_short.contains(&first);
        let steps = self.partly_steps.start.max(first) < self.partly_steps.end.min(last.saturating_add(1));
        let mixed = single || steps || self.mixed_from.is_some_and(|from| from <= last);
        let mut found = Covered { missing, mixed, ..Covered::default() };
        // Length of all windows, of summarised ones, and after the last window of ranks that have no more.
        let (mut there, mut all, mut known, mut tail) = (0, 0.0, 0.0, 0.0);
        for rank in &self.ranks {
            let has =
                rank.summarised.below(last.saturating_add(1)).saturating_sub(rank.summarised.below(first));
            let missing = count(last.min(rank.last)).saturating_sub(has);
            found.missing = found.missing.saturating_add(missing);
            found.whole += u64::from(has > 0 && missing == 0 && (rank.finalized || !to_the_end));
            let (own, [length, summarised]) = rank.between(first, last);
            there += own;
            all += length;
            known += summarised;
            found.unknown.0 += own.saturating_sub(has);
            found.unknown.1 += length - summarised;
            if to_the_end && missing == own.saturating_sub(has) {
                tail += rank.tail_ns;
            }
        }
        // Windows that were never closed are taken to be as long as the others.
        let closed_by_nobody = found.missing.saturating_sub(found.unknown.0) as f64;
        let whole = all + tail + closed_by_nobody * all / (there as f64).max(1.0);
        found.share = match whole > 0.0 {
            true => (known / whole).clamp(0.0, 1.0),
            false if found.missing == 0 => 1.0,
            false => 0.0,
        };
        let whole = self.whole.below(last.saturating_add(1)).saturating_sub(self.whole.below(first));
        found.windows = [whole, count(last)];
        if closed_by_nobody > 0.0 || tail > 0.0 {
            found.unknown = (0, f64::INFINITY);
        }
        found
    }
}

/// Windows summarised by all of `ranks` that had them.
fn whole(ranks: &[Entry]) -> WindowSet {
    let mut presence = Presence::default();
    ranks.iter().for_each(|rank| presence.add(rank.last, &rank.summarised));
    presence.whole()
}

/// Numbers of ranks that have a summary of a window, and of those that should have one.
#[derive(Default)]
struct Presence {
    /// By window, the change of both numbers from there on.
    changes: BTreeMap<u64, [i64; 2]>,
}

impl Presence {
    /// Adds a rank that had windows up to `last`.
    fn add(&mut self, last: u64, summarised: &WindowSet) {
        let mut change = |window: u64, of: usize, by: i64| self.changes.entry(window).or_default()[of] += by;
        for range in summarised.ranges() {
            change(range.start, 0, 1);
            change(range.end, 0, -1);
        }
        change(0, 1, 1);
        change(last.saturating_add(1), 1, -1);
    }

    /// Windows summarised by all ranks that had them.
    fn whole(&self) -> WindowSet {
        let (mut have, mut owed, mut whole) = (0, 0, WindowSet::default());
        let mut changes = self.changes.iter().peekable();
        while let Some((&from, &[of_have, of_owed])) = changes.next() {
            (have, owed) = (have + of_have, owed + of_owed);
            if let Some(&(&to, _)) = changes.peek().filter(|_| have > 0 && have >= owed) {
                whole.push(from..to);
            }
        }
        whole
    }
}

/// The first window that some of `ranks` end by the clock, where others of them have windows of their own by then.
fn mixed_from<'a>(ranks: impl Iterator<Item = &'a RankTrace> + Clone) -> Option<u64> {
    let clock = |rank: &RankTrace| {
        let steps = rank.process.steps.iter();
        // The window before it was the first that the clock has ended.
        steps.filter(|step| step.level == Level::Clock).map(|step| step.window.saturating_sub(1)).next()
    };
    let first = ranks.clone().filter_map(clock).min()?;
    let has = |rank: &RankTrace| rank.windows.end() > first;
    ranks.into_iter().any(|rank| clock(rank) != Some(first) && has(rank)).then_some(first)
}

/// The windows that are steps on some of `ranks`, and on others not yet.
fn partly_steps<'a>(ranks: impl Iterator<Item = &'a RankTrace> + Clone) -> Range<u64> {
    let Some(steps) = ranks.clone().find_map(|rank| rank.process.followed.as_ref()) else { return 0..0 };
    let from = |rank: &RankTrace| match &rank.process.followed {
        Some(own) => own.first_window,
        None => rank.windows.end(),
    };
    steps.window..ranks.map(from).max().unwrap_or(0)
}

/// The windows in which some of `ranks` ended, and others did not.
fn cut_short<'a>(ranks: impl Iterator<Item = &'a RankTrace> + Clone) -> BTreeSet<u64> {
    let last = |rank: &RankTrace| rank.windows.last().map(|window| (window.window, window.partial));
    let most = ranks.clone().filter_map(last).map(|(window, _)| window).max();
    ranks
        .filter_map(last)
        .filter(|&(window, partial)| partial && Some(window) < most)
        .map(|of| of.0)
        .collect()
}

/// Number of windows that lack the summary of a rank that should have one.
pub fn windows_lacking(trace: &Trace, plan: &Plan) -> u64 {
    let windows = trace.windows();
    let mut presence = Presence::default();
    for group in &plan.groups {
        let members = trace.ranks.iter().filter(|rank| group.members.contains(Rank(rank.process.rank)));
        let mut there = 0;
        for rank in members {
            let mut summarised = WindowSet::default();
            each_window(plan, rank, |window, is_summarised| {
                if is_summarised {
                    summarised.push(window.numbers());
                }
            });
            presence.add(last_of(rank).unwrap_or(windows.saturating_sub(1)), &summarised);
            there += 1;
        }
        if there < group.members.len() {
            return windows;
        }
    }
    windows.saturating_sub(presence.whole().len())
}
