//! Grammars: they give back the sequence, stay small for loops, and their reader survives any bytes.

use ampl_trace::grammar::{Builder, Grammar, Item, Symbol};
use ampl_trace::varint::Reader;
use proptest::prelude::*;

/// A program whose runs are the sequence.
#[derive(Clone, Debug)]
enum Step {
    Call(u32, u64),
    /// The body so often, in turn, at each time that the loop is reached.
    Loop(Vec<Step>, Vec<u64>),
    /// One of the two, by turns in these counts.
    Branch(Vec<Step>, Vec<Step>, u64),
}

/// The runs of a program, at most `limit` of them.
fn execute(program: &[Step], limit: usize) -> Vec<(u32, u64)> {
    fn go(
        steps: &[Step],
        path: u64,
        reached: &mut std::collections::HashMap<u64, u64>,
        runs: &mut Vec<(u32, u64)>,
        limit: usize,
    ) {
        for (place, step) in steps.iter().enumerate() {
            let path = (path * 37 + place as u64 + 1) * 3;
            if runs.len() >= limit {
                return;
            }
            let turn = reached.entry(path).or_default();
            *turn += 1;
            let turn = *turn;
            match step {
                &Step::Call(terminal, count) => runs.push((terminal, count)),
                Step::Loop(body, trips) => {
                    for _ in 0..trips[turn as usize % trips.len()] {
                        go(body, path, reached, runs, limit);
                    }
                }
                Step::Branch(usual, other, every) => {
                    let (steps, path) =
                        if turn.is_multiple_of(*every) { (other, path + 1) } else { (usual, path + 2) };
                    go(steps, path, reached, runs, limit);
                }
            }
        }
    }
    let mut runs = Vec::new();
    go(program, 1, &mut Default::default(), &mut runs, limit);
    runs
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let call = (0..12u32, prop_oneof![4 => Just(1u64), 1 => 1..5u64]).prop_map(|(t, n)| Step::Call(t, n));
    let step = call.prop_recursive(4, 40, 5, |step| {
        let steps = prop::collection::vec(step, 1..6);
        prop_oneof![
            3 => (steps.clone(), prop::collection::vec(0..9u64, 1..5))
                .prop_map(|(body, trips)| Step::Loop(body, trips)),
            1 => (steps.clone(), steps, 2..5u64).prop_map(|(a, b, every)| Step::Branch(a, b, every)),
        ]
    });
    prop::collection::vec(step, 1..8)
}

/// Equal neighbours as one run, without empty ones.
fn joined(runs: &[(u32, u64)]) -> Vec<(u32, u64)> {
    let mut all: Vec<(u32, u64)> = Vec::new();
    for &(terminal, count) in runs.iter().filter(|run| run.1 > 0) {
        match all.last_mut() {
            Some(last) if last.0 == terminal => last.1 += count,
            _ => all.push((terminal, count)),
        }
    }
    all
}

fn build(runs: &[(u32, u64)]) -> Builder {
    let mut builder = Builder::new();
    runs.iter().for_each(|&(terminal, count)| builder.push(terminal, count));
    builder
}

/// Checks that a grammar is sound, numbered in order, and gives back the sequence, also from its bytes.
fn holds(grammar: &Grammar, runs: &[(u32, u64)]) -> Result<(), TestCaseError> {
    prop_assert!(grammar.is_sound(), "{grammar:?}");
    let runs = joined(runs);
    prop_assert_eq!(grammar.runs().collect::<Vec<_>>(), &runs[..]);
    prop_assert_eq!(grammar.len(), runs.iter().map(|run| run.1).sum::<u64>());
    let by_terminal = |mut runs: Vec<(u32, u64)>| {
        runs.sort_unstable();
        joined(&runs)
    };
    prop_assert_eq!(by_terminal(grammar.totals().collect()), by_terminal(runs.clone()));
    let mut bytes = vec![7];
    grammar.write(&mut bytes);
    let mut reader = Reader::new(&bytes);
    reader.get();
    let read = Grammar::read(&mut reader);
    prop_assert_eq!(read.as_ref(), Some(grammar));
    prop_assert!(reader.is_empty());
    let trimmed = grammar.trimmed();
    prop_assert!(trimmed.is_sound(), "{grammar:?} {trimmed:?}");
    prop_assert!(trimmed.runs().eq(runs), "{grammar:?} {trimmed:?}");
    let mut bytes = Vec::new();
    trimmed.write(&mut bytes);
    let read = Grammar::read(&mut Reader::new(&bytes));
    prop_assert_eq!(read, Some(trimmed));
    Ok(())
}

