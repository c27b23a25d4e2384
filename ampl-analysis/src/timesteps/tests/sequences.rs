use std::collections::BTreeMap;

use ampl_trace::loops::{Anchor, Flow, FlowGraph, MOST_WORK, Part, Sequence, Set, Slice, Token, longest};
use proptest::prelude::*;
use rustc_hash::FxHashMap;

use crate::random_loops::loops;

use super::grammar;

/// Terminals: 0 to 5 are shapes, 6 is left out, 7 is a gap.
const TOKENS: [Token; 8] = [
    Token::Shape(0),
    Token::Shape(1),
    Token::Shape(2),
    Token::Shape(3),
    Token::Shape(4),
    Token::Shape(5),
    Token::Left,
    Token::Gap,
];
const GAP: u32 = 7;

fn calls() -> impl Strategy<Value = Vec<u32>> {
    loops(0..7, 1..12, 0..8)
}

fn kept(calls: &[u32]) -> Vec<u32> {
    calls.iter().copied().filter(|&call| call != 6).collect()
}

fn built(calls: &[u32]) -> (Sequence, Slice) {
    Sequence::within(&grammar(calls), &TOKENS, MOST_WORK).expect("a sound grammar")
}

fn naive_flow(calls: &[u32]) -> Flow {
    let mut flow = Flow::default();
    for &call in calls.iter().filter(|&&call| call != GAP) {
        *flow.calls.entry(call).or_default() += 1;
    }
    for pair in calls.windows(2).filter(|pair| !pair.contains(&GAP)) {
        *flow.edges.entry((pair[0], pair[1])).or_default() += 1;
    }
    flow
}

fn same(flow: &Flow, naive: &Flow) -> bool {
    let of = |map: &FxHashMap<u32, u64>| map.iter().map(|(&k, &v)| (k, v)).collect::<BTreeMap<_, _>>();
    of(&flow.calls) == of(&naive.calls) && flow.edges == naive.edges
}

/// Pieces of `calls` that have calls of `set` only; a gap is in whatever is around it.
fn naive_pieces(calls: &[u32], set: &Set) -> Vec<Vec<u32>> {
    let mut pieces: Vec<Vec<u32>> = Vec::new();
    let mut is_open = false;
    for &call in calls {
        if call != GAP {
            let is_in = set.contains(&call);
            if is_in && !is_open {
                pieces.push(Vec::new());
            }
            is_open = is_in;
        }
        if is_open {
            pieces.last_mut().unwrap().push(call);
        }
    }
    pieces
}

proptest! {
    #[test]
    fn a_sequence_has_all_calls_in_their_order(calls in calls()) {
        let (sequence, whole) = built(&calls);
        prop_assert_eq!(expand(&sequence, &whole), kept(&calls));
        prop_assert_eq!(sequence.calls(&whole), kept(&calls).iter().filter(|&&call| call != GAP).count() as u64);
        prop_assert_eq!(sequence.missing(&whole), calls.iter().filter(|&&call| call == GAP).count() as u64);
        prop_assert!(same(&sequence.flow(&whole), &naive_flow(&kept(&calls))));
    }

    #[test]
    fn it_is_split_where_the_calls_are(calls in calls(), set in prop::collection::hash_set(0u32..6, 0..4)) {
        let set: Set = set.into_iter().collect();
        let (sequence, whole) = built(&calls);
        let kept = kept(&calls);
        let [before, inside, after] = sequence.trim(&whole, &set).map(|slice| expand(&sequence, &slice));
        let is_in = |call: &u32| set.contains(call);
        let begin = kept.iter().position(is_in).unwrap_or(kept.len());
        let end = kept.iter().rposition(is_in).map_or(kept.len(), |at| at + 1);
        prop_assert_eq!((before, inside, after), (kept[..begin].to_vec(), kept[begin..end].to_vec(), kept[end..].to_vec()));
        prop_assert_eq!(sequence.first(&whole), kept.iter().copied().find(|&call| call != GAP));

        let pieces: Vec<Vec<u32>> =
            sequence.cut(&whole, &set).iter().map(|slice| expand(&sequence, slice)).collect();
        prop_assert_eq!(pieces.concat(), kept);
        for (index, piece) in pieces.iter().enumerate() {
            prop_assert!(piece.iter().all(|call| set.contains(call) == (index % 2 == 1)));
            prop_assert!(!piece.is_empty() || index % 2 == 0);
        }
    }

    #[test]
    fn executions_are_those_of_the_expansion(
        calls in calls(),
        set in prop::collection::hash_set(0u32..6, 1..4),
        merges: bool,
        anchors in 1usize..3,
    ) {
        let set: Set = set.into_iter().collect();
        let mut sorted: Vec<u32> = set.iter().copied().collect();
        sorted.sort_unstable();
        let anchor = Anchor { shapes: sorted.into_iter().take(anchors).collect(), merges };
        let (sequence, whole) = built(&calls);
        let pieces = naive_pieces(&kept(&calls), &set);
        let found = sequence.executions(&whole, &set, &anchor).unwrap();
        let found: Vec<u64> = found.iter().flat_map(|&(count, times)| vec![count; times as usize]).collect();
        let naive: Vec<u64> = pieces.iter().map(|piece| anchor.count(&naive_flow(piece))).collect();
        prop_assert_eq!(found, naive);
        prop_assert_eq!(anchor.count(&sequence.flow(&whole)), anchor.count(&naive_flow(&kept(&calls))));
        for (index, piece) in pieces.iter().enumerate() {
            let slices = sequence.execution(&whole, &set, index as u64).unwrap();
            let [before, own, after] = slices.map(|slice| expand(&sequence, &slice));
            prop_assert_eq!(&own, piece);
            prop_assert_eq!([before, own, after].concat(), kept(&calls));
        }
    }

    #[test]
    fn loops_are_on_cycles_and_begin_where_they_are_entered(calls in calls()) {
        let flow = naive_flow(&kept(&calls));
        let graph = FlowGraph::of(&flow, None, &[]);
        for cycle in graph.cycles() {
            let part = FlowGraph::of(&flow, Some(&cycle), &[]);
            // Calls that every cycle passes through, by trying.
            let all: Vec<u32> = cycle
                .iter()
                .copied()
                .filter(|&shape| {
                    let rest: Set = cycle.iter().copied().filter(|&other| other != shape).collect();
                    FlowGraph::of(&flow, Some(&rest), &[]).cycles().is_empty()
                })
                .collect();
            let mut all = all;
            all.sort_unstable();
            prop_assert_eq!(part.on_all_cycles(), all);
            for entry in &cycle {
                for body in part.loops(*entry) {
                    prop_assert!(body.is_subset(&cycle) && body.len() < cycle.len());
                    let inner = FlowGraph::of(&flow, Some(&body), &[]);
                    prop_assert_eq!(inner.cycles(), vec![body]);
                }
            }
        }
    }
}

