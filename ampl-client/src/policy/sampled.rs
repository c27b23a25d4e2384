//! The variance that the next interval is priced for, when only the sample reports.

use ampl_core::stats::quantile::{freedom_share, variance_ratio_from_normal};

/// Pools one guide's sample variances over windows and update intervals.
///
/// Every sample weighs as much as it has ranks (less one), v ← (w v + n' v')/(w + n'), w = min(.6 n, 300),
/// n ← w + n'; so does the fourth moment, hence the kurtosis κ. An interval's W windows count as one sample of
/// 1 + (W − 1)(1 − ρ) times a window's ranks. The margin for what is not known of v is that of Student's quantile
/// with ν = n·2/(κ − 1). A v' that is too large for the pooled v, at 99 %, replaces it.
///
/// The weight must not depend on what the sample has found. A sample that misses the few slow ranks has a small
/// variance and a small kurtosis too: weighted by degrees of freedom of its own it would count for more than
/// the samples that have met them, and decide on a still smaller one.
///
/// # Source
/// STATISTICS §2; the pooled variance of samples weighted by n − 1 is unbiased (Cochran §2.4). Departures: weights
/// are ranks, and κ is the pool's, for the reason above. v' is the linearised variance of the ratio, since a
/// delete-one-rank jackknife needs every rank's values and the tree carries sums (the two agree where all ranks
/// make as many observations). ρ is not measured either: under `subset` the same ranks report in
/// all windows, and it is taken as 1; under `global` a rank is drawn again with probability p,
/// and it is taken as p.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SampledTracker {
    /// Pool of this interval's windows.
    fresh: Pool,
    /// Number of these windows.
    windows: u32,
    /// `true` if one of them had a mean of 0.
    unbounded: bool,
    pooled: Option<Pool>,
}

/// Fewest degrees of freedom. So few are left where a handful of ranks outweigh all others, and then κ is known no
/// better than v: quantiles of still fewer would ask for several times the ranks on its word alone.
const LEAST: f64 = 4.0;

/// Samples that are taken as one.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    /// Ranks of the samples, one less of each.
    ranks: f64,
    /// v, the pooled variance.
    variance: f64,
    /// Mean fourth power κ v² of the ranks' deviations from the mean.
    fourth: f64,
}

impl Pool {
    fn and(self, more: Self) -> Self {
        let ranks = self.ranks + more.ranks;
        let mean = |ours: f64, theirs: f64| (self.ranks * ours + more.ranks * theirs) / ranks;
        Self { ranks, variance: mean(self.variance, more.variance), fourth: mean(self.fourth, more.fourth) }
    }

    fn kurtosis(&self) -> f64 {
        let kurtosis = self.fourth / (self.variance * self.variance);
        // Ranks that do not vary have no kurtosis.
        if kurtosis.is_finite() { kurtosis } else { 3.0 }
    }

    /// Degrees of freedom of a variance estimated from `ranks` ranks of this kind, at least [`LEAST`].
    fn freedom(&self, ranks: f64) -> f64 {
        (ranks * freedom_share(self.kurtosis())).max(LEAST)
    }
}

impl SampledTracker {
    /// Takes the variance and the kurtosis of a window's sample of that many ranks.
    pub fn observe(&mut self, variance: f64, kurtosis: f64, ranks: u64) {
        if ranks < 2 {
            return;
        }
        if !variance.is_finite() {
            self.unbounded = true;
            return;
        }
        let fourth = kurtosis * variance * variance;
        self.fresh = self.fresh.and(Pool { ranks: (ranks - 1) as f64, variance, fourth });
        self.windows += 1;
    }

    /// Kurtosis of the ranks met so far; none before any.
    pub fn kurtosis(&self) -> Option<f64> {
        Some(self.pooled?.kurtosis())
    }