fn some_runs(terminals: u32, most: usize) -> impl Strategy<Value = Vec<(u32, u64)>> {
    prop::collection::vec((0..terminals, prop_oneof![6 => Just(1u64), 2 => 0..4u64]), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_runs_come_back(runs in prop_oneof![some_runs(2, 60), some_runs(3, 200), some_runs(6, 400)]) {
        let builder = build(&runs);
        holds(&builder.grammar(), &runs)?;
    }

    #[test]
    fn programs_come_back(program in steps()) {
        let runs = execute(&program, 3000);
        holds(&build(&runs).grammar(), &runs)?;
    }

    #[test]
    fn programs_come_back_whenever_they_are_stopped(
        program in steps(),
        stops in prop::collection::vec((0..600usize, any::<bool>()), 1..6),
    ) {
        let runs = execute(&program, 600);
        let mut builder = Builder::new();
        for (at, &(terminal, count)) in runs.iter().enumerate() {
            for (_, restored) in stops.iter().filter(|stop| stop.0 == at) {
                let grammar = builder.grammar();
                holds(&grammar, &runs[..at])?;
                if *restored {
                    builder = Builder::restore(&grammar);
                    prop_assert_eq!(builder.size(), grammar.size());
                    prop_assert_eq!(builder.grammar(), grammar);
                }
            }
            builder.push(terminal, count);
        }
        holds(&builder.grammar(), &runs)?;
    }

    #[test]
    fn what_was_dumped_at_any_point_holds_all_that_was_pushed(
        program in steps(),
        points in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let runs = execute(&program, 3000);
        let stops: Vec<usize> = points.iter().map(|point| point.index(runs.len() + 1)).collect();
        let mut builder = Builder::new();
        for (at, &(terminal, count)) in runs.iter().enumerate().chain([(runs.len(), &(0, 0))]) {
            if stops.contains(&at) {
                let mut bytes = Vec::new();
                builder.dump(&mut bytes);
                let found = Grammar::undump(&mut Reader::new(&bytes)).expect("a sound grammar");
                prop_assert_eq!(joined(&found.runs().collect::<Vec<_>>()), joined(&runs[..at]));
                for cut in [bytes.len() / 2, bytes.len() - 1] {
                    let _ = Grammar::undump(&mut Reader::new(&bytes[..cut]));
                }
            }
            builder.push(terminal, count);
        }
    }

    #[test]
    fn bytes_that_were_never_dumped_are_read_without_panic(bytes: Vec<u8>, at: prop::sample::Index, by: u8) {
        let _ = Grammar::undump(&mut Reader::new(&bytes));
        let mut builder = Builder::new();
        bytes.iter().for_each(|&byte| builder.push(u32::from(byte % 4), 1));
        let mut dumped = Vec::new();
        builder.dump(&mut dumped);
        let place = at.index(dumped.len());
        dumped[place] ^= by;
        if let Some(grammar) = Grammar::undump(&mut Reader::new(&dumped)) {
            let _ = grammar.runs().take(1000).count();
        }
    }

    #[test]
    fn equal_sequences_give_equal_grammars(runs in some_runs(4, 200), splits: u64) {
        // The result is the same however the runs were cut, and whether or not the grammar was taken in between.
        let mut other = Builder::new();
        for (at, &(terminal, count)) in runs.iter().enumerate() {
            let first = if splits >> (at % 64) & 1 == 1 { count / 2 } else { 0 };
            other.push(terminal, first);
            other.push(terminal, count - first);
            if at % 50 == 49 {
                other.grammar();
            }
        }
        prop_assert_eq!(build(&runs).grammar(), other.grammar());
    }

    #[test]
    fn any_bytes_are_read_without_panic(
        bytes in prop::collection::vec(prop_oneof![3 => 0..24u8, 1 => any::<u8>()], 0..200),
    ) {
        survives(&bytes)?;
    }

    #[test]
    fn damaged_bytes_are_read_without_panic(
        program in steps(),
        at: prop::sample::Index,
        flip in 1..=255u8,
        cut: bool,
    ) {
        let mut bytes = Vec::new();
        build(&execute(&program, 500)).grammar().write(&mut bytes);
        let at = at.index(bytes.len());
        if cut {
            bytes.truncate(at);
            prop_assert_eq!(Grammar::read(&mut Reader::new(&bytes)), None);
        } else {
            bytes[at] ^= flip;
            survives(&bytes)?;
        }
    }
}

/// Checks that a grammar that can be read can be used.
fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Some(grammar) = Grammar::read(&mut Reader::new(bytes)) {
        prop_assert!(grammar.is_sound());
        prop_assert!(grammar.size() <= bytes.len());
        let mut again = Vec::new();
        grammar.write(&mut again);
        prop_assert_eq!(Grammar::read(&mut Reader::new(&again)), Some(grammar.clone()));
        prop_assert_eq!(grammar.trimmed().len(), grammar.len());
        prop_assert!(grammar.trimmed().is_sound());
        if grammar.len() < 100_000 {
            let mut runs: Vec<_> = grammar.runs().collect();
            prop_assert_eq!(grammar.len(), runs.iter().map(|run| run.1).sum::<u64>());
            let mut builder = Builder::restore(&grammar);
            prop_assert_eq!(&builder.grammar(), &grammar);
            for &(terminal, count) in &runs[..runs.len().min(20)] {
                builder.push(terminal, count);
            }
            runs.extend_from_within(..runs.len().min(20));
            prop_assert_eq!(joined(&builder.grammar().runs().collect::<Vec<_>>()), joined(&runs));
        } else {
            grammar.runs().take(1000).for_each(drop);
        }
    }
    Ok(())
}

