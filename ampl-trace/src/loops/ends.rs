//! Iterations at the ends of a loop that go without some of its calls, or make others besides.

use std::collections::BTreeMap;

use super::find::Found;
use super::flow_graph::Set;
use super::sequence::{Anchor, Sequence};

/// Most iterations that are found at the ends of a loop.
const MOST: u64 = 2;

impl Found {
    /// Counts iterations at the ends of the loop, in it or right before and behind: those that have most of the calls
    /// that each iteration makes once. `is_placed` is true of shapes whose calls come by one way: others right before a loop may
    /// look like its own.
    pub(super) fn take_ends(&mut self, sequence: &Sequence, is_placed: &dyn Fn(u32) -> bool) {
        let [before, inside, after] =
            [&self.before, &self.inside, &self.after].map(|part| sequence.flow(part));
        let earlier = |shape: u32| is_placed(shape).then(|| before.of(shape));
        let mut numbers: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for (&shape, &calls) in &inside.calls {
            if (self.steps..=self.steps + MOST).contains(&calls) {
                let others = earlier(shape).map_or(0, |earlier| earlier + after.of(shape));
                numbers.entry(calls + others).or_default().push(shape);
            }
        }
        let same = numbers.get(&self.steps).map_or(0, Vec::len);
        let more = self.steps + 1..=self.steps + MOST;
        let Some((&steps, shapes)) = numbers.range(more).rev().max_by_key(|of| of.1.len()) else { return };
        let own: Set = shapes.iter().copied().filter(|&shape| earlier(shape).is_some()).collect();
        if own.len() <= same {
            return;
        }
        let [start, first, rest] = sequence.trim(&self.before, &own);
        if own.iter().any(|&shape| earlier(shape) > Some(0)) {
            self.inside.splice(0..0, first.into_iter().chain(rest));
            self.before = start;
        }
        let [rest, last, end] = sequence.trim(&self.after, &own);
        if sequence.calls(&last) > 0 {
            self.inside.extend(rest.into_iter().chain(last));
            self.after = end;
        }
        let begin = sequence.first(&self.inside).filter(|shape| own.contains(shape));
        let Some(shape) = begin.or_else(|| own.iter().copied().min()) else { return };
        self.anchor = Anchor::call(shape);
        (self.steps, self.begun) = (steps, self.begun.max(steps));
    }
}
