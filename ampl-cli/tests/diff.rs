//! `ampl diff` as a user meets it.

use std::fs;
use std::path::Path;
use std::process::Command;

use ampl_testkit::runs::{self, Caller, world};
use ampl_testkit::synthetic::Synthetic;
use serde_json::Value;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Runs `NAME-0` to `NAME-4`, whose time in MPI is `slowdown` longer than usual, and some noise.
    fn runs(&self, name: &str, slowdown: f64) -> Vec<String> {
        let noise = [0.002, -0.004, 0.006, 0.0, -0.003];
        let write = |(at, noise): (usize, f64)| {
            let name = format!("{name}-{at}");
            // Each side has noise of its own.
            let noise = if slowdown > 0.0 { -noise } else { noise };
            Synthetic { slowdown: slowdown + noise, ..Synthetic::default() }
                .write_run(&self.0.path().join(&name));
            name
        };
        noise.into_iter().enumerate().map(write).collect()
    }

    /// A run whose rank 0 sends `messages` messages in each of ten steps.
    fn sends(&self, name: &str, messages: u64) -> String {
        let structure = runs::structure(2, |rank: &mut Caller| {
            for _ in 0..10 {
                for _ in 0..messages {
                    match rank.rank() {
                        0 => rank.send(5, 1, 8, world()),
                        _ => rank.receive(6, 0, 0, 8, world()),
                    }
                }
                rank.call("MPI_Barrier", 7, &[world()]);
            }
        });
        runs::write(&self.0.path().join(name), &structure, |_| "node".into()).unwrap();
        name.to_owned()
    }

    fn file(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    fn ampl<T: AsRef<str>>(&self, args: &[T]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ampl"));
        command.arg("diff").args(args.iter().map(AsRef::as_ref)).current_dir(self.0.path());
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    #[track_caller]
    fn json<T: AsRef<str>>(&self, args: &[T], status: i32) -> Value {
        let args: Vec<&str> = args.iter().map(AsRef::as_ref).chain(["--json"]).collect();
        let (found, out, err) = self.ampl(&args);
        assert_eq!(found, status, "{err}{out}");
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }
}

/// `BASE… -- NEW… ARGS…`
fn sides<'a>(base: &'a [String], new: &'a [String], args: &[&'a str]) -> Vec<&'a str> {
    let names = |runs: &'a [String]| runs.iter().map(String::as_str);
    names(base).chain(["--"]).chain(names(new)).chain(args.iter().copied()).collect()
}

#[track_caller]
fn row<'a>(document: &'a Value, what: &str, scope: &str) -> &'a Value {
    let rows = document["rows"].as_array().unwrap();
    let found = rows.iter().find(|row| row["what"] == what && row["scope"] == scope);
    found.unwrap_or_else(|| panic!("{what} of {scope} in {document:#}"))
}

#[test]
fn one_more_message_a_step_is_found_from_one_run_each() {
    let place = Place::new();
    let (one, two) = (place.sends("one", 1), place.sends("two", 2));
    let found = place.json(&[&one, &two, "--fail-if", "calls!=0"], 5);
    let calls = row(&found, "calls", "MPI_Send");
    assert_eq!((calls["base"].as_f64(), calls["new"].as_f64()), (Some(10.0), Some(20.0)));
    assert_eq!(
        (&calls["kind"], &calls["verdict"], &calls["rule"]),
        (&"structure".into(), &"fail".into(), &"calls!=0".into())
    );
    assert_eq!(row(&found, "messages", "run")["change"].as_f64(), Some(1.0));
    assert_eq!(found["rules"][0]["verdict"], "fail");
    let found = place.json(&[&one, &one, "--fail-if", "calls!=0", "--fail-if", "messages!=0"], 0);
    assert_eq!((&found["verdict"], found["differences"].as_array().map(Vec::len)), (&"pass".into(), Some(0)));
    // A part that is asked for is shown even if it did not change.
    let found = place.json(&[&one, &one, "--fail-if", "calls@MPI_Send!=0"], 0);
    assert_eq!(row(&found, "calls", "MPI_Send")["verdict"], "pass");
    let (status, text, _) = place.ampl(&[&one, &two]);
    assert!(status == 0 && text.contains("calls of MPI_Send") && text.contains("+100 %"), "{text}");
}

