//! Ways out of an MPI call other than its return; children; error handlers.

use ampl_tests::differential::compare;
use ampl_tests::job::{Job, Mpi};

use crate::ranks_to_the_end;

const RANKS: u32 = 3;

/// Out of an error handler by longjmp, from frames of any depth: every call counts, also those that
/// were jumped out of and those that follow from deeper frames.
#[test]
fn jumps_out_of_mpi() {
    const EACH: &[(&str, u64)] = &[
        ("Allreduce", 128),
        ("Comm_create_errhandler", 1),
        ("Comm_rank", 1),
        ("Comm_set_errhandler", 2),
        ("Comm_size", 1),
        ("Errhandler_free", 1),
        ("Finalize", 1),
        ("Init", 1),
        ("Irecv", 32),
        ("Send", 32),
    ];
    for mpi in Mpi::ALL {
        // MPI_Error_class is called by the handler, inside of MPI.
        compare(&Job::of(mpi, RANKS, "control", &["longjmp"])).run().complete().expect(
            RANKS,
            EACH,
            &["MPI_Error_class"],
        );
    }
}

#[test]
fn exceptions_through_mpi() {
    const EACH: &[(&str, u64)] = &[
        ("Allreduce", 64),
        ("Comm_create_errhandler", 1),
        ("Comm_rank", 1),
        ("Comm_set_errhandler", 2),
        ("Comm_size", 1),
        ("Errhandler_free", 1),
        ("Finalize", 1),
        ("Get_version", 1),
        ("Init", 1),
        ("Initialized", 1),
        ("Send", 64),
    ];
    for mpi in Mpi::ALL {
        let ranks = ranks_to_the_end(mpi);
        // Open MPI's C++ library asks MPI_Initialized before main, too: that is not the program.
        let same = compare(&Job::of(mpi, ranks, "throw", &["exceptions"])).run().complete();
        same.expect(ranks, EACH, &["MPI_Error_class"]);
    }
}

/// Children end in every way; MPI continues in their parents, and only these are recorded.
#[test]
fn children_are_no_ranks() {
    let each =
        [("Barrier", 3), ("Comm_rank", 1), ("Comm_size", 1), ("Finalize", 1), ("Init", 1), ("Sendrecv", 30)];
    for mpi in Mpi::ALL {
        // Back traces of those that abort.
        compare(&Job::of(mpi, RANKS, "control", &["fork"]))
            .without_stderr()
            .kept_only()
            .run()
            .complete()
            .expect(RANKS, &each, &[])
            .stored();
    }
}

#[test]
fn commands_run_between_calls() {
    let each = [("Comm_rank", 1), ("Comm_size", 1), ("Finalize", 1), ("Init", 1), ("Sendrecv", 3)];
    for mpi in Mpi::ALL {
        compare(&Job::of(mpi, RANKS, "control", &["shell"]))
            .kept_only()
            .run()
            .complete()
            .expect(RANKS, &each, &[])
            .stored();
    }
}
