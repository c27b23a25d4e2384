use ampl_core::mpi::ObjectKind;
use ampl_testkit::runs::{Caller, info, predefined, processes, structure, world};
use ampl_trace::args::status_word;

use super::*;
use crate::matching::tests::with_sources;

/// Faults of a job whose ranks make the calls of `program`, and then end.
fn faults(ranks: u32, program: impl Fn(&mut Caller)) -> Vec<Finding> {
    let structure = structure(ranks, |own| {
        program(own);
        own.call("MPI_Finalize", 99, &[]);
    });
    let processes = processes(&structure, |_| "host".into());
    let process = |rank: u32| processes.iter().find(|process| process.rank == rank);
    let comms = Communicators::in_order(&info(ranks), &structure, &process);
    with_sources(ranks, &structure, |sources, _| {
        check_calls(ranks, sources, &comms, &Trace::default()).findings
    })
}

fn double() -> u64 {
    predefined(ObjectKind::Type, "MPI_DOUBLE")
}

fn sum() -> u64 {
    predefined(ObjectKind::Op, "MPI_SUM")
}

/// A change of a program at one rank and step.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    rank: u32,
    step: u64,
    /// The call that is changed, by its line.
    line: u64,
    how: How,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum How {
    #[default]
    Not,
    Drop,
    Value(u64),
    Function(&'static str),
}

const STEPS: u64 = 6;

/// A ring, a broadcast, a reduction, a gathering and a scattering in each step.
fn steps(own: &mut Caller, ranks: u32, change: Change) {
    let rank = own.rank();
    let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    for step in 0..STEPS {
        let how = |line: u64| match (change.rank, change.step, change.line) == (rank, step, line) {
            true => change.how,
            false => How::Not,
        };
        let value = |line: u64, usual: u64| if let How::Value(value) = how(line) { value } else { usual };
        if how(1) != How::Drop {
            own.call("MPI_Send", 1, &[0, value(1, 4), double(), next.into(), 7, world()]);
        }
        let told = status_word(before as i32, 7);
        own.call("MPI_Recv", 2, &[0, 4, double(), before.into(), 7, world(), told]);
        own.call("MPI_Bcast", 3, &[0, 2, double(), value(3, 1), world()]);
        match how(4) {
            How::Drop => {}
            How::Function(name) => {
                own.call(name, 4, &[world()]);
            }
            how => {
                let count = if let How::Value(count) = how { count } else { 8 };
                own.call("MPI_Allreduce", 4, &[0, 64, count, double(), sum(), world()]);
            }
        }
        own.call("MPI_Gather", 5, &[0, value(5, 3), double(), 64, 3, double(), 0, world()]);
        let op = if how(6) == How::Not { sum() } else { predefined(ObjectKind::Op, "MPI_MAX") };
        own.call("MPI_Reduce", 6, &[0, 64, 1, double(), op, 0, world()]);
        let blocks = [0, value(7, 2), double(), 64, 2, double(), world()];
        own.call("MPI_Alltoall", 7, &blocks);
    }
}

/// The only fault of the changed program: rank, function, kind.
#[track_caller]
fn only(change: Change) -> (u32, &'static str, Problem) {
    let found = faults(4, |own| steps(own, 4, change));
    let [one] = &found[..] else { panic!("{found:#?}") };
    (one.rank, one.function.name(), one.problem.clone())
}

#[test]
fn a_program_without_faults_has_none() {
    assert_eq!(faults(4, |own| steps(own, 4, Change::default())), []);
    let alone = faults(1, |own| {
        own.call("MPI_Barrier", 1, &[world()]);
    });
    assert_eq!(alone, []);
}

#[test]
fn a_dropped_send_is_found_with_the_receive_that_hangs() {
    let found = faults(4, |own| steps(own, 4, Change { rank: 2, step: 3, line: 1, how: How::Drop }));
    let hang = &found[0];
    assert_eq!((hang.rank, hang.function.name(), hang.problem.kind()), (3, "MPI_Recv", Kind::Hang));
    assert!(matches!(
        hang.problem,
        Problem::WaitsForMessage { envelope: Envelope { from: 2, to: 3, tag: 7, .. }, .. }
    ));
}

#[test]
fn other_counts_roots_and_operations_are_found() {
    let change = |line, how| Change { rank: 2, step: 3, line, how };
    let (rank, function, problem) = only(change(1, How::Value(5)));
    assert_eq!((rank, function, problem.kind()), (3, "MPI_Recv", Kind::Truncation));
    assert!(matches!(problem, Problem::Truncated { bytes: Some((40, 32)), .. }));
    let (rank, function, problem) = only(change(3, How::Value(0)));
    assert_eq!((rank, function), (2, "MPI_Bcast"));
    assert_eq!(problem, Problem::Root(Against { own: 0, rank: 0, other: 1 }));
    let (rank, function, problem) = only(change(4, How::Value(9)));
    assert_eq!((rank, function), (2, "MPI_Allreduce"));
    assert_eq!(problem, Problem::Count(Against { own: 72, rank: 0, other: 64 }));
    let (rank, _, problem) = only(change(5, How::Value(2)));
    assert_eq!((rank, problem), (2, Problem::Count(Against { own: 16, rank: 0, other: 24 })));
    let (rank, function, problem) = only(change(6, How::Value(0)));
    assert_eq!((rank, function), (2, "MPI_Reduce"));
    assert!(matches!(problem, Problem::Operation(against) if against.own == "MPI_MAX"));
    let (_, function, problem) = only(change(7, How::Value(1)));
    assert_eq!((function, problem.kind()), ("MPI_Alltoall", Kind::Count));
    let (rank, function, problem) = only(change(4, How::Function("MPI_Barrier")));
    assert_eq!((rank, function), (2, "MPI_Barrier"));
    assert!(matches!(problem, Problem::Order(against) if against.other.name() == "MPI_Allreduce"));
}

#[test]
fn elements_of_one_size_and_another_meaning_are_found() {
    let of = |name: &str| predefined(ObjectKind::Type, name);
    let reduce = |odd: &'static str| {
        faults(3, move |own| {
            let own_type = of(if own.rank() == 1 { odd } else { "MPI_INT" });
            own.call("MPI_Allreduce", 1, &[0, 64, 4, own_type, sum(), world()]);
            own.call("MPI_Bcast", 2, &[0, 1, own_type, 0, world()]);
            // Of nothing the type is no matter.
            own.call("MPI_Bcast", 3, &[0, 0, own_type, 0, world()]);
        })
    };
    let found = reduce("MPI_FLOAT");
    let kinds: Vec<_> = found.iter().map(|one| (one.rank, one.function.name(), one.problem.kind())).collect();
    assert_eq!(kinds, [(1, "MPI_Allreduce", Kind::Type), (1, "MPI_Bcast", Kind::Type)], "{found:#?}");
    assert_eq!(reduce("MPI_INTEGER"), [], "the same in another language");
    let found = faults(2, |own| {
        match own.rank() {
            0 => own.call("MPI_Send", 1, &[0, 4, of("MPI_FLOAT"), 1, 7, world()]),
            _ => own.call("MPI_Recv", 2, &[0, 4, of("MPI_INT"), 0, 7, world(), status_word(0, 7)]),
        };
    });
    assert!(matches!(&found[..], [Finding { rank: 1, problem: Problem::Elements { .. }, .. }]), "{found:#?}");
}

