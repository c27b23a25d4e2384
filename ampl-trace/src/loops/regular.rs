//! Shapes that each iteration of a loop calls equally often.

use std::collections::BTreeMap;

use super::find::Found;
use super::repetition::{Repetition, longest};
use super::sequence::{Anchor, Sequence};

/// A shape that each step calls equally often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regular {
    /// The shape.
    pub shape: u32,
    /// Calls in each step.
    pub per_step: u64,
    /// Calls since the first such step began, those of a step that is under way among them.
    pub calls: u64,
}

impl Found {
    /// True where each iteration, but for the first and the last, calls `shape` once. As many calls as iterations may
    /// be several in some and none in others.
    pub(super) fn is_once_in_each(&self, sequence: &Sequence, shape: u32) -> bool {
        if self.anchor.shapes.contains(&shape) {
            let inside = |of: &Regular| of.shape == shape && of.per_step == 1;
            return !self.anchor.merges || self.even(sequence).iter().any(inside);
        }
        // Iterations between two calls.
        let others = sequence.flow(&self.inside).others(shape);
        let Some(between) = sequence.executions(&self.inside, &others, &self.anchor) else { return false };
        let pieces = between.iter().map(|of| of.1).sum::<u64>();
        let mut at = 0;
        between.iter().all(|&(iterations, times)| {
            let is_at_an_end = times == 1 && (at == 0 || at + 1 == pieces);
            at += times;
            iterations == 1 || is_at_an_end && iterations == 0
        })
    }

    /// Shapes that each iteration calls equally often, those with the fewest calls in one first: of a run of calls that
    /// each iteration makes once, whatever else it does.
    pub(super) fn even(&self, sequence: &Sequence) -> Vec<Regular> {
        if !self.anchor.merges {
            return Vec::new();
        }
        let set = &self.anchor.shapes;
        let mut even: Vec<Regular> = Vec::new();
        for &shape in set {
            let Some(executions) = sequence.executions(&self.inside, set, &Anchor::call(shape)) else {
                continue;
            };
            let Some(&(per_step, _)) = executions.first().filter(|of| of.0 > 0) else { continue };
            // The last one may be under way.
            let others = executions.len() - usize::from(executions.last().is_some_and(|last| last.1 == 1));
            let is_even = executions[..others].iter().all(|of| of.0 == per_step);
            if others > 0 && is_even && executions[others..].iter().all(|of| of.0 <= per_step) {
                let behind = sequence.flow(&self.after).of(shape);
                let calls = executions.iter().map(|of| of.0 * of.1).sum::<u64>() + behind;
                even.push(Regular { shape, per_step, calls });
            }
        }
        even.sort_unstable_by_key(|of| (of.per_step, of.shape));
        even
    }
}

/// Shapes of a loop whose steps repeat call by call, those with the fewest calls in a step first; none where some steps differ.
pub(super) fn repeated(sequence: &Sequence, found: &Found, shape_of: &dyn Fn(u32) -> u32) -> Vec<Regular> {
    let Some(Repetition { times, slices: [_, steps, rest] }) = longest(sequence, &found.inside) else {
        return Vec::new();
    };
    if times < found.steps.saturating_sub(1) {
        return Vec::new();
    }
    let mut shapes: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
    for (number, slice) in [&steps, &rest, &found.after].into_iter().enumerate() {
        for (&shape, &calls) in &sequence.flow(slice).calls {
            shapes.entry(shape_of(shape)).or_default()[number.min(1)] += calls;
        }
    }
    let regular = |(shape, [steps, rest]): (u32, [u64; 2])| Regular {
        shape,
        per_step: steps / times,
        calls: steps + rest,
    };
    let mut all: Vec<Regular> = shapes.into_iter().map(regular).filter(|of| of.per_step > 0).collect();
    all.sort_by_key(|of| (of.per_step, of.shape));
    all
}
