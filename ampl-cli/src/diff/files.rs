//! Comparisons for other tools: JUnit, Bencher, github-action-benchmark.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use ampl_analysis::comparison::{Comparison, Kind, Row, Scope, Unit, Verdict};
use ampl_export::junit::{self, Answer, Case};
use ampl_report::comparison::words;
use serde::Serialize;

use super::view::unit;
use crate::failure::{Failure, USAGE};

/// Writes `found` to `path` as JUnit XML.
///
/// # Errors
/// A [`Failure`] where it cannot be written.
pub fn junit(path: &Path, found: &Comparison) -> anyhow::Result<()> {
    let mut cases: Vec<Case> = found.judged.iter().map(|judged| case(found, judged)).collect();
    if found.verdict == Verdict::Incomparable && cases.is_empty() {
        let message = found.mismatches.iter().map(words::mismatch).collect::<Vec<_>>().join("; ");
        cases.push(Case {
            name: "comparable".into(),
            answer: Answer::Skipped,
            message,
            details: String::new(),
        });
    }
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        junit::write(&mut file, "ampl diff", &cases)?;
        std::io::Write::flush(&mut file)
    };
    write().map_err(|error| {
        Failure::message(USAGE, format!("cannot write it: {error}"), path.display(), "name another file")
    })
}

fn case(found: &Comparison, judged: &ampl_analysis::comparison::Judged) -> Case {
    let answer = match judged.verdict {
        Verdict::Pass => Answer::Passed,
        Verdict::Fail => Answer::Failed,
        Verdict::Inconclusive | Verdict::Incomparable => Answer::Skipped,
    };
    let line = |&at: &usize| {
        let row = &found.rows[at];
        let interval = words::interval(row);
        let (base, new) = (words::value(row, row.base), words::value(row, row.new));
        format!("{}: {} ({interval}), {base} -> {new}", words::name(row), words::change(row))
    };
    Case {
        name: judged.rule.text.clone(),
        answer,
        message: words::judged(judged, &found.rows),
        details: judged.failed.iter().map(line).collect::<Vec<_>>().join("\n"),
    }
}

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

/// The new runs' quantities of which less is better.
pub fn github_benchmark(found: &Comparison) -> Vec<Entry> {
    let smaller = |row: &&Row| {
        let time = row.key.what.kind() == Kind::Time;
        let share = row.key.what.unit() == Unit::Fraction;
        (time && !share) || (!time && row.key.scope == Scope::Run)
    };
    let entry = |row: &Row| {
        let half = row.ranges[1].filter(|_| found.runs.1 > 1).map(|(low, high)| (high - low) / 2.0);
        Some(Entry {
            name: words::name(row),
            unit: unit(row.key.what.unit()),
            value: row.new?,
            range: half.map(|half| format!("± {half}")),
        })
    };
    found.rows.iter().filter(smaller).filter_map(entry).collect()
}
