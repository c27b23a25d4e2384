//! Metrics of all ranks over time, window by window.

use std::collections::BTreeMap;

use ampl_reader::Run;
use ampl_reader::selection::Selection;
use serde::{Serialize, Serializer};

/// A window of the ranks of a part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Its number.
    pub window: u64,
    /// Earliest start of a rank's, nanoseconds since T0.
    pub start_ns: i64,
    /// Latest end.
    pub end_ns: i64,
    /// Ranks that had it.
    pub ranks: u64,
    /// Ranks among them that reported: the sums are theirs.
    pub reported: u64,
    /// Sums over these ranks by metric, with `@EVENT` where the event is not the window; bytes, nanoseconds or numbers.
    pub metrics: Sums,
}

/// Sums by metric, in the order of the run's metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums(pub Vec<(String, f64)>);

impl Serialize for Sums {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, sum)| (name, sum)))
    }
}

/// The windows of the part of `run` that `selection` asks for, ascending; a window belongs to the part where any of it
/// lies in that time.
pub fn volume(run: &Run, selection: &Selection) -> Vec<Row> {
    let names: Vec<String> = run
        .info()
        .metrics
        .iter()
        .map(|metric| match metric.event.as_str() {
            "*" => metric.name.clone(),
            event => format!("{}@{event}", metric.name),
        })
        .collect();
    let mut rows: BTreeMap<u64, Row> = BTreeMap::new();
    for number in run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)) {
        let Some(rank) = run.rank_windows(number) else { continue };
        for window in rank.windows.iter().filter(|window| selection.takes_window(window)) {
            let row = rows.entry(window.window).or_insert_with(|| Row {
                window: window.window,
                start_ns: window.start_ns,
                end_ns: window.end_ns,
                ranks: 0,
                reported: 0,
                metrics: Sums(names.iter().map(|name| (name.clone(), 0.0)).collect()),
            });
            row.start_ns = row.start_ns.min(window.start_ns);
            row.end_ns = row.end_ns.max(window.end_ns);
            row.ranks += 1;
            if window.cells.is_empty() {
                continue;
            }
            row.reported += 1;
            for (sum, cell) in row.metrics.0.iter_mut().zip(window.cells.iter()) {
                sum.1 += cell.sum;
            }
        }
    }
    rows.into_values().collect()
}