#[test]
fn one_run_a_side_is_inconclusive_about_time() {
    let place = Place::new();
    let runs = place.runs("base", 0.0);
    let pair = [runs[0].as_str(), runs[1].as_str(), "--fail-if", "mpi.time>5%"];
    let found = place.json(&pair, 6);
    assert_eq!(
        (&found["verdict"], &row(&found, "mpi.time", "run")["verdict"]),
        (&"inconclusive".into(), &"inconclusive".into())
    );
    assert!(found["rules"][0]["reason"].as_str().unwrap().contains("record 3 a side"), "{found:#}");
    for (option, status) in [("--inconclusive=pass", 0), ("--inconclusive=fail", 5), ("--noise=2%", 0)] {
        assert_eq!(place.ampl(&[&pair[..], &[option]].concat()).0, status, "{option}");
    }
    // Without rules nothing is judged, and the rows say so.
    let found = place.json(&pair[..2], 0);
    assert_eq!(row(&found, "elapsed", "run")["verdict"], "inconclusive");
}

#[test]
fn a_planted_slowdown_fails_and_equal_runs_pass() {
    let place = Place::new();
    let (base, new) = (place.runs("base", 0.0), place.runs("new", 0.1));
    let gate = ["--fail-if", "mpi.time>5%", "--fail-if", "calls!=0", "--confidence", "95%"];
    let found = place.json(&sides(&base, &new, &gate), 5);
    let time = row(&found, "mpi.time", "run");
    assert_eq!((&time["verdict"], &time["method"]), (&"fail".into(), &"bootstrap".into()));
    assert!(time["low"].as_f64() < Some(0.1) && time["high"].as_f64() > Some(0.1), "{time}");
    assert_eq!(time["significant"], true);
    // Biggest change first: of the functions that is the reduction.
    let rows = found["rows"].as_array().unwrap();
    assert_eq!((&rows[0]["what"], &rows[0]["kind"]), (&"mpi.time".into(), &"time".into()));
    let scopes = rows.iter().filter(|row| row["kind"] == "time").filter_map(|row| row["scope"].as_str());
    let first = scopes.into_iter().find(|scope| scope.starts_with("MPI_")).unwrap();
    assert!(first.starts_with("MPI_Allreduce"), "{found:#}");
    let (half, other) = base.split_at(3);
    let twice: Vec<String> = other.iter().chain(&base[..1]).cloned().collect();
    assert_eq!(place.json(&sides(half, &twice, &gate), 0)["verdict"], "pass");
    // One new run against several: it is predicted.
    let found = place.json(&sides(&base, &new[..1], &gate), 5);
    assert_eq!(row(&found, "mpi.time", "run")["method"], "prediction");
    assert_eq!(place.ampl(&sides(&base, &base[..1], &gate)).0, 0);
    // A floor that the change does not reach.
    assert_eq!(place.ampl(&sides(&base, &new, &["--fail-if", "mpi.time>5% and 10s"])).0, 0);
}

#[test]
fn what_cannot_fail_or_is_unknown_is_refused() {
    let place = Place::new();
    let base = place.runs("base", 0.0);
    for (args, status, words) in [
        (sides(&base[..2], &base[2..4], &["--fail-if", "mpi.time>5%"]), 2, ["3 runs a side", "mpi.time>5%"]),
        (sides(&base[..1], &base[1..2], &["--fail-if", "mpi.tme>5%"]), 2, ["mpi.tme", "mpi.time"]),
        (sides(&base[..1], &base[1..2], &["--fail-if", "mpi.time"]), 2, ["comparison", "--fail-if"]),
        (vec![&base[0]], 2, ["one run only", "two runs"]),
        (vec![&base[0], &base[1], &base[2]], 2, ["3 runs", "--"]),
        (vec![&base[0], "nothing"], 4, ["nothing", "trace.ampl"]),
        (vec![&base[0], &base[1], "--rules", "none.toml"], 4, ["none.toml", "file"]),
        (vec!["--calibrate", &base[0], &base[1]], 2, ["2 runs", "3 equal runs"]),
    ] {
        let (found, out, err) = place.ampl(&args);
        assert_eq!((found, out.as_str()), (status, ""), "{args:?}: {err}");
        assert!(words.iter().all(|word| err.contains(word)), "{args:?}: {err}");
    }
}

