use proptest::prelude::*;

use super::super::{Around, CallGraph, Item, Name, Options, Span, Sums, View, What};
use super::naive::{BEGIN, END, POLL, Program, everything, graph, programs};

fn view(graph: &CallGraph) -> View {
    View::of(graph, &mut |_, _| Around::Unknown)
}

/// Every item holds the sums of its parts and its own time.
fn assert_whole(item: &Item) -> Result<(), TestCaseError> {
    let Some(exclusive) = item.exclusive else { return Ok(()) };
    if item.items.is_empty() {
        return Ok(());
    }
    let mut sums = Sums::default();
    for inner in &item.items {
        assert_whole(inner)?;
        sums.add(&inner.sums);
    }
    let mut time = sums.time();
    time += exclusive;
    prop_assert_eq!(time, item.sums.time());
    prop_assert_eq!((sums.calls, sums.missing), (item.sums.calls, item.sums.missing));
    prop_assert_eq!((sums.sent, sums.timed_calls), (item.sums.sent, item.sums.timed_calls));
    Ok(())
}

proptest! {
    #[test]
    fn views_have_all_calls_and_times(programs in prop::collection::vec(programs(), 1..4), branching in 2usize..20) {
        let graph = graph(&programs, Options { branching, ..Options::default() }, &everything());
        let mut sums = Sums::default();
        let mut ranks = Vec::new();
        for tree in view(&graph).trees {
            assert_whole(&tree.root)?;
            prop_assert_eq!(tree.root.number, Some(tree.ranks.len() as u64));
            sums.add(&tree.root.sums);
            ranks.extend(tree.ranks);
        }
        ranks.sort_unstable();
        prop_assert_eq!(ranks, (0..programs.len() as u32).collect::<Vec<_>>());
        let all = graph.sums(graph.ranks().iter().map(|rank| (rank.node, 1)));
        prop_assert!((all.estimate_ns() - sums.estimate_ns()).abs() <= 1e-9 * all.estimate_ns());
        prop_assert_eq!(sums.time(), all.time());
        prop_assert_eq!((sums.calls, sums.timed_calls, sums.missing), (all.calls, all.timed_calls, all.missing));
    }
}

/// Items as text: terminals of [`Program`] by number, loops in braces.
fn text(graph: &CallGraph, items: &[Item]) -> String {
    let mut text = String::new();
    for item in items {
        let times = item.repeats.map_or_else(String::new, |repeats| match (repeats.least, repeats.most) {
            (1, 1) => String::new(),
            (least, most) if least == most => format!("{least}x"),
            (least, most) => format!("{least}-{most}x"),
        });
        let inner = text_of(graph, item);
        text += &format!("{times}{inner} ");
    }
    text.trim_end().to_owned()
}

fn text_of(graph: &CallGraph, item: &Item) -> String {
    match item.what {
        What::Named(name) => match graph.dag().names().get(name) {
            Name::Call(place) => ampl_core::mpi::Function(place.function).name()[4..5].to_owned(),
            Name::Gap => "?".into(),
            _ => text(graph, &item.items),
        },
        What::Several => format!("({})", text(graph, &item.items)),
        What::Loop | What::Function(..) => format!("{{{}}}", text(graph, &item.items)),
    }
}

fn text_of_calls(calls: &[&[u32]]) -> String {
    let programs = calls.iter().map(|calls| Program {
        calls: calls.to_vec(),
        windows: vec![(calls.len() / 3, false), (calls.len() / 2, true)],
        durations: vec![1, 1000, 50, 7],
    });
    let graph = graph(&programs.collect::<Vec<_>>(), Options::default(), &everything());
    let trees = view(&graph).trees;
    trees.iter().map(|tree| text(&graph, &tree.root.items)).collect::<Vec<_>>().join(" | ")
}

#[test]
fn loops_are_items_with_numbers_of_times() {
    // All to one, send, receive, barrier. Behind them are two calls that were not recorded.
    let step = [1, 1, 2, 2, 0];
    let plain = [&[3][..], &step.repeat(1000), &[3, 3]].concat();
    assert_eq!(text_of_calls(&[&plain]), "B 1000x{2xS 2xR A} 2xB 2x?");
    // Half of it has times, and is the same tree.
    let uneven: Vec<u32> = (0..300).flat_map(|step| [vec![1; 1 + step % 4], vec![2, 0]].concat()).collect();
    assert_eq!(text_of_calls(&[&uneven]), "300x{1-4xS R A} 2x?");
    let nested = [&[1, 2].repeat(5)[..], &[0]].concat().repeat(200);
    assert_eq!(text_of_calls(&[&nested]), "200x{5x{S R} A} 2x?");
    // Ranks that differ in numbers of times only share a tree.
    let longer = [&[3][..], &step.repeat(1010), &[3, 3]].concat();
    assert_eq!(
        text_of_calls(&[&plain, &longer, &uneven]),
        "B 1000-1010x{2xS 2xR A} 2xB 2x? | 300x{1-4xS R A} 2x?"
    );
}

#[test]
fn what_one_region_holds_itself_and_another_in_a_part_is_summed() {
    // Regions of the same sequence: with its times it is split in one of them.
    let region = [&[BEGIN][..], &[POLL; 6], &[0, 0, END]].concat();
    let calls = [&[0; 7][..], &[BEGIN, END], &region, &[BEGIN, POLL, POLL, 0, END], &region].concat();
    for timed in 0..calls.len() {
        let program = Program { calls: calls.clone(), windows: vec![(timed, true)], durations: vec![1] };
        let graph = graph(&[program], Options { branching: 2, ..Options::default() }, &everything());
        let (view, all) = (view(&graph), graph.sums([(graph.ranks()[0].node, 1)]));
        assert_eq!(view.trees[0].root.sums.time(), all.time());
        assert_eq!(view.trees[0].root.sums.calls, all.calls);
    }
}

#[test]
fn long_lists_are_summed_between_the_longest() {
    // No two parts of it are alike.
    let next = |last: &u32| Some(last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    let random = std::iter::successors(Some(1u32), next);
    let calls: Vec<u32> = random.take(3000).map(|random| (random >> 20) % 5).collect();
    let program = Program { calls, windows: Vec::new(), durations: vec![1] };
    let graph = graph(&[program], Options::default(), &everything());
    let root = &view(&graph).trees[0].root;
    let thread = &root.items[0];
    assert!(thread.items.len() <= 2 * super::super::view::MOST_ITEMS + 1, "{}", thread.items.len());
    assert!(thread.items.iter().any(|item| item.what == What::Several));
    assert_eq!(root.sums, graph.sums([(graph.ranks()[0].node, 1)]));
    assert_eq!(root.sums.time(), Span::default());
}
