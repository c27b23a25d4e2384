//! Messages and patterns of synthetic programs.

use ampl_analysis::messages::{Comm, Kind};
use ampl_analysis::topology::printed;
use ampl_core::mpi::ObjectKind;
use ampl_testkit::runs::{Caller, predefined, world};

use crate::common::{Job, NOBODY, around, names};

fn double() -> u64 {
    predefined(ObjectKind::Type, "MPI_DOUBLE")
}

/// An exchange with the neighbours of a renumbered grid, some from other lines than others.
fn stencil(caller: &mut Caller, size: u32, steps: u32) {
    let ranks = size * size;
    let near = around(caller.rank(), size, |place| place * 5 % ranks);
    for _ in 0..steps {
        for (line, &to) in (10..).zip(&near) {
            if to != NOBODY {
                caller.send(line, to, 100, world());
            }
        }
        for (line, &from) in (20..).zip(&near) {
            if from != NOBODY {
                caller.receive(line, from, from, 100, world());
            }
        }
    }
}

#[test]
fn a_renumbered_stencil_is_its_grid_with_exact_counts() {
    let job = Job::of(16, |caller| stencil(caller, 4, 25));
    let messages = job.messages();
    assert!(messages.is_complete());
    let total = messages.total();
    assert_eq!((total.messages, total.bytes), (48 * 25, 48 * 25 * 800));
    assert_eq!(messages.matrix().len(), 48);
    let found = job.found();
    assert_eq!(names(&found), ["1 grid 4x4"]);
    // Messages both ways of every edge.
    assert!(found[0].edges.iter().all(|edge| (edge.2.messages, edge.2.bytes) == (50.0, 40_000.0)));
    let copy = &found[0].topology.patterns[0].copies[0];
    assert_eq!(copy.ranks, (0..16).collect::<Vec<u32>>());
}

#[test]
fn one_line_that_sends_everywhere_is_enough() {
    let job = Job::of(36, |caller| {
        for to in around(caller.rank(), 6, |place| place * 7 % 36) {
            caller.send(10, to, 3, world());
        }
    });
    assert_eq!(names(&job.found()), ["1 grid 6x6"]);
    assert_eq!(job.messages().total().messages, 2 * 2 * 30);
}

#[test]
fn a_grid_and_a_tree_are_two_patterns_with_their_shares() {
    let job = Job::of(64, |caller| {
        let rank = caller.rank();
        for _ in 0..10 {
            for (line, &to) in (10..).zip(&around(rank, 8, |place| place)) {
                caller.send(line, to, 100, world());
            }
            // To the parent in a binary tree.
            if rank > 0 {
                caller.send(30, i64::from((rank - 1) / 2), 1, world());
            }
        }
    });
    let found = job.found();
    assert_eq!(names(&found), ["1 grid 8x8", "1 tree 64"]);
    let bytes = |at: usize| found[at].edges.iter().map(|edge| edge.2.bytes).sum::<f64>();
    assert_eq!((bytes(0), bytes(1)), (112.0 * 2.0 * 10.0 * 800.0, 63.0 * 10.0 * 8.0));
    assert_eq!((found[0].places.len(), found[1].places.len()), (4, 1));
}

#[test]
fn grids_in_parts_of_the_world_are_copies() {
    let job = Job::of(64, |caller| {
        let rank = caller.rank();
        // Every fourth rank, backwards.
        caller.split(u64::from(rank % 4), u64::from(64 - rank), 1, (16, 15 - rank / 4));
        let own = 15 - rank / 4;
        for (line, &to) in (10..).zip(&around(own, 4, |place| place)) {
            caller.send(line, to, 100, 1);
        }
    });
    assert!(job.messages().places.iter().all(|place| matches!(place.comm, Comm::Made(_))));
    assert_eq!(names(&job.found()), ["4 grid 4x4"]);
    let edges = job.messages().matrix();
    assert!(edges.iter().all(|edge| edge.from % 4 == edge.to % 4), "communicators' ranks are the world's");
}

#[test]
fn a_tree_of_all_ranks_does_not_join_the_grids_of_some() {
    let job = Job::of(16, |caller| {
        let rank = caller.rank();
        caller.split(u64::from(rank / 4), 0, 1, (4, rank % 4));
        for (line, &to) in (10..).zip(&around(rank % 4, 2, |place| place)) {
            caller.send(line, to, 100, 1);
        }
        // To the parent in a binomial tree: with these edges the four grids are one of 4 x 2 x 2.
        if rank > 0 {
            caller.send(30, i64::from(rank ^ 1 << rank.ilog2()), 10, world());
        }
    });
    let mut found = names(&job.found());
    found.sort();
    assert_eq!(found, ["1 binomial-tree 16", "4 grid 2x2"]);
}

