//! Bytes that a trace takes, and that it would take if other windows had been kept.

mod marginal;

use ampl_core::config::Quantity;
use ampl_trace::model::{Level, WindowSummary};
use ampl_trace::{RankTrace, Trace};

use crate::kept::is_kept_by;

/// Bytes of a rank's stored times, which grow with the number of kept windows.
pub fn stored(rank: &RankTrace) -> u64 {
    rank.times.len() as u64
}

/// Estimated bytes of the trace if every rank-window had been kept; `None` where the kept ones are too few.
///
/// A rank's other windows take the bytes of [more windows](marginal::ratio) like its kept ones, call by call. A window's
/// summary has its number of calls. Where only the sample has summaries, a kept window stands for 1 over its keep
/// probability. Ranks without a kept window are taken to be like the others.
pub fn everything(trace: &Trace) -> Option<f64> {
    // Times that the agent could not afford are represented by no kept window.
    let leaves_out = |level: Level| level.depth() > Level::Drawn.depth();
    if trace.ranks.iter().flat_map(|rank| &rank.process.steps).any(|step| leaves_out(step.level)) {
        return None;
    }
    let kept: Vec<(f64, f64)> =
        trace.ranks.iter().map(|rank| (stored(rank) as f64, kept_calls(rank))).collect();
    let (bytes, calls) = kept.iter().fold((0.0, 0.0), |sum, rank| (sum.0 + rank.0, sum.1 + rank.1));
    if calls <= 0.0 || bytes <= 0.0 {
        return None;
    }
    let summarised = trace.rank_windows_of(|window| window.cells.is_empty()) == 0;
    let ratio = marginal::ratio(trace);
    let more = trace.ranks.iter().zip(&kept).map(|(rank, &(own_bytes, own_calls))| {
        let each = if own_calls > 0.0 { own_bytes / own_calls } else { bytes / calls };
        let all = if summarised { calls_of(rank, |_| true) } else { standing_calls(rank) };
        ratio * each * (all - own_calls).max(0.0)
    });
    Some(trace.sizes.total as f64 + more.sum::<f64>())
}

fn kept_calls(rank: &RankTrace) -> f64 {
    calls_of(rank, |window| window.kept)
}

/// Calls that the kept windows of `rank` stand for.
fn standing_calls(rank: &RankTrace) -> f64 {
    let slot = Quantity::Calls.slot().expect("it is one of all");
    let standing = |window: &WindowSummary| {
        let own = window.cells.get(slot).map_or(0.0, |cell| cell.sum);
        let by_chance = (window.drawn || window.partner) && window.inclusion() > 0.0;
        if by_chance { own / window.inclusion() } else { own }
    };
    rank.windows.iter_known().filter(|window| window.kept).map(|window| standing(&window)).sum()
}

/// Bytes of the trace if only the sampled windows had been kept of everything that is stored: each takes its share of
/// its rank's stored times; `None` where nothing is stored.
pub fn of_sample(trace: &Trace) -> Option<f64> {
    let of = |rank: &RankTrace| {
        let calls = |sampled: bool| calls_of(rank, |window| is_kept_by(window, sampled));
        let all = calls(false);
        if all > 0.0 { stored(rank) as f64 * calls(true) / all } else { 0.0 }
    };
    let stored: u64 = trace.ranks.iter().map(stored).sum();
    let sampled: f64 = trace.ranks.iter().map(of).sum();
    (trace.kept_windows() > 0).then(|| trace.sizes.total.saturating_sub(stored) as f64 + sampled)
}

/// Calls of `rank` in the windows that are `counted`.
fn calls_of(rank: &RankTrace, counted: impl Fn(&WindowSummary) -> bool) -> f64 {
    let slot = Quantity::Calls.slot().expect("it is one of all");
    let counted = rank.windows.iter_known().filter(|window| counted(window));
    counted.filter_map(|window| window.cells.get(slot)).map(|cell| cell.sum).sum()
}
