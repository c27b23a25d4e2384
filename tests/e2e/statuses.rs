//! Statuses are decoded where MPI defines them, and nowhere else.

use std::process::Command;
use std::time::Duration;

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, home};
use ampl_tests::process;
use ampl_tests::run::{Form, Monitored, monitor};
use serde_json::Value;

/// Every status in `value`, alone or in a list.
fn statuses(value: &Value, found: &mut Vec<(i64, i64)>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| statuses(value, found)),
        Value::Object(fields) if fields.contains_key("source") => {
            let number = |name: &str| fields[name].as_i64().unwrap_or(-1);
            found.push((number("source"), number("tag")));
        }
        _ => {}
    }
}

fn only_messages_tell(mpi: Mpi) {
    let run =
        monitor(&Job::of(mpi, 2, "undefined_status", &[]), "[agent]\nmax_overhead = \"99%\"\n", Form::Run)
            .success();
    for rank in 0..2 {
        let mut found = Vec::new();
        for call in run.decode(rank) {
            let fields = call["out"].as_object().into_iter().flatten();
            fields.filter(|(name, _)| name.contains("status")).for_each(|(_, value)| {
                statuses(value, &mut found);
            });
        }
        // Three messages a turn are received with a status: by Wait, Waitall and Recv.
        assert_eq!(found, [(i64::from(1 - rank), 5); 9], "{mpi:?}, rank {rank}");
    }
}

#[test]
fn statuses_of_no_message_have_no_source_open_mpi() {
    only_messages_tell(Mpi::OpenMpi);
}

#[test]
fn statuses_of_no_message_have_no_source_mpich() {
    only_messages_tell(Mpi::Mpich);
}

#[test]
fn statuses_of_no_message_have_no_source_standard_abi() {
    only_messages_tell(Mpi::Abi);
}

/// Tags of the statuses that the calls of `rank` were given, in order; `None` where they are not known. A known one has
/// the peer as its source.
fn given(run: &Monitored, rank: u32) -> Vec<Option<i64>> {
    let asks = |call: &Value| {
        let name = call["fn"].as_str().unwrap_or_default();
        ["Get_count", "Get_elements", "Test_cancelled", "Status_set"].iter().any(|part| name.contains(part))
    };
    let given = |call: Value| {
        let fields = call["args"].as_object().expect("arguments");
        let status = fields.get("status").unwrap_or_else(|| panic!("no status: {call}"));
        let source = status["source"].as_i64();
        assert!(status.is_null() || source == Some(i64::from(1 - rank)), "rank {rank}: {call}");
        status["tag"].as_i64()
    };
    run.decode(rank).into_iter().filter(asks).map(given).collect()
}

/// A status that a call is given is known where a call of the same thread filled it with a message's.
#[test]
fn statuses_that_are_given_to_mpi_are_those_that_it_filled() {
    const EXPECTED: [Option<i64>; 19] = [
        None,
        None,
        Some(61),
        None,
        None,
        Some(62),
        Some(62),
        None,
        Some(63),
        Some(64),
        None,
        Some(64),
        None,
        None,
        None,
        None,
        Some(65),
        Some(65),
        None,
    ];
    for mpi in Mpi::ALL {
        let scratch = Scratch::new("asked");
        let file = scratch.path().join("file");
        let job = Job::of(mpi, 2, "asked_status", &["4", file.to_str().expect("a path of ours")]);
        let run = monitor(&job, "[agent]\nmax_overhead = \"99%\"\n", Form::Run).success();
        for rank in 0..2 {
            let found = given(&run, rank);
            assert_eq!(found.len(), 4 * 19, "{mpi:?}, rank {rank}: {found:?}");
            for turn in found.chunks(19) {
                assert_eq!(turn, &EXPECTED, "{mpi:?}, rank {rank}");
            }
        }
    }
}

#[test]
fn statuses_that_fortran_gives_to_mpi_are_those_that_it_filled() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let scratch = Scratch::new("asked-fortran");
        let program = scratch.path().join("asked_status");
        let mut compile = Command::new(mpi.fortran_compiler());
        compile.args(["-g", "-o"]).arg(&program).arg(home().join("programs/asked_status.f90"));
        process::run(compile.current_dir(scratch.path()), Duration::from_secs(60)).success();
        let run = monitor(&Job::new(mpi, 2, &program, &[]), "[agent]\nmax_overhead = \"99%\"\n", Form::Run)
            .success();
        for rank in 0..2 {
            let turn = [Some(71), None, None, Some(71)];
            assert_eq!(given(&run, rank), turn.repeat(3), "{mpi:?}, rank {rank}");
        }
    }
}
