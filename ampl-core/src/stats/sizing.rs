//! Numbers of ranks that bounds take.
//!
//! Sizes are whole numbers rounded up, never above the population; floors are the caller's
//! ([`FLOOR`], [`FLOOR_AMPL_2008`]).

/// Fewest ranks that predictive selection keeps: the margins of the normal and t quantiles are
/// not to be trusted below.
pub const FLOOR: u64 = 16;

/// Fewest ranks that retrospective selection keeps of a group of `members`: 8, where that is not more than a few
/// percent, and 2 at least. What happened in the window is known, and no rank moves the estimate by more than half the
/// bound: neither needs more ranks.
pub fn retrospective_floor(members: u64) -> u64 {
    8.min((members / 32).max(2))
}

/// Fewest ranks under `ampl-2008` (AMPL 2008 §4.4: small samples are oversampled).
pub const FLOOR_AMPL_2008: u64 = 10;

/// Smallest number of `ranks` whose cluster mean lies within `half_width` of the population's.
///
/// `variance` is s_r² of equation (7), in the metric's unit squared; `mean_n` is N̄, observations
/// per rank; `half_width` is d, in the metric's unit per observation; `z` the two-sided normal
/// quantile. All ranks when the bound is 0 and there is any variance.
///
/// # Source
/// Equation (8) of AMPL 2008, corrected. As printed it reads m = M s_r²/(N̄² V² + s_r²), which
/// depends on the metric's unit; solving (7) in (2) gives
/// m = M s_r²/(M N̄² V + s_r²), V = (d/z)² (Scheaffer, Mendenhall & Ott, *Elementary Survey
/// Sampling*, one-stage cluster sampling, ratio estimator).
pub fn ampl_2008(ranks: u64, variance: f64, mean_n: f64, half_width: f64, z: f64) -> u64 {
    let allowed = (half_width / z).powi(2);
    round_up(real_size(ranks as f64, variance, mean_n * mean_n * allowed), ranks)
}

/// Smallest simple random sample of `ranks` whose mean has a variance of at most `allowed`:
/// m = M S²/(M V0 + S²).
///
/// `variance` (S²) and `allowed` (V0) share a unit.
///
/// # Source
/// Cochran, *Sampling Techniques*, 3rd ed. (1977), §4.6; S² uses the M − 1 divisor. Used as the
/// oracle that sizes are measured against.
pub fn simple_random(ranks: u64, variance: f64, allowed: f64) -> u64 {
    round_up(real_size(ranks as f64, variance, allowed), ranks)
}

fn real_size(ranks: f64, variance: f64, allowed: f64) -> f64 {
    if variance == 0.0 || ranks == 0.0 {
        0.0
    } else if variance.is_finite() {
        ranks * variance / (ranks * allowed + variance)
    } else {
        // An infinite variance, or one that is not a number: only all ranks will do.
        ranks
    }
}

/// Ranks that are sampled together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stratum {
    /// M_h.
    pub ranks: u64,
    /// S_h², divisor M_h − 1, in the unit of the allowed variance.
    pub variance: f64,
}

/// Sample sizes m_h that bring the variance of the whole population's mean down to `allowed` (V0)
/// with the fewest ranks: m = (Σ M_h S_h)²/(M² V0 + Σ M_h S_h²), m_h ∝ M_h S_h.
///
/// `population` is M, which also counts ranks of strata not listed (taken in full: they add no
/// variance). 1 ≤ m_h ≤ M_h, and 0 for an empty stratum: a stratum that violates it is fixed at
/// its limit, its variance leaves V0, and the rest is solved again.
///
/// # Source
/// Cochran §5.5 (optimum allocation), §5.8 (more than 100 %) and §5.9 (n for a given variance).
pub fn neyman(strata: &[Stratum], population: u64, allowed: f64) -> Vec<u64> {
    let sizes = neyman_real(strata, population, allowed);
    sizes.iter().zip(strata).map(|(&size, stratum)| round_up(size, stratum.ranks)).collect()
}

