//! Bounds within which durations may be merged, and durations that are known within limits.

use std::iter::Sum;
use std::ops::AddAssign;

/// Largest deviation that a duration may have from the one that stands for it; the larger of both counts. Without any,
/// equal durations only are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    /// Share of the duration, in [0, 1).
    pub relative: f64,
    /// Nanoseconds.
    pub absolute_ns: u64,
}

/// A duration, or a sum of durations, between two limits in nanoseconds. Both are equal where nothing was merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// Least.
    pub low_ns: u64,
    /// Greatest.
    pub high_ns: u64,
}

/// Durations in bins: all of a bin lie within the bound of the value that [`Span::value_ns`] has for them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bins {
    /// Width of bins below `knee`.
    width: u64,
    /// First duration whose bins grow with it; `u64::MAX` for none.
    knee: u64,
    /// Logarithm of the quotient of the limits of such a bin.
    step: f64,
}

impl Bound {
    /// True where durations are merged that differ.
    pub fn is_exact(&self) -> bool {
        self.absolute_ns == 0 && self.relative <= 0.0
    }

    pub(super) fn bins(&self) -> Bins {
        let width = self.absolute_ns.saturating_mul(2).saturating_add(1);
        let relative = if self.relative > 0.0 { self.relative.min(0.999) } else { 0.0 };
        if relative == 0.0 {
            return Bins { width, knee: u64::MAX, step: 0.0 };
        }
        // All of a bin from a to b are within e of its middle, if b / a is 1 + 2 e. A little less makes up for rounding.
        let quotient = (1.0 + 2.0 * relative) * (1.0 - 1e-9);
        // From there on such a bin is wider than one of the absolute bound, and begins where one ends.
        let knee = ((width as f64 / (quotient - 1.0)) as u64 / width).saturating_add(1).saturating_mul(width);
        Bins { width, knee, step: quotient.ln() }
    }
}

impl Bins {
    /// Number of the bin of a duration.
    pub fn number(&self, duration_ns: u64) -> u64 {
        if duration_ns < self.knee {
            return duration_ns / self.width;
        }
        let above = (duration_ns as f64 / self.knee as f64).ln() / self.step;
        self.knee / self.width + above.max(0.0) as u64
    }
}

impl Span {
    /// The duration of that length.
    pub fn exact(duration_ns: u64) -> Self {
        Self { low_ns: duration_ns, high_ns: duration_ns }
    }

    /// Value that stands for it: the middle.
    pub fn value_ns(self) -> u64 {
        self.low_ns + (self.high_ns - self.low_ns) / 2
    }

    /// Largest distance of the true duration from [`Self::value_ns`], nanoseconds.
    pub fn deviation_ns(self) -> u64 {
        self.high_ns - self.value_ns()
    }

    /// True where `duration_ns` lies within the limits.
    pub fn contains(self, duration_ns: u64) -> bool {
        (self.low_ns..=self.high_ns).contains(&duration_ns)
    }

    /// The sum of so many like it.
    #[must_use]
    pub fn times(self, times: u64) -> Self {
        Self { low_ns: self.low_ns.saturating_mul(times), high_ns: self.high_ns.saturating_mul(times) }
    }

    /// Widens the limits to `duration_ns`.
    pub(super) fn widen(&mut self, duration_ns: u64) {
        self.low_ns = self.low_ns.min(duration_ns);
        self.high_ns = self.high_ns.max(duration_ns);
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        self.low_ns = self.low_ns.saturating_add(other.low_ns);
        self.high_ns = self.high_ns.saturating_add(other.high_ns);
    }
}

impl Sum for Span {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        let mut sum = Self::default();
        spans.for_each(|span| sum += span);
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bounds() -> impl Strategy<Value = Bound> {
        let relative = prop_oneof![Just(0.0), 0.0001f64..0.9];
        let absolute = prop_oneof![Just(0), 0u64..100_000];
        (relative, absolute).prop_map(|(relative, absolute_ns)| Bound { relative, absolute_ns })
    }

    proptest! {
        #[test]
        fn all_of_a_bin_lie_within_the_bound(bound in bounds(), durations in prop::collection::vec(0u64..1 << 44, 2..400)) {
            let bins = bound.bins();
            let mut spans = std::collections::BTreeMap::new();
            // Near ones as well, which share bins.
            for duration in durations.iter().flat_map(|&one| [one, one + one / 50, one >> 20, one >> 30]) {
                spans.entry(bins.number(duration)).or_insert(Span::exact(duration)).widen(duration);
            }
            for span in spans.values() {
                for duration in [span.low_ns, span.high_ns] {
                    let off = span.value_ns().abs_diff(duration);
                    prop_assert!(off <= span.deviation_ns());
                    let most = (bound.relative * duration as f64).max(bound.absolute_ns as f64);
                    // The value is a whole number.
                    prop_assert!(off as f64 <= most + 1.0, "{off} of {duration} in {span:?}, bound {bound:?}");
                    prop_assert!(!bound.is_exact() || off == 0);
                }
            }
        }

        #[test]
        fn bins_ascend(bound in bounds(), one in 0u64..1 << 50, other in 0u64..1 << 50) {
            let bins = bound.bins();
            let [low, high] = [one.min(other), one.max(other)];
            prop_assert!(bins.number(low) <= bins.number(high));
        }
    }

    #[test]
    fn sums_keep_their_limits() {
        let mut sum = Span { low_ns: 90, high_ns: 110 }.times(10);
        sum += Span::exact(5);
        assert_eq!((sum.low_ns, sum.high_ns), (905, 1105));
        assert!(sum.contains(905) && !sum.contains(1106));
        assert_eq!(Span::exact(u64::MAX).times(3).value_ns(), u64::MAX);
        assert_eq!(Span::default().value_ns(), 0);
    }
}
