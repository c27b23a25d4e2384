use ampl_core::mpi::Function;
use ampl_reader::selection::Selection;
use ampl_trace::grammar::{Counts, Grammar, Item, Symbol};
use ampl_trace::record::GAP;
use ampl_trace::structure::{RankStructure, ThreadStructure};
use proptest::prelude::*;
use rustc_hash::FxHashMap;

use super::super::{Bound, Builder, CallGraph, Fault, Name, Options, Span};
use super::naive::{
    BEGIN, DOUBLES, END, Leaf, Program, everything, expand, function, graph, leaves, naive, programs,
};

fn options(relative: f64, absolute_ns: u64) -> Options {
    Options { bound: Bound { relative, absolute_ns }, ..Options::default() }
}

/// Sums of naive leaves: calls, timed calls, missing calls, time in calls and between them.
fn sums(leaves: &[Leaf]) -> (u64, u64, u64, u64, u64) {
    let mut sums = (0, 0, 0, 0, 0);
    for leaf in leaves {
        match (leaf.function, leaf.duration_ns) {
            (Some(GAP), _) => sums.2 += leaf.calls,
            (Some(_), duration) => {
                sums.0 += leaf.calls;
                sums.1 += duration.map_or(0, |_| leaf.calls);
                sums.3 += duration.unwrap_or(0);
            }
            (None, duration) => sums.4 += duration.unwrap_or(0),
        }
    }
    sums
}

/// Nodes of regions: ends without a begin have one, too.
fn regions(calls: &[u32]) -> usize {
    let (mut open, mut regions) = (0, 0);
    for &call in calls {
        match call {
            BEGIN => (open, regions) = (open + 1, regions + 1),
            END if open > 0 => open -= 1,
            END => regions += 1,
            _ => {}
        }
    }
    regions
}