#[test]
fn rows_and_columns_are_joined_to_a_grid() {
    let job = Job::of(16, |caller| {
        let rank = caller.rank();
        // Rows of four in communicators of their own, columns through the world.
        caller.split(u64::from(rank / 4), 0, 1, (4, rank % 4));
        caller.send(10, i64::from((rank + 1) % 4), 100, 1);
        caller.send(11, i64::from((rank + 4) % 16), 100, world());
    });
    assert_eq!(names(&job.found()), ["1 torus 4x4"]);
}

#[test]
fn lines_along_axes_tell_a_torus_from_a_cube() {
    for step in [1, 3, 5, 7, 11] {
        let job = Job::of(16, |caller| {
            let place = (0..16).find(|place| place * step % 16 == caller.rank()).unwrap();
            let number = |x: u32, y: u32| i64::from((x % 4 * 4 + y % 4) * step % 16);
            let (x, y) = (place / 4, place % 4);
            for (line, to) in
                (10..).zip([number(x + 1, y), number(x + 3, y), number(x, y + 1), number(x, y + 3)])
            {
                caller.send(line, to, 100, world());
            }
        });
        assert_eq!(names(&job.found()), ["1 torus 4x4"], "{step}");
        let job = Job::of(16, |caller| {
            let place = (0..16).find(|place| place * step % 16 == caller.rank()).unwrap();
            for bit in 0..4 {
                caller.send(10 + bit, i64::from((place ^ 1 << bit) * step % 16), 100, world());
            }
        });
        assert_eq!(names(&job.found()), ["1 hypercube 2x2x2x2"], "{step}");
    }
}

#[test]
fn one_line_on_two_communicators_is_told_apart() {
    let job = Job::of(64, |caller| {
        let rank = caller.rank();
        caller.split(u64::from(rank / 16), 0, 1, (16, rank % 16));
        for &to in &around(rank % 16, 4, |place| place) {
            caller.send(10, to, 100, 1);
        }
        let next = i64::from((rank + 1) % 64);
        caller.send(10, next, 50, world());
    });
    let mut found = names(&job.found());
    found.sort();
    assert_eq!(found, ["1 ring 64", "4 grid 4x4"]);
}

#[test]
fn a_ring_that_both_ways_of_a_line_make_is_one() {
    let job = Job::of(9, |caller| {
        let rank = i64::from(caller.rank());
        caller.send(10, (rank + 1) % 9, 5, world());
        caller.send(11, (rank + 8) % 9, 5, world());
        caller.send(12, (rank + 1) % 9, 500, world());
    });
    let found = job.found();
    assert_eq!(names(&found), ["1 ring 9"]);
    assert_eq!(found[0].places.len(), 3);
}

#[test]
fn what_coarse_levels_add_does_not_hide_the_cube() {
    // As NPB's MG on 16 ranks: along the last axis ever farther on coarser levels.
    let job = Job::of(16, |caller| {
        let rank = caller.rank();
        for _ in 0..20 {
            for bit in 0..2_u32 {
                caller.send(10, i64::from(rank ^ 1 << bit), 100, world());
            }
            for to in [rank + 4, rank + 12] {
                caller.send(11, i64::from(to % 16), 100, world());
            }
        }
        // The second and the fourth quarter.
        if rank & 4 > 0 {
            caller.send(11, i64::from(rank ^ 8), 2, world());
        }
    });
    let found = job.found();
    // The last axis is a ring of 4 by its numbers, and the others are no rings: a cube, of which the torus is an alias.
    assert_eq!(names(&found)[0], "1 hypercube 2x2x2x2");
    let pattern = &found[0].topology.patterns[0];
    assert_eq!(printed(pattern).aliases[0], pattern.shape);
    assert_eq!(pattern.shape.axes().iter().map(|axis| axis.size).collect::<Vec<_>>(), [4, 2, 2]);
    let all: f64 = found.iter().flat_map(|found| &found.edges).map(|edge| edge.2.bytes).sum();
    assert_eq!(all, job.messages().total().bytes as f64);
}

#[test]
fn master_and_workers_are_a_star() {
    let job = Job::of(7, |caller| {
        let rank = caller.rank();
        for worker in 1..7_i64 {
            if rank == 0 {
                caller.send(10, worker, 10, world());
            }
        }
        if rank > 0 {
            // From anyone, as its status says.
            caller.receive(20, -1, 0, 10, world());
            caller.send(21, 0, 1, world());
        }
    });
    assert_eq!(names(&job.found()), ["1 star 7"]);
    assert_eq!(job.messages().received_only, 0);
}

