//! `ampl timesteps` as a user meets it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn ampl(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ampl")).arg("timesteps").args(args).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// A trace of four ranks that a version of before wrote.
fn golden(name: &str) -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1").join(name);
    place.to_str().unwrap().to_owned()
}

#[test]
fn the_document_has_every_name_whether_there_is_a_loop_or_not() {
    for name in ["four-ranks.ampl", "four-ranks-gaps.ampl"] {
        let (status, out, err) = ampl(&[&golden(name), "--json"]);
        assert_eq!(status, 0, "{err}");
        let row: Value = serde_json::from_str(&out).unwrap();
        for key in ["count", "calls_per_step", "site", "function_mix", "confidence", "reason", "counts"] {
            assert!(row.get(key).is_some(), "{key} in {out}");
        }
        assert_eq!(row["ranks"], 4);
        assert_eq!(row["count"].is_null(), row["reason"].is_string(), "{out}");
        let of_ranks: Vec<&str> =
            row["counts"].as_array().unwrap().iter().map(|count| count["ranks"].as_str().unwrap()).collect();
        assert!(!of_ranks.is_empty(), "{out}");
        let (status, text, _) = ampl(&[&golden(name)]);
        assert_eq!(status, 0);
        let begin = if row["count"].is_null() { "No timestep loop: " } else { "Timestep loop: " };
        assert!(text.starts_with(begin), "{text}");
    }
}

#[test]
fn a_missing_run_is_named() {
    let (status, out, err) = ampl(&["/nowhere/run"]);
    assert_eq!((status, out.as_str()), (4, ""));
    assert!(err.starts_with("ampl: ") && err.contains("/nowhere/run"), "{err}");
}
