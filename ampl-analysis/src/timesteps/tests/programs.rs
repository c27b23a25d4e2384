//! Random programs, which know their steps.

use ampl_trace::loops::{Finder, Found, Iterations, MOST_WORK, Sequence, Set, Token};
use proptest::prelude::*;

use super::grammar;

/// The loop of `calls`; no functions are known.
fn found(calls: &[u32]) -> Option<Found> {
    found_with(calls, &|_, _| false)
}

fn found_with(calls: &[u32], encloses: &dyn Fn(&Set, &Set) -> bool) -> Option<Found> {
    let tokens: Vec<Token> = (0..1000).map(Token::Shape).collect();
    let (sequence, whole) = Sequence::within(&grammar(calls), &tokens, MOST_WORK).expect("a sound grammar");
    let found = Finder { sequence: &sequence, encloses, accepts: &|_| true }.find(&whole)?;
    let sum =
        [&found.before, &found.inside, &found.after].map(|slice| sequence.calls(slice)).iter().sum::<u64>();
    assert_eq!(sum, calls.len() as u64, "all calls are before, in or behind it");
    let iterations = Iterations::of(&sequence, &found, None, &tokens);
    let mut walk = iterations.walk();
    let begun = calls.iter().filter(|&&call| walk.begins(call)).count() as u64;
    assert_eq!(begun, found.steps, "each step has a call that begins it");
    Some(found)
}

fn steps(calls: &[u32]) -> Option<u64> {
    found(calls).map(|found| found.steps)
}

/// Part of a step.
#[derive(Clone, Debug)]
enum Item {
    /// Calls at places of their own.
    Calls(usize),
    /// A loop of calls, each step so often; the number varies with the step.
    Inner { calls: usize, trips: Vec<usize> },
    /// A call at one place to each of some neighbours.
    Neighbours(usize),
}

/// A program.
#[derive(Clone, Debug)]
struct Program {
    start: usize,
    /// Steps before the loop, by the same code; behind each a call of its own.
    warm_up: usize,
    steps: usize,
    body: Vec<Item>,
    /// Output in every so many steps, the first such step, and its calls.
    output: Option<(usize, usize, usize)>,
    end: usize,
}

impl Program {
    fn calls(&self) -> Vec<u32> {
        let mut next = 0u32;
        let mut new = |number: usize| {
            let from = next;
            next += number as u32;
            (from..next).collect::<Vec<u32>>()
        };
        let mut calls = new(self.start);
        let places: Vec<Vec<u32>> = self
            .body
            .iter()
            .map(|item| match item {
                Item::Calls(number) | Item::Inner { calls: number, .. } => new(*number),
                Item::Neighbours(_) => new(1),
            })
            .collect();
        let step = |number: usize, calls: &mut Vec<u32>| {
            for (item, places) in self.body.iter().zip(&places) {
                let times = match item {
                    Item::Calls(_) => 1,
                    Item::Inner { trips, .. } => trips[number % trips.len()],
                    Item::Neighbours(number) => *number,
                };
                (0..times).for_each(|_| calls.extend(places));
            }
        };
        for number in 0..self.warm_up {
            step(number, &mut calls);
            calls.extend(new(1));
        }
        let output = new(self.output.map_or(0, |(_, _, calls)| calls));
        for number in 0..self.steps {
            step(number, &mut calls);
            if self.output.is_some_and(|(every, first, _)| number % every == first) {
                calls.extend(&output);
            }
        }
        calls.extend(new(self.end));
        calls
    }
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let item = prop_oneof![
        (1usize..4).prop_map(Item::Calls),
        (1usize..4, prop::collection::vec(2usize..7, 1..5))
            .prop_map(|(calls, trips)| Item::Inner { calls, trips }),
        (2usize..7).prop_map(Item::Neighbours),
    ];
    // Nine tenths of the calls are in no inner loop: another test has such.
    prop::collection::vec(item, 0..4).prop_map(|mut items| {
        let inner: usize = items
            .iter()
            .map(|item| match item {
                Item::Calls(_) => 0,
                Item::Inner { calls, trips } => calls * trips.iter().max().unwrap(),
                Item::Neighbours(number) => *number,
            })
            .sum();
        items.insert(items.len() / 2, Item::Calls(1 + inner / 4));
        items
    })
}

fn programs() -> impl Strategy<Value = Program> {
    (0usize..5, 0usize..3, 10usize..60, items(), 0usize..4).prop_map(|(start, warm_up, steps, body, end)| {
        Program { start, warm_up, steps, body, output: None, end }
    })
}

