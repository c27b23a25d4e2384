//! Sets of window numbers.

use std::ops::Range;

/// A set of window numbers, as sorted, disjoint ranges: its size in memory does not depend on how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowSet {
    /// Each with the number of windows before it.
    ranges: Vec<(Range<u64>, u64)>,
}

impl WindowSet {
    /// Adds windows of which none is below the last range's first one.
    pub fn push(&mut self, windows: Range<u64>) {
        if windows.is_empty() {
            return;
        }
        match self.ranges.last_mut() {
            Some((last, _)) if windows.start <= last.end => last.end = last.end.max(windows.end),
            _ => self.ranges.push((windows, self.len())),
        }
    }

    /// Number of windows.
    pub fn len(&self) -> u64 {
        self.ranges.last().map_or(0, |(last, before)| before + (last.end - last.start))
    }

    /// `true` if there is no window.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// `true` if `window` is in the set.
    pub fn contains(&self, window: u64) -> bool {
        self.ranges[..self.beginning_up_to(window)].last().is_some_and(|(last, _)| window < last.end)
    }

    /// Number of ranges that begin with `window` or before.
    fn beginning_up_to(&self, window: u64) -> usize {
        self.ranges.partition_point(|(range, _)| range.start <= window)
    }

    /// Number of windows that are less than `end`.
    pub fn below(&self, end: u64) -> u64 {
        let last = self.ranges[..self.beginning_up_to(end)].last();
        last.map_or(0, |(range, before)| {
            before.saturating_add(end.min(range.end).saturating_sub(range.start))
        })
    }

    /// The sorted, disjoint ranges.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(range, _)| range.clone())
    }
}

/// Ranges in any order, which may overlap.
impl FromIterator<Range<u64>> for WindowSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut ranges: Vec<Range<u64>> = ranges.into_iter().collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut set = Self::default();
        ranges.into_iter().for_each(|range| set.push(range));
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sets_are_those_of_their_numbers(ranges in prop::collection::vec((0..60u64, 0..9u64), 0..9)) {
            let ranges: Vec<Range<u64>> = ranges.into_iter().map(|(from, count)| from..from + count).collect();
            let numbers: BTreeSet<u64> = ranges.iter().cloned().flatten().collect();
            let set: WindowSet = ranges.into_iter().collect();
            prop_assert_eq!(set.ranges().flatten().collect::<Vec<_>>(), numbers.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!((set.len(), set.is_empty()), (numbers.len() as u64, numbers.is_empty()));
            for window in 0..80 {
                prop_assert_eq!(set.contains(window), numbers.contains(&window));
                prop_assert_eq!(set.below(window), numbers.range(..window).count() as u64);
            }
        }
    }
}
