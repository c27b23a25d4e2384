//! Cost of samples of given strata, window by window.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::Vectors;
use crate::config::ErrorBound;
use crate::stats::moments::relative;
use crate::stats::quantile::normal_two_sided;
use crate::stats::sizing::{Stratum, neyman_real};

/// A bound on the error of the whole group's mean of one guide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aim {
    /// Number of the guide in [`Vectors`].
    pub guide: usize,
    /// Confidence, in (0, 1).
    pub confidence: f64,
    /// Half-width of the interval.
    pub error: ErrorBound,
}

/// Cost of strata, and how different they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Price {
    /// Ranks to be drawn of a window: Σ m_h, mean over windows.
    pub size: f64,
    /// m_h of every stratum, mean over windows.
    pub sizes: Vec<f64>,
    /// Error of every stratum's own mean at the aims' confidence, relative to that mean, when so many are drawn:
    /// root mean square over windows, the largest of the guides'. Infinite where a mean is 0 and ranks differ.
    pub errors: Vec<f64>,
    /// Variance between strata over variance within them, the windows' together, of the guide that has most of it;
    /// 1 on average where strata say nothing. `None` for a single stratum, or where ranks do not differ.
    pub f: Option<f64>,
    /// Share of the variance that is between strata, less what as many strata take by chance: at most 1, 0 on average
    /// where strata say nothing. Of the guide with most of it; 0 where ranks do not differ.
    pub explained: f64,
    /// Value that `f` exceeds once in a thousand times where strata say nothing.
    pub f_limit: f64,
}

impl Price {
    /// `true` if strata are more different than chance makes them once in a thousand times.
    pub fn is_proven(&self) -> bool {
        self.f.is_some_and(|f| f > self.f_limit)
    }
}

/// Fewest sampled ranks from which a stratum's own variance is estimated.
const TELLING: u64 = 4;

/// Prices the strata 0, 1, … `strata` − 1 that `labels` puts ranks into, for `aims` in `windows` of `vectors`.
///
/// Every window is priced by itself: sizes m_h that bring the error of the whole group's mean within every aim
/// ([`neyman_real`]: at least 1 a stratum), the largest of the aims' in each stratum. Sizes are not rounded up to whole
/// ranks, and floors are not applied.
///
/// Where the ranks are a sample, the ranks that they stand for are priced. A stratum with fewer than four of the sample
/// is taken to vary as the whole group does, as nothing is known of it.
///
/// # Source
/// STATISTICS §2 (allocation) and §5; F as in the analysis of variance (Cochran §5.6), with the degrees of freedom
/// of a single window, as if windows told nothing new, and shared among the guides (Bonferroni).
pub fn price(vectors: &Vectors, windows: &[usize], labels: &[usize], strata: usize, aims: &[Aim]) -> Price {
    let ranks = vectors.ranks();
    let mut counts = vec![0u64; strata];
    labels.iter().for_each(|&label| counts[label] += 1);
    let scale = vectors.population() as f64 / ranks.max(1) as f64;
    let mut sums = Sums { size: 0.0, sizes: vec![0.0; strata], errors: vec![0.0; strata], priced: 0 };
    let mut spread = vec![(0.0, 0.0); aims.len()];
    let mut group = Group::new(ranks, strata);
    for &window in windows {
        let mut parts = Vec::with_capacity(aims.len());
        for (aim, spread) in aims.iter().zip(&mut spread) {
            let (n, y) = vectors.of(window, aim.guide);
            let Some(seen) = group.of(n, y, labels, (&counts, scale), aim) else { continue };
            spread.0 += seen.between;
            spread.1 += seen.within;
            parts.push(seen);
        }
        if !parts.is_empty() {
            sums.add(&parts, &counts);
        }
    }
    let between = strata.saturating_sub(1);
    let within = ranks.saturating_sub(strata);
    let ratio = |&(b, w): &(f64, f64)| {
        // Zero over zero: ranks do not differ.
        (between > 0 && within > 0 && b > 0.0).then(|| b / between as f64 / (w / within as f64))
    };
    let explained = |&(b, w): &(f64, f64)| match b + w {
        all if all > 0.0 => 1.0 - w / all * (between + within) as f64 / within.max(1) as f64,
        _ => 0.0,
    };
    let windows = sums.priced.max(1) as f64;
    Price {
        size: sums.size / windows,
        sizes: sums.sizes.iter().map(|size| size / windows).collect(),
        errors: sums.errors.iter().map(|square| (square / windows).sqrt()).collect(),
        f: spread.iter().filter_map(ratio).reduce(f64::max),
        explained: spread.iter().map(explained).fold(0.0, f64::max),
        f_limit: f_quantile(1.0 - 0.001 / aims.len().max(1) as f64, between, within),
    }
}

