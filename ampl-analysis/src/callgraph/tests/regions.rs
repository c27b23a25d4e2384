//! Regions: what is built of begins, ends and calls has them in their order.

use ampl_trace::grammar::{Builder as Sequence, Grammar};
use ampl_trace::timing::Terminal;
use proptest::prelude::*;

use super::super::dag::{Dag, Facts};
use super::super::fragment::{DEEPEST, Fault};
use super::super::graph::RankTree;
use super::super::times::{Entry, Times};
use super::super::walk::{Call, Token, Walk};
use super::super::{Bound, CallGraph, Name, Region, RegionName};
use super::naive::expand;

struct Untimed;

impl Times for Untimed {
    fn next(&self) -> Option<u64> {
        None
    }
    fn take(&mut self, _: Terminal) -> Option<Entry> {
        None
    }
    fn outside(&mut self, _: &mut Dag, _: &Entry) -> u32 {
        0
    }
}

const REGIONS: u32 = 3;
/// Terminals: begins, ends, one call.
const CALL: u32 = 2 * REGIONS;

fn tree(grammar: &Grammar) -> Result<CallGraph, Fault> {
    let mut dag = Dag::new(Bound::default(), 4);
    let region = |dag: &mut Dag, number: u32| {
        let region = Region { name: RegionName::Given(number.to_string()), begins: true, ends: true };
        dag.names_mut().id(Name::Region(region))
    };
    let mut tokens: Vec<Token> = (0..REGIONS).map(|own| Token::Begin(region(&mut dag, own))).collect();
    tokens.extend((0..REGIONS).map(|own| Token::End(region(&mut dag, own))));
    let name = dag.names_mut().id(Name::Outside);
    let node = dag.put_leaf(name, Facts::untimed(1, None), 0);
    let (untimed, bytes) = (Some(node), None);
    tokens.push(Token::Call(Call { name, bytes, untimed, like: 0, folds: false, returns: true }));
    let list = Walk::new(&mut dag, grammar, &tokens, &mut Untimed)?.whole()?.finish(&mut dag);
    let name = dag.names_mut().id(Name::Rank);
    let node = dag.put(name, &list);
    let rank = RankTree { rank: 0, node };
    Ok(CallGraph::new(dag, Bound::default(), vec![rank], Vec::new(), Vec::new()))
}

/// The terminals that a tree stands for.
fn terminals(graph: &CallGraph) -> Vec<u32> {
    let terminal = |step: Result<_, (String, bool)>| match step {
        Ok(_) => CALL,
        Err((name, begins)) => name.parse::<u32>().unwrap() + if begins { 0 } else { REGIONS },
    };
    expand(graph, graph.ranks()[0].node).into_iter().map(terminal).collect()
}

fn grammar(terminals: &[u32]) -> Grammar {
    let mut builder = Sequence::new();
    terminals.iter().for_each(|&terminal| builder.push(terminal, 1));
    builder.into_grammar()
}

/// A balanced sequence: regions in regions, repeated.
fn balanced() -> impl Strategy<Value = Vec<u32>> {
    let leaf = prop_oneof![Just(vec![CALL]), Just(Vec::new())];
    leaf.prop_recursive(6, 200, 5, |inner| {
        let inside = (prop::collection::vec(inner, 0..5), 0..REGIONS + 1, 1usize..12);
        inside.prop_map(|(parts, region, times)| {
            let inner = parts.concat();
            let one = match region {
                REGIONS => inner,
                region => [vec![region], inner, vec![region + REGIONS]].concat(),
            };
            one.repeat(times.min(1 + 3000 / (one.len() + 1)))
        })
    })
}

proptest! {
    #[test]
    fn regions_nest_as_they_did(terminals_of in balanced()) {
        let graph = tree(&grammar(&terminals_of)).unwrap();
        prop_assert_eq!(terminals(&graph), terminals_of);
        let names = graph.dag().names().all();
        let is_whole = |name: &Name| !matches!(name, Name::Region(region) if !region.begins || !region.ends);
        prop_assert!(names.iter().all(is_whole));
    }

    #[test]
    fn what_is_cut_off_is_marked(terminals_of in balanced(), from in 0.0f64..1.0, until in 0.0f64..1.0) {
        let at = |share: f64| (share * terminals_of.len() as f64) as usize;
        let cut = &terminals_of[at(from.min(until))..at(from.max(until))];
        let graph = tree(&grammar(cut)).unwrap();
        prop_assert_eq!(terminals(&graph), cut);
    }
}

#[test]
fn loops_of_regions_do_not_grow() {
    let once = [0, CALL, 1, CALL, CALL, 1 + REGIONS, REGIONS];
    for (cut, times) in (0..once.len()).flat_map(|cut| [3, 50, 2000].map(|times| (cut, times))) {
        let all = once.repeat(times);
        let graph = tree(&grammar(&all[cut..])).unwrap();
        assert_eq!(terminals(&graph), &all[cut..]);
        assert!(graph.dag().len() < 24, "{} nodes", graph.dag().len());
    }
}

#[test]
fn recursion_is_a_tree_up_to_its_limit() {
    let nested = |depth: usize| [[0, CALL].repeat(depth), [REGIONS].repeat(depth)].concat();
    for depth in [1, 2, 100, 5000] {
        let graph = tree(&grammar(&nested(depth))).unwrap();
        assert_eq!(terminals(&graph), nested(depth));
    }
    let deep = grammar(&nested(DEEPEST as usize + 1));
    assert_eq!(tree(&deep).unwrap_err(), Fault::TooDeep);
}

#[test]
fn what_a_region_has_begun_ends_with_it() {
    // 1 ends with 0, and another end of it has no begin: it holds all before.
    let graph = tree(&grammar(&[0, CALL, 1, CALL, REGIONS, CALL, 1 + REGIONS, CALL])).unwrap();
    let expected = [0, CALL, 1, CALL, REGIONS, CALL, 1 + REGIONS, CALL];
    assert_eq!(terminals(&graph), expected);
    let has = |name: &str, begins: bool, ends: bool| {
        let name = Name::Region(Region { name: RegionName::Given(name.into()), begins, ends });
        (0..graph.dag().len() as u32).filter(|&node| *graph.dag().name(node) == name).count()
    };
    assert_eq!((has("0", true, true), has("1", true, false), has("1", false, true)), (1, 1, 1));
}

proptest! {
    #[test]
    fn any_begins_and_ends_are_a_tree(
        once in prop::collection::vec(0..=CALL, 1..12),
        times in 1usize..30,
        more in prop::collection::vec(0..=CALL, 0..6),
    ) {
        let all = [once.repeat(times), more].concat();
        let graph = tree(&grammar(&all)).unwrap();
        // Its edges are there in their order, but for ends that the ends of outer regions imply.
        prop_assert_eq!(terminals(&graph), all);
    }
}
