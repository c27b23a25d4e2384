//! How much of what the ranks of a group did is in their window summaries.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use ampl_core::plan::{GroupPlan, Plan};
use ampl_core::units::Rank;
use ampl_trace::model::STEP_CLOCK;
use ampl_trace::{RankTrace, Trace};

use super::observed::is_measured;

/// How much of what a group did in some windows was summarised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Ranks that reported all they did there.
    pub whole: u64,
    /// Rank-windows that are known to have been, and have no summary.
    pub missing: u64,
    /// Whether windows end by the clock on some ranks and where the program says on others, or a window with
    /// `MPI_Finalize` on some only: those of one number are of different times then.
    pub mixed: bool,
}

/// Which windows each rank of a group has a summary of.
#[derive(Debug)]
pub struct Ledger {
    ranks: Vec<Entry>,
    /// Ranks of the group that left nothing.
    absent: u64,
    /// The last window of the job.
    last: u64,
    /// First window that is not of the same time on all ranks.
    mixed_from: Option<u64>,
    /// Windows that the end of the run ended on some ranks, and a marker on others.
    cut_short: BTreeSet<u64>,
    /// Windows that the end of the run ended on some rank.
    partial: BTreeSet<u64>,
}

#[derive(Debug)]
struct Entry {
    /// The last window that it had: its own last one if it reached `MPI_Finalize`, the job's otherwise.
    last: u64,
    /// Whether it reached `MPI_Finalize` and the agent was there to see it.
    finalized: bool,
    /// Windows with a summary, ascending.
    summarised: Vec<u64>,
}

impl Ledger {
    /// That of `group`, whose windows are spread: one entry each.
    pub fn new(trace: &Trace, plan: &Plan, group: &GroupPlan) -> Self {
        let last = trace.windows().saturating_sub(1);
        let members = trace.ranks.iter().filter(|rank| group.members.contains(Rank(rank.process.rank)));
        let mixed_from = mixed_from(members.clone());
        let by_clock = plan.config.window.marker.is_clock();
        let cut_short = if by_clock { BTreeSet::new() } else { cut_short(members.clone()) };
        let entry = |rank: &RankTrace| {
            let own = rank.windows.last().map(|window| window.window);
            // Where the agent failed its last window need not be the rank's.
            let finalized = rank.process.finalized && rank.process.agent_failures == 0;
            let summarised = rank.windows.iter().filter(|window| is_measured(plan, window));
            Entry {
                last: own.filter(|_| finalized).unwrap_or(last),
                finalized,
                summarised: summarised.map(|window| window.window).collect(),
            }
        };
        let ranks: Vec<Entry> = members.clone().map(entry).collect();
        Self {
            absent: group.members.len().saturating_sub(ranks.len() as u64),
            ranks,
            last,
            mixed_from,
            cut_short,
            partial: partial_windows(members),
        }
    }

    /// Whether the end of the run ended that window on some rank.
    pub fn is_partial(&self, window: u64) -> bool {
        self.partial.contains(&window)
    }

    /// How much of what the ranks did in `windows` was summarised; with `to_the_end`, who did not reach
    /// `MPI_Finalize` has not reported all.
    pub fn coverage(&self, windows: RangeInclusive<u64>, to_the_end: bool) -> Coverage {
        let (first, last) = (*windows.start(), (*windows.end()).min(self.last));
        let count = |last: u64| last.saturating_add(1).saturating_sub(first);
        let missing = self.absent.saturating_mul(count(last));
        let single = first == last && self.cut_short.contains(&first);
        let mixed = single || self.mixed_from.is_some_and(|from| from <= last);
        let mut found = Coverage { whole: 0, missing, mixed };
        for rank in &self.ranks {
            let before = |window: u64| rank.summarised.partition_point(|&own| own < window) as u64;
            let has = before(last.saturating_add(1)) - before(first);
            let missing = count(last.min(rank.last)).saturating_sub(has);
            found.missing = found.missing.saturating_add(missing);
            found.whole += u64::from(has > 0 && missing == 0 && (rank.finalized || !to_the_end));
        }
        found
    }
}

/// The windows that the end of the run ended on any of `ranks`.
pub fn partial_windows<'a>(ranks: impl Iterator<Item = &'a RankTrace>) -> BTreeSet<u64> {
    let windows = ranks.flat_map(|rank| &rank.windows);
    windows.filter(|window| window.partial).map(|window| window.window).collect()
}

/// The first window that some of `ranks` end by the clock, where others of them have windows of their own by then.
fn mixed_from<'a>(ranks: impl Iterator<Item = &'a RankTrace> + Clone) -> Option<u64> {
    let clock = |rank: &RankTrace| {
        let steps = rank.process.steps.iter();
        // The window before it was the first that the clock has ended.
        steps.filter(|step| step.level == STEP_CLOCK).map(|step| step.window.saturating_sub(1)).next()
    };
    let first = ranks.clone().filter_map(clock).min()?;
    let has = |rank: &RankTrace| rank.windows.last().is_some_and(|window| window.window >= first);
    ranks.into_iter().any(|rank| clock(rank) != Some(first) && has(rank)).then_some(first)
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

/// How many windows of the job there are of which some rank should have a summary and has none.
pub fn windows_lacking(trace: &Trace, plan: &Plan) -> u64 {
    let windows = trace.windows();
    let ledgers: Vec<Ledger> = plan.groups.iter().map(|group| Ledger::new(trace, plan, group)).collect();
    if ledgers.iter().any(|ledger| ledger.absent > 0) {
        return windows;
    }
    let ranks = || ledgers.iter().flat_map(|ledger| &ledger.ranks);
    let mut ends: Vec<u64> = ranks().map(|rank| rank.last).collect();
    ends.sort_unstable();
    let mut have: Vec<u64> = ranks().flat_map(|rank| rank.summarised.iter().copied()).collect();
    have.sort_unstable();
    let owed = |window: u64| ends.len() - ends.partition_point(|&end| end < window);
    let whole = have.chunk_by(|a, b| a == b).filter(|same| same.len() >= owed(same[0])).count();
    windows.saturating_sub(whole as u64)
}
