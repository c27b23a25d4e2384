//! Windows that are kept or, where everything is recorded to check that, would have been.

use ampl_core::plan::Plan;
use ampl_trace::Trace;
use ampl_trace::model::WindowSummary;

/// Rank-windows that would have been kept, where `output.verify` recorded everything; `None` where it is off.
pub fn would_keep(trace: &Trace, plan: Option<&Plan>) -> Option<u64> {
    plan.filter(|plan| plan.config.output.verify)?;
    Some(trace.rank_windows_of(|window| is_kept_by(window, true)))
}

/// True where a window is kept or, where the run `verifies` and everything is stored, would have been.
pub fn is_kept_by(window: &WindowSummary, verifies: bool) -> bool {
    window.kept && (!verifies || window.is_sampled())
}
