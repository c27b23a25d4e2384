//! LAMMPS and HPCC under Open MPI, unmodified.
//!
//! Their numbers of calls depend on timing (HPCC polls and calibrates itself). So a second counter rides along in the
//! same run: `programs/count_shim.c` is preloaded behind libampl.so.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi, compile_shim};
use ampl_tests::place::{Scratch, ampl, home, program};
use ampl_tests::process;
use ampl_tests::run::{Form, add_counts, counts, monitor, parse, text_of};

const RANKS: u32 = 4;

const CONFIG: &str = "[window]\nmarker = \"period:100ms\"\n";

/// Calls that the shim counted, summed over all ranks.
fn shim_counts(directory: &Path) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for rank in 0..RANKS {
        add_counts(&mut sum, &counts(&parse(&text_of(&directory.join(format!("{rank}.json"))))));
    }
    sum
}

/// `job` with the shim preloaded, writing into `directory`.
fn with_shim(job: Job, directory: &Path) -> Job {
    job.with("LD_PRELOAD", compile_shim("count_shim")).with("COUNT_SHIM_DIR", directory)
}

/// LAMMPS's output without times.
fn thermo(stdout: &str) -> Vec<&str> {
    const TIMED: &[&str] = &["CPU", "Loop time", "Performance", "wall time", " | "];
    stdout.lines().filter(|line| !TIMED.iter().any(|word| line.contains(word))).collect()
}

#[test]
fn lammps_computes_the_same_and_is_counted() {
    let input = home().join("lammps/in.melt");
    let input = input.to_str().expect("the repository's path is text");
    let arguments = ["-log", "none", "-in", input, "-var", "size", "10", "-var", "steps", "400"];
    let job = Job::new(Mpi::OpenMpi, RANKS, program(&["lmp"]), &arguments);
    let plain = job.plain().success();
    assert!(
        thermo(&plain.stdout).iter().any(|line| line.trim_start().starts_with("400 ")),
        "{}",
        plain.stdout
    );
    let tally = Scratch::new("shim");
    let run = monitor(&with_shim(job, tally.path()), CONFIG, Form::Run).success();
    assert_eq!(thermo(&run.finished.stdout), thermo(&plain.stdout));
    let functions = run.functions();
    assert_eq!(functions, shim_counts(tally.path()));
    assert!(functions["MPI_Send"] > 1000 && functions["MPI_Wait"] > 1000, "{functions:?}");
    let mut check = Command::new(ampl());
    process::run(check.arg("check").arg(&run.run), Duration::from_secs(60)).success();
    summarised(&run.finished.stderr);
}

/// Lines of HPCC's report on passed or failed checks, without their timings.
fn verdicts(report: &str) -> Vec<String> {
    let is_verdict = |line: &&str| {
        ["PASSED", "passed", "FAILED", "failed", "Success="].iter().any(|word| line.contains(word))
    };
    let counted = |line: &str| match line.split_once("PASSED") {
        // Tables have times before and after the verdict.
        Some((before, _)) => format!("{} PASSED", before.split_whitespace().next().unwrap_or_default()),
        None => line.trim().to_owned(),
    };
    report.lines().filter(is_verdict).map(counted).collect()
}

#[test]
fn hpcc_passes_the_same_and_is_counted() {
    let input = text_of(&home().join("hpcc/hpccinf.txt"));
    let prepared = |name: &str| {
        let scratch = Scratch::new(name);
        scratch.write("hpccinf.txt", &input);
        scratch
    };
    let (plainly, watched, tally) = (prepared("hpcc-plain"), prepared("hpcc-watched"), Scratch::new("shim"));
    let mut job = Job::new(Mpi::OpenMpi, RANKS, program(&["hpcc"]), &[]);
    // It has taken over two minutes, without ampl, where 30 other processes wanted the two processors.
    job.limit = Duration::from_secs(600);
    job.directory = Some(plainly.path().to_owned());
    job.plain().success();
    job.directory = Some(watched.path().to_owned());
    let run = monitor(&with_shim(job, tally.path()), CONFIG, Form::Run).success();
    let expected = verdicts(&text_of(&plainly.path().join("hpccoutf.txt")));
    assert!(expected.iter().any(|line| line == "Success=1"), "{expected:?}");
    assert!(expected.iter().filter(|line| line.contains("PASSED")).count() > 8, "{expected:?}");
    assert_eq!(verdicts(&text_of(&watched.path().join("hpccoutf.txt"))), expected);
    let functions = run.functions();
    assert_eq!(functions, shim_counts(tally.path()));
    assert!(functions["MPI_Sendrecv"] > 100 && functions["MPI_Iprobe"] > 0, "{functions:?}");
    summarised(&run.finished.stderr);
}

/// Asserts that the summary after the run exists, and is short enough to read.
fn summarised(stderr: &str) {
    for word in ["ranks", "windows", "load balance", "ranks traced"] {
        assert!(stderr.to_lowercase().contains(word), "no \"{word}\" in the summary:\n{stderr}");
    }
    assert!(stderr.lines().count() <= 60, "too long to read:\n{stderr}");
}
