//! Estimates of a window from what was kept of it.
//!
//! A group's ranks are a take-all part A (pinned, or kept with certainty) and a simple random
//! sample s of the others, M_r of them. The estimator is the weighted ratio
//! R̂ = (Σ_A y + Σ_s w y)/(Σ_A n + Σ_s w n); coin flips use Hájek weights, scaled so that they sum
//! to M_r, since the Horvitz–Thompson total varies with the sample's size.

use super::moments::Moments;
use super::quantile::{normal_two_sided, student_two_sided, variance_freedom};

/// Data that an estimate was computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// Summaries of every rank: exact.
    Census,
    /// Summaries of some ranks: a sample, or those that there are where some are missing.
    Sampled,
    /// Kept traces.
    Trace,
}

impl Basis {
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Census => "census",
            Self::Sampled => "sampled",
            Self::Trace => "trace",
        }
    }
}

/// A mean with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// R̂, in the metric's unit per observation.
    pub mean: f64,
    /// Half of the confidence interval, in the same unit; infinite when one rank stands for many.
    pub half_width: f64,
    /// Confidence that the interval holds, in (0, 1).
    pub confidence: f64,
    /// `half_width` relative to the mean; 0 when both are 0.
    pub error: f64,
    /// M: ranks that the estimate is about.
    pub population: u64,
    /// Ranks that it was computed from.
    pub kept: u64,
    /// Data that it was computed from.
    pub basis: Basis,
}

impl Estimate {
    fn new(basis: Basis, mean: f64, half_width: f64, confidence: f64, counts: (u64, u64)) -> Self {
        let error = if half_width == 0.0 { 0.0 } else { half_width / mean.abs() };
        let (population, kept) = counts;
        Self { mean, half_width, confidence, error, population, kept, basis }
    }

    /// `true` if `truth` lies in the interval.
    pub fn covers(&self, truth: f64) -> bool {
        (self.mean - truth).abs() <= self.half_width
    }
}

/// The exact mean of ranks that all reported; `None` without observations.
///
/// The half-width is 0 also when some of `population` are missing: nothing is known of those, so
/// compare `kept` with `population` before calling it exact.
pub fn census(all: &Moments, windows: u64, population: u64, confidence: f64) -> Option<Estimate> {
    let kept = all.ranks / windows.max(1);
    Some(Estimate::new(Basis::Census, all.ratio()?, 0.0, confidence, (population, kept)))
}

/// The estimate from moments: `taken` over ranks kept with certainty, `drawn` over those kept of
/// `others` further ranks. `None` without observations, or when none of `others` was drawn.
///
/// # Source
/// Variance of the ratio: Cochran §6.3 (linearised; residuals about R̂, (7) of AMPL 2008 without
/// take-all ranks). Student's quantile with the ν of [`variance_freedom`], at most m − 1. A jackknife,
/// which repairs the downward bias of s² where n_i varies with y_i, would need per-rank values.
pub fn from_moments(taken: &Moments, drawn: &Moments, others: u64, confidence: f64) -> Option<Estimate> {
    if drawn.ranks == 0 && others > 0 {
        return None;
    }
    let weight = if others == 0 { 0.0 } else { others as f64 / drawn.ranks as f64 };
    let count = taken.n as f64 + weight * drawn.n as f64;
    if count == 0.0 {
        return None;
    }
    let mean = (taken.y + weight * drawn.y) / count;
    let squares = weight * weight * drawn.residual_squares(mean);
    let spread = Spread { drawn: drawn.ranks, others, squares, kurtosis: drawn.kurtosis() };
    let half_width = spread.half_width(confidence) / count;
    let counts = (taken.ranks + others, taken.ranks + drawn.ranks.min(others));
    Some(Estimate::new(Basis::Sampled, mean, half_width, confidence, counts))
}

/// The weighted residuals of the drawn ranks.
struct Spread {
    drawn: u64,
    others: u64,
    /// Σ (w e − mean)², in the metric's unit squared.
    squares: f64,
    kurtosis: Option<f64>,
}

