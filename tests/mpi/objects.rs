//! Programs that touch every kind of object: each argument of each call is decoded as the program
//! itself wrote it down, and nothing but the program's own calls is counted.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, home};
use ampl_tests::process;
use ampl_tests::run::{Form, monitor, number};
use serde_json::Value;

use crate::{decode_matches, keep_everything};

fn on_every_mpi(name: &str) {
    for mpi in Mpi::ALL {
        decode_matches(mpi, several(mpi), name);
        decode_matches(mpi, 1, name);
    }
}

/// A number of ranks that two processors can bear: those of MPICH spin.
pub fn several(mpi: Mpi) -> u32 {
    if mpi == Mpi::OpenMpi { 4 } else { 3 }
}

#[test]
fn communicators_groups_topologies_infos_attributes_and_errors() {
    on_every_mpi("objects_comm");
}

#[test]
fn datatypes_operations_and_requests() {
    on_every_mpi("objects_data");
}

#[test]
fn windows_and_files() {
    for mpi in Mpi::ALL {
        decode_matches(mpi, several(mpi), "objects_shared");
        // A lone rank of Open MPI cannot make a window.
        decode_matches(mpi, if mpi == Mpi::OpenMpi { 2 } else { 1 }, "objects_shared");
    }
}

#[test]
fn errors_and_what_they_leave() {
    on_every_mpi("objects_errors");
}

#[test]
fn older_and_newer_ways() {
    on_every_mpi("objects_more");
}

/// Calls of one line with the same words differ where a handle stands for another object, where more requests are
/// live, or where MPI refuses: both their values and the bytes they move.
#[test]
fn the_same_words_with_another_meaning() {
    on_every_mpi("changed_meanings");
    let metrics = "[[metric]]\nname = \"mpi.time\"\n[[metric]]\nname = \"bytes.sent\"\nevent = \"MPI_Bcast\"\n\
                   role = \"report\"\n";
    for mpi in Mpi::ALL {
        let job = Job::of(mpi, 1, "changed_meanings", &[]);
        let run = monitor(&job, &(keep_everything(1) + metrics), Form::Run).success();
        let rows = run.estimate();
        let sent = |row: &&Value| row["scope"] == "run" && row["event"] == "MPI_Bcast";
        // Two of 4, 8 and 12 bytes in turns.
        assert_eq!(number(&rows.iter().find(sent).expect("a row")["mean"]), 16.0, "{mpi:?}");
    }
}

/// The name of a port is recorded where MPI reads it, at the root; other ranks may pass no text at all.
#[test]
fn names_of_ports() {
    const RANKS: u32 = 4;
    let scratch = Scratch::new("ports");
    let fortran = scratch.path().join("ports");
    let mut compile = Command::new(Mpi::OpenMpi.fortran_compiler());
    compile.arg("-o").arg(&fortran).arg(home().join("programs/ports.f90"));
    process::run(&mut compile, Duration::from_secs(120)).success();
    // Debian's MPICH has no ports.
    let programs: [(Mpi, PathBuf); 3] = [
        (Mpi::OpenMpi, Mpi::OpenMpi.compile("ports")),
        (Mpi::OpenMpi, fortran),
        (Mpi::Abi, Mpi::Abi.compile("ports")),
    ];
    for (mpi, program) in programs {
        let job = Job::new(mpi, RANKS, &program, &[]);
        let run = monitor(&job, &keep_everything(RANKS), Form::Run).success();
        // Both roots say it. Launchers may mix lines of two ranks: one name, the other, and both ends of lines.
        let said: String = run.finished.stdout.lines().collect();
        let (name, same) = said.split_at(said.len() / 2);
        assert!(!name.is_empty() && name == same, "{said:?}");
        for rank in 0..RANKS {
            let function = if rank % 2 == 0 { "MPI_Comm_accept" } else { "MPI_Comm_connect" };
            let calls = run.decode(rank);
            let call = calls.iter().find(|call| call["fn"] == function).expect("it is there");
            let name = if rank < RANKS - 2 { Value::Null } else { name.into() };
            assert_eq!(call["args"]["port_name"], name, "{mpi:?}: {call}");
        }
    }
}
