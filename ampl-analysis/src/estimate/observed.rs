//! Observations of one metric by the ranks of one group.

use std::collections::BTreeSet;

use ampl_core::plan::{GroupPlan, Plan};
use ampl_core::stats::Moments;
use ampl_core::units::Rank;
use ampl_core::window_set::WindowSet;
use ampl_trace::model::WindowSummary;
use ampl_trace::{RankTrace, Trace};

use crate::window_times::Columns;

/// One rank's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The rank.
    pub rank: u32,
    /// The window.
    pub window: u64,
    /// The update whose directive decided whether it was drawn.
    pub update: u64,
    /// Stratum that it was drawn in: of the window for retrospective decisions, of the group where that is divided.
    pub stratum: Option<u16>,
    /// True where it is in the sample.
    pub drawn: bool,
    /// Keep probability, in [0, 1].
    pub probability: f64,
    /// Observations and their total, in the metric's unit; `None` where only the sample reports.
    pub value: Option<(u64, f64)>,
}

impl Point {
    /// True where it was drawn by chance, or could have been: it stands for others.
    pub fn by_chance(&self) -> bool {
        self.probability < 1.0
    }
}

/// Observations by `group` of `plan` of the metric of that index, windows ascending.
pub fn points(trace: &Trace, plan: &Plan, group: &GroupPlan, metric: usize) -> Vec<Point> {
    points_by(trace, plan, group, |_| {
        move |window: &WindowSummary| window.cells.get(metric).map(|cell| (cell.n as u64, cell.sum))
    })
}

/// Observations by `group` of `plan` of its time in MPI, one for each nanosecond of the program, windows ascending
/// and without those that are `lacking`.
pub fn mpi_share_points(trace: &Trace, plan: &Plan, group: &GroupPlan, lacking: &WindowSet) -> Vec<Point> {
    let columns = Columns::of(trace);
    let mut points = points_by(trace, plan, group, |rank| {
        let columns = columns.of_rank(rank);
        move |window: &WindowSummary| {
            let times = columns.times(window)?;
            Some((times.of_program() as u64, times.mpi))
        }
    });
    points.retain(|point| !lacking.contains(point.window));
    points
}

fn points_by<Value: Fn(&WindowSummary) -> Option<(u64, f64)>>(
    trace: &Trace,
    plan: &Plan,
    group: &GroupPlan,
    value_of: impl Fn(&RankTrace) -> Value,
) -> Vec<Point> {
    let mut points = Vec::new();
    for rank in trace.ranks.iter().filter(|rank| group.members.contains(Rank(rank.process.rank))) {
        let value = value_of(rank);
        let measured = rank.windows.iter().filter(|window| is_measured(plan, window));
        points.extend(measured.map(|window| Point {
            rank: rank.process.rank,
            window: window.window,
            update: window.update,
            stratum: window.stratum,
            drawn: window.drawn,
            probability: window.probability,
            value: value(&window),
        }));
    }
    points.sort_by_key(|point| (point.window, point.rank));
    points
}

/// True where `window` was summarised as the configuration asks; false where the agent had stepped down to counting
/// calls, or had no room for more.
pub fn is_measured(plan: &Plan, window: &WindowSummary) -> bool {
    !plan.stores_summary(window.drawn) || !window.cells.is_empty()
}

/// Moments over `points`, one each: those without a value are left out.
pub fn moments<'a>(points: impl IntoIterator<Item = &'a Point>) -> Moments {
    let values = points.into_iter().filter_map(|point| point.value);
    values.fold(Moments::default(), |sum, (n, y)| sum.merged(&Moments::of_rank(n, y, 0.0, 0.0, 0.0)))
}

/// Number of ranks that reported any of `points`.
pub fn ranks<'a>(points: impl IntoIterator<Item = &'a Point>) -> u64 {
    points.into_iter().map(|point| point.rank).collect::<BTreeSet<_>>().len() as u64
}

/// Windows of one update interval, at least 1.
pub fn windows_per_update(plan: &Plan) -> u64 {
    u64::from(plan.config.sampling.windows_per_update.max(1))
}
