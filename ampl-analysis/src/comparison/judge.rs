//! Rules applied to rows: what fails, what passes, and what cannot be told.

use super::change::Method;
use super::quantity::{Kind, RunQuantity};
use super::rank_test;
use super::rows::Row;
use super::rule::{Op, Rule};
use super::rule_file::Settled;

/// Answer of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// No rule failed.
    Pass,
    /// It cannot be told.
    Inconclusive,
    /// The runs cannot be compared.
    Incomparable,
    /// A rule failed.
    Fail,
}

impl Verdict {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Inconclusive => "inconclusive",
            Self::Incomparable => "incomparable",
            Self::Fail => "fail",
        }
    }
}

/// Reason why a rule has no clear answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// No run has that quantity.
    NotMeasured,
    /// One run a side shows no difference of time: so many are needed on each.
    OneRun(usize),
    /// The change is beyond the threshold, but may be chance: the probability, and what was allowed.
    MayBeChance(f64, f64),
    /// The number varies between equal runs.
    Varies,
    /// Times under another MPI are no comparison.
    OtherMpi,
}

/// Answer of a rule.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The rule.
    pub rule: Rule,
    /// Its answer.
    pub verdict: Verdict,
    /// Numbers of the rows that it is about.
    pub rows: Vec<usize>,
    /// Numbers of those that failed.
    pub failed: Vec<usize>,
    /// Reason of an unclear answer.
    pub reason: Option<Reason>,
}

/// A rule that could never fail with so few runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Powerless {
    /// The rule.
    pub rule: String,
    /// Tests among all rules.
    pub tests: usize,
    /// Runs on each side that are needed.
    pub needed: usize,
}

/// One test of a rule on a row.
struct Test {
    rule: usize,
    row: usize,
    probability: f64,
}

/// Applies `rules` to `rows`. Probabilities of all time rows are held against each other (Holm), so that equal runs fail
/// any rule with a probability of at most 1 − `confidence`.
///
/// # Source
/// Holm, *Scand. J. Statist.* 6 (1979), 65–70.
///
/// # Errors
/// [`Powerless`] for a rule that cannot fail with so many runs, unless there is one run a side.
pub fn judge(
    rules: &[Rule],
    rows: &[Row],
    runs: (usize, usize),
    confidence: f64,
    no_times: bool,
) -> Result<Vec<Judged>, Powerless> {
    let alpha = 1.0 - confidence;
    let about: Vec<Vec<usize>> = rules
        .iter()
        .map(|rule| (0..rows.len()).filter(|&row| rule.is_about(&rows[row].key)).collect())
        .collect();
    let mut tests = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        for &row in &about[number] {
            if let Some(samples) = &rows[row].samples {
                let reference = rule.reference(rows[row].base.unwrap_or(0.0));
                let probability =
                    if rule.is_upwards() { samples.above(reference) } else { samples.below(reference) };
                tests.push(Test { rule: number, row, probability });
            }
        }
    }
    let all = tests.len();
    if runs != (1, 1) {
        for test in &tests {
            let least = rows[test.row].samples.as_ref().map_or(1.0, |samples| samples.least());
            if least > alpha / all as f64 * (1.0 + 1e-9) {
                let rule = rules[test.rule].text.clone();
                return Err(Powerless { rule, tests: all, needed: needed(alpha, all) });
            }
        }
    }
    // Holm: the smallest probability of k must be at most alpha / k, the next at most alpha / (k - 1), and so on.
    tests.sort_by(|a, b| a.probability.total_cmp(&b.probability));
    let first_chance = tests
        .iter()
        .enumerate()
        .position(|(at, test)| test.probability > alpha / (all - at) as f64 * (1.0 + 1e-9))
        .unwrap_or(all);
    let mut judged: Vec<Judged> = Vec::new();
    for (number, rule) in rules.iter().enumerate() {
        let mut own = Judged {
            rule: rule.clone(),
            verdict: Verdict::Pass,
            rows: about[number].clone(),
            failed: Vec::new(),
            reason: None,
        };
        match rule.what.kind() {
            Kind::Structure => structure(&mut own, rows),
            Kind::Time if no_times => {
                (own.verdict, own.reason) = (Verdict::Incomparable, Some(Reason::OtherMpi));
            }
            Kind::Time if own.rows.is_empty() => {
                (own.verdict, own.reason) = (Verdict::Inconclusive, Some(Reason::NotMeasured));
            }
            Kind::Time => {
                let tests = tests.iter().enumerate().filter(|(_, test)| test.rule == number);
                for (place, test) in tests {
                    time(&mut own, &rows[test.row], test, (place, first_chance), (alpha, all));
                }
            }
        }
        own.failed.sort_unstable();
        judged.push(own);
    }
    Ok(judged)
}

