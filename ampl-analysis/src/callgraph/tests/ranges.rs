use std::collections::BTreeMap;

use ampl_trace::record::GAP;
use proptest::prelude::*;

use super::super::ranges::ByName;
use super::super::{Bound, CallGraph, Name, Options, Ranges, Span};
use super::naive::{Leaf, Program, everything, function, graph, naive, programs};

/// Calls and time by function, `None` for time between calls.
type Sums = BTreeMap<Option<u16>, (u64, u64)>;

fn expected(leaves: &[Leaf], (from, until): (i64, i64)) -> Sums {
    let mut sums = Sums::new();
    for leaf in leaves {
        let Some(duration) = leaf.duration_ns else { continue };
        let end = leaf.start_ns + duration as i64;
        let inside = end.min(until) - leaf.start_ns.max(from);
        let calls = if (from..until).contains(&end) { leaf.calls } else { 0 };
        let sum = sums.entry(leaf.function).or_default();
        *sum = (sum.0 + calls, sum.1 + inside.max(0) as u64);
    }
    sums.retain(|_, sum| *sum != (0, 0));
    sums
}

/// Calls and limits of time by function.
fn found(graph: &CallGraph, sums: &ByName) -> BTreeMap<Option<u16>, (u64, Span)> {
    let mut found = BTreeMap::new();
    for (name, own) in sums.iter().filter(|(_, own)| own.calls > 0 || own.time() != Span::default()) {
        let sum: &mut (u64, Span) = found.entry(function(graph.dag().names().get(*name))).or_default();
        sum.0 += own.calls;
        sum.1 += own.time();
    }
    found
}

fn leaves_of(programs: &[Program]) -> Vec<Vec<Leaf>> {
    let leaves = |(rank, program): (u32, &Program)| {
        let (trace, structure) = program.recorded(rank);
        naive(&trace, &structure)
    };
    (0..).zip(programs).map(leaves).collect()
}

fn stretch() -> impl Strategy<Value = (i64, i64)> {
    prop_oneof![
        (0i64..4_000_000, 1i64..3_000_000).prop_map(|(from, length)| (from, from + length)),
        (0i64..2000, 1i64..2000).prop_map(|(from, length)| (from, from + length)),
    ]
}

proptest! {
    #[test]
    fn stretches_have_the_calls_and_the_time_in_them(
        programs in prop::collection::vec(programs(), 1..4),
        stretches in prop::collection::vec(stretch(), 1..6),
        branching in 2usize..20,
        every in 1u32..6,
    ) {
        let graph = graph(&programs, Options { branching, ..Options::default() }, &everything());
        let leaves = leaves_of(&programs);
        let mut ranges = Ranges::new(&graph, every);
        // Twice: the second time from what is remembered.
        for &(from, until) in stretches.iter().chain(&stretches) {
            for ranks in [0..programs.len(), 0..1] {
                let some: Vec<Leaf> = leaves[ranks.clone()].concat();
                let sums = ranges.between(|rank| ranks.contains(&(rank as usize)), from, until);
                let exact = found(&graph, &sums).into_iter().map(|(name, (calls, span))| {
                    assert_eq!(span.low_ns, span.high_ns);
                    (name, (calls, span.low_ns))
                });
                prop_assert_eq!(exact.collect::<Sums>(), expected(&some, (from, until)));
            }
        }
        let all: BTreeMap<_, _> = graph.by_name(graph.ranks().iter().map(|rank| (rank.node, 1))).into_iter().collect();
        for (name, own) in ranges.whole(|_| true) {
            prop_assert_eq!(own.time(), all[&name].time());
            prop_assert_eq!((own.calls, own.missing, own.sent), (all[&name].calls, all[&name].missing, all[&name].sent));
        }
    }

    #[test]
    fn pixels_add_up(program in programs(), pixels in 1u32..40) {
        let graph = graph(std::slice::from_ref(&program), Options::default(), &everything());
        let mut ranges = Ranges::new(&graph, super::super::EVERY);
        let (from, until) = (50, 5_000_050);
        let parts = ranges.timeline(0, from, until, pixels);
        prop_assert_eq!(parts.len(), pixels as usize);
        let mut sums = Sums::new();
        for part in &parts {
            for (name, (calls, span)) in found(&graph, part) {
                let sum = sums.entry(name).or_default();
                *sum = (sum.0 + calls, sum.1 + span.low_ns);
            }
        }
        prop_assert_eq!(sums, expected(&leaves_of(&[program])[0], (from, until)));
    }

    #[test]
    fn limits_hold_where_times_were_merged(
        program in programs(),
        (from, until) in stretch(),
        relative in 0.01f64..0.6,
        absolute_ns in prop_oneof![Just(0u64), 1u64..2000],
    ) {
        let options = Options { bound: Bound { relative, absolute_ns }, ..Options::default() };
        let graph = graph(std::slice::from_ref(&program), options, &everything());
        let sums = found(&graph, &Ranges::new(&graph, 2).between(|_| true, from, until));
        let expected = expected(&leaves_of(&[program])[0], (from, until));
        for (name, (_, time)) in &expected {
            let span = sums.get(name).map_or(Span::default(), |sum| sum.1);
            prop_assert!(span.contains(*time), "{time} of {name:?} in {span:?}");
        }
        for (name, (_, span)) in &sums {
            let time = expected.get(name).map_or(0, |sum| sum.1);
            prop_assert!(span.contains(time), "{time} of {name:?} in {span:?}");
        }
    }
}

#[test]
fn shared_parts_are_remembered_once() {
    let program =
        Program { calls: [1, 2, 2, 3].repeat(4000), windows: vec![(16_000, true)], durations: vec![5] };
    let graph = graph(&vec![program; 50], Options::default(), &everything());
    let mut ranges = Ranges::new(&graph, 1);
    let all = ranges.whole(|_| true);
    let calls: u64 = all.iter().map(|(_, sums)| sums.calls).sum();
    assert_eq!(calls, 50 * 16_000);
    assert!(ranges.remembered() < 64, "{} of {}", ranges.remembered(), graph.dag().len());
    assert!(all.iter().all(|(name, _)| function(graph.dag().names().get(*name)) != Some(GAP)
        || matches!(graph.dag().names().get(*name), Name::Gap)));
}
#[test]
fn a_call_that_ends_where_a_window_begins_counts_there() {
    let program = Program {
        calls: vec![4; 60],
        windows: vec![(25, true), (34, true), (1, true)],
        durations: vec![3, 4],
    };
    let graph = graph(std::slice::from_ref(&program), Options::default(), &everything());
    let sums = Ranges::new(&graph, 1).between(|_| true, 527, 528);
    let calls: u64 = sums.iter().map(|(_, sums)| sums.calls).sum();
    assert_eq!(calls, 1);
}
