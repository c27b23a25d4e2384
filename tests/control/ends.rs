//! Ends of jobs, queries before MPI and after it, and the records of each.

use ampl_tests::differential::compare;
use ampl_tests::job::{Job, Mpi};
use serde_json::Value;

use crate::ranks_to_the_end;

const RANKS: u32 = 2;

fn job(mpi: Mpi, mode: &str) -> Job {
    Job::of(mpi, RANKS, "ends", &[mode])
}

/// Calls that every rank makes first, with their number.
const BEGIN: [(&str, u64); 4] = [("Comm_rank", 1), ("Comm_size", 1), ("Init", 1), ("Sendrecv", 20)];

#[test]
fn mpi_is_asked_before_and_after() {
    let each = [&BEGIN[..], &[("Finalize", 1)]].concat();
    for mpi in Mpi::ALL {
        let ranks = ranks_to_the_end(mpi);
        compare(&Job::of(mpi, ranks, "ends", &["ask"])).kept_only().run().complete().expect(
            ranks,
            &each,
            &["MPI_Initialized", "MPI_Finalized", "MPI_Get_*"],
        );
        // MPICH ends the job where the clock is read too late.
        compare(&Job::of(mpi, ranks, "ends", &["clock-after"])).kept_only().run().complete().expect(
            ranks,
            &each,
            &["MPI_Wtime"],
        );
    }
}

#[test]
fn mpi_is_only_asked() {
    for mpi in Mpi::ALL {
        let same = compare(&job(mpi, "never")).without_stderr().kept_only().run();
        assert_eq!(same.plain.status.code(), Some(5));
        assert!(!same.kept.run.exists());
        assert!(same.said().contains("no run was recorded"), "{}", same.said());
    }
}

/// Without MPI_Finalize nothing is merged, but all calls are there, and the summary names what is missing.
#[test]
fn jobs_end_without_finalize() {
    let each = [&BEGIN[..], &[("Barrier", 1)]].concat();
    for (modes, mpi) in [
        (&["return", "return-3", "exit", "_exit", "terminated"][..], Mpi::OpenMpi),
        (&["exit"], Mpi::Mpich),
        (&["return"], Mpi::Abi),
    ] {
        for mode in modes {
            let same = compare(&job(mpi, mode))
                .without_stderr()
                .launcher_may_fail()
                .kept_only()
                .run()
                .expect(RANKS, &each, &[]);
            assert_eq!(same.kept.info()["complete"], Value::Bool(false), "{mode}");
            assert!(same.said().contains("2 ranks did not reach MPI_Finalize: 0-1"), "{}", same.said());
        }
    }
}

#[test]
fn jobs_end_inside_of_mpi() {
    for mpi in Mpi::ALL {
        let same =
            compare(&job(mpi, "exit-in-handler")).without_stderr().launcher_may_fail().kept_only().run();
        let made = [("Barrier", 1), ("Comm_create_errhandler", 1), ("Comm_set_errhandler", 1)];
        // The launcher may stop one rank before it gets there.
        assert!(same.functions()["MPI_Send"] >= 1);
        same.expect(RANKS, &[&BEGIN[..], &made].concat(), &["MPI_Send"]);
        // The first rank to fail takes the others along.
        let same = compare(&job(mpi, "fatal")).without_stderr().launcher_may_fail().kept_only().run();
        assert_eq!(same.kept.functions()["MPI_Sendrecv"], 40);
        assert_eq!(same.kept.info()["complete"], Value::Bool(false));
    }
}

#[test]
fn jobs_are_aborted() {
    for (modes, mpi) in [
        (&["abort-all", "abort-one", "abort-self"][..], Mpi::OpenMpi),
        (&["abort-one", "abort-self"], Mpi::Mpich),
        (&["abort-one"], Mpi::Abi),
    ] {
        for mode in modes {
            let same = compare(&job(mpi, mode)).without_stderr().launcher_may_fail().kept_only().run();
            let functions = same.kept.functions();
            assert_eq!(functions["MPI_Sendrecv"], 40, "{mpi:?} {mode}: {functions:?}");
            assert!(functions["MPI_Abort"] >= 1, "{mpi:?} {mode}: {functions:?}");
            assert_eq!(same.kept.info()["complete"], Value::Bool(false), "{mode}");
        }
    }
}

#[test]
fn finalize_comes_late() {
    let at_exit = [("Comm_rank", 1), ("Comm_size", 1), ("Finalize", 1), ("Init", 1), ("Sendrecv", 21)];
    let destructor =
        [("Allreduce", 1), ("Comm_rank", 1), ("Comm_size", 1), ("Finalize", 1), ("Get_version", 1)];
    let destructor = [&destructor[..], &[("Init", 1), ("Initialized", 1)]].concat();
    for mpi in Mpi::ALL {
        let ranks = ranks_to_the_end(mpi);
        compare(&Job::of(mpi, ranks, "ends", &["atexit"]))
            .run()
            .complete()
            .expect(ranks, &at_exit, &[])
            .stored();
        let same = compare(&Job::of(mpi, ranks, "throw", &["destructor"])).kept_only().run().complete();
        same.expect(ranks, &destructor, &[]);
    }
    compare(&job(Mpi::OpenMpi, "exec")).without_stderr().kept_only().run().complete();
}

/// Attributes of MPI_COMM_SELF are deleted last-in first-out while MPI still works, and callbacks see
/// nothing of ampl's.
#[test]
fn callbacks_see_nothing() {
    let made = [
        ("Comm_create_keyval", 4),
        ("Comm_delete_attr", 2),
        ("Comm_dup", 2),
        ("Comm_free", 2),
        ("Comm_free_keyval", 1),
        ("Comm_get_attr", 1),
        ("Comm_set_attr", 5),
        ("Finalize", 1),
    ];
    // What callbacks call themselves: Finalized, Comm_rank, Comm_compare, Barrier, Sendrecv.
    let inside = ["MPI_Finalized", "MPI_Comm_rank", "MPI_Comm_compare", "MPI_Barrier", "MPI_Sendrecv"];
    for mpi in Mpi::ALL {
        let ranks = ranks_to_the_end(mpi);
        let same = compare(&Job::of(mpi, ranks, "ends", &["callbacks"])).run().complete();
        same.expect(ranks, &[&made[..], &[("Comm_size", 1), ("Init", 1)]].concat(), &inside);
    }
}

/// Open MPI deletes no more attributes once a callback has failed, ampl's among them. The other ranks are in theirs,
/// and must not wait for it; the records stay.
#[test]
fn a_callback_that_fails_holds_nobody_up() {
    let each = [("Comm_create_keyval", 1), ("Comm_rank", 2), ("Comm_set_attr", 1), ("Sendrecv", 20)];
    for ranks in [1, 3, 16] {
        let job = Job::of(Mpi::OpenMpi, ranks, "ends", &["callback-fails"]);
        let same = compare(&job).without_stderr().kept_only().run();
        assert!(same.said().contains("the journals stay unmerged"), "{ranks}: {}", same.said());
        // All ranks came to their end, and `ampl run` made the trace of their journals.
        assert_eq!(same.kept.info()["complete"], Value::Bool(true), "{ranks}");
        for (name, count) in each {
            assert_eq!(
                same.kept.functions()[&format!("MPI_{name}")],
                count * u64::from(ranks),
                "{name} of {ranks}"
            );
        }
    }
}