#[test]
fn windows_files_groups_and_handlers_that_are_left_are_found() {
    let found = faults(1, |own| {
        let null = |kind, name| predefined(kind, name);
        // Words: base, size, unit, info, communicator, window.
        own.call("MPI_Win_create", 1, &[0, 80, 8, null(ObjectKind::Info, "MPI_INFO_NULL"), world(), 3]);
        // The same group twice, as some libraries give it.
        for word in [4, 4] {
            own.call("MPI_Comm_group", 2, &[world(), word]);
        }
        own.call("MPI_Group_free", 3, &[4, null(ObjectKind::Group, "MPI_GROUP_NULL")]);
        own.call("MPI_Comm_create_errhandler", 4, &[0, 6]);
    });
    let of = |one: &Finding| (one.function.name(), one.problem.kind(), one.problem.is_fault());
    let mut all: Vec<_> = found.iter().map(of).collect();
    all.sort_unstable_by_key(|one| (!one.2, one.0));
    let leak = Kind::Leak;
    let expected = [
        ("MPI_Comm_group", leak, true),
        ("MPI_Win_create", leak, true),
        ("MPI_Comm_create_errhandler", leak, false),
    ];
    assert_eq!(all, expected);
}

#[test]
fn fewer_bytes_than_room_are_no_fault() {
    let change = Change { rank: 2, step: 3, line: 1, how: How::Value(3) };
    assert_eq!(faults(4, |own| steps(own, 4, change)), []);
}

