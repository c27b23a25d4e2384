//! Samples of a population with outliers: few ranks that are far off all others.
//!
//! Where a handful of ranks carry nearly all of the variance, errors are not normal: they are small as long as the
//! sample has its share of these, and beyond the bound when it has one too few or too many. A variance says how large
//! the error is on average, not how likely that is.

use super::quantile::normal_above;
use super::sizing::Stratum;

/// Largest share of outliers, where the kurtosis shows outliers and not the shape of all: one in eight, and a little,
/// so that rounding does not decide at exactly one in eight.
const FEW: f64 = 0.125_001;

/// Most outliers that are counted one by one, which bounds the work. One of more matters only where nearly all are
/// drawn.
const MOST: f64 = 32.0;

/// Factor that narrows the bound, as the other ranks are not all alike.
const EDGE: f64 = 0.95;

/// Factor over the promised risk from which missing the bound is worth more ranks.
const WORTH: f64 = 1.25;
/// Largest growth of a sample over what the variance asks for. A small sample of many ranks would have to grow a lot
/// for a risk that is small anyway.
const MOST_GROWTH: u64 = 2;

/// Coverage that is promised of a mean over several strata.
#[derive(Clone, Copy, Debug)]
pub struct CoverageTarget {
    /// Ranks of all strata.
    pub population: u64,
    /// The bound on the mean's error, in the unit of the variances' root.
    pub error: f64,
    /// Probability that it is to hold with, in (0, 1).
    pub confidence: f64,
    /// Variance of the mean from strata other than the one in question.
    pub others: f64,
}

/// Outliers that all deviate by the same amount, while the other ranks do not deviate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct OutlierModel {
    ranks: u32,
    /// Deviation of an outlier, in the unit of the variance's root.
    by: f64,
}

impl OutlierModel {
    /// Outliers that explain the moments, if they are few: a share p of ranks with p(1 − p) = 1/(κ + 3), off by S
    /// √(κ + 3).
    fn of(stratum: Stratum, kurtosis: f64) -> Option<Self> {
        let spread = kurtosis + 3.0;
        let share = (1.0 - (1.0 - 4.0 / spread).sqrt()) / 2.0;
        let ranks = (share * stratum.ranks as f64).round().max(1.0);
        let far = Self { ranks: ranks as u32, by: (stratum.variance * spread).sqrt() };
        (share <= FEW && ranks <= MOST && far.by.is_finite()).then_some(far)
    }

    /// Probability of missing the target if a share `drawn` of the ranks is drawn: j of B outliers left out move the
    /// mean by (j − B (1 − f))/f times what one of them is off by, over the ranks of all.
    fn missed(self, drawn: f64, promise: CoverageTarget) -> f64 {
        let (ranks, left) = (f64::from(self.ranks), 1.0 - drawn);
        let (bound, others) = (EDGE * promise.error, promise.others.sqrt());
        let mut chance = drawn.powi(self.ranks as i32);
        let mut missed = 0.0;
        for out in 0..=self.ranks {
            let out = f64::from(out);
            let off = (out - ranks * left).abs() / drawn * self.by / promise.population as f64;
            missed += chance * beyond(bound, off, others);
            chance *= (ranks - out) / (out + 1.0) * left / drawn;
        }
        missed
    }
}

/// Probability that a normal error about `off` with that standard deviation is beyond the bound.
fn beyond(bound: f64, off: f64, deviation: f64) -> f64 {
    let above = |reach: f64| match deviation {
        0.0 => f64::from(u8::from(reach < 0.0)),
        _ => normal_above(reach / deviation),
    };
    above(bound - off) + above(bound + off)
}