impl Spread {
    /// Half-width of the estimated total of residuals.
    fn half_width(&self, confidence: f64) -> f64 {
        if self.drawn >= self.others {
            return 0.0;
        }
        if self.drawn < 2 {
            return f64::INFINITY;
        }
        let m = self.drawn as f64;
        let variance = (1.0 - m / self.others as f64) * m / (m - 1.0) * self.squares;
        if variance == 0.0 {
            return 0.0;
        }
        // A light-tailed sample of a few ranks is no reason to trust its variance more.
        let kurtosis = self.kurtosis.unwrap_or(3.0).max(3.0);
        student_two_sided(confidence, variance_freedom(self.drawn, kurtosis)) * variance.sqrt()
    }
}

/// One kept rank of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item {
    /// Observations of the rank.
    pub n: u64,
    /// Their total, in the metric's unit.
    pub y: f64,
    /// Inclusion probability, in (0, 1]; 1 means that the rank stands for itself only.
    pub probability: f64,
}

/// The estimate from kept ranks of a group of `population`; `None` without observations, or with
/// fewer than two ranks where others are missing.
///
/// `variance`, where the census knows it, is s² of the residuals e_i of the ranks that are not
/// certain ([`Moments::residual_variance_about`] the census ratio), in the metric's unit squared;
/// the normal quantile applies then. Items of different probabilities below 1 (a directive that
/// reached ranks in different windows) keep their relative weights.
pub fn ratio_estimate(
    items: impl IntoIterator<Item = Item>,
    population: u64,
    confidence: f64,
    variance: Option<f64>,
) -> Option<Estimate> {
    let (certain, drawn): (Vec<Item>, Vec<Item>) =
        items.into_iter().partition(|item| item.probability >= 1.0);
    let others = population.saturating_sub(certain.len() as u64);
    if drawn.is_empty() && others > 0 {
        return from_certain(&certain, population, confidence);
    }
    let inverse: f64 = drawn.iter().map(|item| 1.0 / item.probability).sum();
    let weight = |item: &Item| others as f64 / inverse / item.probability;
    let weighted = |value: fn(&Item) -> f64| {
        certain.iter().map(value).sum::<f64>()
            + drawn.iter().map(|item| weight(item) * value(item)).sum::<f64>()
    };
    let count = weighted(|item| item.n as f64);
    if count == 0.0 {
        return None;
    }
    let mean = weighted(|item| item.y) / count;
    let residual = |item: &Item| item.y - mean * item.n as f64;
    let centre = drawn.iter().map(|item| weight(item) * residual(item)).sum::<f64>() / others.max(1) as f64;
    let deviations = || drawn.iter().map(|item| weight(item) * (residual(item) - centre));
    let squares: f64 = deviations().map(|d| d * d).sum();
    let fourth: f64 = deviations().map(|d| d.powi(4)).sum();
    let m = drawn.len() as f64;
    let spread = Spread {
        drawn: drawn.len() as u64,
        others,
        squares,
        kurtosis: (squares > 0.0).then(|| fourth * m / (squares * squares)),
    };
    let half_width = match variance {
        Some(variance) if spread.drawn < others => {
            let others = others as f64;
            normal_two_sided(confidence) * others * ((1.0 / m - 1.0 / others) * variance).sqrt()
        }
        // A single drawn rank has no variance of its own: that of all kept ranks stands in for it.
        _ if spread.drawn == 1 && others > 1 && !certain.is_empty() => {
            let kept = certain.len() as f64 + 1.0;
            let squares: f64 = certain.iter().chain(&drawn).map(|item| residual(item).powi(2)).sum();
            let others = others as f64;
            let variance = others * others * (1.0 - 1.0 / others) * squares / (kept - 1.0);
            student_two_sided(confidence, kept - 1.0) * variance.sqrt()
        }
        _ => spread.half_width(confidence),
    };
    let counts = (population, certain.len() as u64 + spread.drawn);
    Some(Estimate::new(Basis::Trace, mean, half_width / count, confidence, counts))
}