#[test]
fn receives_stand_for_sends_of_ranks_without_calls() {
    let whole = Job::of(6, |caller| {
        let rank = i64::from(caller.rank());
        for _ in 0..4 {
            caller.send(10, (rank + 1) % 6, 10, world());
            caller.receive(20, -1, (rank + 5) % 6, 10, world());
        }
    });
    let mut lacking = ampl_trace::structure::JobStructure::new(6);
    for rank in [0, 1, 3, 4, 5] {
        lacking.join(ampl_trace::structure::JobStructure::of(whole.structure.rank(rank).unwrap()));
    }
    let job = Job::with(6, lacking);
    let messages = job.messages();
    assert_eq!(
        (messages.missing.clone(), messages.received_only, messages.is_complete()),
        (vec![2], 4, false)
    );
    assert_eq!(messages.matrix(), whole.messages().matrix());
    assert_eq!(names(&job.found()), ["1 ring 6"]);
    // A rank that only counted for a while.
    let gaps = Job::of(4, |caller| {
        let rank = i64::from(caller.rank());
        if rank == 1 {
            caller.gap();
        } else {
            caller.send(10, (rank + 1) % 4, 10, world());
        }
        caller.receive(20, (rank + 3) % 4, (rank + 3) % 4, 10, world());
    });
    assert_eq!((gaps.messages().gaps, gaps.messages().received_only), (vec![1], 1));
    assert_eq!(names(&gaps.found()), ["1 ring 4"]);
}

#[test]
fn persistent_and_partitioned_sends_count_where_they_are_started() {
    let job = Job::of(4, |caller| {
        let next = u64::from((caller.rank() + 1) % 4);
        let made = |terminal: u32| ampl_trace::request::made(0, terminal, 0);
        let maker = caller.call("MPI_Send_init", 10, &[0, 10, double(), next, 7, world(), 0]);
        let info = predefined(ObjectKind::Info, "MPI_INFO_NULL");
        let parted = caller.call("MPI_Psend_init", 11, &[0, 2, 10, double(), next, 7, world(), info, 0]);
        for _ in 0..6 {
            caller.call("MPI_Start", 12, &[made(maker), made(maker)]);
            caller.call("MPI_Startall", 13, &[2, 2, made(maker), made(parted), 2, made(maker), made(parted)]);
            let status = ampl_trace::args::status_word(-1, -1);
            caller.call("MPI_Wait", 14, &[made(maker), made(maker), status]);
        }
    });
    let messages = job.messages();
    let total = messages.total();
    assert_eq!((total.messages, total.bytes), (4 * (12 + 6), 4 * (12 * 80 + 6 * 160)));
    assert_eq!(names(&job.found()), ["1 ring 4"]);
}

#[test]
fn neighbours_of_a_cartesian_communicator_exchange_messages() {
    let job = Job::of(12, |caller| {
        let rank = caller.rank();
        caller.comm(1, 12, rank);
        caller.call("MPI_Cart_create", 1, &[world(), 2, 2, 3, 4, 2, 0, 1, 0, 1]);
        for _ in 0..5 {
            caller.call("MPI_Neighbor_alltoall", 10, &[0, 2, double(), 16, 2, double(), 1]);
        }
    });
    let messages = job.messages();
    assert!(messages.places.iter().all(|place| place.kind == Kind::Neighbour));
    let found = job.found();
    assert_eq!(names(&found), ["1 torus 4x3"]);
    // 12 ranks: two along the ring of 4 each, and 16 ends along the line of 3.
    assert_eq!(messages.total().messages, 5 * (24 + 16));
    assert_eq!(messages.total().bytes, 5 * 40 * 16);
}

#[test]
fn access_to_windows_is_apart() {
    let job = Job::of(5, |caller| {
        let (rank, info) = (caller.rank(), predefined(ObjectKind::Info, "MPI_INFO_NULL"));
        caller.call("MPI_Win_create", 1, &[0, 80, 8, info, world(), 1]);
        let to = u64::from((rank + 1) % 5);
        caller.call("MPI_Put", 10, &[0, 10, double(), to, 0, 10, double(), 1]);
    });
    let messages = job.messages();
    assert!(messages.places.iter().all(|place| place.kind == Kind::OneSided));
    assert_eq!((messages.total().messages, messages.total().bytes), (5, 400));
    assert_eq!(names(&job.found()), ["1 ring 5"]);
}

#[test]
fn what_is_no_pattern_is_none_and_nothing_is_nothing() {
    let job = Job::of(12, |caller| {
        let rank = i64::from(caller.rank());
        for to in [(rank * rank + 3) % 12, (rank * 5 + 1) % 12, (rank * 7 + rank * rank) % 12] {
            caller.send(10, to, 10, world());
        }
    });
    assert!(names(&job.found()).contains(&"none".to_owned()));
    for ranks in [1, 3] {
        let quiet = Job::of(ranks, |caller| _ = caller.call("MPI_Barrier", 1, &[world()]));
        assert!(quiet.found().is_empty() && quiet.messages().is_complete());
    }
    let alone = Job::of(1, |caller| caller.send(3, 0, 1, world()));
    assert_eq!((alone.found().len(), alone.messages().total().messages), (0, 1));
}