/// Sample size of the stratum for which the bound holds with the promised confidence, outliers considered. That is
/// `size` where the risk is at most 1.25 times the promised one, or where twice as many ranks would not do either. A
/// larger size is found to within a 64th.
///
/// `kurtosis` is that of the ranks' totals.
///
/// # Source
/// The normal distribution wants that neither those drawn nor those left out are few (Hájek, *Publ. Math. Inst. Hung.
/// Acad. Sci.* 5, 1960). Instead of it the binomial one of how many far ranks are left out: that of coins, and as long
/// as these ranks are few near enough that of samples of a fixed size.
pub fn with_far(size: u64, (stratum, kurtosis): (Stratum, f64), promise: CoverageTarget) -> u64 {
    let Some(far) = OutlierModel::of(stratum, kurtosis) else { return size };
    let (all, risk) = (stratum.ranks, 1.0 - promise.confidence);
    let missed = |size: u64| if size < all { far.missed(size as f64 / all as f64, promise) } else { 0.0 };
    if size == 0 || missed(size) <= WORTH * risk {
        return size;
    }
    let mut more = size;
    while missed(more) > risk {
        more = (more + (more / 64).max(1)).min(all);
        if more > MOST_GROWTH * size {
            return size;
        }
    }
    more
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::super::Moments;
    use super::super::quantile::normal_two_sided;
    use super::super::sizing::simple_random;
    use super::*;

    /// Variance and kurtosis of `far` ranks that are `times` the others, in units of the mean.
    fn population(ranks: u64, far: u64, times: f64) -> (Stratum, f64) {
        let mut all = Moments::default();
        for rank in 0..ranks {
            let y = if rank < far { times } else { 1.0 };
            all.merge(&Moments::of_rank(1, y, y * y, y, y));
        }
        let mean = all.y / ranks as f64;
        let variance = all.residual_variance_about(mean) / (mean * mean);
        (Stratum { ranks, variance }, all.kurtosis().unwrap())
    }

    /// Probability that a sample of `size` misses the bound, over all numbers of outliers that it can have.
    fn missed(ranks: u64, far: u64, times: f64, size: u64, error: f64) -> f64 {
        missed_about(ranks, (far, times), size, (error, 0.0))
    }

    /// The same where the mean is off by `off` anyway.
    fn missed_about(ranks: u64, (far, times): (u64, f64), size: u64, (error, off): (f64, f64)) -> f64 {
        let ways = |of: u64, some: u64| -> f64 {
            (0..some).map(|i| ((of - i) as f64 / (some - i) as f64).ln()).sum()
        };
        let mean = |of: u64, far: u64| 1.0 + (times - 1.0) * far as f64 / of as f64;
        let truth = mean(ranks, far);
        let chance =
            |drawn: u64| (ways(far, drawn) + ways(ranks - far, size - drawn) - ways(ranks, size)).exp();
        let possible = far.saturating_sub(ranks - size)..=far.min(size);
        possible.filter(|&drawn| (mean(size, drawn) / truth - 1.0 + off).abs() > error).map(chance).sum()
    }

    #[test]
    fn two_values_have_the_moments_that_far_ranks_are_known_by() {
        for (ranks, far, times) in [(100, 1, 10.0), (128, 2, 10.0), (1000, 7, 0.1)] {
            let (stratum, kurtosis) = population(ranks, far, times);
            let found = OutlierModel::of(stratum, kurtosis).unwrap();
            let mean = 1.0 + (times - 1.0) * far as f64 / ranks as f64;
            assert_eq!(u64::from(found.ranks), far);
            // S² has the divisor M − 1.
            assert!((found.by * mean / f64::abs(times - 1.0) - 1.0).abs() < 0.01, "{found:?}");
        }
    }

    #[test]
    fn a_handful_of_far_ranks_is_met_as_often_as_was_promised() {
        let (mut cases, mut before, mut given_up) = (0, 0, 0);
        for (confidence, error) in [(0.90, 0.08), (0.95, 0.05), (0.99, 0.03)] {
            let (allowed, risk) = ((error / normal_two_sided(confidence)).powi(2), 1.0 - confidence);
            for ranks in [32, 50, 64, 100, 128, 200, 500, 2000] {
                for (far, times) in
                    (1..=4).flat_map(|far| [3.0, 4.0, 6.0, 10.0, 30.0].map(|times| (far, times)))
                {
                    let of = population(ranks, far, times);
                    let size = simple_random(ranks, of.0.variance, allowed).max(16);
                    let promise = CoverageTarget { population: ranks, error, confidence, others: 0.0 };
                    let with = with_far(size, of, promise);
                    let missed = |size| missed(ranks, far, times, size, error);
                    assert!((size..=2 * size).contains(&with), "{ranks} {far} {times}: {size} {with}");
                    cases += 1;
                    before += usize::from(missed(size) > 1.3 * risk);
                    given_up += usize::from(missed(with) > 1.3 * risk);
                    assert!(
                        missed(with) <= 1.3 * risk || with == size && 5 * size < ranks,
                        "{ranks} {far} {times}"
                    );
                }
            }
        }
        assert!(before > cases / 5 && given_up < cases / 20, "{before} and {given_up} of {cases}");
    }

    #[test]
    fn far_ranks_of_a_stratum_are_met_beside_the_errors_of_the_others() {
        // Half of the ranks are this stratum; the error of the other half's mean is normal.
        let (ranks, population) = (100, 200);
        let quantile = |i: u32| Normal::standard().inverse_cdf((f64::from(i) + 0.5) / 200.0);
        let quantiles: Vec<f64> = (0..200).map(quantile).collect();
        let cases = (1..=4).flat_map(|far| [4.0, 10.0, 30.0].map(|times| (far, times)));
        let cases: Vec<_> = cases.flat_map(|of| [0.01, 0.2, 0.5].map(|share| (of, share))).collect();
        let (mut before, mut more) = (0, 0);
        for (confidence, error) in [(0.90, 0.08), (0.95, 0.05), (0.99, 0.03)] {
            let (allowed, risk) = ((error / normal_two_sided(confidence)).powi(2), 1.0 - confidence);
            for &((far, times), share) in &cases {
                let of = self::population(ranks, far, times);
                let others = share * allowed;
                let size = simple_random(ranks, of.0.variance, 4.0 * (allowed - others)).max(2);
                let with = with_far(size, of, CoverageTarget { population, error, confidence, others });
                let missed = |size: u64| -> f64 {
                    let missed =
                        |z| missed_about(ranks, (far, times), size, (2.0 * error, 2.0 * others.sqrt() * z));
                    quantiles.iter().map(missed).sum::<f64>() / quantiles.len() as f64
                };
                before += usize::from(missed(size) > 1.4 * risk);
                more += usize::from(with > size);
                let given_up = with == size && 2 * size <= ranks;
                assert!(missed(with) <= 1.4 * risk || given_up, "{far} {times} {share}: {size} {with}");
            }
        }
        assert!(before > 15 && more > 20, "{before} and {more}");
    }

    #[test]
    fn others_ask_for_what_their_variance_says() {
        let normal = Stratum { ranks: 1000, variance: 0.09 };
        let promise = |population| CoverageTarget { population, error: 0.08, confidence: 0.9, others: 0.0 };
        assert_eq!(with_far(37, (normal, 3.0), promise(1000)), 37);
        let many = population(65_536, 656, 10.0);
        assert_eq!(with_far(400, many, promise(65_536)), 400, "none of 656 matters");
        for variance in [0.0, f64::INFINITY, f64::NAN] {
            let stratum = Stratum { ranks: 100, variance };
            assert_eq!(with_far(16, (stratum, f64::NAN), promise(100)), 16);
            assert_eq!(with_far(16, (stratum, 3.0), promise(100)), 16);
        }
        let nothing = Stratum { ranks: 100, variance: 0.0 };
        assert_eq!(with_far(16, (nothing, 97.0), promise(100)), 16);
    }
}