#[test]
fn a_dropped_collective_is_found() {
    let found = faults(4, |own| steps(own, 4, Change { rank: 2, step: 3, line: 4, how: How::Drop }));
    let order = found.iter().find(|one| one.problem.kind() == Kind::Order).expect("an order");
    assert_eq!((order.rank, order.function.name()), (2, "MPI_Gather"), "{found:#?}");
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    let found = faults(2, |own| {
        let other = 1 - i64::from(own.rank());
        own.receive(1, other, other, 1, world());
        own.send(2, other, 1, world());
    });
    let hangs: Vec<u32> =
        found.iter().filter(|one| one.problem.kind() == Kind::Hang).map(|one| one.rank).collect();
    assert_eq!(hangs, [0, 1], "{found:#?}");
}

#[test]
fn a_communicator_that_a_rank_does_not_make_is_named_behind_those_that_all_made() {
    let found = faults(4, |own| {
        let rank = own.rank();
        own.comm(1, 4, rank);
        own.call("MPI_Comm_dup", 1, &[world(), 1]);
        own.call("MPI_Barrier", 2, &[1]);
        if rank != 1 {
            own.comm(2, 4, rank);
            own.call("MPI_Comm_dup", 3, &[world(), 2]);
            own.call("MPI_Comm_free", 4, &[2, predefined(ObjectKind::Comm, "MPI_COMM_NULL")]);
        }
        own.call("MPI_Comm_free", 5, &[1, predefined(ObjectKind::Comm, "MPI_COMM_NULL")]);
    });
    let of = |one: &Finding| (one.rank, one.function.name(), one.problem.kind());
    let named: Vec<_> = found.iter().map(of).collect();
    assert_eq!(named, [0, 2, 3].map(|rank| (rank, "MPI_Comm_dup", Kind::Hang)), "{found:#?}");
}

#[test]
fn leaks_and_messages_without_a_receive_are_found() {
    let found = faults(2, |own| {
        let rank = own.rank();
        if rank == 0 {
            own.send(1, 1, 1, world());
            // Words: buffer, count, type, destination, tag, communicator, slot.
            own.call("MPI_Isend", 2, &[0, 1, double(), 1, 9, world(), 0]);
        }
        for word in 1..4 {
            own.comm(word, 2, rank);
            own.call("MPI_Comm_dup", 3, &[world(), word]);
        }
        own.call("MPI_Comm_free", 4, &[1, predefined(ObjectKind::Comm, "MPI_COMM_NULL")]);
        own.call("MPI_Type_contiguous", 5, &[2, double(), 7]);
        own.call("MPI_Type_commit", 6, &[7, 7]);
    });
    let of = |kind: Kind| -> Vec<(u32, &str)> {
        found
            .iter()
            .filter(|one| one.problem.kind() == kind && one.problem.is_fault())
            .map(|one| (one.rank, one.function.name()))
            .collect()
    };
    assert_eq!(of(Kind::UnmatchedSend), [(0, "MPI_Send"), (0, "MPI_Isend")], "{found:#?}");
    assert_eq!(of(Kind::Leak), [(0, "MPI_Isend"), (0, "MPI_Comm_dup"), (1, "MPI_Comm_dup")], "{found:#?}");
    // The only datatype is left to the end, and no datatype is freed: a habit.
    let notes: Vec<&str> =
        found.iter().filter(|one| !one.problem.is_fault()).map(|one| one.function.name()).collect();
    assert_eq!(notes, ["MPI_Type_contiguous", "MPI_Type_contiguous"]);
}

#[test]
fn behind_a_gap_nothing_is_judged() {
    let found = faults(3, |own| {
        let (rank, ranks) = (own.rank(), 3);
        let (next, before) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
        for step in 0..6 {
            if (rank, step) == (1, 3) {
                own.gap();
            } else {
                own.send(1, next.into(), 1, world());
            }
            own.receive(2, before.into(), before.into(), 1, world());
            own.call("MPI_Barrier", 3, &[world()]);
        }
    });
    assert_eq!(found, []);
}
