//! Windows that follow the program's steps (`window.marker = "auto"`).

use ampl_core::units::{Rank, RankSet};
use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, Monitored, monitor, window};
use serde_json::Value;

const CONFIG: &str = "[window]\nmarker = \"auto\"\n[trace]\ntiming = \"all\"\n";

fn run(mpi: Mpi, ranks: u32, words: [&str; 3]) -> Monitored {
    monitor(&Job::of(mpi, ranks, "paced_steps", &words), CONFIG, Form::Run).success()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a whole number: {value}"))
}

/// The summary at the end of the run, as one line.
fn said(run: &Monitored) -> String {
    run.finished.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Windows of the calls that begin them, with the number of these calls, on `rank`.
fn begun(run: &Monitored, rank: u32, of: &Value) -> Vec<Option<u64>> {
    let is_marker = |call: &&Value| call["fn"] == of["function"] && call["site"] == of["site"];
    run.decode(rank).iter().filter(is_marker).map(window).collect()
}

/// Function and place of calls, as the run's JSON has them, on `rank`.
fn call_of(of: &Value, rank: u32) -> Value {
    let holds = |call: &&Value| RankSet::parse(call["ranks"].as_str().unwrap()).unwrap().contains(Rank(rank));
    of["calls"]
        .as_array()
        .unwrap()
        .iter()
        .find(holds)
        .unwrap_or_else(|| panic!("none on {rank}: {of}"))
        .clone()
}

#[test]
fn steps_are_the_same_on_ranks_that_share_no_call() {
    const STEPS: u64 = 220;
    for (mpi, ranks) in [(Mpi::OpenMpi, 3), (Mpi::Mpich, 4)] {
        let run = run(mpi, ranks, ["edges", "220", "25000"]);
        let info = run.info();
        let of = &info["time_steps"];
        assert!(of["reason"].is_null() && of["without"] == "", "{of}");
        assert_eq!(of["calls"].as_array().map(Vec::len), Some(2), "{of}");
        let (first, every) = (number(&of["window"]), number(&of["every"]));
        // The step that begins the first window is the same on all ranks, and so are those behind it.
        let mut step_of_first = None;
        for rank in 0..ranks {
            let call = call_of(of, rank);
            let own = begun(&run, rank, &call);
            let before = own.len() as u64 - STEPS;
            let step = number(&call["visit"]) - before;
            assert_eq!(*step_of_first.get_or_insert(step), step, "rank {rank}: {of}");
            // A rank that was past the step on a busy machine joins the others at one of its next.
            let late = RankSet::parse(of["late"].as_str().unwrap()).unwrap().contains(Rank(rank));
            let is_right = (step..=STEPS)
                .map(|index| own[(before + index) as usize - 1] == Some(first + (index - step) / every));
            let rest: Vec<bool> = is_right.skip_while(|&is_right| late && !is_right).collect();
            assert!(!rest.is_empty() && rest.iter().all(|&is_right| is_right), "rank {rank}: {of}");
        }
        assert!(step_of_first > Some(1) && step_of_first < Some(STEPS), "{of}");
        assert_eq!(run.timesteps()["count"], STEPS);
        assert!(said(&run).contains("and 1 other call of the same steps"), "{}", said(&run));
    }
}

/// Asserts that from the announced visit on each rank has one window for each of its steps.
#[track_caller]
fn follows(run: &Monitored, ranks: u32, visits: u64) {
    let info = run.info();
    let of = &info["time_steps"];
    assert!(of["reason"].is_null() && of["without"] == "", "{of}");
    let (visit, first, every) = (number(&of["visit"]), number(&of["window"]), number(&of["every"]));
    let last = first + (visits - visit) / every;
    assert_eq!(number(&info["windows"]), last + 1, "{of}");
    for rank in 0..ranks {
        let own = begun(run, rank, of);
        assert_eq!(own.len() as u64, visits, "rank {rank}: {of}");
        // A rank that was past the visit on a busy machine joins the others at one of its next.
        let late = RankSet::parse(of["late"].as_str().unwrap()).unwrap().contains(Rank(rank));
        let is_right =
            |&(index, window): &(u64, Option<u64>)| window == Some(first + (index - visit) / every);
        let behind = (1u64..).zip(own).skip_while(|&(index, _)| index < visit);
        let rest: Vec<_> = behind.skip_while(|of| late && !is_right(of)).collect();
        assert!(!rest.is_empty(), "rank {rank}: {of}");
        let wrong = rest.iter().find(|of| !is_right(of));
        assert_eq!(wrong, None, "rank {rank}: {of}");
    }
    let said = said(run);
    let expected =
        format!("windows follow {} at {}", of["function"].as_str().unwrap(), of["site"].as_str().unwrap());
    assert!(said.contains(&expected) && said.contains(&format!("from window {first} on")), "{said}");
}

#[test]
fn windows_are_the_steps_of_the_program_on_all_ranks() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = run(mpi, 3, ["plain", "240", "25000"]);
        // With the step that warms up.
        follows(&run, 3, 241);
        // The same loop as is found when the run is over.
        let (found, of) = (run.timesteps(), run.info()["time_steps"].clone());
        assert_eq!(found["count"], 240, "{found}");
        assert!(
            found["function_mix"][of["function"].as_str().unwrap()].as_f64() >= Some(1.0),
            "{found} {of}"
        );
    }
}

