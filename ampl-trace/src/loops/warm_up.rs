//! Steps that warm up right before a loop, by the same calls: their first calls come from elsewhere.

use super::sequence::Flow;
use crate::totals::FirstCalls;

/// Steps at the beginning of a loop that are not its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WarmUp {
    /// The steps.
    pub steps: u64,
    /// Their calls by shape.
    pub calls: Vec<(u32, u64)>,
}

impl WarmUp {
    /// The steps that warm up among `steps`, whose calls are `inside` with others `before` them; `first` has the first
    /// calls of each shape that came from elsewhere. All shapes that are called equally often in each step must agree.
    pub fn of(inside: &Flow, before: &Flow, steps: u64, first: &[Option<FirstCalls>]) -> Self {
        let first_of = |shape: u32| {
            let first = first.get(shape as usize).copied().flatten()?;
            let earlier = before.of(shape);
            Some((first.least.saturating_sub(earlier), first.most.saturating_sub(earlier)))
        };
        let whole = |(&shape, &calls): (&u32, &u64)| {
            (steps > 0 && calls.is_multiple_of(steps)).then(|| (shape, calls / steps.max(1)))
        };
        let in_steps = |(shape, each): (u32, u64)| {
            let (least, most) = first_of(shape)?;
            let own = most / each;
            // Between two samples there may be the end of several steps.
            (own == least.div_ceil(each)).then_some(own)
        };
        let mut numbers = inside.calls.iter().filter_map(whole).map(in_steps);
        let Some(Some(own)) = numbers.next() else { return Self::default() };
        // A loop has two steps at least.
        if own == 0 || own.saturating_add(1) >= steps || numbers.any(|other| other != Some(own)) {
            return Self::default();
        }
        let calls_of = |(&shape, &calls): (&u32, &u64)| {
            let (least, most) = first_of(shape)?;
            // Of shapes that are called more often in some steps than in others it is about as many.
            let share = u128::from(calls) * u128::from(own) / u128::from(steps);
            Some((shape, (share as u64).clamp(least, most)))
        };
        let mut calls: Vec<(u32, u64)> = inside.calls.iter().filter_map(calls_of).collect();
        calls.sort_unstable();
        Self { steps: own, calls }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(calls: &[(u32, u64)]) -> Flow {
        Flow { calls: calls.iter().copied().collect(), ..Flow::default() }
    }

    fn first(least: u64, most: u64) -> Option<FirstCalls> {
        Some(FirstCalls { least, most })
    }

    fn steps(inside: &[(u32, u64)], before: &[(u32, u64)], of: u64, first: &[Option<FirstCalls>]) -> u64 {
        WarmUp::of(&flow(inside), &flow(before), of, first).steps
    }

    #[test]
    fn steps_that_warm_up_are_told_by_first_calls() {
        let once = [first(1, 1), first(1, 1)];
        let found = WarmUp::of(&flow(&[(0, 11), (1, 11)]), &Flow::default(), 11, &once);
        assert_eq!(found, WarmUp { steps: 1, calls: vec![(0, 1), (1, 1)] });
        assert_eq!(steps(&[(0, 11), (1, 11)], &[], 11, &[first(1, 1), None]), 0, "one that disagrees");
        assert_eq!(steps(&[(0, 11), (1, 11)], &[], 11, &[None, None]), 0);
        assert_eq!(steps(&[(0, 13)], &[], 13, &[first(3, 3)]), 3);
        assert_eq!(steps(&[(0, 16)], &[], 16, &[first(4, 7)]), 0, "it may be any number");
    }

    #[test]
    fn a_loop_may_do_more_than_the_step_that_warms_up() {
        let first = [first(1, 1), first(4, 7), None, first(4, 7)];
        // Output in each step of the loop alone, and a solver that takes more iterations in some steps.
        let inside = flow(&[(0, 11), (1, 66), (2, 10), (3, 59)]);
        let found = WarmUp::of(&inside, &Flow::default(), 11, &first);
        assert_eq!(found, WarmUp { steps: 1, calls: vec![(0, 1), (1, 6), (3, 5)] });
    }

    #[test]
    fn first_calls_that_are_before_the_loop_are_no_part_of_it() {
        let once = [first(1, 1), first(6, 6)];
        assert_eq!(steps(&[(0, 60), (1, 360)], &[(0, 1), (1, 6)], 60, &once), 0);
        assert_eq!(steps(&[(0, 11), (1, 66)], &[(1, 6)], 11, &once), 0, "of one only");
    }

    #[test]
    fn two_first_steps_of_two_are_no_warm_up() {
        assert_eq!(steps(&[(0, 2)], &[], 2, &[first(1, 1)]), 0);
        assert_eq!(steps(&[], &[], 0, &[]), 0);
    }
}