    /// The S² to price the next interval for and its degrees of freedom; ends this one.
    ///
    /// `correlation` is ρ between windows, in [0, 1].
    pub fn end_interval(&mut self, correlation: f64) -> Option<(f64, f64)> {
        const MEMORY: f64 = 0.6;
        const MOST: f64 = 300.0;
        // The 99 % quantile of the normal distribution.
        const UNLIKELY: f64 = 2.326_348;
        let (mut fresh, windows) = (self.fresh, f64::from(self.windows));
        let unbounded = self.unbounded;
        *self = Self { pooled: self.pooled, ..Self::default() };
        if windows > 0.0 {
            fresh.ranks *= (1.0 + (windows - 1.0) * (1.0 - correlation)) / windows;
            let is_likely = |old: &Pool| {
                let freedom = old.freedom(fresh.ranks);
                fresh.variance <= old.variance * variance_ratio_from_normal(UNLIKELY, freedom)
            };
            self.pooled = Some(match self.pooled.filter(is_likely) {
                Some(old) => Pool { ranks: (MEMORY * old.ranks).min(MOST), ..old }.and(fresh),
                None => fresh,
            });
        }
        if unbounded {
            // A mean of 0 asks for every rank next, and predicts nothing for later windows.
            return Some((f64::INFINITY, LEAST));
        }
        let pool = self.pooled?;
        Some((pool.variance, pool.freedom(pool.ranks)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes windows of samples of 11 ranks and ends the interval.
    fn interval(
        tracker: &mut SampledTracker,
        windows: &[(f64, f64)],
        correlation: f64,
    ) -> Option<(f64, f64)> {
        windows.iter().for_each(|&(variance, kurtosis)| tracker.observe(variance, kurtosis, 11));
        tracker.end_interval(correlation)
    }

    fn near(found: Option<(f64, f64)>, stated: (f64, f64)) {
        let (variance, freedom) = found.expect("something was observed");
        let alike = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-12;
        assert!(alike(variance, stated.0) && alike(freedom, stated.1), "{found:?} not {stated:?}");
    }

    #[test]
    fn variances_pool_and_jumps_reset() {
        let mut tracker = SampledTracker::default();
        assert_eq!(tracker.end_interval(1.0), None);
        tracker.observe(5.0, 3.0, 1);
        assert_eq!(tracker.end_interval(1.0), None, "a rank alone does not vary");
        // κ = 3 of either, and that of both is 3 (4 + 16)/2 / 3².
        let share = |kurtosis: f64| 2.0 / (kurtosis - 1.0);
        near(interval(&mut tracker, &[(2.0, 3.0), (4.0, 3.0)], 1.0), (3.0, 10.0 * share(30.0 / 9.0)));
        let kurtosis = (6.0 * 30.0 + 10.0 * 48.0) / 16.0 / (58.0f64 / 16.0).powi(2);
        near(interval(&mut tracker, &[(4.0, 3.0)], 1.0), (58.0 / 16.0, 16.0 * share(kurtosis)));
        near(interval(&mut tracker, &[(30.0, 3.0), (30.0, 3.0)], 0.5), (30.0, 15.0));
        near(tracker.end_interval(0.5), (30.0, 15.0));
    }

    #[test]
    fn a_sample_weighs_what_it_has_ranks_whatever_it_has_met() {
        // In one interval of four a rank is met that is far off the others: on average nothing is lost of it, in
        // whichever order. By degrees of freedom of its own it would be worth a fourteenth of the others.
        let (calm, wild) = ((1.0, 1.5), (41.0, 8.0));
        let mut tracker = SampledTracker::default();
        near(interval(&mut tracker, &[calm, wild, calm, calm], 1.0), (11.0, 4.0));
        let mean = (10.0 + 6.0 * 11.0) / 16.0;
        let (variance, freedom) = interval(&mut tracker, &[calm; 4], 1.0).unwrap();
        assert!((variance - mean).abs() < 1e-12, "{variance}");
        // The calm sample does not make the variance certain: κ remembers.
        assert_eq!(freedom, 4.0);
    }

    #[test]
    fn large_samples_forget_sooner() {
        let mut tracker = SampledTracker::default();
        tracker.observe(4.0, 3.0, 1001);
        near(tracker.end_interval(1.0), (4.0, 1000.0));
        tracker.observe(1.0, 3.0, 601);
        let (variance, _) = tracker.end_interval(1.0).unwrap();
        assert_eq!(variance, (300.0 * 4.0 + 600.0) / 900.0);
    }

    #[test]
    fn one_rank_among_very_many_is_not_forgotten_at_once() {
        let mut tracker = SampledTracker::default();
        tracker.observe(1.0, 1e5, 100_001);
        near(tracker.end_interval(1.0), (1.0, LEAST));
        tracker.observe(0.1, 3.0, 101);
        near(tracker.end_interval(1.0), (310.0 / 400.0, LEAST));
    }

    #[test]
    fn equal_ranks_and_an_unbounded_window_pass() {
        let mut tracker = SampledTracker::default();
        near(interval(&mut tracker, &[(0.0, 3.0)], 1.0).map(|(v, freedom)| (v + 1.0, freedom)), (1.0, 10.0));
        assert_eq!(
            interval(&mut tracker, &[(0.0, 3.0), (f64::INFINITY, 3.0)], 1.0).unwrap().0,
            f64::INFINITY
        );
        near(interval(&mut tracker, &[(1.0, 3.0)], 1.0), (1.0, 10.0));
    }
}
