//! Rows of `summaries`: the per-rank window vectors, which are also the population of `ampl simulate`.

use ampl_trace::model::WindowSummary;
use ampl_trace::{RankTrace, RunInfo};

/// Names of the columns, in order.
pub const COLUMNS: [&str; 9] = ["window", "rank", "metric", "count", "sum", "sum_sq", "min", "max", "event"];

/// Additional last column, and its value, in tables of a run that stored a sample's windows only: without the others'
/// the rows are no population.
pub const BASIS: (&str, &str) = ("basis", "sampled");

/// One metric's observations in one rank's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// The window, from 0.
    pub window: u64,
    /// The rank.
    pub rank: u32,
    /// `mpi.time`
    pub metric: &'a str,
    /// Observations, at least 1.
    pub count: u64,
    /// Their sum, in the metric's unit.
    pub sum: f64,
    /// Their sum of squares.
    pub sum_sq: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Event that is observed; `*` for the whole window.
    pub event: &'a str,
}

/// The rows of `window` of `rank`: one per metric with observations, a missing row means none.
pub fn rows<'a>(
    run: &'a RunInfo,
    rank: &'a RankTrace,
    window: &'a WindowSummary,
) -> impl Iterator<Item = Row<'a>> {
    let observed = run.metrics.iter().zip(window.cells.iter()).filter(|(_, cell)| cell.n > 0.0);
    observed.map(|(metric, cell)| Row {
        window: window.window,
        rank: rank.process.rank,
        metric: &metric.name,
        count: cell.n as u64,
        sum: cell.sum,
        sum_sq: cell.sum_sq,
        min: cell.min,
        max: cell.max,
        event: &metric.event,
    })
}
