//! Windows that a run did keep. A simulation cannot show them: a population holds no budget, steps down or late
//! directives.

use ampl_core::config::Metric;
use ampl_core::plan::{GroupPlan, Plan};
use ampl_core::units::Rank;
use ampl_core::window_set::WindowSet;
use ampl_trace::Trace;
use ampl_trace::model::{Level, WindowSummary};

use super::{GroupRow, Row};
use crate::estimate::{self, Scope, inside};
use crate::kept::{is_kept_by, would_keep};
use crate::storage;

/// Rank-windows that a run kept, and the bytes of its trace with them; no bytes where too little was kept to tell.
///
/// Under `output.verify` everything is stored: the sample is what is marked.
pub(super) fn sample(trace: &Trace, plan: &Plan) -> (u64, Option<f64>) {
    match would_keep(trace, Some(plan)) {
        Some(kept) => (kept, storage::of_sample(trace)),
        None => (trace.kept_windows(), Some(trace.sizes.total as f64)),
    }
}

/// The row of the run itself.
pub fn row(trace: &Trace, plan: &Plan) -> Row {
    let estimates = estimate::rows(trace, plan);
    let (kept, bytes) = sample(trace, plan);
    Row {
        confidence: None,
        error: None,
        coverage: 1.0,
        kept_windows: Some(kept as f64),
        rank_windows: trace.rank_windows(),
        bytes,
        groups: plan.groups.iter().map(|group| group_row(trace, plan, &estimates, group)).collect(),
    }
}

fn group_row(trace: &Trace, plan: &Plan, estimates: &[estimate::Row], group: &GroupPlan) -> GroupRow {
    let ranks = trace.ranks.iter().filter(|rank| group.members.contains(Rank(rank.process.rank)));
    let entries: Vec<&WindowSummary> = ranks.flat_map(|rank| rank.windows.entries()).collect();
    let per_update = estimate::windows_per_update(plan);
    let start = entries.iter().map(|entry| entry.window / per_update + 1).min().unwrap_or(0) * per_update;
    let after = |entry: &WindowSummary| entry.numbers().start.max(start)..entry.numbers().end;
    let count = entries.iter().map(|entry| after(entry)).collect::<WindowSet>().len();
    let verifies = plan.config.output.verify;
    let kept = entries.iter().filter(|entry| is_kept_by(entry, verifies));
    let kept: u64 = kept.map(|entry| after(entry)).map(|kept| kept.end.saturating_sub(kept.start)).sum();
    let mean = |sum: u64, count: u64| (count > 0).then(|| sum as f64 / count as f64);
    let covered = |metric: &Metric| {
        let (name, event) = (metric.name(), metric.event.name());
        let ours = |row: &&estimate::Row| {
            row.scope == Scope::Window
                && row.window >= Some(start)
                && row.group == group.name
                && row.metric == name
                && row.event == event
        };
        let rows: Vec<&estimate::Row> = estimates.iter().filter(ours).collect();
        let checked = rows.chunk_by(|a, b| a.window == b.window).filter_map(|rows| match rows {
            [exact, drawn] => inside(drawn, exact, plan.target(group, metric)),
            _ => None,
        });
        let checked: Vec<bool> = checked.collect();
        mean(checked.iter().filter(|inside| **inside).count() as u64, checked.len() as u64)
    };
    GroupRow {
        group: group.name.clone(),
        population: group.members.len(),
        mean_size: mean(kept, count),
        coverage_window: plan.metrics.iter().filter(|m| m.guide).filter_map(covered).reduce(f64::min),
    }
}

/// Part of the run that rows of other bounds leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Windows kept or dropped by `sampling.budget`.
    Budget,
    /// Steps down of agents.
    StepsDown,
}

impl LeftOut {
    /// Words for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::StepsDown => "steps down",
        }
    }
}

/// Parts of the run that rows of other bounds leave out.
pub fn left_out(trace: &Trace, plan: &Plan) -> Vec<LeftOut> {
    let mut steps = trace.ranks.iter().flat_map(|rank| &rank.process.steps);
    let stepped = steps.any(|step| step.level != Level::Clock);
    let budget = plan.config.sampling.budget.is_some();
    [(LeftOut::Budget, budget), (LeftOut::StepsDown, stepped)]
        .into_iter()
        .filter_map(|(part, is)| is.then_some(part))
        .collect()
}
