//! C programs under every MPI: ampl's records are those of the programs' own logs, and the programs behave as without
//! ampl.

mod fortran;
mod objects;
mod short_way;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
use ampl_tests::reference::Reference;
use ampl_tests::run::{Form, add_counts, counts, monitor, number, parse, text_of};
use serde_json::Value;

/// A configuration under which every rank keeps everything.
fn keep_everything(ranks: u32) -> String {
    format!(
        "[[group]]\nname = \"everyone\"\nmembers = \"0-{}\"\nsample_size = {ranks}\n\n[trace]\ntiming = \"kept\"\ntime_error = 0\n\n\
         # A busy machine must not make a rank report less.\n[agent]\nmax_overhead = 0.5\n",
        ranks - 1
    )
}

/// Asserts that `info` counts every call of every function, failed polls too, and nothing else.
fn counts_match(mpi: Mpi, ranks: u32, form: Form) {
    let logs = Scratch::new("log");
    let log = logs.path().join("counts");
    let job = Job::of(mpi, ranks, "counts", &[log.to_str().expect("a path of ours")]);
    let plain = job.plain().success();
    let run = monitor(&job, "", form).success();
    assert_eq!(run.finished.sorted_lines(), plain.sorted_lines(), "the program must not notice");
    let mut printed = BTreeMap::new();
    for rank in 0..ranks {
        let line = parse(&text_of(&logs.path().join(format!("counts.{rank}"))));
        add_counts(&mut printed, &counts(&line["counts"]));
    }
    assert!(printed.len() > 70, "the program must have counted: {printed:?}");
    let info = run.info();
    assert_eq!(counts(&info["functions"]), printed);
    assert_eq!(info["calls"].as_u64(), Some(printed.values().sum()));
    assert_eq!(info["ranks"].as_u64(), Some(u64::from(ranks)));
    assert_eq!(info["complete"], Value::Bool(true));
    // An object of counters by cause, or their sum.
    let failures = &info["agent_failures"];
    let none = failures.as_u64() == Some(0)
        || failures.as_object().is_some_and(|causes| causes.values().all(|count| count.as_u64() == Some(0)));
    assert!(none, "agent_failures: {failures}");
}

#[test]
fn counts_open_mpi() {
    counts_match(Mpi::OpenMpi, 4, Form::Run);
}

#[test]
fn counts_open_mpi_one_rank() {
    counts_match(Mpi::OpenMpi, 1, Form::Run);
}

#[test]
fn counts_mpich() {
    counts_match(Mpi::Mpich, 4, Form::Run);
}

#[test]
fn counts_standard_abi() {
    counts_match(Mpi::Abi, 4, Form::Run);
}

#[test]
fn counts_under_exec() {
    for mpi in Mpi::ALL {
        counts_match(mpi, 3, Form::Exec);
    }
}

/// Asserts that the decoded trace of `programs/NAME.c` is the program's own log, call by call.
fn decode_matches(mpi: Mpi, ranks: u32, name: &str) {
    let logs = Scratch::new("log");
    let log = logs.path().join("ref");
    // Open MPI 4.1's own choice for collective writes crashes now and then on a single host.
    let job = Job::of(mpi, ranks, name, &[log.to_str().expect("a path of ours")])
        .with("OMPI_MCA_fcoll", "two_phase");
    log_matches(&job, &log, name);
}

/// Runs a job that writes its calls to `log.<rank>`, alone and under ampl, and compares output and calls.
fn log_matches(job: &Job, log: &Path, name: &str) {
    let plain = job.plain().success();
    let run = monitor(job, &keep_everything(job.ranks), Form::Run).success();
    assert_eq!(run.finished.sorted_lines(), plain.sorted_lines(), "the program must not notice");
    let mut written = BTreeMap::new();
    let logs: Vec<Reference> = (0..job.ranks)
        .map(|rank| {
            let text = text_of(&log.with_extension(rank.to_string()));
            Reference::parse(&text).unwrap_or_else(|error| panic!("rank {rank}: {error}"))
        })
        .collect();
    for (rank, reference) in (0..).zip(&logs) {
        let to_it = |(dest, _): &(i64, i64)| *dest == i64::from(rank);
        let from = |(source, log): (i64, &Reference)| {
            log.sent().filter(to_it).map(move |(_, tag)| (source, tag)).collect::<Vec<_>>()
        };
        let sent: HashSet<(i64, i64)> = (0..).zip(&logs).flat_map(from).collect();
        assert!(reference.len() > 50, "rank {rank} logged {} calls only", reference.len());
        add_counts(&mut written, &reference.counts);
        let decoded = run.decode(rank);
        reference
            .compare_where(&decoded, Some(&sent))
            .unwrap_or_else(|difference| panic!("rank {rank}: {difference}"));
        timed_in_order(&decoded, rank, name);
    }
    assert_eq!(run.functions(), written);
}

