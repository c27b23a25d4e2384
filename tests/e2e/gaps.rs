//! Calls that are not recorded: the trace has how many, of which function, when and why.

use std::collections::BTreeMap;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;
/// Steps of each rank of `skips`, by what is done there: the polls in the first ones, and those in a pause.
const POLLS: u64 = 19;
const PAUSED_STEPS: u64 = 10;

fn skips(mpi: Mpi, calls: u32, config: &str) -> Monitored {
    monitor(&Job::of(mpi, RANKS, "skips", &[&calls.to_string()]), config, Form::Run).success()
}

/// Every rank has as many of those.
fn each(calls: u64) -> u64 {
    calls * u64::from(RANKS)
}

fn reasons(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
    of.iter().map(|&(reason, calls)| (reason.to_owned(), each(calls))).collect()
}

/// Gaps of `rank` for `reason`.
fn gaps(run: &Monitored, rank: u32, reason: &str) -> Vec<Value> {
    let lines = run.events(rank).into_iter();
    lines.map(|line| line["gap"].clone()).filter(|gap| gap["reason"] == reason).collect()
}

#[test]
fn a_pause_a_policy_and_calls_within_others_are_gaps() {
    let config = "[trace]\ntiming = \"all\"\ntime_error = 0\n[agent]\nmax_overhead = 0.9\n\
                  [[site]]\nmatch = \"MPI_Iprobe\"\ntrace = \"off\"\n";
    for mpi in Mpi::ALL {
        let run = skips(mpi, 10, config);
        // One query before MPI_Init.
        let paused = 2 * PAUSED_STEPS;
        let expected = [("early", 1), ("nested", 1), ("paused", paused), ("site", POLLS)];
        assert_eq!(run.adds_up(), reasons(&expected), "{mpi:?}");
        let info = run.info();
        assert_eq!(number(&info["counted_only"]["MPI_Wtime"]) as u64, each(1), "{mpi:?}");
        for rank in 0..RANKS {
            let events = run.events(rank);
            assert_eq!(events[0]["gap"]["functions"]["MPI_Initialized"], 1, "{mpi:?}: {}", events[0]);
            let [paused] = &gaps(&run, rank, "paused")[..] else { panic!("one pause: {events:?}") };
            assert_eq!(paused["functions"]["MPI_Sendrecv"], PAUSED_STEPS, "{mpi:?}: {paused}");
            // It lies between the calls around it.
            let at = events.iter().position(|line| line["gap"] == *paused).expect("found above");
            let end = |line: &Value| number(&line["start_ns"]) + number(&line["duration_ns"]);
            let around = end(&events[at - 1])..=number(&events[at + 1]["start_ns"]) + 1.0;
            let moments = ["from_ns", "until_ns"].map(|name| number(&paused[name]));
            assert!(moments.iter().all(|moment| around.contains(moment)), "{mpi:?}: {moments:?} {around:?}");
            // Those of the policy are where they were made: two after each other, then one, with a step between.
            let polls: Vec<u64> =
                gaps(&run, rank, "site").iter().map(|gap| number(&gap["calls"]) as u64).collect();
            assert_eq!(polls, [1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1], "{mpi:?}");
        }
        let said = &run.finished.stderr;
        assert!(said.contains("not recorded"), "{mpi:?}: {said}");
    }
}

#[test]
fn a_program_without_gaps_says_so() {
    let job = Job::of(Mpi::Mpich, RANKS, "steady", &["20"]);
    let run = monitor(&job, "[agent]\nmax_overhead = 0.9\n", Form::Run).success();
    assert_eq!(run.adds_up(), BTreeMap::new());
    assert_eq!(run.info()["gaps"], serde_json::json!([]));
}

/// So little may be taken that calls are only counted after a short while.
const LITTLE: &str = "[window]\nmarker = \"period:50ms\"\n[agent]\nmax_overhead = \"0.001%\"\n\
                      max_structure_overhead = \"0.001%\"\n";
/// Enough for a second.
const MANY: u32 = 2_000_000;

#[test]
fn calls_that_were_only_counted_are_a_gap_with_their_functions_and_sites() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = skips(mpi, MANY, LITTLE);
        let reasons = run.adds_up();
        let counted = reasons["overhead"];
        assert!(counted > each(u64::from(MANY)), "{mpi:?}: most were only counted: {reasons:?}");
        let info = run.info();
        let gap = info["gaps"].as_array().expect("an array").iter().find(|gap| gap["reason"] == "overhead");
        let gap = gap.expect("counted above");
        // One call each, in one place.
        for function in ["MPI_Send", "MPI_Recv"] {
            let sites = gap["sites"].as_array().expect("an array").iter();
            let own: Vec<&Value> = sites.filter(|site| site["function"] == function).collect();
            assert_eq!(own.len(), 1, "{mpi:?}: {own:?}");
            assert!(own[0]["site"].as_str().is_some_and(|site| site.starts_with("skips.c:")), "{own:?}");
            assert_eq!(own[0]["calls"], gap["functions"][function], "{mpi:?}");
        }
        let share = info["recorded_calls"].as_u64().expect("a number") as f64 / number(&info["calls"]);
        assert!(share < 0.5 && number(&gap["until_ns"]) > number(&gap["from_ns"]), "{share}: {gap}");
    }
}

/// A job that is killed while calls are only counted; its journals, and the trace made of them.
#[test]
fn a_killed_job_adds_up_before_and_after_it_is_recovered() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, RANKS, "skips", &[&MANY.to_string(), "dies"]);
        // `ampl run` recovers by itself.
        let run = monitor(&job, LITTLE, Form::Exec);
        assert!(!run.finished.status.success(), "{mpi:?}: it was killed");
        let dead = run.adds_up();
        assert!(dead["overhead"] > u64::from(MANY), "{mpi:?}: {dead:?}");
        let status =
            std::process::Command::new(ampl_tests::place::ampl()).arg("recover").arg(&run.run).output();
        let recovered = status.expect("ampl starts");
        assert!(recovered.status.success(), "{}", String::from_utf8_lossy(&recovered.stderr));
        assert!(run.run.join("trace.ampl").exists());
        assert_eq!(run.adds_up(), dead, "{mpi:?}");
    }
}