#[test]
fn inner_iterations_are_no_steps() {
    let run = run(Mpi::OpenMpi, 2, ["solver", "200", "40000"]);
    follows(&run, 2, 200);
    assert_eq!(run.timesteps()["count"], 200);
}

#[test]
fn a_loop_inside_of_a_long_first_step_is_replaced_by_the_steps() {
    const STEPS: u64 = 16;
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        // A step takes 1.4 s and more.
        let run = run(mpi, 2, ["nested", "16", "16000"]);
        follows(&run, 2, STEPS);
        assert_eq!(run.timesteps()["count"], STEPS);
        let of = run.info()["time_steps"].clone();
        assert_eq!((&of["function"], number(&of["every"])), (&"MPI_Allreduce".into(), 1), "{of}");
        // A machine that is busy at the right moment may make the loop inside the first step look short.
        if !of["replaces"].is_null() {
            assert!(number(&of["replaces"]) < number(&of["window"]), "{of}");
            assert!(said(&run).contains("a loop inside of them, or one that was over"), "{}", said(&run));
        }
    }
}

#[test]
fn short_steps_are_taken_several_at_a_time() {
    let run = run(Mpi::Mpich, 2, ["plain", "2400", "2000"]);
    let of = run.info()["time_steps"].clone();
    assert!(number(&of["every"]) > 1, "{of}");
    follows(&run, 2, 2401);
}

#[test]
fn steps_whose_calls_are_all_made_several_times_begin_windows() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let run = run(mpi, 2, ["levels", "240", "25000"]);
        follows(&run, 2, 5 * 240);
        assert_eq!(run.timesteps()["count"], 240);
        let of = run.info()["time_steps"].clone();
        // Steps on a hurried machine may be taken two at a time.
        assert_eq!((number(&of["every"]) % 5, number(&of["visits_per_step"])), (0, 5), "{of}");
        // The first of each step.
        assert_eq!(number(&of["visit"]) % 5, 1, "{of}");
        assert!(said(&run).contains("of 5 calls"), "{}", said(&run));
    }
}

#[test]
fn programs_without_common_steps_keep_the_period_and_say_so() {
    for (shape, reason, expected) in [
        (
            "none",
            "the calls of no rank repeat as a loop over time",
            "repeat as a loop over time: windows last 250 ms",
        ),
        (
            "mixed",
            "no call is made equally often in each step on all ranks",
            "on 1 of 2 ranks: windows last 250 ms",
        ),
    ] {
        let run = run(Mpi::OpenMpi, 2, [shape, "96", "25000"]);
        let info = run.info();
        assert_eq!(info["time_steps"]["reason"], reason, "{info}");
        assert!(info["time_steps"]["window"].is_null(), "{info}");
        assert!(said(&run).contains(expected), "{}", said(&run));
    }
}
