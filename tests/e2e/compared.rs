//! Runs of two builds side by side: what is planted is found, and foreign readers take what is written.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, home, program};
use ampl_tests::process::{self, Finished, alone};
use ampl_tests::python;
use ampl_tests::run::{Form, Monitored, monitor, parse};
use serde_json::Value;

fn job(mpi: Mpi) -> Job {
    Job::of(mpi, 4, "compared", &["20", "20000"])
}

fn run(job: &Job) -> Monitored {
    monitor(job, "", Form::Run).success()
}

fn ampl_of(words: &[&str], runs: &[&[Monitored]]) -> Finished {
    let mut command = Command::new(ampl());
    command.arg(words[0]);
    for (side, runs) in runs.iter().enumerate() {
        if side > 0 {
            command.arg("--");
        }
        command.args(runs.iter().map(|run| &run.run));
    }
    process::run(command.args(&words[1..]), Duration::from_secs(120))
}

#[track_caller]
fn document(words: &[&str], runs: &[&[Monitored]], status: i32) -> Value {
    let found = ampl_of(&[words, &["--json"]].concat(), runs);
    assert_eq!(found.status.code(), Some(status), "{}{}", found.stderr, found.stdout);
    parse(&found.stdout)
}

#[track_caller]
fn row<'a>(document: &'a Value, what: &str, scope: &str) -> &'a Value {
    let rows = document["rows"].as_array().expect("a list");
    let found = rows.iter().find(|row| row["what"] == what && row["scope"] == scope);
    found.unwrap_or_else(|| panic!("no {what} of {scope} in {document:#}"))
}

#[test]
fn one_more_message_a_step_is_found_from_one_run_each() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let short = Job::of(mpi, 4, "compared", &["20", "100"]);
        let (base, same) = ([run(&short)], [run(&short)]);
        let new = [run(&short.clone().with("COMPARED_MORE", "1"))];
        let gate = ["diff", "--fail-if", "calls!=0", "--fail-if", "messages!=0", "--fail-if", "sequence!=0"];
        assert_eq!(document(&gate, &[&base, &same], 0)["verdict"], "pass");
        let found = document(&gate, &[&base, &new], 5);
        let messages = row(&found, "messages", "run");
        assert_eq!(
            (messages["base"].as_f64(), messages["new"].as_f64()),
            (Some(80.0), Some(100.0)),
            "{mpi:?}"
        );
        assert_eq!(row(&found, "calls", "MPI_Send")["new"].as_f64(), Some(20.0));
        assert_eq!(row(&found, "sequence", "run")["new"].as_f64(), Some(2.0));
        let sites: Vec<&str> = found["rows"]
            .as_array()
            .expect("a list")
            .iter()
            .filter(|row| row["kind"] == "structure" && row["verdict"] == "fail")
            .filter_map(|row| row["scope"].as_str())
            .collect();
        assert!(sites.iter().any(|site| site.starts_with("MPI_Send@compared.c:")), "{sites:?}");
        assert!(!sites.iter().any(|site| site.contains("Barrier")), "{sites:?}");
        // One run each shows nothing of time.
        document(&["diff", "--fail-if", "elapsed>5%"], &[&base, &same], 6);
    }
}

#[test]
fn a_slower_stratum_fails_by_name() {
    let (mut base, mut new) = (Vec::new(), Vec::new());
    {
        let _machine = alone();
        for _ in 0..3 {
            base.push(run(&job(Mpi::OpenMpi)));
            new.push(run(&job(Mpi::OpenMpi).with("COMPARED_SLOW", "200")));
        }
    }
    let scratch = Scratch::new("compared");
    let xml = scratch.path().join("diff.xml");
    let gate = [
        "diff",
        "--fail-if",
        "compute.time>20%",
        "--fail-if",
        "calls!=0",
        "--junit",
        xml.to_str().expect("ours"),
    ];
    let found = document(&gate, &[&base, &new], 5);
    let time = row(&found, "compute.time", "run");
    assert_eq!((&time["verdict"], &time["method"]), (&"fail".into(), &"bootstrap".into()));
    assert_eq!(row(&found, "calls", "run")["verdict"], "pass");
    // Halves of other pace are strata: the slower one comes first, before the waiting for it.
    let first = &found["rows"][0];
    assert_eq!(
        (&first["what"], &first["scope"]),
        (&"compute.time".into(), &"stratum:2-3".into()),
        "{found:#}"
    );
    let text = ampl_of(&["diff", "--markdown"], &[&base, &new]).stdout;
    assert!(text.starts_with("**ampl diff: "), "{text}");
    read_by_others(&xml, (2, 1, 0));
}

/// Checks a file of test cases with a schema, and with a reader of others.
fn read_by_others(xml: &Path, (tests, failures, skipped): (u32, u32, u32)) {
    let script = "import sys, xmlschema, junitparser\n\
                  xmlschema.XMLSchema(sys.argv[1]).validate(sys.argv[2])\n\
                  found = junitparser.JUnitXml.fromfile(sys.argv[2])\n\
                  cases = [case for suite in found for case in suite]\n\
                  count = lambda kind: sum(isinstance(one, kind) for case in cases for one in case.result)\n\
                  print(len(cases), count(junitparser.Failure), count(junitparser.Skipped))\n";
    let schema: PathBuf = home().join("schemas/junit.xsd");
    let mut command = Command::new(program(&["python3"]));
    command.env("PYTHONPATH", python::junit_readers()).args(["-c", script]).arg(schema).arg(xml);
    let said = process::run(&mut command, Duration::from_secs(60)).success().stdout;
    assert_eq!(said.trim(), format!("{tests} {failures} {skipped}"));
}

#[test]
fn what_grows_with_the_ranks_is_flagged_and_nothing_else() {
    let study = |arguments: &[&str]| -> Vec<Monitored> {
        let of = |ranks: u32| run(&Job::of(Mpi::OpenMpi, ranks, "scales", arguments));
        [4, 8, 16, 32].map(of).into()
    };
    let planted = study(&["10", "planted"]);
    let found = document(&["scaling"], &[&planted], 0);
    let flags: Vec<(&str, &str)> = found["flags"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|flag| (flag["site"].as_str().expect("a site"), flag["growth"].as_str().expect("a law")))
        .collect();
    assert_eq!(flags.len(), 2, "{found:#}");
    assert!(flags[0].0.starts_with("MPI_Alltoallv@scales.c:") && flags[0].1 == "O(P)", "{flags:?}");
    assert!(flags[1].0.starts_with("MPI_Gather@scales.c:") && flags[1].1 == "O(P)", "{flags:?}");
    let ranks: Vec<Option<u64>> =
        found["rows"].as_array().expect("a list").iter().map(|row| row["ranks"].as_u64()).collect();
    assert_eq!(ranks, [4, 8, 16, 32].map(Some));
    assert!(
        found["rows"].as_array().expect("a list").iter().all(|row| row["parallel"].is_number()),
        "{found:#}"
    );
    let text = ampl_of(&["scaling"], &[&planted]).stdout;
    assert!(
        text.contains("Grows with the number of ranks (P)") && text.contains("perf.instructions"),
        "{text}"
    );
}
