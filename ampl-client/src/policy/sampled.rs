//! The variance that the next interval is priced for, when only the sample reports.

use ampl_core::stats::quantile::variance_ratio;

/// Pools one guide's sample variances over update intervals.
///
/// v ← (.6 ν v + ν' v')/(.6 ν + ν'), ν ← min(.6 ν + ν', 300); a v' that is too large for the pooled v,
/// at 99 %, replaces it.
///
/// # Source
/// STATISTICS §2. Departures: v' is the linearised variance of the ratio, since a delete-one-rank
/// jackknife needs every rank's values and the tree carries sums (the two agree where all ranks
/// make as many observations). ρ is not measured either: under `subset` the same ranks report in
/// all windows, and it is taken as 1; under `global` a rank is drawn again with probability p,
/// and it is taken as p.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SampledTracker {
    /// Σ ν_t v_t, Σ ν_t and number of this interval's windows.
    weighted: f64,
    freedom: f64,
    windows: u32,
    /// v and ν.
    pooled: Option<(f64, f64)>,
}

impl SampledTracker {
    /// Takes the variance of a window's sample, with `freedom` degrees of freedom.
    pub fn observe(&mut self, variance: f64, freedom: f64) {
        if freedom > 0.0 {
            self.weighted += freedom * variance;
            self.freedom += freedom;
            self.windows += 1;
        }
    }

    /// The S² to price the next interval for and its degrees of freedom; ends this one.
    ///
    /// `correlation` is ρ between windows, in [0, 1].
    pub fn end_interval(&mut self, correlation: f64) -> Option<(f64, f64)> {
        const MEMORY: f64 = 0.6;
        const MOST: f64 = 300.0;
        if self.windows > 0 {
            let windows = f64::from(self.windows);
            let fresh = self.weighted / self.freedom;
            let freedom = self.freedom / windows * (1.0 + (windows - 1.0) * (1.0 - correlation));
            self.pooled = Some(match self.pooled {
                Some((old, age)) if fresh / old <= variance_ratio(0.99, freedom) || fresh == old => {
                    let weight = MEMORY * age;
                    let pooled = (weight * old + freedom * fresh) / (weight + freedom);
                    (pooled, (weight + freedom).min(MOST))
                }
                _ => (fresh, freedom.min(MOST)),
            });
            (self.weighted, self.freedom, self.windows) = (0.0, 0.0, 0);
        }
        self.pooled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variances_pool_and_jumps_reset() {
        let mut tracker = SampledTracker::default();
        assert_eq!(tracker.end_interval(1.0), None);
        tracker.observe(2.0, 10.0);
        tracker.observe(4.0, 10.0);
        assert_eq!(tracker.end_interval(1.0), Some((3.0, 10.0)));
        tracker.observe(4.0, 10.0);
        assert_eq!(tracker.end_interval(1.0), Some((58.0 / 16.0, 16.0)));
        tracker.observe(30.0, 10.0);
        tracker.observe(30.0, 10.0);
        assert_eq!(tracker.end_interval(0.5), Some((30.0, 15.0)));
        assert_eq!(tracker.end_interval(0.5), Some((30.0, 15.0)));
    }
}