/// Runs on each side with which each of so many tests can fail.
fn needed(alpha: f64, tests: usize) -> usize {
    let enough = |&runs: &usize| rank_test::least(runs, runs) <= alpha / tests.max(1) as f64 * (1.0 + 1e-9);
    (2..200).find(enough).unwrap_or(200)
}

fn structure(own: &mut Judged, rows: &[Row]) {
    if own.rows.is_empty() {
        // A part that no run has calls nothing; of the run itself nothing is known.
        if own.rule.scope.is_none() || matches!(own.rule.what, RunQuantity::Metric(_)) {
            (own.verdict, own.reason) = (Verdict::Inconclusive, Some(Reason::NotMeasured));
        }
        return;
    }
    for &at in &own.rows {
        let row = &rows[at];
        let answer = match (row.ranges, row.varies) {
            ([Some(base), Some(new)], _) => {
                let fails = |base: f64, new: f64| {
                    let relative = if base == new { 0.0 } else { (new - base) / base };
                    own.rule.holds(relative, new - base)
                };
                let pairs = [(base.0, new.0), (base.0, new.1), (base.1, new.0), (base.1, new.1)];
                let failing = pairs.iter().filter(|(base, new)| fails(*base, *new)).count();
                match failing {
                    0 if !row.varies || own.rule.op != Op::Other => Verdict::Pass,
                    4 if !row.varies => Verdict::Fail,
                    // Both sides vary, and are apart all the same.
                    4 if row.significant => Verdict::Fail,
                    _ => Verdict::Inconclusive,
                }
            }
            // A loop that only one side has.
            _ if own.rule.op == Op::Other => Verdict::Fail,
            _ => Verdict::Inconclusive,
        };
        match answer {
            Verdict::Fail => own.failed.push(at),
            Verdict::Inconclusive => own.reason = Some(Reason::Varies),
            _ => {}
        }
        own.verdict = own.verdict.max(answer);
    }
    if own.verdict == Verdict::Fail {
        own.reason = None;
    }
}

fn time(
    own: &mut Judged,
    row: &Row,
    test: &Test,
    (place, first_chance): (usize, usize),
    (alpha, all): (f64, usize),
) {
    if row.method == Method::TooFewRuns {
        own.verdict = own.verdict.max(Verdict::Inconclusive);
        own.reason = own.reason.take().or(Some(Reason::OneRun(needed(alpha, all))));
        return;
    }
    let relative = match (row.change, row.difference()) {
        (Some(change), _) => change,
        // From nothing to something.
        (None, Some(difference)) if difference > 0.0 => f64::INFINITY,
        _ => 0.0,
    };
    if !own.rule.holds(relative, row.difference().unwrap_or(0.0)) {
        return;
    }
    let reference = own.rule.reference(row.base.unwrap_or(0.0));
    let excluded = match (own.rule.is_upwards(), row.interval) {
        (true, Some((low, _))) => low > reference,
        (false, Some((_, high))) => high < reference,
        (_, None) => true,
    };
    if place < first_chance && excluded {
        own.verdict = Verdict::Fail;
        own.failed.push(test.row);
        own.reason = None;
    } else if own.verdict != Verdict::Fail {
        own.verdict = Verdict::Inconclusive;
        own.reason = Some(Reason::MayBeChance(test.probability, alpha / (all - place.min(all - 1)) as f64));
    }
}

/// The answer of all rules together: a failure is one whatever else cannot be told.
pub fn together(judged: &[Judged], settled: Option<Settled>) -> Verdict {
    let all = judged.iter().map(|judged| judged.verdict).max().unwrap_or(Verdict::Pass);
    match (all, settled) {
        (Verdict::Inconclusive, Some(Settled::Pass)) => Verdict::Pass,
        (Verdict::Inconclusive, Some(Settled::Fail)) => Verdict::Fail,
        _ => all,
    }
}
