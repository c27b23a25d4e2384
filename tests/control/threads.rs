//! Programs whose threads call MPI.

use ampl_tests::differential::{Same, compare};
use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::number;

const RANKS: u32 = 2;

fn threads(mpi: Mpi, mode: &str) -> Same {
    let job = Job::of(mpi, RANKS, "threads", &[mode]);
    let comparison = compare(&job);
    let comparison = if mpi == Mpi::Abi { comparison.kept_only() } else { comparison };
    comparison.run().complete()
}

const BEGIN_AND_END: [(&str, u64); 4] =
    [("Comm_rank", 1), ("Comm_size", 1), ("Finalize", 1), ("Init_thread", 1)];

#[test]
fn four_threads_at_once() {
    let each = [&[("Allreduce", 200), ("Comm_dup", 4), ("Comm_free", 4)][..], &BEGIN_AND_END[..]].concat();
    let each = [each, vec![("Irecv", 2000), ("Isend", 2000), ("Waitall", 2000)]].concat();
    for mpi in Mpi::ALL {
        let same = threads(mpi, "ring").expect(RANKS, &each, &[]).stored();
        requests_are_told_apart(&same);
    }
}

#[test]
fn requests_cross_threads() {
    for mpi in Mpi::ALL {
        let same = threads(mpi, "crossed").stored();
        let functions = same.kept.functions();
        assert_eq!(functions["MPI_Irecv"], 3200, "{functions:?}");
        assert_eq!(functions["MPI_Wait"], 800, "{functions:?}");
        requests_are_told_apart(&same);
    }
}

/// Per thread, no two live requests share a name: each is completed once before it is made again.
fn requests_are_told_apart(same: &Same) {
    let mut made = 0;
    for rank in 0..RANKS {
        for line in same.kept.decode(rank) {
            let (name, request) = (&line["fn"], &line["out"]["request"]);
            if name == "MPI_Irecv" || name == "MPI_Isend" {
                assert!(request.as_str().is_some_and(|name| name.starts_with("request:")), "{line}");
                made += 1;
            }
            if name == "MPI_Wait" {
                assert_ne!(line["args"]["request"], "MPI_REQUEST_NULL", "{line}");
            }
        }
    }
    assert!(made > 1000, "{made} requests only");
}

/// A communicator has one name from its creation to its end, even if MPI gives its handle to another thread before
/// the thread that freed it has returned.
#[test]
fn handles_go_from_thread_to_thread() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let job = Job::of(mpi, 1, "threads", &["recycled"]);
        let same = compare(&job).kept_only().run().complete();
        let mut lives = vec![vec![]; 5];
        for line in same.kept.decode(0) {
            let name = match line["fn"].as_str() {
                Some("MPI_Comm_dup") => &line["out"]["newcomm"],
                Some("MPI_Barrier" | "MPI_Comm_free") => &line["args"]["comm"],
                _ => continue,
            };
            lives[line["thread"].as_u64().unwrap_or(0) as usize].push(name.clone());
        }
        for names in &lives[1..] {
            assert_eq!(names.len(), 60_000, "{mpi:?}");
            assert!(names.chunks(3).all(|life| life[0] == life[1] && life[0] == life[2]), "{mpi:?}");
        }
    }
}

#[test]
fn a_thousand_short_threads() {
    let each = [("Comm_rank", 2), ("Comm_size", 1), ("Finalize", 1), ("Init_thread", 1)];
    let each = [&each[..], &[("Send", 5000), ("Sendrecv", 1000)]].concat();
    for mpi in Mpi::ALL {
        let same = threads(mpi, "short").expect(RANKS, &each, &[]).stored();
        // Threads that come and go must not each leave their own tables behind.
        let bytes = number(&same.kept.info()["trace_bytes"]["total"]);
        assert!(bytes < 4e6, "{mpi:?}: {bytes} bytes of trace");
    }
}

#[test]
fn the_main_thread_does_nothing() {
    let each = [&BEGIN_AND_END[..], &[("Allreduce", 500)]].concat();
    for mpi in Mpi::ALL {
        threads(mpi, "idle-main").expect(RANKS, &each, &[]).stored();
    }
}

/// Whichever thread makes the calls, windows end when they should.
#[test]
fn windows_end_while_the_main_thread_waits() {
    let job = Job::of(Mpi::OpenMpi, RANKS, "threads", &["wait-main"]);
    let same = compare(&job).kept_only().run().complete();
    let windows = number(&same.kept.info()["windows"]);
    assert!(windows >= 4.0, "{windows} windows in more than a second: {}", same.kept.info());
}

#[test]
fn cancelled_threads() {
    let each = [&BEGIN_AND_END[..], &[("Irecv", 5), ("Send", 5), ("Wait", 5)]].concat();
    let first =
        [("Comm_rank", 301), ("Comm_size", 1), ("Finalize", 1), ("Init_thread", 1), ("Sendrecv", 300)];
    for mpi in Mpi::ALL {
        threads(mpi, "cancel").expect(RANKS, &each, &["MPI_Test"]);
        threads(mpi, "cancel-first").expect(RANKS, &first, &[]).stored();
        let late =
            [("Barrier", 20000), ("Comm_rank", 1), ("Comm_size", 2), ("Finalize", 1), ("Init_thread", 1)];
        threads(mpi, "cancel-late").expect(RANKS, &late, &[]).stored();
        // The process ends then, without MPI_Finalize: everything before is known.
        let job = Job::of(mpi, RANKS, "threads", &["cancel-inside"]);
        let same = compare(&job).without_stderr().launcher_may_fail().kept_only().run();
        let each = [("Barrier", 1), ("Comm_rank", 1), ("Comm_size", 1), ("Init_thread", 1), ("Recv", 1)];
        let same = same.expect(RANKS, &each, &[]);
        assert!(same.said().contains("did not reach MPI_Finalize"), "{}", same.said());
    }
}

/// At init and finalize ampl runs on a stack of its own.
#[test]
fn little_stack_is_enough() {
    // The ABI's MPI itself needs more on a thread.
    for mpi in Mpi::ALL {
        let modes = if mpi == Mpi::Abi { &["main"][..] } else { &["main", "thread"] };
        for mode in modes {
            let same = compare(&Job::of(mpi, RANKS, "small_stacks", &[mode])).kept_only().run().complete();
            assert_eq!(same.kept.functions()["MPI_Sendrecv"], u64::from(RANKS) * 50, "{mpi:?} {mode}");
        }
    }
}