/// The sizes of [`neyman`] before they are rounded up, to compare what strata cost: where a few ranks are enough,
/// rounding would say more about them than their variances do.
pub fn neyman_real(strata: &[Stratum], population: u64, allowed: f64) -> Vec<f64> {
    let mut sizes = vec![0.0; strata.len()];
    let mut open: Vec<usize> = (0..strata.len()).filter(|&h| strata[h].ranks > 0).collect();
    // Unlike the real optimum, a stratum without a finite variance has a known answer.
    open.retain(|&h| {
        let finite = strata[h].variance.is_finite();
        if !finite {
            sizes[h] = strata[h].ranks as f64;
        }
        finite
    });
    let mut left = (population as f64).powi(2) * allowed;
    while !open.is_empty() {
        let weight = |h: usize| strata[h].ranks as f64 * strata[h].variance.sqrt();
        let spread: f64 = open.iter().map(|&h| weight(h)).sum();
        let squares: f64 = open.iter().map(|&h| strata[h].ranks as f64 * strata[h].variance).sum();
        for &h in &open {
            // A bound that is already used up by fixed strata leaves only the census.
            let share = weight(h) * spread / (left.max(0.0) + squares);
            sizes[h] = if spread == 0.0 { 0.0 } else { share };
        }
        let above: Vec<usize> =
            open.iter().copied().filter(|&h| sizes[h] >= strata[h].ranks as f64).collect();
        let fixed =
            if above.is_empty() { open.iter().copied().filter(|&h| sizes[h] < 1.0).collect() } else { above };
        if fixed.is_empty() {
            break;
        }
        for &h in &fixed {
            let ranks = strata[h].ranks as f64;
            sizes[h] = sizes[h].clamp(1.0, ranks);
            left -= ranks * ranks * (1.0 / sizes[h] - 1.0 / ranks) * strata[h].variance;
        }
        open.retain(|h| !fixed.contains(h));
    }
    sizes
}

/// Variance of the population's mean when `size` of a stratum's ranks are drawn:
/// (M_h/M)² (1/m_h − 1/M_h) S_h², in the unit of S_h². Infinite when none of several is drawn.
///
/// # Source
/// Cochran §5.3, theorem 5.3, one stratum's term.
pub fn mean_variance(stratum: Stratum, size: f64, population: u64) -> f64 {
    let ranks = stratum.ranks as f64;
    if stratum.variance == 0.0 || size >= ranks {
        return 0.0;
    }
    (ranks / population as f64).powi(2) * (1.0 / size - 1.0 / ranks) * stratum.variance
}

fn round_up(size: f64, ranks: u64) -> u64 {
    (size.ceil() as u64).min(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrected_equation_8_meets_its_bound_and_ignores_the_unit() {
        // 2048 ranks, 50 events each, mean 10, s_r such that the relative spread is .5.
        let (ranks, mean_n, mean) = (2048, 50.0_f64, 10.0);
        let s_r2 = (0.5 * mean_n * mean).powi(2);
        let z = 1.644_853_6;
        let m = ampl_2008(ranks, s_r2, mean_n, 0.08 * mean, z);
        let half_width = |m: u64| {
            let (m, all) = (m as f64, ranks as f64);
            z * ((all - m) / (all * m * mean_n * mean_n) * s_r2).sqrt()
        };
        assert!(half_width(m) <= 0.8 && half_width(m - 1) > 0.8, "m = {m}");
        let nanos = ampl_2008(ranks, s_r2 * 1e18, mean_n, 0.08 * mean * 1e9, z);
        assert_eq!(m, nanos);
        // (2) holds with equality at m: (z s/(N̄ d))² = 105.7 before the population correction.
        assert_eq!(m, 101);
    }

    #[test]
    fn one_stratum_of_neyman_is_the_simple_random_sample() {
        for ranks in [1, 2, 16, 128, 65_536] {
            for variance in [0.0, 1e-4, 0.3, 25.0, f64::INFINITY] {
                let simple = simple_random(ranks, variance, 0.002_365);
                let neyman = neyman(&[Stratum { ranks, variance }], ranks, 0.002_365);
                assert_eq!(neyman, [simple.max(1)], "{ranks} {variance}");
            }
        }
        assert_eq!(simple_random(100, 1.0, 0.0), 100);
        assert_eq!(simple_random(100, 0.0, 0.0), 0);
    }

    #[test]
    fn neyman_holds_the_bound_and_its_limits() {
        let strata = [
            Stratum { ranks: 900, variance: 0.01 },
            Stratum { ranks: 90, variance: 4.0 },
            Stratum { ranks: 10, variance: 400.0 },
            Stratum { ranks: 24, variance: 0.0 },
        ];
        let allowed = 0.08_f64.powi(2) / 2.705_5;
        let sizes = neyman(&strata, 1024, allowed);
        assert_eq!(sizes[2], 10, "the wild ten are all taken: {sizes:?}");
        assert_eq!(sizes[3], 1, "equal ranks are represented: {sizes:?}");
        let variance: f64 = strata.iter().zip(&sizes).map(|(&s, &m)| mean_variance(s, m as f64, 1024)).sum();
        assert!(variance <= allowed, "{variance} > {allowed}");
        let apart: u64 = strata.iter().map(|s| simple_random(s.ranks, s.variance, allowed)).sum();
        assert!(sizes.iter().sum::<u64>() < apart, "{sizes:?} against {apart}");
    }
}
