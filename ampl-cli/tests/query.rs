//! `ampl query` as a user meets it.

use std::path::Path;
use std::process::Command;

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