#[test]
fn exact_repetitions_are_found_wherever_they_begin() {
    // Down and up the levels of a grid, five times, with something between the first and the others.
    let cycle = [4, 4, 3, 2, 1, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    for times in [4, 7, 100] {
        let calls = [vec![5], cycle.to_vec(), vec![5, 5], cycle.repeat(times), vec![5]].concat();
        let (sequence, whole) = built(&calls);
        let found = longest(&sequence, &whole).unwrap();
        assert_eq!(found.times, times as u64);
        let [before, inside, after] = found.slices.map(|slice| expand(&sequence, &slice));
        assert_eq!(inside.len(), cycle.len() * times);
        assert_eq!([before, inside, after].concat(), calls);
    }
    let (sequence, whole) = built(&[0, 1, 2, 3, 4, 5, 0, 1]);
    assert!(longest(&sequence, &whole).is_none());
}

/// The calls of `slice`, one by one.
fn expand(sequence: &Sequence, slice: &[(Part, u64)]) -> Vec<u32> {
    let mut calls = Vec::new();
    for &(part, times) in slice {
        let own = match sequence.inner(part) {
            Ok(parts) => expand(sequence, parts),
            Err(shape) => vec![shape.unwrap_or(GAP)],
        };
        (0..times).for_each(|_| calls.extend(&own));
    }
    calls
}

#[test]
fn counts_are_used_up_by_all_places_of_a_rule() {
    let calls = [2, 4, 0, 2, 4, 5, 3, 4, 5, 3, 2, 4, 5, 3, 4, 5, 3, 3, 0];
    let (sequence, whole) = built(&calls);
    assert_eq!(expand(&sequence, &whole), calls);
}

#[test]
fn equal_steps_are_one_part() {
    // A loop of a million calls whose inner trip count changes once.
    let mut calls: Vec<u32> = Vec::new();
    for step in 0..100_000 {
        calls.push(0);
        (0..if step == 70_000 { 5 } else { 6 }).for_each(|_| calls.extend([1, 2]));
    }
    let (sequence, whole) = built(&calls);
    assert!(whole.len() < 20 && sequence.parts_in_all() < 40, "{} {}", whole.len(), sequence.parts_in_all());
    assert_eq!(sequence.calls(&whole), calls.len() as u64);
}

#[test]
fn grammars_that_are_not_sound_are_refused() {
    let mut broken = grammar(&[0, 1, 0, 1, 0, 1]);
    let mut rules = broken.rules.to_items();
    rules[0][0].counts.push((2, 1));
    broken.rules = rules.into_iter().collect();
    assert!(Sequence::within(&broken, &TOKENS, MOST_WORK).is_none());
    assert!(
        Sequence::within(&grammar(&[0, 9]), &TOKENS, MOST_WORK).is_none(),
        "a terminal without a meaning"
    );
    let (sequence, whole) = built(&[]);
    assert_eq!((sequence.calls(&whole), whole), (0, vec![]));
}
