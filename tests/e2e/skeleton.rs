//! Skeletons of recorded runs: programs in C whose calls are those of the run.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{Form, Monitored, monitor};
use serde_json::Value;

/// However much of the time it takes: nothing is left out.
const EVERYTHING: &str = "[trace]\ntiming = \"off\"\n[agent]\nmax_overhead = \"99%\"\n";

fn ask(words: &[&str]) -> Finished {
    process::run(Command::new(ampl()).args(words), Duration::from_secs(120))
}

/// The skeleton of a run with these options, in its scratch directory.
fn skeleton(run: &Monitored, options: &[&str]) -> PathBuf {
    let file = run.scratch.path().join("skeleton.c");
    let words = ["skeleton", &run.run.to_string_lossy(), "-o", &file.to_string_lossy()];
    ask(&[&words[..], options].concat()).success();
    file
}

/// A program of that source under `mpi`, with every warning an error.
fn compile(mpi: Mpi, source: &std::path::Path, scratch: &Scratch) -> PathBuf {
    let program = scratch.path().join(format!("skeleton-{mpi:?}"));
    let mut compile = Command::new(mpi.compiler());
    compile.args(["-Wall", "-Werror", "-O1", "-o"]).arg(&program).arg(source);
    process::run(&mut compile, Duration::from_secs(120)).success();
    program
}

/// Calls of a rank by the logical program alone, without polls that found nothing.
fn calls(run: &Monitored, rank: u32) -> Vec<Value> {
    let answer = ask(&["logical", &run.run.to_string_lossy(), "--rank", &rank.to_string(), "--json"]);
    let lines = answer.success().stdout;
    let calls = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut calls: Vec<Value> = calls.filter(|call| call["note"] != "found nothing").collect();
    calls.iter_mut().for_each(|call| drop(call.as_object_mut().unwrap().remove("seq")));
    calls
}

/// Checks that the skeleton of `job`'s run makes the same calls under both MPIs; returns its text.
fn repeats(job: &Job, ranks: u32) -> String {
    let run = monitor(job, EVERYTHING, Form::Run).success();
    let source = skeleton(&run, &[]);
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let program = compile(mpi, &source, &run.scratch);
        let again = monitor(&Job::new(mpi, ranks, program, &[]), EVERYTHING, Form::Run).success();
        for rank in 0..ranks {
            let (own, made) = (calls(&run, rank), calls(&again, rank));
            let first = own.iter().zip(&made).position(|(own, made)| own != made);
            assert_eq!(
                first,
                None,
                "{mpi:?}, rank {rank}: {} and {}",
                own[first.unwrap()],
                made[first.unwrap()]
            );
            assert_eq!(own.len(), made.len(), "{mpi:?}, rank {rank}");
        }
    }
    std::fs::read_to_string(source).unwrap()
}

#[test]
fn a_skeleton_makes_the_calls_of_a_stencil_and_a_tree() {
    let text = repeats(&Job::of(Mpi::OpenMpi, 8, "torus_mixed", &["2", "4", "20"]), 8);
    assert!(text.contains("i < 20") && text.contains("/* torus_mixed.c:"), "{text}");
    assert!(text.lines().count() < 150, "{text}");
}

#[test]
fn a_skeleton_makes_the_calls_of_communicators_types_and_partial_completion() {
    let text = repeats(&Job::of(Mpi::Mpich, 6, "patterns", &["2", "3", "12"]), 6);
    assert!(text.contains("local(comm[") && text.contains("gather("), "{text}");
}

#[test]
fn a_skeleton_makes_the_calls_that_get_objects_of_mpi_itself_or_read_statuses() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let text = repeats(&Job::of(mpi, 4, "own_objects", &[]), 4);
        assert!(text.contains("&(MPI_Comm){MPI_COMM_NULL}"), "{text}");
    }
}

#[test]
fn a_skeleton_that_computes_makes_the_same_calls() {
    let job = Job::of(Mpi::OpenMpi, 4, "torus_mixed", &["2", "2", "20"]);
    let run = monitor(&job, "[agent]\nmax_overhead = \"99%\"\n", Form::Run).success();
    let plain = std::fs::read_to_string(skeleton(&run, &[])).unwrap();
    let source = skeleton(&run, &["--compute"]);
    let text = std::fs::read_to_string(&source).unwrap();
    assert!(text.contains("compute(") && text.contains(" times */") && !plain.contains("compute("), "{text}");
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let program = compile(mpi, &source, &run.scratch);
        let again = monitor(&Job::new(mpi, 4, program, &[]), EVERYTHING, Form::Run).success();
        for rank in 0..4 {
            assert_eq!(calls(&run, rank), calls(&again, rank), "{mpi:?}, rank {rank}");
        }
    }
}

/// The text with every number replaced.
fn without_numbers(text: &str) -> String {
    let mut kept = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' if kept.ends_with('#') => {}
            '0'..='9' => kept.push('#'),
            _ => kept.push(letter),
        }
    }
    kept
}