proptest! {
    #[test]
    fn steps_are_counted_inside_the_loop(program in programs()) {
        let found = found(&program.calls()).expect("a loop");
        prop_assert_eq!(found.steps, program.steps as u64);
    }

    #[test]
    fn output_in_some_steps_changes_nothing(
        program in programs(),
        every in 4usize..25,
        first in 0usize..25,
        calls in 1usize..3,
    ) {
        // Rare enough to leave nine tenths to the step, and three times at least.
        let size = program.calls().len() / (program.steps + program.warm_up);
        let every = every.max(14 * calls / size.max(1) + 2);
        let program = Program { steps: 3 * every + program.steps, ..program };
        let output = Some((every, first % every, calls));
        let program = Program { output, ..program };
        prop_assert_eq!(steps(&program.calls()), Some(program.steps as u64), "{:?}", program.calls());
    }

    #[test]
    fn a_program_without_a_loop_has_none(calls in prop::collection::hash_set(0u32..500, 0..40), twice in any::<bool>()) {
        let mut calls: Vec<u32> = calls.into_iter().collect();
        if twice {
            calls.extend(calls.clone());
        }
        prop_assert_eq!(steps(&calls), None);
    }
}

#[test]
fn an_inner_loop_with_most_calls_is_not_that_of_steps() {
    // An iterative solver: 0 before, 1 2 3 in each iteration, 4 behind in its function, 5 in the function of steps.
    let solve: Vec<u32> = [vec![0], [1, 2, 3].repeat(25), vec![4, 5]].concat();
    let calls = [vec![9], solve.clone(), vec![8], solve.repeat(15), vec![7]].concat();
    // Without knowledge of functions, each of its iterations might be a step that ends with rare output.
    assert_eq!(steps(&calls), Some(375));
    let in_solver = |inner: &Set, rest: &Set| {
        assert!(inner.contains(&1) && rest.contains(&5));
        rest.contains(&0)
    };
    assert_eq!(found_with(&calls, &in_solver).map(|found| found.steps), Some(15));
    // Iterations until it converges are no steps.
    let calls: Vec<u32> = (0..40)
        .flat_map(|step| [vec![0], [1, 2, 3].repeat(20 + step * 7 % 11), vec![4, 5]].concat())
        .collect();
    assert_eq!(steps(&calls), Some(40));
}

/// Norms and output come every so many steps, each at its own interval.
#[test]
fn what_is_done_every_so_many_steps_is_no_step() {
    for (often, rarely) in [(10, 25), (20, 50), (3, 7), (4, 6), (2, 5), (10, 80)] {
        let step = |step: usize| {
            let more = [(often, 2), (rarely, 3)].into_iter().filter(|&(every, _)| step.is_multiple_of(every));
            [0, 1].into_iter().chain(more.map(|(_, call)| call)).collect::<Vec<u32>>()
        };
        let calls: Vec<u32> = (1..=200).flat_map(step).collect();
        assert_eq!(steps(&calls), Some(200), "every {often}, every {rarely}");
    }
    // Two parts of a step by the same code, each with iterations of its own, which are none.
    let step = [[0, 1].repeat(10), vec![2], [0, 1].repeat(5), vec![3]].concat();
    assert_ne!(steps(&step.repeat(20)), Some(20 * 15));
}

#[test]
fn iterations_that_are_cut_differently_are_the_same() {
    // The last calls of a loop's body before it, and its first behind: one iteration more.
    let calls = [vec![7], vec![1, 2], [0, 1, 2].repeat(30), vec![0], vec![8]].concat();
    assert_eq!(steps(&calls), Some(31));
    // A transform before the first step, by the step's code.
    let calls = [vec![7, 0, 8, 0], [0, 1].repeat(6), vec![9]].concat();
    assert_eq!(steps(&calls), Some(6));
    // The condition of a loop is evaluated once more.
    let calls = [vec![7], [0, 1, 2].repeat(30), vec![0], vec![9]].concat();
    assert_eq!(steps(&calls), Some(30));
}

#[test]
fn a_function_that_is_called_to_warm_up_is_no_outer_loop() {
    // Both times with calls before its loop and behind.
    let run = |steps: usize| [vec![0, 1], [2, 3, 4].repeat(steps), vec![5]].concat();
    assert_eq!(steps(&[vec![9], run(1), run(50), vec![8]].concat()), Some(50));
    assert_eq!(steps(&[vec![9], run(3), run(50), vec![8]].concat()), Some(50));
    // Parts of one job count together.
    assert_eq!(steps(&[vec![9], run(40), run(50), vec![8]].concat()), Some(90));
    assert_eq!(steps(&[run(40), run(40), run(40), run(40)].concat()), Some(160));
}

