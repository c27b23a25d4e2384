//! Call trees of real programs.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::ampl;
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number, parse};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

const RANKS: u32 = 3;
const STEPS: u64 = 61;
/// All times, exact, and functions around calls.
const ALL: &str =
    "[trace]\ntiming = \"all\"\ntime_error = 0\ncall_path_depth = 4\n[agent]\nmax_overhead = 0.99\n";

fn ask(job: &Monitored, options: &[&str]) -> String {
    let mut command = Command::new(ampl());
    command.arg("query").arg(&job.run).arg("callgraph").args(options);
    process::run(&mut command, Duration::from_secs(60)).success().stdout
}

fn graph(job: &Monitored, options: &[&str]) -> Value {
    parse(&ask(job, &[&["--json"], options].concat()))
}

/// All rows of a tree.
fn rows(row: &Value) -> Vec<&Value> {
    let inner = row["children"].as_array().into_iter().flatten().flat_map(rows);
    std::iter::once(row).chain(inner).collect()
}

/// Calls and time of the decoded calls of all ranks.
fn decoded(job: &Monitored) -> (u64, u64) {
    let calls: Vec<Value> = (0..RANKS).flat_map(|rank| job.decode(rank)).collect();
    let count = |call: &Value| call["count"].as_u64().unwrap_or(1);
    let time = |call: &Value| call["duration_ns"].as_u64().unwrap_or(0);
    (calls.iter().map(count).sum(), calls.iter().map(time).sum())
}

#[test]
fn a_loop_over_time_is_one_item_with_the_steps_of_the_program() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, RANKS, "step_shapes", &["plain", &STEPS.to_string()]);
        let job = monitor(&job, ALL, Form::Run).success();
        let tree = graph(&job, &[]);
        let (calls, time) = decoded(&job);
        assert_eq!(tree["calls"], calls, "{mpi:?}: {tree}");
        let all = rows(&tree);
        let of_calls = all.iter().filter(|row| row["kind"] == "call");
        let inside: u64 = of_calls.map(|row| row["exclusive_ns"].as_u64().unwrap_or(0)).sum();
        assert_eq!((inside, &tree["deviation"]), (time, &0.0.into()), "{mpi:?}");
        // Four calls a step, made by two functions.
        let steps = all.iter().find(|row| row["kind"] == "loop" && row["times"] == STEPS);
        let steps = steps.unwrap_or_else(|| panic!("{mpi:?}: {tree}"));
        assert_eq!(steps["calls"], 4 * STEPS * u64::from(RANKS), "{mpi:?}: {steps}");
        let names: Vec<&str> = rows(steps).iter().filter_map(|row| row["name"].as_str()).collect();
        assert!(names.contains(&"exchange") && names.contains(&"MPI_Waitall"), "{mpi:?}: {names:?}");
        let text = ask(&job, &[]);
        assert!(text.contains(&format!("{STEPS} × ")) && text.contains("exchange {"), "{mpi:?}: {text}");
    }
}

#[test]
fn a_bound_makes_the_graph_smaller_and_is_carried() {
    let job = Job::of(Mpi::OpenMpi, RANKS, "step_shapes", &["solver", &STEPS.to_string()]);
    let job = monitor(&job, ALL, Form::Run).success();
    let exact = graph(&job, &[]);
    for bound in ["10%", "1us", "50%"] {
        let similar = graph(&job, &["--bound", bound]);
        assert_eq!(similar["calls"], exact["calls"], "{bound}");
        assert_eq!(similar["nodes_uncompressed"], exact["nodes_uncompressed"], "{bound}");
        assert!(number(&similar["nodes"]) < number(&exact["nodes"]), "{bound}");
        let (known, deviation) = (number(&similar["inclusive_ns"]), number(&similar["deviation"]));
        let off = (known - number(&exact["inclusive_ns"])).abs();
        assert!(off <= deviation * known + 1.0, "{bound}: off by {off} of {known}, at most {deviation}");
    }
    // Without times the calls are there, and nothing is said of time.
    let job = Job::of(Mpi::Mpich, RANKS, "step_shapes", &["solver", &STEPS.to_string()]);
    let job = monitor(&job, "[trace]\ntiming = \"off\"\n", Form::Run).success();
    let tree = graph(&job, &["--ranks", "1-2"]);
    assert_eq!(tree["calls"], exact["calls"].as_u64().unwrap() / u64::from(RANKS) * 2, "{tree}");
    assert!(tree["inclusive_ns"].is_null() && tree["known_calls"] == 0, "{tree}");
}

#[test]
fn regions_of_the_program_are_in_the_tree() {
    let job = Job::of(Mpi::OpenMpi, RANKS, "api_steps", &[&STEPS.to_string()]);
    let job = monitor(&job, "[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = 0.99\n", Form::Run).success();
    let tree = graph(&job, &[]);
    let all = rows(&tree);
    let visits = |name: &str| {
        let named = all.iter().filter(|row| row["kind"] == "region" && row["name"] == name);
        named.map(|row| row["visits"].as_u64().unwrap_or(0)).sum::<u64>()
    };
    assert_eq!(visits("STEP"), STEPS * u64::from(RANKS), "{tree}");
    // 1, 2 or 3 in a step, by step and rank.
    let inner: u64 =
        (0..STEPS).flat_map(|step| (0..u64::from(RANKS)).map(move |rank| 1 + (step + rank) % 3)).sum();
    // The program enters the region within itself.
    assert_eq!(visits("INNER"), 2 * inner, "{tree}");
    let step = all.iter().find(|row| row["name"] == "STEP").expect("a region");
    assert!(rows(step).iter().any(|row| row["name"] == "INNER"), "{step}");
}
