//! What is on disk against what storing everything would have taken.

use ampl_core::config::Quantity;
use ampl_core::plan::Plan;
use ampl_trace::model::WindowSummary;
use ampl_trace::{RankTrace, Trace};

use super::{field, longest_ns};
use crate::human::{bytes, count, percent};
use crate::info::{is_kept_by, would_keep};

pub(super) fn write(out: &mut String, trace: &Trace, plan: Option<&Plan>) {
    let (total, windows) =
        (trace.sizes.total, trace.ranks.iter().map(|rank| rank.windows.len() as u64).sum());
    let kept = trace.kept_windows();
    let size = format!("{}, times of {}/{} rank-windows", bytes(total as f64), count(kept), count(windows));
    let text = match everything(trace) {
        Some(all) if kept < windows => {
            format!("{size}: {} of {} for all, estimated", percent(total as f64 / all), bytes(all))
        }
        _ => match would_keep(trace, plan) {
            Some(sampled) => format!("{size}; {} would be kept (output.verify)", count(sampled)),
            None => size,
        },
    };
    field(out, "trace file", &text);
    if let Some(budget) = plan.and_then(|plan| plan.config.sampling.budget) {
        field(out, "budget", &within(trace, budget));
    }
}

/// Bytes of a rank's stored times: what there is more of when more windows are kept.
fn stored(rank: &RankTrace) -> u64 {
    rank.times.len() as u64
}

/// Times stored per second of the longest rank, as they are in the file, beside the budget, which is about what they
/// take before they are coded.
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

/// Bytes of the trace had every rank-window been kept; `None` where the kept ones cannot tell.
///
/// A kept window's calls take their share of what its rank's stored times take; it stands for as many
/// windows as 1 over the probability that it was kept says, or for itself where everything was kept.
pub fn everything(trace: &Trace) -> Option<f64> {
    // For times that the agent could not afford no kept window stands.
    let leaves_out = |level: &str| ["structure", "summaries", "off"].contains(&level);
    if trace.ranks.iter().flat_map(|rank| &rank.process.steps).any(|step| leaves_out(&step.level)) {
        return None;
    }
    let stored: u64 = trace.ranks.iter().map(stored).sum();
    let weighted: f64 = trace.ranks.iter().map(weighted).sum();
    (weighted > 0.0).then(|| trace.sizes.total.saturating_sub(stored) as f64 + weighted)
}

fn weighted(rank: &RankTrace) -> f64 {
    let slot = Quantity::Calls.slot().expect("it is one of all");
    let kept = rank.windows.iter().filter(|window| window.kept);
    let (mut calls, mut standing) = (0.0, 0.0);
    for window in kept {
        let own = window.cells.get(slot).map_or(0.0, |cell| cell.sum);
        calls += own;
        let by_chance = (window.drawn || window.partner) && window.inclusion() > 0.0;
        standing += if by_chance { own / window.inclusion() } else { own };
    }
    if calls > 0.0 { stored(rank) as f64 * standing / calls } else { 0.0 }
}

/// Bytes of the trace had only the sampled windows of everything that is stored been kept: each takes its share of its
/// rank's stored times; `None` where nothing is stored.
pub fn of_sample(trace: &Trace) -> Option<f64> {
    let of = |rank: &RankTrace| {
        let calls = |sampled: bool| calls(rank, |window| is_kept_by(window, sampled));
        let all = calls(false);
        if all > 0.0 { stored(rank) as f64 * calls(true) / all } else { 0.0 }
    };
    let stored: u64 = trace.ranks.iter().map(stored).sum();
    let sampled: f64 = trace.ranks.iter().map(of).sum();
    (trace.kept_windows() > 0).then(|| trace.sizes.total.saturating_sub(stored) as f64 + sampled)
}

/// Calls of `rank` in the windows that are `counted`.
fn calls(rank: &RankTrace, counted: impl Fn(&WindowSummary) -> bool) -> f64 {
    let slot = Quantity::Calls.slot().expect("it is one of all");
    let counted = rank.windows.iter().filter(|window| counted(window));
    counted.filter_map(|window| window.cells.get(slot)).map(|cell| cell.sum).sum()
}
