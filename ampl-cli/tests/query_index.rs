//! The index of times as a user meets it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn ampl(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ampl")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A copy of a trace of four ranks in `directory`.
fn copy(name: &str, directory: &Path) -> PathBuf {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1").join(name);
    let trace = directory.join("trace.ampl");
    fs::copy(golden, &trace).unwrap();
    trace
}

const QUESTIONS: [&[&str]; 5] = [
    &["summary", "--ranks", "1-2"],
    &["timeline", "--width", "31"],
    &["durations"],
    &["ranks", "--from", "1ms"],
    &["summary", "--from", "1ms", "--until", "900ms"],
];

/// An answer with numbers of nine digits: sums of the same numbers in another order are the same but for rounding.
fn rounded(answer: &str) -> Value {
    fn round(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => {
                *value = format!("{:.8e}", number.as_f64().unwrap()).into()
            }
            Value::Array(values) => values.iter_mut().for_each(round),
            Value::Object(fields) => fields.values_mut().for_each(round),
            _ => {}
        }
    }
    let mut value = serde_json::from_str(answer).unwrap();
    round(&mut value);
    value
}

/// Answers to all questions of the run at `run`: status and output.
fn answers(run: &str, index: &str) -> Vec<(i32, Value)> {
    let ask = |question: &&[&str]| {
        let (status, out, _) = ampl(&[&["query", run, "--json", "--index", index], *question].concat());
        (status, rounded(&out))
    };
    QUESTIONS.iter().map(ask).collect()
}

#[test]
fn an_index_is_made_once_and_answers_as_the_times_do() {
    let directory = tempfile::tempdir().unwrap();
    let trace = copy("four-ranks.ampl", directory.path());
    let (run, index) = (directory.path().to_str().unwrap(), directory.path().join("trace.ampl.index"));
    let plain = answers(run, "off");
    assert!(!index.exists(), "off makes none");
    assert_eq!(answers(run, "auto"), plain);
    assert!(!index.exists(), "few times need none");
    let (status, out, err) = ampl(&["query", run, "--index", "build", "--json", "durations"]);
    assert_eq!((status, &rounded(&out)), (0, &plain[2].1), "{err}");
    assert!(err.contains("index of the times of 4 ranks") && err.contains("trace.ampl.index"), "{err}");
    let made = fs::read(&index).unwrap();
    assert_eq!(answers(run, "auto"), plain);
    assert_eq!(answers(trace.to_str().unwrap(), "auto"), plain, "the run may be named by its trace");
    assert_eq!(fs::read(&index).unwrap(), made, "it is used, not made again");
}

#[test]
fn an_index_of_another_trace_or_with_damage_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    copy("four-ranks.ampl", directory.path());
    let (run, index) = (directory.path().to_str().unwrap(), directory.path().join("trace.ampl.index"));
    assert_eq!(ampl(&["query", run, "--index", "build", "timeline"]).0, 0);
    let made = fs::read(&index).unwrap();
    let plain = answers(run, "off");
    for at in (0..made.len()).step_by(made.len() / 40 + 1) {
        let mut damaged = made.clone();
        damaged[at] ^= 0x10;
        fs::write(&index, &damaged[..made.len() - at % 3]).unwrap();
        let (status, out, err) = ampl(&["query", run, "--json", "durations"]);
        assert_eq!((status, &rounded(&out)), (0, &plain[2].1), "byte {at}: {err}");
    }
    fs::write(&index, &made).unwrap();
    copy("four-ranks-gaps.ampl", directory.path());
    assert_eq!(answers(run, "auto"), answers(run, "off"));
}

#[test]
fn a_place_that_cannot_be_written_is_named_and_the_question_answered() {
    let directory = tempfile::tempdir().unwrap();
    copy("four-ranks.ampl", directory.path());
    let run = directory.path().to_str().unwrap();
    fs::create_dir_all(directory.path().join("trace.ampl.index/taken")).unwrap();
    let plain = ampl(&["query", run, "--index", "off", "durations"]);
    let (status, out, err) = ampl(&["query", run, "--index", "build", "durations"]);
    assert_eq!((status, out), (0, plain.1));
    assert!(err.contains("trace.ampl.index") && err.contains("--index off"), "{err}");
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 2, "no part of a file is left");
}
