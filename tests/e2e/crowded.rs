//! Memory that MPI shares among ranks, `/dev/shm`, is small in containers: ampl leaves nearly all of it to the job.

use ampl_tests::hosts::on_small;
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process;
use ampl_tests::run::{Monitored, number};
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Everything is stored as long as there is room: nothing is left out for what it costs.
const ALL: &str = "[trace]\ntiming = \"all\"\n[agent]\nmax_overhead = 0.9\n";

/// Runs the job alone and under ampl, on a `/dev/shm` of `size` or a run directory's file system of that size: it
/// ends alike.
fn run(job: &Job, size: &str, config: &str, in_run: bool) -> Option<Monitored> {
    let scratch = Scratch::new("crowded");
    let disk = scratch.path().join("disk");
    std::fs::create_dir(&disk).expect("a directory of ours");
    let place = if in_run { &*disk } else { Path::new("/dev/shm") };
    let file = scratch.write("job.toml", config);
    // What is on a file system of the namespace goes with it.
    let run = if in_run { disk.join("result") } else { scratch.path().join("result") };
    let kept = scratch.path().join("kept");
    let plain = [job.launch(), job.words.clone()].concat();
    let alone = job.run(&on_small(size, place, &plain)?, scratch.path()).success();
    let script = "\"$@\"; code=$?; cp -r \"$0\" kept; exit $code";
    let start: Vec<OsString> = vec!["sh".into(), "-c".into(), script.into(), (&run).into()];
    let start = [start, vec![ampl().into(), "run".into(), "-c".into(), file.into(), "-o".into(), run.into()]];
    let words = [start.concat(), vec!["--".into()], plain].concat();
    let finished = job.run(&on_small(size, place, &words)?, scratch.path()).success();
    assert_eq!(finished.sorted_lines(), alone.sorted_lines(), "{}", finished.stderr);
    Some(Monitored { finished, run: kept, scratch })
}

/// Asserts that every counted call is stored, or reported as not stored.
fn adds_up(run: &Monitored, ranks: u32, calls: u64) {
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&true.into(), &0.into()), "{info}");
    assert_eq!(run.functions()["MPI_Sendrecv"], u64::from(ranks) * calls);
    let of = |rank: u32| run.decode(rank).iter().filter(|call| call["fn"] == "MPI_Sendrecv").count() as u64;
    let missing = calls * u64::from(ranks) - (0..ranks).map(of).sum::<u64>();
    let said = &run.finished.stderr;
    assert_eq!(missing > 0, said.contains("are not stored: they are counted"), "{missing}: {said}");
    for untrue in ["more call sites than", "made within others", "ampl itself failed"] {
        assert!(!said.contains(untrue), "{said}");
    }
    let mut decode = Command::new(ampl());
    decode.arg("decode").arg(&run.run);
    let decoded = process::run(&mut decode, Duration::from_secs(300)).success();
    let none = calls * u64::from(ranks) == missing;
    assert_eq!(decoded.stderr.contains("no calls are stored"), none, "{missing}: {}", decoded.stderr);
}

#[test]
fn what_ranks_share_later_has_its_room() {
    // MPICH takes more for itself.
    for (mpi, size, kib) in [(Mpi::OpenMpi, "16m", 2800), (Mpi::Mpich, "64m", 8000), (Mpi::Abi, "64m", 8000)]
    {
        const CALLS: u64 = 20_000;
        let job = Job::of(mpi, 4, "crowding", &[&CALLS.to_string(), &kib.to_string()]);
        let Some(run) = run(&job, size, ALL, false) else { return };
        adds_up(&run, 4, CALLS);
    }
}

#[test]
fn many_ranks_begin_in_little_room() {
    let job = Job::of(Mpi::OpenMpi, 24, "crowding", &["1500", "200"]);
    let Some(run) = run(&job, "16m", ALL, false) else { return };
    adds_up(&run, 24, 1500);
}

#[test]
fn a_run_directory_on_a_small_disk() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 2, "crowding", &["20000", "0"]);
        let Some(run) = run(&job, "6m", &format!("{ALL}[output]\njournal = \"run\"\n"), true) else { return };
        adds_up(&run, 2, 20_000);
        let info = run.info();
        assert!(number(&info["trace_bytes"]["total"]) > 0.0, "{info}");
    }
}

/// A killed job leaves its journals, and the rest is reported as missing.
#[test]
fn a_job_that_dies_in_little_room() {
    // MPICH takes more for itself.
    for (mpi, size) in [(Mpi::OpenMpi, "16m"), (Mpi::Mpich, "32m")] {
        let scratch = Scratch::new("crowded");
        let job = Job::of(mpi, 2, "crowding", &["20000", "10", "die"]);
        let file = scratch.write("job.toml", ALL);
        let run = scratch.path().join("result");
        let start: Vec<OsString> = vec![ampl().into(), "run".into(), "-c".into(), file.into(), "-o".into()];
        let words = [start, vec![(&run).into(), "--".into()], job.launch(), job.words.clone()].concat();
        // The run is read inside the namespace, because its memory ends with the job.
        let script = "\"$@\"; $0 decode result --json > decoded";
        let start: Vec<OsString> = vec!["sh".into(), "-c".into(), script.into(), ampl().into()];
        let Some(words) = on_small(size, Path::new("/dev/shm"), &[start, words].concat()) else { return };
        let said = job.run(&words, scratch.path()).stderr;
        // Either of the two may find no room first.
        let of = ["0-1", "0", "1"].map(|ranks| format!("calls of these ranks ({ranks}) are not stored"));
        let is_missing = of.iter().any(|missing| said.contains(missing));
        assert!(
            !said.contains("more call sites than") && !said.contains("made within others"),
            "{mpi:?}: {said}"
        );
        let decoded = std::fs::read_to_string(scratch.path().join("decoded")).expect("decode wrote it");
        let calls = decoded.lines().filter(|line| line.contains("MPI_Sendrecv")).count();
        // What is not stored is told; the calls under way may be the last ones.
        let stored = if is_missing { 100..40_000 } else { 39_990..40_001 };
        assert!(stored.contains(&calls), "{mpi:?}: {calls}: {said}");
    }
}