fn call(terminal: u32) -> Step {
    Step::Call(terminal, 1)
}

#[test]
fn nested_loops_stay_small() {
    let mut program = vec![call(0), call(1), call(2)];
    for depth in 1..5u32 {
        program = [vec![call(10 * depth)], vec![Step::Loop(program, vec![25])], vec![call(10 * depth + 1)]]
            .concat();
    }
    let runs = execute(&program, usize::MAX);
    assert!(runs.len() > 1_000_000);
    let builder = build(&runs);
    assert!(builder.size() <= 30, "{}", builder.size());
    let grammar = builder.grammar();
    assert!(grammar.runs().eq(runs.iter().copied()));
    let mut bytes = Vec::new();
    grammar.write(&mut bytes);
    assert!(bytes.len() <= 80, "{}", bytes.len());
}

#[test]
fn a_long_loop_is_stored_once() {
    let runs: Vec<_> = (0..1_000_000).map(|call| (call % 1000, 1)).collect();
    let builder = build(&runs);
    assert!(builder.size() <= 1010, "{}", builder.size());
    assert!(builder.grammar().runs().eq(runs));
}

#[test]
fn varying_trip_counts_keep_the_rules() {
    let inner = Step::Loop(vec![call(1), call(2)], vec![3, 5, 4, 9, 1, 7]);
    let polls = Step::Loop(vec![call(3)], vec![3, 1, 4, 1, 5, 9, 2, 6, 5]);
    let program = |times| [Step::Loop(vec![call(0), inner.clone(), polls.clone(), call(4)], vec![times])];
    let sizes = [100, 1000, 10_000].map(|times| {
        let runs = execute(&program(times), usize::MAX);
        let builder = build(&runs);
        assert!(builder.grammar().runs().eq(joined(&runs)));
        builder.size()
    });
    assert!(sizes.iter().all(|&size| size <= 10), "{sizes:?}");
}

/// The bytes of a grammar, which come back.
fn written(grammar: &Grammar) -> Vec<u8> {
    let mut bytes = Vec::new();
    grammar.write(&mut bytes);
    assert!(Grammar::read(&mut Reader::new(&bytes)).as_ref() == Some(grammar));
    bytes
}

#[test]
fn counts_with_an_order_take_few_bytes() {
    let inner = |trips| Step::Loop(vec![call(1), call(2)], trips);
    // The same loop at two places, one that is longer each time, and one that has a period of its own.
    let places = [call(0), inner(vec![3]), call(4), inner(vec![5])];
    let rising = [call(0), inner((1..200).collect())];
    let period = [call(0), inner(vec![1, 2, 2, 7, 7, 7]), call(4)];
    for body in [&places[..], &rising, &period] {
        let bytes = [2000, 20_000].map(|times| {
            let runs = execute(&[Step::Loop(body.to_vec(), vec![times])], usize::MAX);
            written(&build(&runs).grammar()).len()
        });
        assert!(bytes.iter().all(|&bytes| bytes < 100), "{bytes:?} of {body:?}");
    }
    // Without an order: about a byte for each.
    let mut state = 1u64;
    let mut runs = Vec::new();
    for _ in 0..10_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
        runs.extend([(0, 1), (1, 1 + (state >> 57))]);
    }
    assert!(written(&build(&runs).grammar()).len() < 10_200);
}

