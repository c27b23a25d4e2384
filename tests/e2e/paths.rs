//! `trace.call_path_depth`: calls are distinguished by the functions on their path, and recursion counts once.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl, home};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor, number};
use serde_json::Value;

const RANKS: u32 = 2;
/// Compiled as programs are that people run: no frame pointers.
const FLAGS: [&str; 2] = ["-O2", "-fomit-frame-pointer"];

fn config(depth: u32) -> String {
    format!("[trace]\ncall_path_depth = {depth}\ntiming = \"off\"\n[agent]\nmax_overhead = \"99%\"\n")
}

fn run(mpi: Mpi, how: &str, steps: u32, depth: u32) -> Monitored {
    let program = mpi.compile_as("paths", "paths.c", &FLAGS);
    let mut job = Job::new(mpi, RANKS, program, &[how, &steps.to_string()]);
    // Each step waits for the other rank's turn on a processor.
    job.limit = Duration::from_secs(300);
    monitor(&job, &config(depth), Form::Run)
}

/// The functions on the way to a call, outermost first.
fn functions(call: &Value) -> Vec<String> {
    let path = call["path"].as_array().into_iter().flatten();
    path.map(|frame| frame["function"].as_str().unwrap_or("?").to_owned()).collect()
}

/// Calls of the program's own steps: function and path, each once.
fn paths(calls: &[Value]) -> BTreeSet<(String, Vec<String>)> {
    const OUTSIDE: [&str; 4] = ["MPI_Init", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Finalize"];
    let steps = calls.iter().filter(|call| !OUTSIDE.contains(&call["fn"].as_str().unwrap()));
    steps.map(|call| (call["fn"].as_str().unwrap().to_owned(), functions(call))).collect()
}

fn path(function: &str, path: &[&str]) -> (String, Vec<String>) {
    (function.to_owned(), path.iter().map(|&name| name.to_owned()).collect())
}

fn structure_bytes(run: &Monitored) -> f64 {
    number(&run.info()["trace_bytes"]["structure"])
}

/// At any depth of recursion a call has the site where the loop makes it.
fn recursion_is_folded(mpi: Mpi) {
    let inner = ["main", "step", "exchange"];
    let expected = BTreeSet::from([path("MPI_Sendrecv", &inner), path("MPI_Allreduce", &inner)]);
    let flat = run(mpi, "loop", 100, 8).success();
    assert_eq!(paths(&flat.decode(1)), expected, "{mpi:?}");
    let mut bytes = vec![structure_bytes(&flat)];
    for steps in [100, 10_000] {
        let deep = run(mpi, "recursive", steps, 8).success();
        let calls = deep.decode(1);
        assert!(calls.len() as u32 >= 2 * steps, "{mpi:?}: {}", calls.len());
        assert_eq!(paths(&calls), expected, "{mpi:?}, {steps} deep");
        // Init, two calls in exchange, Finalize, and the queries of rank and size.
        assert_eq!(deep.info()["signatures"], flat.info()["signatures"], "{mpi:?}, {steps} deep");
        bytes.push(structure_bytes(&deep));
    }
    assert!(bytes[1] <= bytes[0] + 8.0 && bytes[2] <= bytes[1] + 8.0, "{mpi:?}: {bytes:?}");

    // Each of the two is on the way to the other, but for the first time.
    let mutual = paths(&run(mpi, "mutual", 2_001, 8).success().decode(0));
    let barrier = path("MPI_Barrier", &["main", "even", "odd"]);
    let exchange = |way: &[&str]| [path("MPI_Sendrecv", way), path("MPI_Allreduce", way)];
    let (first, later) = (["main", "even", "exchange"], ["main", "odd", "even", "exchange"]);
    let expected: BTreeSet<_> =
        exchange(&first).into_iter().chain(exchange(&later)).chain([barrier]).collect();
    assert_eq!(mutual, expected, "{mpi:?}");

    let inner = ["main", "tree", "exchange"];
    let expected = BTreeSet::from([path("MPI_Sendrecv", &inner), path("MPI_Allreduce", &inner)]);
    assert_eq!(paths(&run(mpi, "tree", 1_000, 8).success().decode(0)), expected, "{mpi:?}");
}

#[test]
fn recursion_is_folded_open_mpi() {
    recursion_is_folded(Mpi::OpenMpi);
}

#[test]
fn recursion_is_folded_mpich() {
    recursion_is_folded(Mpi::Mpich);
}

/// Two callers of one function are one site by one function, and two by two.
#[test]
fn two_ways_to_one_call_are_told_apart() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let [one, two] = [1, 2].map(|depth| run(mpi, "ways", 9, depth).success());
        let signatures = |run: &Monitored| run.info()["signatures"].as_u64().unwrap();
        assert_eq!(signatures(&two), signatures(&one), "{mpi:?}: their ways are told apart in both");
        assert!(one.decode(0).iter().all(|call| call["path"].is_null() && call["site"].is_string()));
        let calls = two.decode(0);
        let ways: Vec<Vec<String>> =
            calls.iter().filter(|call| call["fn"] == "MPI_Allreduce").map(functions).collect();
        let expected: Vec<_> =
            (0..9).map(|turn| vec![if turn % 3 == 0 { "far" } else { "near" }, "exchange"]).collect();
        assert_eq!(ways, expected, "{mpi:?}");
        let said = &two.finished.stderr;
        assert!(said.contains(" < near ") && said.contains(" < far "), "{said}");
        assert!(!one.finished.stderr.contains(" < near "));
        // Where they are not told apart, the summary names the depth that would do so.
        let hint = "several callers     trace.call_path_depth = 3 tells callers apart";
        assert!(one.finished.stderr.contains(hint), "{mpi:?}: {}", one.finished.stderr);
        assert!(!said.contains("tells callers apart"), "{mpi:?}: {said}");
        // The call graph has the callers of both.
        for run in [&one, &two] {
            let mut query = Command::new(ampl());
            query.arg("query").arg(&run.run).args(["callgraph", "--ranks", "0"]);
            let tree = process::run(&mut query, Duration::from_secs(60)).success().stdout;
            for way in ["near > exchange {", "far > exchange {"] {
                assert!(tree.contains(way), "{mpi:?}: {way}: {tree}");
            }
        }
    }
}

