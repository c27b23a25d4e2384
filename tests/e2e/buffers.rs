//! Buffers that change from call to call: each call has its own, and the structure is that of a program with one.

use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::Scratch;
use ampl_tests::reference::Reference;
use ampl_tests::run::{Form, Monitored, monitor, number, text_of};
use serde_json::Value;

const RANKS: u32 = 6;
/// However much of the time it takes: nothing is left out.
const EVERYTHING: &str = "[agent]\nmax_overhead = \"99%\"\nmax_structure_overhead = \"99%\"\n";

/// The program for so many rounds, and its log's name.
fn run(mpi: Mpi, rounds: u32, config: &str) -> (Monitored, Scratch) {
    let scratch = Scratch::new("buffers");
    let log = scratch.path().join("log");
    let job = Job::of(mpi, RANKS, "changing_buffers", &[&log.to_string_lossy(), &rounds.to_string()]);
    (monitor(&job, &format!("{config}{EVERYTHING}"), Form::Run).success(), scratch)
}

#[test]
fn each_call_has_its_own_and_structure_does_not_grow() {
    for mpi in Mpi::ALL {
        let sizes = [50, 400].map(|rounds| {
            let (run, scratch) = run(mpi, rounds, "");
            for rank in 0..RANKS {
                let text = text_of(&scratch.path().join(format!("log.{rank}")));
                let reference =
                    Reference::parse(&text).unwrap_or_else(|error| panic!("{mpi:?}, rank {rank}: {error}"));
                if let Err(difference) = reference.compare(&run.decode(rank)) {
                    panic!("{mpi:?}, {rounds} rounds, rank {rank}: {difference}");
                }
            }
            let info = run.info();
            assert_eq!(info["structure_complete"], true, "{info}");
            (number(&info["trace_bytes"]["structure"]), number(&info["signatures"]))
        });
        let [(few, signatures), (many, same)] = sizes;
        assert!(many < few + 40.0 && same == signatures, "{mpi:?}: {sizes:?}");
    }
}

#[test]
fn where_they_are_not_stored_all_else_is() {
    let without_buffers = |line: &Value| {
        let mut line = line.clone();
        for name in ["buf", "sendbuf", "recvbuf", "buffer", "argc", "argv"] {
            if let Some(value) = line["args"].get_mut(name) {
                *value = Value::Null;
            }
        }
        for name in ["start_ns", "duration_ns", "window", "out"] {
            line.as_object_mut().expect("a call").remove(name);
        }
        line
    };
    const UNTIMED: &str = "[trace]\ntiming = \"off\"\n";
    let (whole, _scratch) = run(Mpi::OpenMpi, 60, UNTIMED);
    let bytes = whole.info()["trace_bytes"].clone();
    let [all, of_buffers] = ["total", "addresses"].map(|part| number(&bytes[part]));
    assert!(of_buffers > 1000.0, "{bytes}");
    // Room for everything but them.
    let limit = format!("{UNTIMED}[output]\nmax_bytes = \"{}B\"\n", (all - of_buffers / 3.0) as u64);
    for config in [format!("{UNTIMED}addresses = \"off\"\n"), limit] {
        let (less, _scratch) = run(Mpi::OpenMpi, 60, &config);
        let bytes = less.info()["trace_bytes"].clone();
        let is_off = config.contains("addresses");
        assert_eq!(number(&bytes["addresses"]) == 0.0, is_off, "{config}: {bytes}");
        for rank in 0..RANKS {
            let (whole, less) = (whole.decode(rank), less.decode(rank));
            assert_eq!(whole.len(), less.len(), "{config}");
            let nulls = less.iter().filter(|line| line["args"]["buf"].is_null()).count();
            assert!(nulls > 100, "{config}: {nulls}");
            for (whole, less) in whole.iter().zip(&less) {
                assert_eq!(without_buffers(whole), without_buffers(less), "{config}, rank {rank}");
            }
        }
    }
}