/// Calls that begin and end MPI: outside every window.
const OUTSIDE: [&str; 3] = ["MPI_Init", "MPI_Init_thread", "MPI_Finalize"];

/// Asserts that every line has its window, times and call site, and that program order is the order of starts.
fn timed_in_order(decoded: &[Value], rank: u32, name: &str) {
    let mut last = (-1.0, f64::MIN, -1.0);
    for line in decoded.iter().filter(|line| !OUTSIDE.map(Value::from).contains(&line["fn"])) {
        let now = (number(&line["seq"]), number(&line["start_ns"]), number(&line["window"]));
        assert!(now.0 > last.0 && now.1 >= last.1 && now.2 >= last.2, "rank {rank}: {line} after {last:?}");
        assert!(number(&line["duration_ns"]) >= 0.0, "rank {rank}: {line}");
        assert!(
            line["site"].as_str().is_some_and(|site| site.contains(name) || site.contains("call.h")),
            "rank {rank}: {line}"
        );
        last = now;
    }
}

#[test]
fn decode_open_mpi() {
    decode_matches(Mpi::OpenMpi, 4, "p2p_coll");
}

#[test]
fn decode_open_mpi_few_ranks() {
    decode_matches(Mpi::OpenMpi, 1, "p2p_coll");
    decode_matches(Mpi::OpenMpi, 3, "p2p_coll");
}

#[test]
fn decode_mpich() {
    decode_matches(Mpi::Mpich, 4, "p2p_coll");
}

#[test]
fn decode_standard_abi() {
    decode_matches(Mpi::Abi, 4, "p2p_coll");
}

/// Steady state allocates nothing, whether calls are kept or only summarised.
#[test]
fn nothing_is_allocated_per_call() {
    const QUIET: &str = "[window]\nmarker = \"period:3600s\"\n";
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 1, "alloc", &[]);
        assert_eq!(job.plain().success().sorted_lines(), ["0"], "{mpi:?} alone");
        for timing in ["off", "all"] {
            let config = format!("{QUIET}[trace]\ntiming = \"{timing}\"\n");
            let run = monitor(&job, &config, Form::Run).success();
            assert_eq!(run.finished.sorted_lines(), ["0"], "{mpi:?}, timing {timing}");
            let calls = run.functions().values().sum::<u64>();
            assert!(calls > 40_000, "{mpi:?}: only {calls} calls were seen");
        }
    }
}

/// Arguments that MPI ignores are ignored by ampl, too, and a failed completion leaves no request: no two live
/// requests share a name.
#[test]
fn only_significant_arguments_matter() {
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 4, "significant", &[]);
        let plain = job.plain().success();
        let run = monitor(&job, &keep_everything(4), Form::Run).success();
        assert_eq!(run.finished.sorted_lines(), plain.sorted_lines(), "{mpi:?}");
        for rank in 0..4 {
            let lines = run.decode(rank);
            let made = lines.iter().filter_map(|line| line["out"]["request"].as_str());
            let made: Vec<&str> = made.filter(|name| name.starts_with("request:")).collect();
            assert_eq!(made.len(), 6, "{mpi:?} rank {rank}: {made:?}");
            let waits = lines.iter().filter(|line| line["fn"] == "MPI_Waitall");
            let named: Vec<String> = waits
                .flat_map(|line| line["args"]["array_of_requests"].as_array().expect("an array").clone())
                .map(|name| name.as_str().expect("a name").to_owned())
                .collect();
            assert_eq!(named, made, "{mpi:?} rank {rank}");
            let missing = lines.iter().find(|line| line["args"]["key"] == "absent").expect("MPI_Info_get");
            assert_eq!(missing["out"]["value"], Value::Null, "{mpi:?}: {missing}");
        }
    }
}
