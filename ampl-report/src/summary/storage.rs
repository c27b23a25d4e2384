//! Bytes on disk against those that storing everything would have taken.

use ampl_analysis::kept::would_keep;
use ampl_analysis::storage::{everything, stored};
use ampl_core::plan::Plan;
use ampl_reader::Trace;

use super::longest_ns;
use crate::human::{bytes, count, plural};
use crate::layout::{Page, field, paragraph};

pub(super) fn write(out: &mut Page, trace: &Trace, plan: Option<&Plan>, only_journals: bool) {
    paragraph(out, "trace file", &trace_file(trace, plan, only_journals));
    if only_journals {
        return;
    }
    if let Some(budget) = plan.and_then(|plan| plan.config.sampling.budget) {
        field(out, "budget", &within(trace, budget));
    }
}

/// Size of the trace file and the rank-windows whose times it has, in words.
pub fn trace_file(trace: &Trace, plan: Option<&Plan>, only_journals: bool) -> String {
    if only_journals {
        let ranks = plural(trace.ranks.len() as u64, "rank");
        return format!("none: the journals of {ranks} tell; 'ampl recover' makes one");
    }
    let (total, windows) = (trace.sizes.total, trace.rank_windows());
    let kept = trace.kept_windows();
    let of = plural(windows, "rank-window");
    let kept_of = if kept == windows { format!("all {of}") } else { format!("{} of {of}", count(kept)) };
    let size = format!("{}; times kept for {kept_of}", bytes(total as f64));
    match everything(trace) {
        Some(all) if kept < windows => format!("{size}; all would take about {}", bytes(all)),
        _ => match would_keep(trace, plan) {
            Some(sampled) => format!("{size}; {} would be kept (output.verify)", count(sampled)),
            None => size,
        },
    }
}

/// Times stored per second of the longest rank, as they are in the file, beside the budget.
fn within(trace: &Trace, budget: f64) -> String {
    let stored: u64 = trace.ranks.iter().map(stored).sum();
    let rate = stored as f64 / (longest_ns(trace).max(1) as f64 * 1e-9);
    let cut = trace.decisions.iter().filter(|decision| decision.limit.is_some()).count();
    format!(
        "{} of {} decisions cut: their bounds by ampl decisions; {}/s of {}/s, coded",
        count(cut as u64),
        count(trace.decisions.len() as u64),
        bytes(rate),
        bytes(budget),
    )
}
