//! Iterations whose loop something else interrupts.
//!
//! A program that refines its mesh in few steps may do so in the middle of the exchanges of a step. Those are two executions of
//! the loop of exchanges then, with fewer calls each, while the step's reduction is made once, with all exchanges between
//! it and the next.

use super::flow_graph::Set;
use super::sequence::{Anchor, Flow, Sequence, Slice};
use super::trips::Trips;

/// A call that is made once in each iteration of the loop of `body`, and the number of these, where the executions of an
/// inner loop, by which `steps` were counted, differ because some are cut.
///
/// It is made in more than half as many places as there are executions, and between any two of them each call of the inner
/// loop is made equally often.
pub(super) fn uncut(
    sequence: &Sequence,
    inside: &Slice,
    flow: &Flow,
    body: &Set,
    anchor: &Anchor,
    steps: u64,
) -> Option<(Anchor, u64)> {
    let is_even = |within: &Set, least: u64| {
        anchor.shapes.iter().all(|&shape| {
            let list = sequence.executions(inside, within, &Anchor::call(shape)).map(|list| Trips::of(&list));
            list.is_some_and(|list| list.number() >= least && list.regular().is_some())
        })
    };
    if !anchor.merges || is_even(&anchor.shapes, steps) {
        return None;
    }
    let once = body.difference(&anchor.shapes).filter_map(|&shape| {
        let run = Anchor::run(shape);
        let times = run.count(flow);
        (times < steps && times.saturating_mul(2) > steps).then_some((times, shape, run))
    });
    let mut once: Vec<(u64, u32, Anchor)> = once.collect();
    once.sort_by_key(|&(times, shape, _)| (times, shape));
    let found =
        once.into_iter().find(|&(times, shape, _)| is_even(&flow.others(shape), times.saturating_sub(1)));
    found.map(|(times, _, run)| (run, times))
}