/// Estimate from ranks kept with certainty, where others are missing: between two directives, a few ranks may draw
/// already and not be drawn, while the others still keep everything. Those others stand for the few; `None` with fewer
/// than two of them.
fn from_certain(certain: &[Item], population: u64, confidence: f64) -> Option<Estimate> {
    let kept = certain.len() as f64;
    let missing = population as f64 - kept;
    let count: f64 = certain.iter().map(|item| item.n as f64).sum();
    if certain.len() < 2 || count == 0.0 {
        return None;
    }
    let mean = certain.iter().map(|item| item.y).sum::<f64>() / count;
    let squares: f64 = certain.iter().map(|item| (item.y - mean * item.n as f64).powi(2)).sum();
    // Of a total predicted for `missing` ranks: their own spread, and that of the mean they are given.
    let variance = squares / (kept - 1.0) * (missing + missing * missing / kept);
    let half_width = student_two_sided(confidence, kept - 1.0) * variance.sqrt();
    let half_width = half_width / (count * population as f64 / kept);
    Some(Estimate::new(Basis::Trace, mean, half_width, confidence, (population, certain.len() as u64)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(items: &[Item]) -> Moments {
        items.iter().fold(Moments::default(), |sum, item| {
            sum.merged(&Moments::of_rank(item.n, item.y, 0.0, 0.0, 0.0))
        })
    }

    #[test]
    fn both_ways_to_the_estimate_agree() {
        let item = |n, y, probability| Item { n, y, probability };
        let certain = [item(4, 90.0, 1.0), item(1, 3.0, 1.0)];
        let p = 0.2;
        let drawn = [item(2, 5.0, p), item(3, 7.0, p), item(2, 9.0, p), item(4, 9.0, p)];
        let items = certain.into_iter().chain(drawn);
        let traces = ratio_estimate(items, 22, 0.9, None).unwrap();
        let sums = from_moments(&moments(&certain), &moments(&drawn), 20, 0.9).unwrap();
        assert!((traces.mean - (93.0 + 5.0 * 30.0) / (5.0 + 5.0 * 11.0)).abs() < 1e-12);
        assert!((traces.mean - sums.mean).abs() < 1e-12);
        // The kurtosis of residuals and of totals differ; both are below 3 here.
        assert!((traces.half_width / sums.half_width - 1.0).abs() < 1e-12);
        assert_eq!((traces.population, traces.kept, sums.kept), (22, 6, 6));
        let known = ratio_estimate(certain.into_iter().chain(drawn), 22, 0.9, Some(0.0)).unwrap();
        assert_eq!(known.half_width, 0.0);
    }

    #[test]
    fn everyone_is_exact_and_one_of_many_says_nothing() {
        let item = |y, probability| Item { n: 1, y, probability };
        let all = ratio_estimate([item(1.0, 1.0), item(4.0, 1.0)], 2, 0.9, None).unwrap();
        assert_eq!((all.mean, all.half_width, all.error), (2.5, 0.0, 0.0));
        let one = ratio_estimate([item(1.0, 0.1)], 10, 0.9, None).unwrap();
        assert_eq!((one.mean, one.half_width), (1.0, f64::INFINITY));
        // Beside ranks that stand for themselves, it borrows their spread.
        let mixed = [item(9.0, 1.0), item(11.0, 1.0), item(10.0, 0.5)];
        let mixed = ratio_estimate(mixed, 4, 0.9, None).unwrap();
        assert_eq!(mixed.mean, 10.0);
        assert!(mixed.half_width > 0.5 && mixed.half_width < 2.0, "{mixed:?}");
        assert_eq!(ratio_estimate([item(1.0, 1.0)], 10, 0.9, None), None);
        let missed = ratio_estimate([item(9.0, 1.0), item(11.0, 1.0)], 3, 0.9, None).unwrap();
        assert!(missed.mean == 10.0 && missed.half_width > 1.0, "{missed:?}");
        assert_eq!(ratio_estimate([], 0, 0.9, None), None);
        assert_eq!(census(&Moments::default(), 1, 4, 0.9), None);
    }
}