struct Sums {
    size: f64,
    sizes: Vec<f64>,
    /// Squares.
    errors: Vec<f64>,
    priced: u64,
}

impl Sums {
    fn add(&mut self, parts: &[Seen], counts: &[u64]) {
        let mut sizes = vec![0.0; counts.len()];
        for part in parts {
            let population = part.strata.iter().map(|stratum| stratum.ranks).sum();
            let asked = neyman_real(&part.strata, population, part.allowed);
            sizes.iter_mut().zip(asked).for_each(|(size, asked)| *size = asked.max(*size));
        }
        self.priced += 1;
        self.size += sizes.iter().sum::<f64>();
        for (stratum, &size) in sizes.iter().enumerate() {
            self.sizes[stratum] += size;
            let error = |part: &Seen| part.error(stratum, size);
            self.errors[stratum] += parts.iter().map(error).fold(0.0, f64::max).powi(2);
        }
    }
}

/// One guide in one window.
struct Seen {
    strata: Vec<Stratum>,
    /// V0.
    allowed: f64,
    z: f64,
    /// S² of every stratum's residuals about its own mean, in units of its own mean total.
    own: Vec<f64>,
    between: f64,
    within: f64,
}

impl Seen {
    /// Half-width of the interval of a stratum's mean, relative to it.
    fn error(&self, stratum: usize, size: f64) -> f64 {
        let ranks = self.strata[stratum].ranks as f64;
        if self.own[stratum] == 0.0 || size >= ranks {
            return 0.0;
        }
        self.z * ((1.0 / size - 1.0 / ranks) * self.own[stratum]).sqrt()
    }
}

/// Room for a window's residuals.
struct Group {
    residuals: Vec<f64>,
    /// Mean residual, by stratum.
    means: Vec<f64>,
    /// Number of observations, by stratum.
    counts: Vec<f64>,
    /// Total of observations, by stratum.
    totals: Vec<f64>,
    /// Ratio of total to number, by stratum.
    ratios: Vec<f64>,
    /// Squares of residuals about the mean residual, by stratum.
    squares: Vec<f64>,
    /// Squares of residuals about the stratum's own mean, by stratum.
    own: Vec<f64>,
}

impl Group {
    fn new(ranks: usize, strata: usize) -> Self {
        let zeros = || vec![0.0; strata];
        let residuals = vec![0.0; ranks];
        Self {
            residuals,
            means: zeros(),
            counts: zeros(),
            totals: zeros(),
            ratios: zeros(),
            squares: zeros(),
            own: zeros(),
        }
    }

    fn of(
        &mut self,
        n: &[f64],
        y: &[f64],
        labels: &[usize],
        (ranks, each): (&[u64], f64),
        aim: &Aim,
    ) -> Option<Seen> {
        let (count, total): (f64, f64) = (n.iter().sum(), y.iter().sum());
        if count == 0.0 {
            return None;
        }
        let ratio = total / count;
        let mean_n = count / n.len() as f64;
        let (scale, error) = match aim.error {
            ErrorBound::Relative(error) => (mean_n * ratio.abs(), error),
            ErrorBound::Absolute(error) => (mean_n, error),
        };
        for ((residual, n), y) in self.residuals.iter_mut().zip(n).zip(y) {
            *residual = y - ratio * n;
        }
        for sums in [&mut self.means, &mut self.counts, &mut self.totals, &mut self.squares, &mut self.own] {
            sums.fill(0.0);
        }
        for (((&label, residual), y), n) in labels.iter().zip(&self.residuals).zip(y).zip(n) {
            self.means[label] += residual;
            self.totals[label] += y;
            self.counts[label] += n;
        }
        self.means.iter_mut().zip(ranks).for_each(|(mean, &ranks)| *mean /= ranks.max(1) as f64);
        for ((ratio, total), count) in self.ratios.iter_mut().zip(&self.totals).zip(&self.counts) {
            // Without an observation in the stratum, residuals are 0 whatever the mean.
            *ratio = total / count.max(f64::MIN_POSITIVE);
        }
        for (((&label, residual), y), n) in labels.iter().zip(&self.residuals).zip(y).zip(n) {
            self.squares[label] += (residual - self.means[label]).powi(2);
            self.own[label] += (y - self.ratios[label] * n).powi(2);
        }
        let variance = |squares: f64, ranks: u64, scale: f64| match ranks {
            0 | 1 => 0.0,
            _ => relative(squares / (ranks - 1) as f64, scale),
        };
        let all = ranks.iter().sum::<u64>();
        let between =
            self.means.iter().zip(ranks).map(|(mean, &ranks)| ranks as f64 * mean * mean).sum::<f64>();
        let within = self.squares.iter().sum::<f64>();
        let stratum = |(&ranks, &squares): (&u64, &f64)| {
            let told = each == 1.0 || ranks == 0 || ranks >= TELLING;
            let (squares, among) = if told { (squares, ranks) } else { (between + within, all) };
            Stratum { ranks: (ranks as f64 * each).round() as u64, variance: variance(squares, among, scale) }
        };
        let own = |((&ranks, &squares), total): ((&u64, &f64), &f64)| {
            variance(squares, ranks, total / ranks.max(1) as f64)
        };
        let z = normal_two_sided(aim.confidence);
        Some(Seen {
            strata: ranks.iter().zip(&self.squares).map(stratum).collect(),
            allowed: (error / z).powi(2),
            z,
            own: ranks.iter().zip(&self.own).zip(&self.totals).map(own).collect(),
            between: relative(between, scale),
            within: relative(within, scale),
        })
    }
}

