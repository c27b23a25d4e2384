//! A comparison in JSON.

use ampl_analysis::comparison::{Comparison, Kind, Method, Row, Verdict};
use ampl_report::comparison::{left_out, words};
use serde::Serialize;

/// Output of `--json`; the order of fields is part of the format.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    verdict: &'static str,
    /// Form of this document.
    schema: u32,
    runs: Runs,
    confidence: f64,
    /// Reasons why the sides should not be compared.
    mismatches: Vec<String>,
    /// Facts in which the sides differ.
    differences: Vec<Difference<'a>>,
    rows: Vec<Shown<'a>>,
    rules: Vec<Answer<'a>>,
    /// Parts that are not compared.
    left_out: Vec<String>,
    /// Way in which times are judged.
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Runs {
    base: usize,
    new: usize,
}

#[derive(Debug, Serialize)]
struct Difference<'a> {
    fact: &'static str,
    name: &'a str,
    base: &'a [String],
    new: &'a [String],
}

#[derive(Debug, Serialize)]
struct Shown<'a> {
    what: &'a str,
    scope: String,
    base: Option<f64>,
    new: Option<f64>,
    /// Relative to the base; of shares the difference.
    change: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    kind: &'static str,
    significant: bool,
    rule: Option<&'a str>,
    verdict: Option<&'static str>,
    unit: &'static str,
    method: &'static str,
    /// True of a number that varies between equal runs.
    varies: bool,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    rule: &'a str,
    verdict: &'static str,
    reason: String,
    /// Rows that it is about, and those that failed.
    rows: usize,
    failed: Vec<String>,
}

/// The document of `found`.
pub fn document(found: &Comparison) -> Document<'_> {
    let differences = found.differences.iter().map(|difference| Difference {
        fact: difference.kind.name(),
        name: &difference.name,
        base: &difference.base,
        new: &difference.new,
    });
    let rules = found.judged.iter().map(|judged| Answer {
        rule: &judged.rule.text,
        verdict: judged.verdict.name(),
        reason: words::judged(judged, &found.rows),
        rows: judged.rows.len(),
        failed: judged.failed.iter().map(|&row| words::name(&found.rows[row])).collect(),
    });
    Document {
        verdict: found.verdict.name(),
        schema: 1,
        runs: Runs { base: found.runs.0, new: found.runs.1 },
        confidence: found.confidence,
        mismatches: found.mismatches.iter().map(words::mismatch).collect(),
        differences: differences.collect(),
        rows: found.rows.iter().enumerate().map(|(at, row)| shown(found, at, row)).collect(),
        rules: rules.collect(),
        left_out: left_out(found),
        notes: words::method(found),
    }
}

/// The rule that decides about a row, and its answer: the most severe one.
fn decisive(found: &Comparison, at: usize) -> Option<(&str, Verdict)> {
    let own = found.judged.iter().filter(|judged| judged.rows.contains(&at));
    let answer = |judged: &&ampl_analysis::comparison::Judged| match judged.verdict {
        Verdict::Fail if judged.failed.contains(&at) => Verdict::Fail,
        Verdict::Fail => Verdict::Pass,
        other => other,
    };
    let most = own.max_by_key(answer)?;
    Some((&most.rule.text, answer(&most)))
}

fn shown<'a>(found: &'a Comparison, at: usize, row: &'a Row) -> Shown<'a> {
    let decisive = decisive(found, at);
    // Without a rule, a time of too few runs has an answer all the same.
    let open = (row.method == Method::TooFewRuns).then_some(Verdict::Inconclusive);
    Shown {
        what: row.key.what.name(),
        scope: row.key.scope.to_string(),
        base: row.base,
        new: row.new,
        change: row.change,
        low: row.interval.map(|(low, _)| low),
        high: row.interval.map(|(_, high)| high),
        kind: if row.key.what.kind() == Kind::Time { "time" } else { "structure" },
        significant: row.significant,
        rule: decisive.map(|(rule, _)| rule),
        verdict: decisive.map(|(_, verdict)| verdict).or(open).map(Verdict::name),
        unit: row.key.what.unit().name(),
        method: row.method.name(),
        varies: row.varies,
    }
}
