//! Comparisons for other tools: JUnit, Bencher, github-action-benchmark.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use ampl_analysis::comparison::{Comparison, Verdict};
use ampl_export::junit::{self, Answer, Case};
use ampl_report::comparison::words;

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
