//! `output.verify`: estimates from the drawn ranks alone, against those from all ranks.
//!
//! Everything is recorded then, and drawn windows are marked, so that both estimates are of the same windows.

use std::collections::BTreeMap;

use ampl_core::config::{ErrorBound, Metric, Target};
use ampl_core::stats::Basis;
use ampl_core::units::{Rank, RankSet};
use ampl_trace::Trace;
use serde::Serialize;

use super::rows::{Row, Scope};

/// Comparison of an estimate with the truth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// The exact mean, from all ranks; none where it is not known of all of them.
    pub truth: Option<f64>,
    /// True where a guide's estimate is within the bound asked for; false where nothing was drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inside: Option<bool>,
    /// Share of the run's time in windows where a guide's estimate is within the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c_trace: Option<f64>,
    /// The same over the windows in which some ranks were not drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c_trace_sampled: Option<f64>,
    /// Windows whose estimate is within the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_inside: Option<u64>,
    /// Windows whose estimate could be checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows_checked: Option<u64>,
}

impl Check {
    /// Check of `estimated` against `exact`, of the same windows and group; `None` unless the former alone is of
    /// drawn ranks.
    pub(super) fn of(estimated: &Row, exact: &Row, metric: &Metric, target: Target) -> Option<Self> {
        (!exact.drawn && estimated.drawn).then(|| {
            let truth = truth(exact);
            Self {
                truth,
                inside: inside(estimated, exact, target).filter(|_| metric.guide),
                c_trace: None,
                c_trace_sampled: None,
                windows_inside: None,
                windows_checked: None,
            }
        })
    }
}

/// The mean of all ranks: where summaries are missing it is of the rest.
fn truth(exact: &Row) -> Option<f64> {
    exact.mean.filter(|_| exact.basis == Basis::Census)
}

/// True where `estimated` is as near to the truth in `exact` as `target` asks; `None` without a truth or a bound.
pub fn inside(estimated: &Row, exact: &Row, target: Target) -> Option<bool> {
    let (truth, Target::Bound { error, .. }) = (truth(exact)?, target) else { return None };
    let allowed = match error {
        ErrorBound::Relative(error) => error * truth.abs(),
        ErrorBound::Absolute(error) => error,
    };
    let slack = 1e-12 * truth.abs(); // two sums of the same numbers in another order
    Some(estimated.mean.is_some_and(|mean| (mean - truth).abs() <= allowed + slack))
}

/// Mean time that every window took the ranks of `members`, nanoseconds.
pub(super) fn lengths(trace: &Trace, members: &RankSet) -> BTreeMap<u64, f64> {
    let mut sums: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
    for rank in trace.ranks.iter().filter(|rank| members.contains(Rank(rank.process.rank))) {
        for window in &rank.windows {
            let (sum, count) = sums.entry(window.window).or_default();
            *sum += window.end_ns.saturating_sub(window.start_ns) as f64;
            *count += 1.0;
        }
    }
    sums.into_iter().map(|(window, (sum, count))| (window, sum / count)).collect()
}

/// Adds to the rows of the run the results of the windows' rows before them, of the same group and metric.
///
/// # Source
/// AMPL 2008, §4.4: c_trace is the share of the run's time in which the trace is within the error bound. The X(t)
/// printed there is 1 outside the bound, which would count the opposite.
pub(super) fn sum_up(run: &mut [Row], rows: &[Row], lengths: &BTreeMap<u64, f64>) {
    for row in run {
        let of_run = (&row.group, &row.metric, &row.event, row.basis);
        let mine = |window: &&Row| {
            window.scope == Scope::Window
                && (&window.group, &window.metric, &window.event, window.basis) == of_run
        };
        let checked: Vec<(&Row, bool)> =
            rows.iter().filter(mine).filter_map(|row| Some((row, row.check.as_ref()?.inside?))).collect();
        let share = |all: &dyn Fn(&Row) -> bool| {
            let time = |inside: bool| {
                let counted = checked.iter().filter(|(row, is)| all(row) && (*is || !inside));
                counted.filter_map(|(row, _)| lengths.get(&row.window?)).sum::<f64>()
            };
            Some(time(true) / time(false)).filter(|share| share.is_finite())
        };
        if let Some(check) = row.check.as_mut().filter(|_| !checked.is_empty()) {
            check.c_trace = share(&|_| true);
            check.c_trace_sampled = share(&|row| row.kept < row.population);
            check.windows_inside = Some(checked.iter().filter(|(_, inside)| *inside).count() as u64);
            check.windows_checked = Some(checked.len() as u64);
        }
    }
}