#[test]
fn counts_of_more_bits_than_terminals_come_back() {
    let runs: Vec<_> =
        (0..100u64).flat_map(|bit| [(0, 1), (1, 1 << (bit % 50)), (2, u64::MAX >> 40)]).collect();
    let grammar = build(&runs).grammar();
    assert!(grammar.runs().eq(runs));
    written(&grammar);
}

#[test]
fn few_bytes_do_not_become_long_lists() {
    // Counts by turns 1 and 2.
    let long = |times: u64| {
        let mut counts: Vec<_> = (0..times).map(|run| (run % 2 + 1, 1)).collect();
        counts.push((9, 1));
        let item = |symbol, counts: &[(u64, u64)]| Item { symbol: Symbol(symbol), counts: counts.into() };
        let inside = vec![item(0, &counts), item(2, &[(1, times + 1)])];
        Grammar { rules: [vec![item(3, &[(times + 1, 1)])], inside].into_iter().collect() }
    };
    assert!(written(&long(200_000)).len() < 50);
    assert!(written(&long(300_000)).len() > 300_000);
    // The longest that there may be, and one of 2^39 runs that is right otherwise.
    let mut bytes = written(&long(1 << 18));
    assert!(bytes.len() < 50);
    for number in [[0x80, 0x80, 0x10], [0xfe, 0xff, 0x07], [0xff, 0xff, 0x0f]] {
        let at = bytes.windows(3).position(|three| three == number).expect("2^18, 2^17 - 2, 2^18 - 1");
        bytes.splice(at + 1..at + 1, [number[1]; 3]);
    }
    assert_eq!(Grammar::read(&mut Reader::new(&bytes)), None);
}

#[test]
fn sequences_without_order_are_smaller_without_rules() {
    let mut state = 1u64;
    let runs = (0..20_000).map(|_| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 33) as u32 % 97, 1)
    });
    let grammar = build(&runs.collect::<Vec<_>>()).grammar();
    let shorter = grammar.clone().shorter();
    assert!(written(&shorter).len() * 100 < written(&grammar).len() * 95);
    assert!(shorter.runs().eq(grammar.runs()));
    // Loops are kept.
    let loops = execute(&[Step::Loop((0..9).map(call).collect(), vec![1000])], usize::MAX);
    let grammar = build(&loops).grammar();
    assert_eq!([grammar.trimmed(), grammar.clone().shorter()], [grammar.clone(), grammar]);
}

#[test]
fn loops_that_are_restored_stay_small() {
    let inner = Step::Loop(vec![call(1), call(2), call(3)], vec![3, 5, 4]);
    let program = [Step::Loop(vec![call(0), inner, call(4)], vec![3000])];
    let runs = execute(&program, usize::MAX);
    let mut builder = Builder::new();
    for (at, &(terminal, count)) in runs.iter().enumerate() {
        builder.push(terminal, count);
        if at % 1777 == 0 {
            builder = Builder::restore(&builder.grammar());
        }
    }
    assert!(builder.size() <= 20, "{} of {:?}", builder.size(), builder.grammar());
    assert!(builder.grammar().runs().eq(runs));
}

#[test]
fn a_run_goes_on_behind_a_restored_grammar() {
    // Rules that begin and end alike.
    let calls = [[5, 3, 0, 1, 5].repeat(4), vec![1]].concat().repeat(4);
    let calls: Vec<_> = calls.into_iter().map(|terminal| (terminal, 1)).collect();
    for at in 0..calls.len() {
        let mut builder = Builder::restore(&build(&calls[..at]).grammar());
        calls[at..].iter().for_each(|&(terminal, count)| builder.push(terminal, count));
        assert!(builder.grammar().runs().eq(joined(&calls)), "{at}");
    }
}

#[test]
fn counts_of_a_loop_that_breaks_off_stay_in_order() {
    // The pair 1 2 stands twice in a loop, once inside a rule. When the loop breaks off behind that rule, its
    // counts are known already, but the pair before it is to be appended yet.
    let items = |symbols: &[u32], counts: (u64, u64)| {
        symbols
            .iter()
            .map(|&symbol| Item { symbol: Symbol(symbol), counts: [counts].into_iter().collect() })
            .collect::<Vec<Item>>()
    };
    let rules = [items(&[5], (3, 1)), items(&[10, 2, 4, 12], (1, 3)), items(&[2, 4, 3, 14], (1, 3))];
    let grammar = Grammar { rules: rules.into_iter().collect() };
    let mut runs: Vec<_> = grammar.runs().collect();
    let mut builder = Builder::restore(&grammar);
    for run in [(1, 1), (2, 1), (5, 1), (1, 1), (2, 9), (6, 1), (8, 1)] {
        builder.push(run.0, run.1);
        runs.push(run);
    }
    assert_eq!(builder.grammar().runs().collect::<Vec<_>>(), runs);
}

