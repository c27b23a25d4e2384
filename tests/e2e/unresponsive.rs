//! A rank whose part of the tree fails while the job goes on: no rank waits for it at finalize.

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, home, program};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor};

const RANKS: u32 = 12;
const TURNS: u64 = 300;

#[test]
fn who_gives_up_says_so() {
    let scratch = Scratch::new("unresponsive");
    let shim = scratch.path().join("unresponsive.so");
    let mut compile = Command::new(program(&["gcc", "cc"]));
    compile.args(["-O1", "-fPIC", "-shared", "-o"]).arg(&shim).arg(home().join("programs/unresponsive.c"));
    process::run(&mut compile, Duration::from_secs(60)).success();
    let plain = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()]).plain().success();
    // The root, a node with ranks below it, and a leaf.
    for deaf in [0, 1, RANKS - 1] {
        let mut job = Job::of(Mpi::OpenMpi, RANKS, "steady", &[&TURNS.to_string()])
            .with("LD_PRELOAD", &shim)
            .with("DEAF_RANK", deaf.to_string());
        // A rank that waited for the deaf one would do so for ten minutes, and report it.
        job.limit = Duration::from_secs(500);
        let run = monitor(&job, "[window]\nmarker = \"mpi:MPI_Barrier\"\n", Form::Exec).success();
        assert_eq!(run.finished.stdout, plain.stdout, "rank {deaf}");
        // The journals are all there.
        let info = run.info();
        assert!(
            info["complete"] == false && info["agent_failures"].as_u64() > Some(0),
            "rank {deaf}: {info}"
        );
        assert_eq!(run.functions()["MPI_Barrier"], TURNS * u64::from(RANKS), "rank {deaf}");
        let said = &run.finished.stderr;
        assert!(said.contains("the journals stay unmerged"), "rank {deaf}: {said}");
        assert!(!said.contains("minutes"), "rank {deaf}: {said}");
    }
}
