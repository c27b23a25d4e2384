//! Limit on the work of one step of a search.

use std::task::Poll;

/// Work that is counted, so that a search can be done a bit at a time and always stops at the same places: a clock
/// would stop it elsewhere on every machine, and in every run.
///
/// A unit is what it takes to compare two numbers, some tenths of a nanosecond to one.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    most: u64,
    done: u64,
}

impl Work {
    /// At most `most` units, or a single step where that takes more.
    pub fn new(most: u64) -> Self {
        Self { most, done: 0 }
    }

    /// Work without a limit.
    pub fn all() -> Self {
        Self::new(u64::MAX)
    }

    /// Result of `step` without a limit on its work.
    pub(super) fn whole<T>(mut step: impl FnMut(&mut Self) -> Poll<T>) -> T {
        loop {
            if let Poll::Ready(found) = step(&mut Self::all()) {
                return found;
            }
        }
    }

    /// Units of what was done so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Ready if a step of `units` units may be done now; it counts as done then. The first one always may, or nothing
    /// would ever end.
    pub fn take(&mut self, units: u64) -> Poll<()> {
        let sum = self.done.saturating_add(units);
        if self.done > 0 && sum > self.most {
            return Poll::Pending;
        }
        self.done = sum;
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_too_large_is_done_alone() {
        let mut work = Work::new(10);
        assert!(work.take(4).is_ready() && work.take(6).is_ready() && work.take(1).is_pending());
        let mut work = Work::new(10);
        assert!(work.take(11).is_ready() && work.take(1).is_pending());
        assert_eq!(work.done(), 11);
        let mut all = Work::all();
        assert!(all.take(u64::MAX).is_ready() && all.take(u64::MAX).is_ready());
    }
}
