//! `ampl query` as a user meets it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn ampl(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ampl")).args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A trace of four ranks that a version of before wrote.
fn golden(name: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1").join(name);
    place.to_str().unwrap().to_owned()
}

#[test]
fn sites_are_the_table_of_info() {
    let run = golden("four-ranks.ampl");
    for json in [&[][..], &["--json"]] {
        let asked = ampl(&[&["query", &run, "sites"], json].concat());
        assert_eq!(asked.0, 0, "{}", asked.2);
        assert!(!asked.1.is_empty());
        assert_eq!(asked, ampl(&[&["info", &run, "--calls"], json].concat()));
    }
    // Options that questions share may stand before the question.
    assert_eq!(ampl(&["query", &run, "--json", "sites"]), ampl(&["query", &run, "sites", "--json"]));
}

#[test]
fn sites_of_a_part_are_refused() {
    let run = golden("four-ranks.ampl");
    for (option, value) in [("--from", "1s"), ("--until", "1s"), ("--to", "1s"), ("--ranks", "0")] {
        let (status, out, err) = ampl(&["query", &run, "sites", option, value]);
        assert_eq!((status, out.as_str()), (2, ""), "{option}: {err}");
        assert!(err.contains("whole run") && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn a_question_that_is_not_known_and_a_run_that_is_not_there_are_named() {
    let (status, _, err) = ampl(&["query", &golden("four-ranks.ampl"), "weather"]);
    assert!(status == 2 && err.contains("weather"), "{err}");
    let (status, _, err) = ampl(&["query", "/nowhere/run", "sites"]);
    assert!(status == 4 && err.contains("/nowhere/run"), "{err}");
}

/// The names of the fields of the contract, question by question.
const FIELDS: [(&str, &[&str]); 5] = [
    (
        "summary",
        &[
            "function",
            "site",
            "region",
            "calls",
            "inclusive_ns",
            "exclusive_ns",
            "bytes",
            "half_width",
            "basis",
        ],
    ),
    ("matrix", &["source", "dest", "calls", "bytes"]),
    ("ranks", &["rank", "host", "calls", "bytes", "wall_ns", "mpi_ns", "compute_ns", "basis"]),
    (
        "durations",
        &["function", "site", "bytes", "calls", "timed", "mean_ns", "min_ns", "max_ns", "max_rank"],
    ),
    ("volume", &["window", "start_ns", "end_ns", "ranks", "reported", "metrics"]),
];

#[test]
fn every_question_has_the_fields_of_the_contract() {
    for name in ["four-ranks.ampl", "four-ranks-bundles.ampl", "four-ranks-gaps.ampl"] {
        let run = golden(name);
        for (question, fields) in FIELDS {
            let (status, out, err) = ampl(&["query", &run, question, "--json"]);
            assert_eq!(status, 0, "{name} {question}: {err}");
            let rows: Value = serde_json::from_str(&out).unwrap();
            for row in rows.as_array().unwrap() {
                for field in fields {
                    assert!(row.get(field).is_some(), "{name} {question}: {field} in {row}");
                }
            }
            let (status, text, err) = ampl(&["query", &run, question]);
            assert_eq!(status, 0, "{name} {question}: {err}");
            assert!(text.lines().count() > 1 || rows.as_array().unwrap().is_empty(), "{text}");
        }
        let (status, out, err) = ampl(&["query", &run, "timeline", "--width", "13", "--json"]);
        assert_eq!(status, 0, "{err}");
        let timeline: Value = serde_json::from_str(&out).unwrap();
        assert!(timeline["t0_ns"].is_i64() && timeline["pixel_ns"].is_f64(), "{out}");
        for row in timeline["rows"].as_array().unwrap() {
            assert_eq!(row["shares"].as_array().unwrap().len(), 13);
        }
    }
}

#[test]
fn the_summary_of_the_whole_run_has_the_calls_of_info() {
    for name in ["four-ranks.ampl", "four-ranks-gaps.ampl"] {
        let run = golden(name);
        let json = |words: &[&str]| -> Value {
            let (status, out, err) = ampl(words);
            assert_eq!(status, 0, "{err}");
            serde_json::from_str(&out).unwrap()
        };
        let mut sums = std::collections::BTreeMap::<String, u64>::new();
        for row in json(&["query", &run, "summary", "--json"]).as_array().unwrap() {
            // Calls beyond the table of sites have no function, but a time.
            let Some(function) = row["function"].as_str() else {
                assert!(row["calls"].is_null(), "{row}");
                continue;
            };
            *sums.entry(function.to_owned()).or_default() += row["calls"].as_u64().unwrap();
        }
        let counted = json(&["info", &run, "--json"])["functions"].clone();
        let counted: std::collections::BTreeMap<String, u64> = serde_json::from_value(counted).unwrap();
        assert!(!counted.is_empty());
        // The sequences of these files have calls of more functions than their processes have counted.
        counted
            .iter()
            .for_each(|(function, calls)| assert_eq!(sums.get(function), Some(calls), "{function}"));
    }
}

#[test]
fn until_has_another_name_and_wrong_parts_are_named() {
    let run = golden("four-ranks.ampl");
    let asked = |words: &[&str]| ampl(&[&["query", &run], words].concat());
    assert_eq!(asked(&["volume", "--until", "5ms"]), asked(&["volume", "--to", "5ms"]));
    for (words, status, hint) in [
        (&["summary", "--from", "soon"][..], 2, "soon"),
        (&["summary", "--from", "2s", "--until", "1s"], 2, "--from"),
        (&["matrix", "--ranks", "4"], 4, "0 to 3"),
        (&["matrix", "--by", "colour"], 2, "colour"),
        (&["timeline", "--width", "0"], 2, "0"),
        (&["summary", "--from", "1000s"], 4, "no window"),
        (&["timeline", "--from", "1000s"], 4, "no window"),
        (&["volume", "--from", "1000s"], 4, "no window"),
        (&["ranks", "--from", "1000s"], 4, "no window"),
    ] {
        let (found, out, err) = asked(words);
        assert_eq!((found, out.as_str()), (status, ""), "{words:?}: {err}");
        assert!(err.contains(hint) && err.lines().count() == 1, "{words:?}: {err}");
    }
}
