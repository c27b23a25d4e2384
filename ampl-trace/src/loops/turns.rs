//! Parts of a loop's body that may be steps by themselves.
//!
//! A program that does one thing in even steps and another in odd ones makes the same calls as one that does both in each
//! step. A trace tells them apart only where the last iteration ends in the middle.

use rustc_hash::FxHashMap;

use super::sequence::Flow;

/// Steps that one iteration of a loop may hold; 1 where its calls suggest no more.
///
/// `flow` has the calls inside the loop, of which `first` comes first, and `function` the functions of shapes. The calls
/// must follow each other in one order, and the last iteration end in the middle: it holds as many as it repeats the same
/// functions at other places, or 2.
pub fn steps_of_iteration(flow: &Flow, first: u32, function: &dyn Fn(u32) -> u16) -> u64 {
    let Some(order) = order(flow, first) else { return 1 };
    let functions: Vec<u16> = order.iter().map(|&shape| function(shape)).collect();
    let number = functions.len();
    let repeats = |parts: &usize| {
        let period = number / parts;
        number.is_multiple_of(*parts) && (period..number).all(|at| functions[at] == functions[at - period])
    };
    let again = |shape: &u32| flow.edges.contains_key(&(*shape, *shape));
    let mut calls = order.iter().filter(|shape| !again(shape)).map(|&shape| flow.of(shape));
    let ends_within = calls.next().is_some_and(|first| calls.any(|other| other + 1 == first));
    match ends_within {
        true => (2..=number).rev().find(repeats).unwrap_or(2) as u64,
        false => 1,
    }
}

/// Shapes in the order of each iteration; `None` where iterations differ in more than how often a call is repeated.
fn order(flow: &Flow, first: u32) -> Option<Vec<u32>> {
    let mut next: FxHashMap<u32, u32> = FxHashMap::default();
    for &(from, to) in flow.edges.keys().filter(|(from, to)| from != to) {
        if next.insert(from, to).is_some() {
            return None;
        }
    }
    let mut order = vec![first];
    while let Some(&after) = order.last().and_then(|last| next.get(last)) {
        if after == first {
            return (order.len() == flow.calls.len()).then_some(order);
        }
        if order.len() == flow.calls.len() {
            return None;
        }
        order.push(after);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that an iteration may hold, of calls at places; places of one function have the same tens.
    fn parts(calls: &[u32]) -> u64 {
        let mut flow = Flow::default();
        calls.iter().for_each(|&shape| *flow.calls.entry(shape).or_default() += 1);
        calls.windows(2).for_each(|pair| *flow.edges.entry((pair[0], pair[1])).or_default() += 1);
        steps_of_iteration(&flow, calls[0], &|shape| (shape / 10) as u16)
    }

    #[test]
    fn an_iteration_that_ends_in_the_middle_may_hold_two_steps() {
        assert_eq!(parts(&[10, 20].repeat(5)), 1);
        assert_eq!(parts(&[&[10, 20].repeat(5)[..], &[10]].concat()), 2);
        assert_eq!(parts(&[10; 5]), 1);
        // The last one of 11 steps made a barrier, the others an exchange in turns.
        let mut calls = [10, 20, 30, 40].repeat(5);
        assert_eq!(parts(&calls), 1);
        calls.push(10);
        assert_eq!(parts(&calls), 2);
    }

    #[test]
    fn the_same_functions_at_other_places_may_be_steps() {
        // An exchange along each of three axes, in each step.
        let axes = [10, 20, 11, 21, 12, 22].repeat(4);
        assert_eq!(parts(&axes), 1);
        assert_eq!(parts(&[&axes[..], &[10, 20]].concat()), 3);
        let halves = [10, 20, 30, 11, 21, 31].repeat(4);
        assert_eq!(parts(&[&halves[..], &[10, 20, 30]].concat()), 2);
        // However often one of them is repeated.
        let calls = [[10, 20, 20, 11, 21].as_slice(), &[10, 20, 11, 21, 21, 21]].concat().repeat(3);
        assert_eq!(parts(&[&calls[..], &[10, 20]].concat()), 2);
    }

    #[test]
    fn iterations_that_differ_suggest_nothing() {
        assert_eq!(parts(&[10, 11, 10, 11, 12, 10, 11]), 1);
        assert_eq!(parts(&[10, 20, 30, 10, 30, 10, 20, 30]), 1);
    }
}
