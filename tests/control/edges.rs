//! Sources that ampl must not trust: remembered facts of objects, outputs of calls that failed, frames on the
//! stack.

use ampl_tests::differential::{Same, compare};
use ampl_tests::job::{Job, Mpi};
use ampl_tests::run::{Form, monitor};

const RANKS: u32 = 2;

fn each(mode: &str, check: impl Fn(Mpi, Same)) {
    for mpi in Mpi::ALL {
        check(mpi, compare(&Job::of(mpi, RANKS, "edges", &[mode])).kept_only().run().complete());
    }
}

/// A library frees its communicator in a callback, unseen; the next one with that handle is another.
#[test]
fn sizes_of_reused_handles() {
    each("freed", |_, same| assert!(same.plain.stdout.contains(&format!("of {RANKS}"))));
}

#[test]
fn completions_that_fail() {
    // MPICH 5 ends the program for a request that is none.
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        let same = compare(&Job::of(mpi, RANKS, "edges", &["failed"])).kept_only().run().complete();
        assert!(same.plain.stdout.contains("error"), "{mpi:?}");
    }
}

#[test]
fn children_forked_in_callbacks() {
    each("forked", |_, same| assert_eq!(same.plain.stdout.matches("child 7").count(), RANKS as usize));
}

#[test]
fn children_of_the_system_call() {
    each("cloned", |_, same| assert_eq!(same.plain.stdout.matches("child 7").count(), RANKS as usize));
}

#[test]
fn a_stack_that_is_gone() {
    each("unstacked", |_, same| {
        assert_eq!(same.plain.stdout.matches("size 2").count(), RANKS as usize);
        let calls = same.kept.decode(0);
        assert!(calls.iter().any(|call| call["fn"] == "MPI_Barrier"));
    });
}

/// Calls below a large array that lies untouched over the frame that was left are calls like others.
#[test]
fn calls_after_a_jump_have_their_place() {
    each("jumped", |mpi, same| {
        let sent = same.functions()["MPI_Send"];
        assert_eq!(sent, 501 * u64::from(RANKS), "{mpi:?}");
        let calls = same.kept.decode(0);
        let waits = calls.iter().filter(|call| call["fn"] == "MPI_Wait").count();
        assert_eq!(waits, 500, "{mpi:?}");
    });
}

/// Without unwind tables it is not known that these calls come after a jump: the summary gives the number that it
/// lacks.
#[test]
fn calls_that_are_lost_are_told() {
    for mpi in Mpi::ALL {
        let bare = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"];
        let job = Job::new(mpi, RANKS, mpi.compile_as("untabled", "edges.c", &bare), &["jumped"]);
        let same = compare(&job).kept_only().run().complete();
        let counted: u64 = same.functions().values().sum::<u64>() / u64::from(RANKS);
        let decoded = same.kept.decode(0);
        let recorded = decoded.iter().filter(|line| line["gap"].is_null()).count() as u64;
        let lost = counted - recorded;
        assert!(lost > 0, "{mpi:?}: the test needs such calls");
        let told = same.said().replace(',', "");
        let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
        let all = lost * u64::from(RANKS);
        assert!(told.contains(&format!("{all} made within other calls")), "{mpi:?}: {told}");
    }
}

#[test]
fn requests_that_end_unseen() {
    each("unseen", |mpi, same| {
        let calls = same.kept.decode(0);
        let made = calls.iter().rfind(|call| call["fn"] == "MPI_Irecv").expect("the call");
        let wait = calls.iter().find(|call| call["fn"] == "MPI_Wait").expect("the call");
        assert_eq!(wait["args"]["request"], made["out"]["request"], "{mpi:?}: {wait}");
        assert_eq!(wait["out"]["status"]["tag"], 2, "{mpi:?}: {wait}");
    });
}

/// Any thread may query at any time: ampl must not call MPI from there.
#[test]
fn threads_that_only_ask() {
    each("asking", |_, same| assert_eq!(same.plain.stdout.matches("done").count(), RANKS as usize));
}

/// The first call of a function does not ask the loader anything.
#[test]
fn what_the_loader_says_is_the_programs_to_ask_for() {
    each("loader", |_, same| assert!(same.plain.stdout.contains("no such library"), "{}", same.plain.stdout));
}

/// Arrays with more room than MPI fills: the rest has no meaning.
#[test]
fn contents_that_fill_a_part() {
    each("contents", |mpi, same| {
        let calls = same.kept.decode(0);
        let told = calls.iter().find(|call| call["fn"] == "MPI_Type_get_contents").expect("the call");
        assert_eq!(told["out"]["array_of_datatypes"].as_array().map(Vec::len), Some(1), "{mpi:?}: {told}");
        let send = calls.iter().find(|call| call["fn"] == "MPI_Send").expect("the call");
        let made = calls.iter().rfind(|call| call["fn"] == "MPI_Type_contiguous").expect("the call");
        assert_eq!(send["args"]["datatype"], made["out"]["newtype"], "{mpi:?}");
    });
}

/// Means are computed in the program's threads: the program does not notice, and is not ended by its own traps.
#[test]
fn floating_point_exceptions_are_the_programs_own() {
    for mpi in [Mpi::OpenMpi, Mpi::Mpich] {
        for mode in ["ask", "trap"] {
            let same = compare(&Job::of(mpi, 2, "floating", &["400", mode])).kept_only().run().complete();
            assert_eq!(same.plain.sorted_lines().len(), 2, "{}", same.plain.stdout);
        }
    }
}

/// Nor where single calls are observed: squares of their times are not exact.
#[test]
fn floating_point_exceptions_of_observed_calls() {
    const OBSERVED: &str = "[window]\nmarker = \"mpi:MPI_Allreduce\"\nevery = 50\n\
        [[metric]]\nname = \"wall\"\nevent = \"MPI_Allreduce\"\n\
        [[metric]]\nname = \"wall\"\nevent = \"floating.c:24\"\n";
    let line = include_str!("../programs/floating.c").lines().nth(23);
    assert!(line.is_some_and(|line| line.contains("MPI_Allreduce")), "{line:?}");
    for mode in ["ask", "trap"] {
        let job = Job::of(Mpi::OpenMpi, 2, "floating", &["120", mode]);
        let plain = job.plain();
        let run = monitor(&job, OBSERVED, Form::Run).success();
        assert_eq!(run.finished.sorted_lines(), plain.sorted_lines());
        assert_eq!(plain.sorted_lines().len(), 2, "{}", plain.stdout);
    }
}
