//! What the ranks of one group reported of one metric.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::plan::{GroupPlan, Plan};
use ampl_core::stats::Moments;
use ampl_core::units::Rank;
use ampl_trace::Trace;
use ampl_trace::model::WindowSummary;

/// One rank's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The rank.
    pub rank: u32,
    /// The window.
    pub window: u64,
    /// The update whose directive decided whether it was drawn.
    pub update: u64,
    /// Whether it is in the sample.
    pub drawn: bool,
    /// How likely that was, in [0, 1].
    pub probability: f64,
    /// Observations and their total, in the metric's unit; `None` where only the sample reports.
    pub value: Option<(u64, f64)>,
}

impl Point {
    /// Whether it was drawn by chance, or could have been: it stands for others.
    pub fn by_chance(&self) -> bool {
        self.probability < 1.0
    }
}

/// Everything that `group` of `plan` reported of the metric of that index, windows ascending.
pub fn points(trace: &Trace, plan: &Plan, group: &GroupPlan, metric: usize) -> Vec<Point> {
    let mut points = Vec::new();
    for rank in trace.ranks.iter().filter(|rank| group.members.contains(Rank(rank.process.rank))) {
        points.extend(rank.windows.iter().filter(|window| is_measured(plan, window)).map(|window| Point {
            rank: rank.process.rank,
            window: window.window,
            update: window.update,
            drawn: window.drawn,
            probability: window.probability,
            value: window.cells.get(metric).map(|cell| (cell.n as u64, cell.sum)),
        }));
    }
    points.sort_by_key(|point| (point.window, point.rank));
    points
}

/// Whether `window` was summarised: not where the agent had stepped down to counting calls.
fn is_measured(plan: &Plan, window: &WindowSummary) -> bool {
    !plan.stores_summary(window.drawn) || !window.cells.is_empty()
}

/// Moments over `points`, one each: those without a value are left out.
pub fn moments<'a>(points: impl IntoIterator<Item = &'a Point>) -> Moments {
    let values = points.into_iter().filter_map(|point| point.value);
    values.fold(Moments::default(), |sum, (n, y)| sum.merged(&Moments::of_rank(n, y, 0.0, 0.0, 0.0)))
}

/// How many ranks reported any of `points`.
pub fn ranks<'a>(points: impl IntoIterator<Item = &'a Point>) -> u64 {
    points.into_iter().map(|point| point.rank).collect::<BTreeSet<_>>().len() as u64
}

/// Whether every member of `group` reported all that it did in the windows of `points`: it is there in each of
/// them, or it reached `MPI_Finalize` before the others. With `to_the_end`, all of them must have got there.
pub fn all_reported(
    trace: &Trace,
    plan: &Plan,
    group: &GroupPlan,
    points: &[Point],
    to_the_end: bool,
) -> bool {
    let windows: BTreeSet<u64> = points.iter().map(|point| point.window).collect();
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    for point in points {
        *seen.entry(point.rank).or_default() += 1;
    }
    let present = trace.ranks.iter().filter(|rank| group.members.contains(Rank(rank.process.rank)));
    let lacks = |window: &WindowSummary| {
        !is_measured(plan, window) && (to_the_end || windows.contains(&window.window))
    };
    let present = present.filter(|rank| !rank.windows.iter().any(lacks));
    let done = present.filter(|rank| match (rank.process.finalized, seen.get(&rank.process.rank)) {
        (_, None) => false,
        (true, Some(_)) => true,
        (false, Some(&count)) => !to_the_end && count == windows.len(),
    });
    done.count() as u64 == group.members.len()
}

/// Windows of one update interval, at least 1.
pub fn windows_per_update(plan: &Plan) -> u64 {
    u64::from(plan.config.sampling.windows_per_update.max(1))
}