/// The quantile of F, infinite without degrees of freedom.
fn f_quantile(probability: f64, between: usize, within: usize) -> f64 {
    match FisherSnedecor::new(between as f64, within as f64) {
        Ok(f) if between > 0 && within > 0 => f.inverse_cdf(probability),
        _ => f64::INFINITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sizing::simple_random;

    fn aim(error: f64) -> Aim {
        Aim { guide: 0, confidence: 0.90, error: ErrorBound::Relative(error) }
    }

    fn two_classes(unit: f64) -> Vectors {
        let mut vectors = Vectors::new(100, 1);
        for window in 0..4 {
            let noise = |rank: usize| ((rank * 37 + window * 11) % 19) as f64 - 9.0;
            let value = |rank| if rank < 60 { 100.0 + noise(rank) } else { 300.0 + 2.0 * noise(rank) };
            vectors.push((0..100).map(|rank| (1.0, unit * value(rank))));
        }
        vectors
    }

    #[test]
    fn one_stratum_costs_a_simple_random_sample() {
        let vectors = two_classes(1.0);
        let (n, y) = vectors.of(2, 0);
        let mean = y.iter().sum::<f64>() / n.iter().sum::<f64>();
        let variance = y.iter().map(|y| (y / mean - 1.0).powi(2)).sum::<f64>() / 99.0;
        let expected = simple_random(100, variance, (0.08 / normal_two_sided(0.90)).powi(2));
        let one = price(&vectors, &[2], &[0; 100], 1, &[aim(0.08)]);
        assert_eq!((one.size.ceil(), one.sizes.len(), one.f), (expected as f64, 1, None));
        assert!(!one.is_proven());
        // Its own error is the bound.
        assert!((one.errors[0] / 0.08 - 1.0).abs() < 1e-9, "{one:?}");
    }

    #[test]
    fn strata_are_priced_for_the_error_of_the_whole() {
        let vectors = two_classes(1.0);
        let labels: Vec<usize> = (0..100).map(|rank| usize::from(rank >= 60)).collect();
        let windows = [0, 1, 2, 3];
        let whole = price(&vectors, &windows, &[0; 100], 1, &[aim(0.02)]);
        let two = price(&vectors, &windows, &labels, 2, &[aim(0.02)]);
        assert!(two.size < 0.25 * whole.size, "{two:?} {whole:?}");
        assert!(two.is_proven() && two.f.unwrap() > 1000.0, "{two:?}");
        // The errors of the strata, weighted with their shares of the total, make that of the whole.
        let shares = [60.0 * 100.0, 40.0 * 300.0].map(|part: f64| part / 18_000.0);
        let error = shares.iter().zip(&two.errors).map(|(share, error)| (share * error).powi(2)).sum::<f64>();
        assert!((error.sqrt() / 0.02 - 1.0).abs() < 0.01, "{two:?}");
        // Neither the unit nor labels that say nothing matter.
        assert_eq!(price(&two_classes(1024.0), &windows, &labels, 2, &[aim(0.02)]).sizes, two.sizes);
        let mixed: Vec<usize> = (0..100).map(|rank| rank % 2).collect();
        let mixed = price(&vectors, &windows, &mixed, 2, &[aim(0.02)]);
        assert!(!mixed.is_proven() && mixed.size > 0.95 * whole.size, "{mixed:?} {whole:?}");
        let absolute = Aim { error: ErrorBound::Absolute(0.02 * 180.0), ..aim(0.02) };
        let absolute = price(&vectors, &windows, &labels, 2, &[absolute]);
        assert!((absolute.size - two.size).abs() <= 1.0, "{absolute:?} {two:?}");
    }

    #[test]
    fn quantiles_of_f_agree_with_the_tables() {
        assert!((f_quantile(0.95, 2, 60) - 3.150).abs() < 0.001);
        assert!((f_quantile(0.999, 2, 60) - 7.768).abs() < 0.005);
        assert!((f_quantile(0.999, 3, 100_000) - 16.27 / 3.0).abs() < 0.01);
        assert_eq!(f_quantile(0.999, 0, 10), f64::INFINITY);
    }
}
