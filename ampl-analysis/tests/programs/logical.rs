//! Logical programs of synthetic runs: every rank's calls come back.

use ampl_analysis::logical::{Node, Partner, Values};
use ampl_core::value::PROC_NULL;
use ampl_testkit::runs::world;
use proptest::prelude::*;

use crate::common::{Job, NOBODY, around};

fn exact(job: &Job) {
    let check = job.check();
    assert_eq!(check.ranks, job.ranks);
    assert_eq!(check.outline.ranks_exact, job.ranks, "{check:?}");
    assert_eq!(check.values.ranks_exact, job.ranks, "{check:?}");
    assert_eq!((check.values.calls_lost, check.values.calls_extra, check.values.bytes_lost), (0, 0, 0));
}

/// A stencil: ranks at the edge leave calls out, or call for no rank.
fn stencil(leaves_out: bool) -> Job {
    Job::of(25, |caller| {
        let near = around(caller.rank(), 5, |place| place * 3 % 25);
        for step in 0..40 {
            for (line, &to) in (10..).zip(&near) {
                if !leaves_out || to != NOBODY {
                    caller.send(line, to, 100, world());
                }
            }
            for (line, &from) in (20..).zip(&near) {
                if !leaves_out || from != NOBODY {
                    caller.receive(line, from, from, 100, world());
                }
            }
            if step % 10 == 9 {
                caller.call("MPI_Barrier", 30, &[world()]);
            }
        }
    })
}

#[test]
fn a_stencil_is_one_short_program_by_directions() {
    for leaves_out in [true, false] {
        let job = stencil(leaves_out);
        exact(&job);
        let program = job.program();
        // Four sends, four receives, a barrier: each once, whatever ranks leave out.
        assert_eq!(program.records(), 9, "{leaves_out}: {:#?}", program.threads[0].body);
        let rules: Vec<&Partner> = program
            .calls
            .iter()
            .flat_map(|call| call.partners())
            .map(|values| match values {
                Values::Rule(rule) => rule,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(rules.iter().all(|rule| matches!(rule, Partner::Shift(_)) && program.space.is_inside(rule)));
        let mut names: Vec<String> = rules.iter().map(|rule| program.space.name(rule)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names, ["+x", "+y", "-x", "-y"]);
        let check = job.check();
        assert_eq!((check.calls_outside, check.bytes_outside), (0, 0));
    }
}

#[test]
fn guards_are_the_ranks_that_have_the_neighbour() {
    let program = stencil(true).program();
    let thread = &program.threads[0];
    fn visit<'a>(nodes: &'a [Node], found: &mut Vec<&'a Node>) {
        for node in nodes {
            match node {
                Node::Call { .. } => found.push(node),
                Node::Loop { body, .. } => visit(body, found),
            }
        }
    }
    let mut calls = Vec::new();
    visit(&thread.body, &mut calls);
    let mut guarded = 0;
    for node in calls {
        let Node::Call { label, uses } = node else { unreachable!() };
        let mut ranks: Vec<u32> =
            uses.iter().flat_map(|used| thread.classes[used.class as usize].ranks.iter().copied()).collect();
        ranks.sort_unstable();
        let Some(Values::Rule(rule)) = program.calls[*label as usize].partners().next() else { continue };
        let has = |rank: &u32| program.space.partner(rule, *rank, 25) != Some(PROC_NULL);
        assert_eq!(ranks, (0..25).filter(has).collect::<Vec<u32>>());
        guarded += 1;
    }
    assert_eq!(guarded, 8);
}

#[test]
fn master_and_workers_come_back() {
    let job = Job::of(9, |caller| {
        let rank = caller.rank();
        if rank == 0 {
            for task in 0..60_i64 {
                caller.send(10, 1 + task * task % 8, 10, world());
            }
            for worker in 1..9 {
                caller.receive(11, -1, worker, 1, world());
            }
        } else {
            for _ in 0..(0..60).filter(|task| 1 + task * task % 8 == rank).count() {
                caller.receive(20, 0, 0, 10, world());
            }
            caller.send(21, 0, 1, world());
        }
        caller.call("MPI_Finalize", 30, &[]);
    });
    exact(&job);
}

#[test]
fn counts_that_differ_between_ranks_and_steps_come_back() {
    let job = Job::of(8, |caller| {
        let rank = caller.rank();
        for step in 0..30_u32 {
            for _ in 0..(step * step + rank) % 4 {
                caller.send(10, i64::from((rank + 1) % 8), 10 + u64::from(rank), world());
            }
            caller.call("MPI_Barrier", 11, &[world()]);
        }
    });
    exact(&job);
    assert!(job.check().values.ranks_exact == 8);
}

#[test]
fn a_rank_without_calls_is_named() {
    let whole = stencil(true);
    let mut lacking = ampl_trace::structure::JobStructure::new(25);
    for rank in (0..25).filter(|rank| *rank != 7) {
        lacking.join(ampl_trace::structure::JobStructure::of(whole.structure.rank(rank).unwrap()));
    }
    let job = Job::with(25, lacking);
    let program = job.program();
    assert_eq!(program.missing, [7]);
    assert!(program.runs(7).is_empty());
    assert_eq!(job.check().values.ranks_exact, 24);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever ranks call, every rank's sequence comes back.
    #[test]
    fn any_calls_come_back(
        ranks in 1_u32..7,
        scripts in prop::collection::vec(prop::collection::vec((0_u64..4, -3_i64..6, 0_u64..3), 0..40), 1..4),
    ) {
        let job = Job::of(ranks, |caller| {
            let own = &scripts[caller.rank() as usize % scripts.len()];
            for &(line, to, count) in own {
                let to = if to >= 0 { to % i64::from(ranks) } else { NOBODY };
                match line {
                    0 => _ = caller.call("MPI_Barrier", 5, &[world()]),
                    _ => caller.send(line, to, count, world()),
                }
            }
        });
        let check = job.check();
        prop_assert_eq!(check.values.ranks_exact, check.ranks);
        prop_assert_eq!(check.outline.ranks_exact, check.ranks);
        for rank in 0..ranks {
            let made: u64 = job.program().runs(rank).iter().map(|run| run.2).sum();
            prop_assert_eq!(made, scripts[rank as usize % scripts.len()].len() as u64);
        }
    }
}
