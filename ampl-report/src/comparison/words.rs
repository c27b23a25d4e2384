//! Words of comparisons: quantities, parts of runs, changes, reasons.

use ampl_analysis::comparison::{
    Comparison, Difference, FEWEST_FOR_ONE, Judged, Kind, LeftOut, Method, Mismatch, Powerless, Reason, Row,
    RunQuantity, Scope, Side, Unit, Verdict,
};

use crate::human::{bytes, count, digits, duration, percent, plural};

/// Part of a run as people name it.
pub fn scope(scope: &Scope) -> String {
    match scope {
        Scope::Run => "the run".into(),
        Scope::Function(name) => name.clone(),
        Scope::Site { function, place } => format!("{function} at {place}"),
        Scope::Stratum(ranks) if ranks.parse::<u32>().is_ok() => format!("rank {ranks}"),
        Scope::Stratum(ranks) => format!("ranks {ranks}"),
        Scope::Group(name) => format!("group {name}"),
        Scope::Region(name) => format!("region {name}"),
    }
}

/// Fault of runs that can never fail a rule, and its remedy.
pub fn powerless(error: &Powerless) -> (String, String) {
    let what = match error.tests {
        1 => "so few runs can never fail this rule".to_owned(),
        tests => {
            format!("so few runs can never fail this rule, one of {} on times", plural(tests as u64, "test"))
        }
    };
    let fix =
        format!("record {} runs a side, or learn the noise with --calibrate", count(error.needed as u64));
    (what, fix)
}

/// `compute.time of ranks 2-3`
pub fn name(row: &Row) -> String {
    match &row.key.scope {
        Scope::Run => row.key.what.name().to_owned(),
        part => format!("{} of {}", row.key.what.name(), scope(part)),
    }
}

/// `value` in the quantity's unit; `-` where it is not known.
pub fn value(row: &Row, value: Option<f64>) -> String {
    let Some(value) = value else { return "-".into() };
    match row.key.what.unit() {
        Unit::Count if value.fract() == 0.0 && value >= 0.0 => count(value as u64),
        Unit::Count | Unit::Plain => digits(value),
        Unit::Bytes if value < 1e4 => format!("{} B", count(value as u64)),
        Unit::Bytes => bytes(value),
        Unit::Nanoseconds => duration(value),
        Unit::Fraction => percent(value),
    }
}

/// A change with its sign: `+10.1 %`, of shares `+3.2 points`.
pub fn signed(row: &Row, change: f64) -> String {
    let sign = if change > 0.0 { "+" } else { "" };
    match row.key.what.unit() {
        Unit::Fraction => format!("{sign}{} points", digits(100.0 * change)),
        _ => format!("{sign}{}", percent(change)),
    }
}

/// The change of `row`.
pub fn change(row: &Row) -> String {
    match (row.change, row.base, row.new) {
        (_, Some(base), Some(new)) if base == new => "same".into(),
        (_, _, Some(ranks)) if row.key.what == RunQuantity::Sequence => {
            format!("{} {}", digits(ranks), if ranks == 1.0 { "differs" } else { "differ" })
        }
        (_, Some(_), Some(0.0)) if row.method == Method::Exact && row.key.scope != Scope::Run => {
            "only in base".into()
        }
        (Some(change), ..) => signed(row, change),
        (None, Some(0.0) | None, Some(_)) => "only in new".into(),
        (None, Some(_), None) => "only in base".into(),
        _ => "-".into(),
    }
}

/// The interval of `row`, or why it has none.
pub fn interval(row: &Row) -> String {
    match (row.interval, row.method) {
        (Some((low, high)), _) => match row.key.what.unit() {
            Unit::Fraction => format!("{} to {}", digits(100.0 * low), digits(100.0 * high)),
            _ => format!("{} to {}", percent(low), percent(high)),
        },
        (None, Method::Exact) if row.varies => "varies between equal runs".into(),
        (None, Method::Exact) => "exact".into(),
        (None, _) => "inconclusive".into(),
    }
}

/// The first line: the answer, and on how many runs it rests.
pub fn headline(comparison: &Comparison) -> String {
    let (base, new) = comparison.runs;
    let runs = format!("{} against {} of the base", plural(new as u64, "new run"), count(base as u64));
    match (comparison.verdict, comparison.judged.len()) {
        (Verdict::Incomparable, _) => format!("incomparable: {runs}"),
        (_, 0) => format!("compared without rules: {runs}"),
        (verdict, rules) => format!("{}: {}, {runs}", verdict.name(), plural(rules as u64, "rule")),
    }
}

/// The reason why runs should not be compared.
pub fn mismatch(mismatch: &Mismatch) -> String {
    let pair =
        |what: &str, one: &str, other: &str| format!("{what}: {one} in the base, {other} in the new runs");
    match mismatch {
        Mismatch::Ranks(one, other) => pair("other ranks", &one.to_string(), &other.to_string()),
        Mismatch::Programs(one, other) => pair("another program", one, other),
        Mismatch::Arguments(one, other) => {
            pair("other arguments", &format!("'{one}'"), &format!("'{other}'"))
        }
        Mismatch::Mpi(one, other) => pair("another MPI", one, other) + "; calls are compared, times are not",
        Mismatch::Unfinished(side, at) => {
            let side = if *side == Side::Base { "the base" } else { "the new runs" };
            format!("run {} of {side} did not come to its end", at + 1)
        }
    }
}