fn assert_like(graph: &CallGraph, rank: usize, expected: &[Leaf], bound: Bound) -> Result<(), TestCaseError> {
    let found = leaves(graph, graph.ranks()[rank].node);
    prop_assert_eq!(found.len(), expected.len());
    for ((name, calls, span), leaf) in found.iter().zip(expected) {
        prop_assert_eq!((function(name), *calls), (leaf.function, leaf.calls));
        prop_assert_eq!(span.is_some(), leaf.duration_ns.is_some());
        if let Some((span, duration)) = span.zip(leaf.duration_ns) {
            prop_assert!(span.contains(duration), "{span:?} of {duration}");
            let most = (bound.relative * duration as f64).max(bound.absolute_ns as f64) + 1.0;
            prop_assert!(span.value_ns().abs_diff(duration) as f64 <= most);
            prop_assert!(!bound.is_exact() || span == Span::exact(duration));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn trees_have_all_calls_in_their_order(programs in prop::collection::vec(programs(), 1..4), branching in 2usize..20) {
        let options = Options { branching, ..Options::default() };
        let graph = graph(&programs, options, &everything());
        let mut all = Vec::new();
        for (rank, program) in programs.iter().enumerate() {
            let (trace, structure) = program.recorded(rank as u32);
            let expected = naive(&trace, &structure);
            assert_like(&graph, rank, &expected, Bound::default())?;
            all.extend(expected);
        }
        let found = graph.sums(graph.ranks().iter().map(|rank| (rank.node, 1)));
        let times = (found.inside, found.outside);
        let expected = sums(&all);
        prop_assert_eq!((found.calls, found.timed_calls, found.missing), (expected.0, expected.1, expected.2));
        prop_assert_eq!(times, (Span::exact(expected.3), Span::exact(expected.4)));
        let barrier = Function::by_name("MPI_Barrier").map(|function| function.0);
        let send = Function::by_name("MPI_Send").map(|function| function.0);
        let sends = all.iter().filter(|leaf| leaf.function == send).count() as u64;
        prop_assert_eq!((found.sent, found.received), (8 * DOUBLES * sends, 0));
        let unknown = all.iter().filter(|leaf| leaf.function.is_some_and(|own| own != GAP && Some(own) != send));
        // Failed polls move nothing.
        let poll = Function::by_name("MPI_Iprobe").map(|function| function.0);
        let unknown = unknown.filter(|leaf| leaf.function != poll && leaf.function != barrier);
        prop_assert_eq!(found.unsized_calls, unknown.map(|leaf| leaf.calls).sum::<u64>());
        let nodes = graph.metrics().nodes_uncompressed;
        let regions = programs.iter().map(|program| regions(&program.calls)).sum::<usize>();
        prop_assert_eq!(nodes, (all.len() + regions + 2 * programs.len()) as u64);
        for (rank, program) in graph.ranks().iter().zip(&programs) {
            let edges = expand(&graph, rank.node).into_iter().filter_map(Result::err).map(|edge| edge.1);
            let expected = program.calls.iter().filter(|&&call| call == BEGIN || call == END);
            prop_assert_eq!(edges.collect::<Vec<_>>(), expected.map(|&call| call == BEGIN).collect::<Vec<_>>());
        }
        for node in 0..graph.dag().len() {
            prop_assert!(graph.dag().parts(node as u32).len() <= branching);
        }
    }

    #[test]
    fn similar_times_share_nodes_within_the_bound(
        programs in prop::collection::vec(programs(), 1..4),
        relative in prop_oneof![Just(0.0), 0.01f64..0.6],
        absolute_ns in prop_oneof![Just(0u64), 1u64..2000],
    ) {
        let bound = Bound { relative, absolute_ns };
        let similar = graph(&programs, options(relative, absolute_ns), &everything());
        let exact = graph(&programs, Options::default(), &everything());
        let mut all = Vec::new();
        for (rank, program) in programs.iter().enumerate() {
            let (trace, structure) = program.recorded(rank as u32);
            let expected = naive(&trace, &structure);
            assert_like(&similar, rank, &expected, bound)?;
            all.extend(expected);
        }
        prop_assert!(similar.dag().len() <= exact.dag().len());
        prop_assert_eq!(similar.metrics().nodes_uncompressed, exact.metrics().nodes_uncompressed);
        let found = similar.sums(similar.ranks().iter().map(|rank| (rank.node, 1)));
        let expected = sums(&all);
        prop_assert_eq!((found.calls, found.timed_calls), (expected.0, expected.1));
        prop_assert!(found.inside.contains(expected.3) && found.outside.contains(expected.4));
    }

    #[test]
    fn a_stretch_of_time_has_its_calls(program in programs(), from in 0i64..4_000_000, length in 1i64..3_000_000) {
        let selection = Selection::new(Some(from), Some(from + length), None).unwrap();
        let (trace, structure) = program.recorded(0);
        let mut expected = Vec::new();
        for leaf in naive(&trace, &structure) {
            let Some(duration_ns) = leaf.duration_ns else { continue };
            let end_ns = leaf.start_ns + duration_ns as i64;
            // Time counts as far as it is asked for, and a call where it ends.
            let duration_ns = selection.overlap_ns(leaf.start_ns, end_ns);
            let counts = leaf.function.is_some() && selection.has(end_ns);
            if counts || duration_ns > 0 {
                let calls = if counts { leaf.calls } else { 0 };
                expected.push(Leaf { calls, duration_ns: Some(duration_ns), ..leaf });
            }
        }
        let graph = graph(&[program], Options::default(), &selection);
        assert_like(&graph, 0, &expected, Bound::default())?;
    }

    #[test]
    fn estimates_weigh_each_window(program in programs()) {
        let (trace, structure) = program.recorded(0);
        let mut expected = 0.0;
        let mut decoder = ampl_trace::timing::Decoder::new(&trace.times).unwrap();
        ampl_trace::timed::for_each(&structure, &mut decoder, |window, _, time| {
            expected += (1.0 + window.window as f64) * time.duration_ns as f64;
        }).unwrap();
        let graph = graph(&[program], Options::default(), &everything());
        let found = graph.sums([(graph.ranks()[0].node, 1)]);
        prop_assert!((found.inside_estimate_ns - expected).abs() <= 1e-9 * expected, "{found:?}");
    }
}

/// A rank whose thread has that grammar over the terminals of [`Program`].
fn of_grammar(grammar: &Grammar) -> CallGraph {
    let empty = Program { calls: vec![0], windows: Vec::new(), durations: vec![1] };
    let (trace, structure) = empty.recorded(0);
    let signatures = structure.threads[0].signatures.clone();
    let thread = ThreadStructure { thread: 0, signatures, grammar: grammar.clone() };
    let structure = RankStructure { rank: 0, threads: vec![thread], ..RankStructure::default() };
    let mut builder = Builder::new(Options::default(), everything());
    let trace = ampl_trace::RankTrace { gaps: ampl_trace::gaps::Gaps::default(), ..trace };
    builder.rank(&trace, &structure, &FxHashMap::default(), 1);
    builder.finish()
}

fn item(symbol: Symbol, counts: &[(u64, u64)]) -> Item {
    Item { symbol, counts: Counts::from(counts) }
}

fn rule(number: u32) -> Symbol {
    Symbol(number << 1 | 1)
}

#[test]
fn huge_repetition_counts_are_numbers() {
    const MANY: u64 = 1_000_000_000;
    let [send, receive] = [1, 2].map(Symbol::terminal);
    for (outer, inner) in [(MANY, 1), (MANY, MANY), (1 << 40, 1 << 20)] {
        let grammar = Grammar {
            rules: [
                vec![item(rule(1), &[(outer, 1)])],
                vec![item(send, &[(inner, outer)]), item(receive, &[(1, outer)])],
            ]
            .into_iter()
            .collect(),
        };
        let graph = of_grammar(&grammar);
        let sums = graph.sums([(graph.ranks()[0].node, 1)]);
        assert_eq!(sums.calls, outer.saturating_mul(inner + 1));
        assert!(graph.dag().len() < 24, "{}", graph.dag().len());
    }
    // Counts that differ between expansions, each for very long.
    let grammar = Grammar {
        rules: [
            vec![item(rule(1), &[(2 * MANY, 1)])],
            vec![item(send, &[(3, MANY), (4, MANY)]), item(receive, &[(1, 2 * MANY)])],
        ]
        .into_iter()
        .collect(),
    };
    let graph = of_grammar(&grammar);
    assert_eq!(graph.sums([(graph.ranks()[0].node, 1)]).calls, 9 * MANY);
    assert!(graph.dag().len() < 24, "{}", graph.dag().len());
}

#[test]
fn rules_may_nest_deeply() {
    const DEEP: u32 = 100_000;
    let last = [1, 2].map(|terminal| item(Symbol::terminal(terminal), &[(1, 0)]));
    for varies in [false, true] {
        let mut rules = Vec::new();
        for number in 0..DEEP {
            let own = item(Symbol::terminal(1), &[(1, 1)]);
            rules.push(match number + 1 {
                DEEP => last.clone().map(|item| Item { counts: Counts::from([(1, 1)]), ..item }).to_vec(),
                inner => vec![own, item(rule(inner), &[(1, 1)])],
            });
        }
        if varies {
            rules[0][1].counts = Counts::from([(2, 1)]);
            for rule in &mut rules[1..] {
                rule.iter_mut().for_each(|item| item.counts = Counts::from([(1, 2)]));
            }
            rules[DEEP as usize - 1][0].counts = Counts::from(&[(1, 1), (2, 1)][..]);
        }
        let graph = of_grammar(&Grammar { rules: rules.into_iter().collect() });
        assert_eq!(graph.faults(), []);
        let calls = graph.sums([(graph.ranks()[0].node, 1)]).calls;
        assert_eq!(calls, if varies { 2 * u64::from(DEEP) + 2 } else { u64::from(DEEP) + 1 });
    }
}

#[test]
fn ranks_that_call_alike_share_all_nodes() {
    let program = Program { calls: [1, 2, 2, 3].repeat(500), windows: Vec::new(), durations: vec![1] };
    let one = graph(std::slice::from_ref(&program), Options::default(), &everything());
    let many = graph(&vec![program; 100], Options::default(), &everything());
    assert_eq!(many.dag().len(), one.dag().len());
    assert_eq!(many.metrics().nodes_uncompressed, 100 * one.metrics().nodes_uncompressed);
    assert!(many.metrics().r_n() > 5000.0 && many.metrics().r_m() > 5000.0);
}

#[test]
fn nothing_is_a_tree_too() {
    let empty = Program { calls: Vec::new(), windows: vec![(3, true)], durations: vec![1] };
    let graph = graph(&[empty], Options::default(), &everything());
    // The two calls behind the last.
    assert_eq!(leaves(&graph, graph.ranks()[0].node), [(Name::Gap, 1, None), (Name::Gap, 1, None)]);
    let none = Builder::new(Options::default(), everything()).finish();
    assert_eq!((none.metrics().nodes_uncompressed, none.ranks().len()), (0, 0));
}

#[test]
fn damage_is_reported() {
    let program = Program { calls: vec![1; 40], windows: vec![(40, true)], durations: vec![5, 9, 2] };
    let (mut trace, mut structure) = program.recorded(3);
    trace.times.truncate(trace.times.len() / 2);
    let mut builder = Builder::new(Options::default(), everything());
    builder.rank(&trace, &structure, &FxHashMap::default(), 4);
    structure.threads[0].grammar.rules.push([item(rule(1), &[(1, 1)])]);
    builder.rank(&trace, &structure, &FxHashMap::default(), 4);
    let graph = builder.finish();
    assert_eq!((graph.damaged(), graph.faults()), (&[3][..], &[(3, Fault::Malformed)][..]));
    assert_eq!(graph.sums([(graph.ranks()[0].node, 1)]).calls, 40);
}