#[test]
fn runs_of_other_jobs_are_incomparable() {
    let place = Place::new();
    let base = place.runs("base", 0.0);
    Synthetic { ranks: 4, ..Synthetic::default() }.write_run(&place.0.path().join("small"));
    let killed = Synthetic { killed: vec![2], ..Synthetic::default() };
    killed.write_run(&place.0.path().join("killed"));
    for (other, words) in
        [("small", "other ranks: 8 in the base, 4 in the new"), ("killed", "did not come to its end")]
    {
        let (status, text, _) = place.ampl(&[&base[0], other]);
        assert!(status == 7 && text.contains(words), "{text}");
        assert_eq!(place.json(&[&base[0], other], 7)["verdict"], "incomparable");
        assert_eq!(place.json(&[&base[0], other, "--allow"], 0)["verdict"], "pass");
    }
}

#[test]
fn every_form_is_written() {
    let place = Place::new();
    let (base, new) = (place.runs("base", 0.0), place.runs("new", 0.1));
    place.file("rules.toml", "[[rule]]\nfail_if = \"mpi.time@MPI_Allreduce>5%\"\nfloor = \"10us\"\n\n[[rule]]\nfail_if = \"calls!=0\"\n");
    let (status, text, err) =
        place.ampl(&sides(&base, &new, &["--rules", "rules.toml", "--markdown", "--junit", "out.xml"]));
    assert_eq!(status, 5, "{err}");
    assert!(text.starts_with("**ampl diff: fail: 2 rules, 5 new runs against 5 of the base**\n"), "{text}");
    // Each table's lines have as many cells.
    for table in text.split("\n\n").filter(|part| part.starts_with('|')) {
        let cells: Vec<usize> =
            table.lines().map(|line| line.replace("\\|", "").matches('|').count()).collect();
        assert!(cells.windows(2).all(|pair| pair[0] == pair[1]), "{table}");
    }
    let xml = place.text("out.xml");
    assert!(
        xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("mpi.time@MPI_Allreduce&gt;5%"),
        "{xml}"
    );
    let (_, text, _) = place.ampl(&sides(&base, &new, &["--bencher"]));
    let bencher: Value = serde_json::from_str(&text).unwrap();
    let elapsed = &bencher["run"]["mpi-time"];
    assert!(elapsed["lower_value"].as_f64() < elapsed["value"].as_f64(), "{bencher:#}");
    let (_, text, _) = place.ampl(&sides(&base, &new, &["--github-benchmark"]));
    let entries: Value = serde_json::from_str(&text).unwrap();
    let one = entries.as_array().unwrap().iter().find(|entry| entry["name"] == "mpi.time").unwrap();
    assert!(one["value"].is_f64() && one["unit"] == "ns" && one["range"].as_str().unwrap().starts_with('±'));
}

#[test]
fn learned_spreads_judge_single_runs() {
    let place = Place::new();
    let (base, new) = (place.runs("base", 0.0), place.runs("new", 0.1));
    let learn: Vec<&str> = ["--calibrate"]
        .into_iter()
        .chain(base.iter().map(String::as_str))
        .chain(["-o", "spread.toml"])
        .collect();
    let (status, _, err) = place.ampl(&learn);
    assert!(status == 0 && err.contains("5 runs show the spread of times roughly"), "{err}");
    let gate = ["--fail-if", "mpi.time>5%", "--spread", "spread.toml"];
    let found = place.json(&sides(&base[..1], &new[..1], &gate), 5);
    assert_eq!(row(&found, "mpi.time", "run")["method"], "learned noise");
    assert_eq!(place.ampl(&sides(&base[..1], &base[1..2], &gate)).0, 0);
    assert!(Path::new(&place.0.path().join("spread.toml")).is_file());
}
