//! Comparisons as measures for Bencher and github-action-benchmark.

use std::collections::BTreeMap;

use ampl_analysis::comparison::{Comparison, Kind, Row, Scope, Unit};
use serde::Serialize;

/// A value of Bencher's metric format.
#[derive(Debug, Serialize)]
pub struct Measure {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// The new runs' values for Bencher: benchmark, measure, value.
pub fn bencher(found: &Comparison) -> BTreeMap<String, BTreeMap<String, Measure>> {
    let mut all: BTreeMap<String, BTreeMap<String, Measure>> = BTreeMap::new();
    for row in &found.rows {
        let Some(value) = row.new else { continue };
        let range = row.ranges[1].filter(|_| found.runs.1 > 1);
        let measure = Measure {
            value,
            lower_value: range.map(|(low, _)| low),
            upper_value: range.map(|(_, high)| high),
        };
        all.entry(row.key.scope.to_string())
            .or_default()
            .insert(row.key.what.name().replace('.', "-"), measure);
    }
    all
}

/// An entry of github-action-benchmark.
#[derive(Debug, Serialize)]
pub struct Entry {
    name: String,
    unit: &'static str,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
}

/// The new runs' quantities of which less is better, with the name of each row.
pub fn github_benchmark(found: &Comparison, name: impl Fn(&Row) -> String) -> Vec<Entry> {
    let smaller = |row: &&Row| {
        let time = row.key.what.kind() == Kind::Time;
        let share = row.key.what.unit() == Unit::Fraction;
        (time && !share) || (!time && row.key.scope == Scope::Run)
    };
    let entry = |row: &Row| {
        let half = row.ranges[1].filter(|_| found.runs.1 > 1).map(|(low, high)| (high - low) / 2.0);
        Some(Entry {
            name: name(row),
            unit: row.key.what.unit().name(),
            value: row.new?,
            range: half.map(|half| format!("± {half}")),
        })
    };
    found.rows.iter().filter(smaller).filter_map(entry).collect()
}