#[test]
fn branches_of_a_step_are_no_loops() {
    // A melt: forward or a new list of neighbours, then reverse; a check every other step, output every 100.
    let mut calls = vec![20, 21];
    let rebuild = |calls: &mut Vec<u32>| {
        calls.extend([5, 6, 6]);
        calls.extend([7, 8, 9].repeat(6));
    };
    let reverse = [10, 11, 12].repeat(6);
    rebuild(&mut calls);
    calls.extend(&reverse);
    calls.extend([13, 14, 22]);
    for step in 1..=1400usize {
        let checks = step % 2 == 0;
        if checks {
            calls.push(4);
        }
        if checks && step * 7919 % 20 < 5 {
            rebuild(&mut calls);
        } else {
            calls.extend([1, 2, 3].repeat(6));
        }
        calls.extend(&reverse);
        if step % 100 == 0 {
            calls.extend([13, 14]);
        }
    }
    calls.extend([23, 24]);
    assert_eq!(steps(&calls), Some(1400));
}

#[test]
fn sweeps_in_inner_loops_are_no_steps() {
    // Two pipelined sweeps, then an exchange; once to warm up, with all that is around.
    let run = |steps: usize| {
        let step = [[1, 2, 3].repeat(10), [4, 5, 6].repeat(10), vec![7, 8]].concat();
        [vec![20, 7, 8, 21], step.repeat(steps), vec![7, 8, 21, 22]].concat()
    };
    assert_eq!(steps(&[vec![30], run(1), run(50), vec![31]].concat()), Some(50));
}

#[test]
fn a_last_step_with_calls_of_its_own_counts() {
    // Norms before and behind the last part of the last step.
    let step = [[1, 2].repeat(9), [3, 4].repeat(9)].concat();
    let whole = [step.clone(), vec![5, 6]].concat();
    let calls = [vec![9], whole.repeat(49), step, vec![7], vec![5, 6], vec![8, 10]].concat();
    assert_eq!(steps(&calls), Some(50));
}

#[test]
fn a_checkpoint_in_the_middle_does_not_end_a_loop() {
    let calls = [vec![9], [0, 1, 2].repeat(60), vec![5, 6], [0, 1, 2].repeat(40), vec![8]].concat();
    assert_eq!(steps(&calls), Some(100));
    let calls = [vec![9], [0, 1, 2].repeat(95), vec![5, 6], [0, 1, 2].repeat(5), vec![8]].concat();
    assert_eq!(steps(&calls), Some(100));
}

#[test]
fn an_exchange_that_something_rare_cuts_is_one() {
    // Four exchanges in each step, reductions with most of the calls behind the first; some steps end with a refinement.
    let program = |steps: usize, every: usize, reduction: usize| {
        let step = |number: usize| {
            let stage = |stage: usize| {
                let reduction = [20].repeat(if stage == 0 { reduction } else { 0 });
                [vec![10, 11, 12], reduction].concat()
            };
            let refinement = if number % every == every - 1 { vec![30, 31, 32, 33] } else { Vec::new() };
            [(0..4).flat_map(stage).collect(), refinement].concat()
        };
        [vec![1, 2], (0..steps).flat_map(step).collect(), vec![3]].concat()
    };
    assert_eq!(steps(&program(20, 5, 40)), Some(20));
    assert_eq!(steps(&program(23, 5, 13)), Some(23));
    assert_eq!(steps(&program(60, 7, 20)), Some(60));
}

#[test]
fn a_loop_of_one_call_is_one() {
    assert_eq!(steps(&[vec![9], vec![0; 25], vec![8]].concat()), Some(25));
    // Output is in some of its steps.
    assert_eq!(steps(&[vec![9], [vec![0; 20], vec![1]].concat().repeat(5), vec![8]].concat()), Some(100));
}

#[test]
fn steps_around_gaps_are_counted_as_far_as_they_go() {
    let tokens: Vec<Token> = (0..20).map(Token::Shape).chain([Token::Gap]).collect();
    let calls =
        [vec![9], [0, 1, 2].repeat(30), vec![0, 20, 20, 20, 2], [0, 1, 2].repeat(30), vec![8]].concat();
    let (sequence, whole) = Sequence::within(&grammar(&calls), &tokens, MOST_WORK).unwrap();
    let found =
        Finder { sequence: &sequence, encloses: &|_, _| false, accepts: &|_| true }.find(&whole).unwrap();
    assert_eq!((found.steps, sequence.missing(&found.inside)), (60, 3));
}