/// A run that died has paths like one that ended.
#[test]
fn paths_survive_the_process() {
    let dead = run(Mpi::OpenMpi, "dies", 6, 3);
    assert!(!dead.finished.status.success());
    let ways = [["main", "far", "exchange"], ["main", "near", "exchange"]];
    let calls = ways.iter().flat_map(|way| [path("MPI_Sendrecv", way), path("MPI_Allreduce", way)]);
    let expected: BTreeSet<_> = calls.collect();
    let found = paths(&dead.decode(0));
    assert!(found.is_superset(&expected), "{found:?}");
}

/// A call from a coroutine's stack is identified by its own frame.
#[test]
fn other_stacks_are_left_alone() {
    let calls = run(Mpi::OpenMpi, "elsewhere", 5, 8).success().decode(0);
    let barriers: Vec<&Value> = calls.iter().filter(|call| call["fn"] == "MPI_Barrier").collect();
    assert_eq!(barriers.len(), 5);
    assert!(barriers.iter().all(|call| call["path"].is_null() && call["site"].is_string()), "{barriers:?}");
}

/// A Fortran subroutine that calls itself.
#[test]
fn recursion_is_folded_in_fortran() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("paths");
        let program: PathBuf = scratch.path().join("paths");
        let mut compile = Command::new(mpi.fortran_compiler());
        compile
            .args(["-g", "-fno-inline", "-fno-optimize-sibling-calls"])
            .args(FLAGS)
            .arg("-o")
            .arg(&program);
        compile.arg("-J").arg(scratch.path()).arg(home().join("programs/paths.f90"));
        process::run(&mut compile, Duration::from_secs(120)).success();
        let job = Job::new(mpi, RANKS, &program, &["500"]);
        let calls = monitor(&job, &config(8), Form::Run).success().decode(1);
        let ways: BTreeSet<Vec<String>> =
            calls.iter().filter(|call| call["fn"] == "MPI_Allreduce").map(functions).collect();
        assert_eq!(ways.len(), 1, "{mpi:?}: {ways:?}");
        let way = ways.first().unwrap();
        assert!(way.len() == 3 && way[0] == "main" && way[2].starts_with("step"), "{mpi:?}: {way:?}");
    }
}
