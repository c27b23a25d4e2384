//! `[[site]]`: records of some calls.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;
const TURNS: u64 = 50;

/// A line for every call with its times, without them, or no line and not even totals.
#[test]
fn on_aggregate_and_off_are_three_things() {
    let mut times = Vec::new();
    for policy in ["on", "aggregate", "off"] {
        let config = format!(
            "[window]\nmarker = \"mpi:MPI_Barrier\"\n[trace]\ntiming = \"all\"\n\
             [[metric]]\nname = \"calls\"\nevent = \"MPI_Sendrecv\"\n\
             [[site]]\nmatch = \"MPI_Sendrecv\"\ntrace = \"{policy}\"\n"
        );
        let job = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()]);
        let run = monitor(&job, &config, Form::Run).success();
        let said = &run.finished.stderr;
        // Always: counts, and window summaries.
        assert_eq!(run.functions()["MPI_Sendrecv"], u64::from(RANKS) * TURNS, "{policy}");
        let rows = run.estimate();
        let of = |metric: &str, event: &str| {
            let such = |row: &&Value| {
                row["scope"] == "run"
                    && row["basis"] == "census"
                    && row["metric"] == metric
                    && row["event"] == event
            };
            number(&rows.iter().find(such).expect("a row")["mean"])
        };
        assert_eq!(of("calls", "MPI_Sendrecv"), 1.0, "one per call: {policy}");
        times.push(of("mpi.time", "*"));
        let stored: Vec<Value> = run.decode(1);
        let mine: Vec<&Value> = stored.iter().filter(|call| call["fn"] == "MPI_Sendrecv").collect();
        assert_eq!(mine.len() as u64, if policy == "off" { 0 } else { TURNS }, "{policy}");
        let is_timed = |call: &&Value| call["start_ns"].is_i64();
        assert!(mine.iter().all(|call| is_timed(call) == (policy == "on")), "{policy}: {mine:?}");
        let left_out = if policy == "off" { u64::from(RANKS) * TURNS } else { 0 };
        let expected = [("site".to_owned(), left_out)].into_iter().filter(|&(_, calls)| calls > 0);
        assert_eq!(run.adds_up(), expected.collect(), "{policy}");
        // Others keep their place in the sequence.
        let barriers: Vec<u64> = stored
            .iter()
            .filter(|call| call["fn"] == "MPI_Barrier")
            .filter_map(|call| call["seq"].as_u64())
            .collect();
        assert!(
            barriers.len() as u64 == TURNS && barriers.windows(2).all(|two| two[1] - two[0] == 2),
            "{policy}"
        );
        // By call site: the table of the summary.
        assert_eq!(said.contains("  MPI_Sendrecv @ "), policy != "off", "{policy}: {said}");
        assert_eq!(said.contains("stored without their times"), policy == "aggregate", "{said}");
        assert_eq!(said.contains("neither stored nor added up by call site"), policy == "off", "{said}");
    }
    assert!(times.iter().all(|&time| time > 0.0), "time in MPI has them all: {times:?}");
}

/// The error and the confidence of metrics on these calls are the policy's, of all others the group's.
#[test]
fn a_site_has_a_bound_of_its_own() {
    of_its_own("predictive");
}

/// A window whose ranks are alike by chance needs fewer of them, and keeps the bound all the same.
#[test]
fn a_site_has_a_bound_of_its_own_when_its_windows_are_over() {
    of_its_own("retrospective");
}

fn of_its_own(selection: &str) {
    let config = |bound: &str| {
        format!(
            "[sampling]\nselection = \"{selection}\"\nwindows_per_update = 5\nfloor = 2\n\
             [window]\nmarker = \"mpi:MPI_Barrier\"\n[[metric]]\nname = \"calls\"\nrole = \"guide\"\n[[site]]\nmatch = \"MPI_Sendrecv\"\n{bound}"
        )
    };
    let all = 5;
    let job = Job::of(Mpi::OpenMpi, all, "steady", &[&TURNS.to_string()]);
    let asked = monitor(&job, &config("error = 0.001\nconfidence = 0.99\n"), Form::Run).success();
    let rows = asked.estimate();
    let confidence = |row: &Value| number(&row["confidence"]);
    let of_site = |row: &&Value| row["event"] == "MPI_Sendrecv";
    assert!(rows.iter().filter(of_site).count() > 0, "the calls are measured, and guide");
    assert!(rows.iter().filter(of_site).all(|row| confidence(row) == 0.99 && row["metric"] == "mpi.time"));
    assert!(rows.iter().filter(|row| !of_site(row)).all(|row| confidence(row) == 0.9));
    // After the last barrier no such call follows, so it has no value for a bound.
    let decided = |run: &ampl_tests::run::Monitored| -> Vec<Value> {
        let last = run.info()["windows"].as_u64().map(|windows| windows - 1);
        let wanted = |row: &Value| {
            let foreseen = selection == "predictive" || row["window"].as_u64() != last;
            row["selection"] == selection && row["update"].as_u64() > Some(1) && foreseen
        };
        run.decisions().into_iter().filter(wanted).collect()
    };
    // Times of calls vary by more than that: every rank is kept for them, where calls alone need two.
    let everybody = |row: &Value| match selection {
        "predictive" => row["size"] == all,
        _ => row["event"] == "MPI_Sendrecv" && number(&row["error_attained"]) <= 0.001,
    };
    let with = decided(&asked);
    assert!(
        !with.is_empty() && with.iter().all(|row| row["error_required"] == 0.001 && everybody(row)),
        "{with:?}"
    );
    // Equal numbers of calls on every rank of a closed window are known from any of them, without a bound.
    let two = |row: &Value| {
        let alike = selection == "retrospective" && row["guide"].is_null();
        (alike || row["error_required"] == 0.08) && row["size"] == 2
    };
    let without = decided(&monitor(&job, &config(""), Form::Run).success());
    assert!(!without.is_empty() && without.iter().all(two), "{without:?}");
}