/// A fact in which the sides differ.
pub fn difference(difference: &Difference) -> (String, String) {
    let name = match difference.name.as_str() {
        "" => difference.kind.name().to_owned(),
        name => format!("{} {name}", difference.kind.name()),
    };
    let values = |values: &[String]| match values {
        [] => "none".to_owned(),
        values => values.join(" | "),
    };
    (name, format!("{} -> {}", values(&difference.base), values(&difference.new)))
}

/// The row that a rule's answer rests on: the most important of those that failed, or of all.
pub fn decisive<'a>(judged: &Judged, rows: &'a [Row]) -> Option<&'a Row> {
    let at = judged.failed.first().or_else(|| judged.rows.first())?;
    rows.get(*at)
}

/// Sentence about a rule's answer.
pub fn judged(judged: &Judged, rows: &[Row]) -> String {
    let shown = decisive(judged, rows).map(|row| {
        let interval = match row.method {
            Method::Exact => String::new(),
            _ => format!(" ({})", interval(row)),
        };
        format!(
            "{}: {}{interval}, {} -> {}",
            name(row),
            change(row),
            value(row, row.base),
            value(row, row.new)
        )
    });
    let more = match judged.failed.len().saturating_sub(1) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let reason = judged.reason.as_ref().map(reason);
    match (reason, shown) {
        (Some(reason), Some(shown)) => format!("{reason}; {shown}{more}"),
        (Some(reason), None) => reason,
        (None, Some(shown)) => shown + &more,
        (None, None) => "no run has any".into(),
    }
}

fn reason(reason: &Reason) -> String {
    match reason {
        Reason::NotMeasured => "it was not measured, or has another name".into(),
        Reason::OneRun(needed) => {
            format!("one run a side shows no noise: record {needed} a side, or give --noise or --spread")
        }
        Reason::MayBeChance(probability, allowed) => {
            format!("may be chance (p = {}, needed {})", digits(*probability), digits(*allowed))
        }
        Reason::Varies => "it varies between equal runs".into(),
        Reason::OtherMpi => "times under another MPI are not compared".into(),
    }
}

/// Sentence about a part that is not compared.
pub fn left_out(left: &LeftOut) -> String {
    match left {
        LeftOut::Polls(calls) => {
            format!(
                "{} whose number depends on load, such as MPI_Test and MPI_Iprobe",
                plural(*calls, "call")
            )
        }
        LeftOut::Wildcards => "the order of receives from any source".into(),
        LeftOut::NotRecorded(calls) => format!(
            "messages, partners, steps and sequences of calls: {} counted and not recorded",
            if *calls == 1 { "1 call was".into() } else { format!("{} calls were", count(*calls)) }
        ),
        LeftOut::OnlyCounted => {
            "call sites and bytes: for a while calls were counted by function only".into()
        }
        LeftOut::Times(share) => {
            format!("times that were not measured: {} of the ranks' time is known", percent(*share))
        }
        LeftOut::Irregular(ranks) => {
            format!("sequences of {} that are too irregular", plural(*ranks, "rank"))
        }
    }
}

/// Sentences about how times are judged.
pub fn method(comparison: &Comparison) -> Vec<String> {
    let times = || comparison.rows.iter().filter(|row| row.key.what.kind() == Kind::Time);
    let confidence = percent(comparison.confidence);
    let (base, new) = comparison.runs;
    let mut lines = Vec::new();
    if let Some(row) = times().find(|row| row.method != Method::Exact) {
        lines.push(match row.method {
            Method::Bootstrap => format!(
                "Times: medians of {base} and {new} runs; {confidence} intervals by bootstrap of the ratio of medians."
            ),
            Method::Prediction => format!(
                "Times: one run against the {} of the other side; {confidence} prediction intervals by Student's t of \
                 logarithms.",
                base.max(new)
            ),
            Method::Given => format!("Times: {confidence} intervals by the noise that --noise gives."),
            Method::Learned => format!("Times: {confidence} intervals by the spread of equal runs that --spread gives."),
            _ => format!(
                "Times are inconclusive: so few runs show no noise, and intervals within a run are about sampling, not \
                 about other runs. Record 3 or more a side, {FEWEST_FOR_ONE} against one, or give --noise."
            ),
        });
    }
    let enough = ((1.0 / (1.0 - comparison.confidence)) - 1e-9).ceil() as usize - 1;
    if let Some(bound) = times().filter_map(|row| row.rank_bound).next().filter(|_| base.max(new) >= enough) {
        let beyond = times().filter(|row| row.rank_bound.is_some()).count() as u64;
        lines.push(format!(
            "{} of the one run {} beyond all others: by chance with p of at most {}, whatever the noise.",
            plural(beyond, "time"),
            if beyond == 1 { "is" } else { "are" },
            digits(bound)
        ));
    }
    let tested = times().filter(|row| row.interval.is_some()).count() as u64;
    if tested > 0 {
        lines.push(format!(
            "Of {} about {} would look changed in equal runs; rules are held to {confidence} together.",
            plural(tested, "time"),
            digits((tested as f64 * (1.0 - comparison.confidence)).ceil()),
        ));
    }
    lines
}
