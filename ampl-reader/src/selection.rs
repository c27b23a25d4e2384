//! A part of a run: some ranks, and a stretch of time.

use std::borrow::Cow;

use ampl_core::units::{Rank, RankSet};
use ampl_trace::model::WindowSummary;

/// Ranks and a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    ranks: Option<RankSet>,
    /// Nanoseconds since T0.
    from_ns: i64,
    until_ns: i64,
}

/// Reason why there is nothing of a selection in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// A rank that is asked for is not in the job.
    NoRank,
    /// The ranks that are asked for left nothing that can be read.
    NothingLeft(RankSet),
}

impl Selection {
    /// The part from `from_ns` until `until_ns`, nanoseconds since T0, of `ranks`; all of it without them. `None` for a
    /// stretch of no length.
    pub fn new(from_ns: Option<i64>, until_ns: Option<i64>, ranks: Option<RankSet>) -> Option<Self> {
        let (from_ns, until_ns) = (from_ns.unwrap_or(i64::MIN), until_ns.unwrap_or(i64::MAX));
        (from_ns < until_ns).then_some(Self { ranks, from_ns, until_ns })
    }

    /// Reason why nothing of it is in a run of `ranks`; `None` where some of the ranks asked for are among those
    /// `present` and all in the job.
    pub fn lacks(&self, ranks: u32, present: impl IntoIterator<Item = u32>) -> Option<Absent> {
        let asked = self.ranks.as_ref()?;
        if asked.max().is_some_and(|rank| rank.0 >= ranks) {
            return Some(Absent::NoRank);
        }
        let none = !present.into_iter().any(|rank| self.takes_rank(rank));
        none.then(|| Absent::NothingLeft(asked.clone()))
    }

    /// End of the last of `windows`, nanoseconds since T0, where none of them is in the time asked for; `None`
    /// otherwise, and without windows.
    pub fn misses<'a>(&self, windows: impl Iterator<Item = Cow<'a, WindowSummary>>) -> Option<i64> {
        let mut last = None;
        for window in windows {
            if self.takes_window(&window) {
                return None;
            }
            last = last.max(Some(window.end_ns));
        }
        last
    }

    /// True where `rank` is asked for.
    pub fn takes_rank(&self, rank: u32) -> bool {
        self.ranks.as_ref().is_none_or(|ranks| ranks.contains(Rank(rank)))
    }

    /// True where a stretch of time is asked for.
    pub fn cuts_time(&self) -> bool {
        (self.from_ns, self.until_ns) != (i64::MIN, i64::MAX)
    }

    /// Start of the stretch that is asked for, nanoseconds since T0, where it has one.
    pub fn from_ns(&self) -> Option<i64> {
        (self.from_ns != i64::MIN).then_some(self.from_ns)
    }

    /// End of the stretch that is asked for, nanoseconds since T0, where it has one.
    pub fn until_ns(&self) -> Option<i64> {
        (self.until_ns != i64::MAX).then_some(self.until_ns)
    }

    /// True where any part of a span with that start and length is asked for; without a duration it never ended.
    pub fn takes_time(&self, start_ns: i64, duration_ns: Option<u64>) -> bool {
        let end_ns = duration_ns.map_or(i64::MAX, |nanos| start_ns.saturating_add_unsigned(nanos));
        start_ns < self.until_ns && (end_ns > self.from_ns || start_ns == self.from_ns)
    }

    /// Nanoseconds of a span that are asked for.
    pub fn overlap_ns(&self, start_ns: i64, end_ns: i64) -> u64 {
        let (from, until) = (start_ns.max(self.from_ns), end_ns.min(self.until_ns));
        if from < until { until.abs_diff(from) } else { 0 }
    }

    /// Beginning and end of that time; the least and the largest number where it has none.
    pub fn limits_ns(&self) -> [i64; 2] {
        [self.from_ns, self.until_ns]
    }

    /// True where that moment is asked for.
    pub fn has(&self, at_ns: i64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }

    /// True where all calls that begin at `low_ns` at the earliest and end at `high_ns` at the latest are in that time.
    pub fn has_all(&self, low_ns: i64, high_ns: i64) -> bool {
        low_ns >= self.from_ns && (high_ns < self.until_ns || self.until_ns == i64::MAX)
    }

    /// True where no part of such calls is, and none of them ends there.
    pub fn has_none(&self, low_ns: i64, high_ns: i64) -> bool {
        high_ns < self.from_ns || low_ns >= self.until_ns
    }

    /// True where every rank of a job of `ranks` is asked for.
    pub fn takes_all(&self, ranks: u32) -> bool {
        self.ranks.as_ref().is_none_or(|asked| asked.complement(ranks).is_empty())
    }

    /// True where all of `window` is asked for.
    pub fn holds_window(&self, window: &WindowSummary) -> bool {
        window.start_ns >= self.from_ns && window.end_ns <= self.until_ns
    }

    /// True where any part of `window` is asked for.
    pub fn takes_window(&self, window: &WindowSummary) -> bool {
        window.start_ns < self.until_ns && window.end_ns > self.from_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_taken_with_any_part_of_them() {
        let of = |from, until| Selection::new(from, until, None).unwrap();
        assert_eq!(Selection::new(Some(5), Some(5), None), None);
        let some = of(Some(1000), Some(2000));
        for (start, duration, taken) in [
            (0, Some(1000), false),
            (0, Some(1001), true),
            (1000, Some(0), true),
            (1999, Some(5), true),
            (2000, Some(5), false),
            (-5, None, true),
        ] {
            assert_eq!(some.takes_time(start, duration), taken, "{start} {duration:?}");
        }
        assert!(some.cuts_time() && !of(None, None).cuts_time());
        assert_eq!((some.overlap_ns(0, 1000), some.overlap_ns(500, 1500)), (0, 500));
        assert_eq!((some.overlap_ns(1500, 9000), some.overlap_ns(7, 9000)), (500, 1000));
        assert_eq!(of(None, None).overlap_ns(-5, 5), 10);
        assert!(some.has(1000) && !some.has(2000) && !some.has(999));
        let ranks = |text| Selection::new(None, None, Some(RankSet::parse(text).unwrap())).unwrap();
        assert!(ranks("0-3").takes_all(4) && !ranks("0-3").takes_all(5) && of(None, None).takes_all(9));
        assert!(of(None, None).takes_time(i64::MIN, Some(0)));
    }
}