#[test]
fn rules_are_numbered_in_the_order_of_a_walk() {
    let runs: Vec<_> = [5, 6, 1, 2, 1, 2, 3, 5, 6, 1, 2, 3, 9].map(|terminal| (terminal, 1)).into();
    let grammar = build(&runs).grammar();
    let mut newest = 0;
    let mut walk = vec![Symbol(1)];
    while let Some(symbol) = walk.pop() {
        if let Some(rule) = symbol.as_rule() {
            let first = rule >= newest;
            assert!(!first || rule == newest, "{grammar:?}");
            if first {
                newest += 1;
                let symbols: Vec<Symbol> = grammar.rules.at(rule).iter().map(|item| item.symbol).collect();
                walk.extend(symbols.into_iter().rev());
            }
        }
    }
    assert!(newest > 2 && newest == grammar.rules.len(), "{grammar:?}");
}

#[test]
fn unsound_grammars_are_told() {
    let item = |symbol, counts: &[(u64, u64)]| Item { symbol: Symbol(symbol), counts: counts.into() };
    let sound =
        |rules: &[&[Item]]| Grammar { rules: rules.iter().map(|rule| rule.to_vec()).collect() }.is_sound();
    assert!(sound(&[&[]]));
    assert!(sound(&[&[item(3, &[(2, 1)])], &[item(0, &[(1, 1), (4, 1)]), item(2, &[(1, 2)])]]));
    assert!(!sound(&[]), "no rule");
    assert!(!sound(&[&[item(0, &[])]]), "no count");
    assert!(!sound(&[&[item(0, &[(0, 1)])]]), "never");
    assert!(!sound(&[&[item(0, &[(1, 2)])]]), "more counts than expansions");
    assert!(!sound(&[&[item(3, &[(2, 1)])], &[item(0, &[(4, 1)]), item(2, &[(1, 2)])]]), "fewer");
    assert!(!sound(&[&[item(5, &[(1, 1)])]]), "a rule that is missing");
    assert!(!sound(&[&[item(1, &[(1, 1)])]]), "the whole inside itself");
    assert!(
        !sound(&[&[item(0, &[(1, 1)])], &[item(2, &[(1, 0)]), item(4, &[(1, 0)])]]),
        "a rule without use"
    );
    assert!(!sound(&[&[item(3, &[(1, 1)])], &[item(0, &[(1, 1)])]]), "a rule of one position");
    let inside = [item(3, &[(1, 2)]), item(0, &[(1, 2)])];
    assert!(!sound(&[&[item(3, &[(1, 1)])], &inside]), "a rule inside itself");
    assert!(!sound(&[&[item(0, &[(u64::MAX, 1)]), item(2, &[(1, 1)])]]), "too long");
}

#[test]
fn deep_and_huge_grammars_are_read_in_little_time() {
    let once = |symbol| Item { symbol: Symbol(symbol), counts: [(1, 1)].into_iter().collect() };
    // Each rule is the next twice: too many for 64 bits, or not.
    for (depth, fits) in [(60u32, true), (64, false), (100_000, false)] {
        let twice = (1..depth).map(|rule| vec![once(rule << 1 | 1); 2]);
        let rules = twice.chain([vec![once(0), once(2)]]).collect();
        let mut bytes = Vec::new();
        Grammar { rules }.write(&mut bytes);
        let grammar = Grammar::read(&mut Reader::new(&bytes));
        assert_eq!(grammar.map(|grammar| grammar.len()), fits.then(|| 1 << depth), "{depth}");
    }
    // As deep as it is long.
    let depth = 100_000;
    let mut bytes = vec![1];
    (0..depth).for_each(|_| bytes.extend([1, 0, 0]));
    bytes.push(0);
    let grammar = Grammar::read(&mut Reader::new(&bytes)).expect("sound");
    assert!(grammar.runs().eq((0..=depth).map(|terminal| (terminal, 1))));
    let mut builder = Builder::restore(&grammar);
    builder.push(0, 1);
    assert_eq!(builder.grammar().runs().last(), Some((0, 1)));
    // Lengths that are not there.
    assert_eq!(Grammar::read(&mut Reader::new(&[255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0])), None);
}