#[test]
fn skeletons_of_a_stencil_on_few_and_many_ranks_differ_in_constants_only() {
    let text = |ranks: u32, steps: &str| {
        let run = monitor(&Job::of(Mpi::OpenMpi, ranks, "stencil2", &[steps]), EVERYTHING, Form::Run);
        std::fs::read_to_string(skeleton(&run.success(), &[])).unwrap()
    };
    let (few, many) = (text(16, "3"), text(36, "9"));
    assert_ne!(few, many);
    assert_eq!(without_numbers(&few), without_numbers(&many));
    assert!(many.lines().count() < 150, "{many}");
}

#[test]
fn runs_that_no_skeleton_can_repeat_are_refused_with_the_reason() {
    let refused = |run: &Monitored, reason: &str| {
        let file = run.scratch.path().join("skeleton.c");
        let answer = ask(&["skeleton", &run.run.to_string_lossy(), "-o", &file.to_string_lossy()]);
        assert_eq!(answer.status.code(), Some(4), "{}", answer.stderr);
        assert!(answer.stderr.contains(reason), "{}", answer.stderr);
        assert!(!file.exists());
    };
    let windows = monitor(&Job::of(Mpi::OpenMpi, 4, "cart_parts", &[]), EVERYTHING, Form::Run).success();
    refused(&windows, "MPI_Win_create is called, which a skeleton cannot repeat");
    let gaps = "[trace]\nstructure = \"off\"\ntiming = \"off\"\n";
    let gaps = monitor(&Job::of(Mpi::OpenMpi, 4, "stencil2", &["3"]), gaps, Form::Run).success();
    refused(&gaps, "some calls were only counted");
}

#[test]
fn simgrid_plays_the_actions_of_a_run_in_the_time_of_the_ideal_network() {
    let run =
        monitor(&Job::of(Mpi::OpenMpi, 8, "torus_mixed", &["2", "4", "20"]), EVERYTHING, Form::Run).success();
    let (path, to) = (run.run.to_string_lossy().into_owned(), run.scratch.path().join("sim"));
    ask(&["export", &path, "--to", "simgrid", "-o", &to.to_string_lossy()]).success();
    let mut sends = Vec::new();
    for rank in 0..8 {
        let text = std::fs::read_to_string(to.join(format!("rank-{rank}.txt"))).unwrap();
        let words = text.lines().map(|line| line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        sends.extend(words.filter(|words| ["send", "isend"].contains(&&words[1][..])));
    }
    let document: Value =
        serde_json::from_str(&ask(&["topology", &path, "--matrix", "--json"]).success().stdout).unwrap();
    let bytes: u64 = sends.iter().map(|words| words[4].parse::<u64>().unwrap()).sum();
    assert_eq!(document["messages"]["messages"], sends.len() as u64);
    assert_eq!(document["messages"]["bytes"], bytes);
    let goal = run.scratch.path().join("trace.goal");
    ask(&["export", &path, "--to", "goal", "-o", &goal.to_string_lossy()]).success();
    let goal = std::fs::read_to_string(goal).unwrap();
    assert_eq!(goal.matches(": send ").count(), sends.len());
    assert_eq!(goal.matches(": recv ").count(), sends.len());

    let words = [
        "-np",
        "8",
        "-platform",
        "platform.xml",
        "-hostfile",
        "hosts",
        "--cfg=smpi/host-speed:1Gf",
        "--cfg=network/model:CM02",
        "--cfg=network/TCP-gamma:0",
        "--cfg=network/crosstraffic:0",
        "--cfg=smpi/async-small-thresh:1000000000",
        "--cfg=smpi/send-is-detached-thresh:1000000000",
        "--cfg=smpi/bcast:flattree",
        "--cfg=smpi/reduce:flat_tree",
        "--cfg=smpi/gather:ompi_basic_linear",
        "--cfg=smpi/scatter:ompi_basic_linear",
        "-replay",
        "ranks",
    ];
    let mut simulator = Command::new("smpirun");
    if Command::new("smpirun").arg("-version").output().is_err() {
        eprintln!("SKIPPED: no smpirun: install libsimgrid-dev to play the actions");
        return;
    }
    simulator.args(words).current_dir(&to);
    let played = process::run(&mut simulator, Duration::from_secs(60)).success();
    let both = played.stdout + &played.stderr;
    let seconds = both.split("Simulation time ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let seconds: f64 = seconds.unwrap().parse().unwrap();
    let ideal: Value =
        serde_json::from_str(&ask(&["whatif", &path, "--network", "ideal", "--json"]).success().stdout)
            .unwrap();
    let ideal = ideal["ideal_ns"].as_f64().unwrap() / 1e9;
    assert!((seconds - ideal).abs() <= ideal * 1e-3 + 1e-6, "{seconds} s, {ideal} s");
}
