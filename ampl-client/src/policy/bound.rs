//! A guide's bound, and variances in its unit.

use ampl_core::config::{ErrorBound, Target};
use ampl_core::stats::Moments;

/// A bound on the error of a group's mean.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub confidence: f64,
    error: ErrorBound,
}

/// The mean of a whole group, as known from all of its ranks or from a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupMean {
    /// R, in the metric's unit per observation.
    pub ratio: f64,
    /// N̄: observations per rank.
    pub mean_n: f64,
}

impl GroupMean {
    /// The weighted mean of `taken`, standing for themselves, and `drawn`, standing for `others`;
    /// `None` without observations, or where none of the others was drawn.
    pub fn new(taken: &Moments, drawn: &Moments, others: f64) -> Option<Self> {
        if drawn.ranks == 0 && others > 0.0 {
            return None;
        }
        let weight = if others == 0.0 { 0.0 } else { others / drawn.ranks as f64 };
        let count = taken.n as f64 + weight * drawn.n as f64;
        let ranks = taken.ranks as f64 + others;
        (count > 0.0).then(|| Self { ratio: (taken.y + weight * drawn.y) / count, mean_n: count / ranks })
    }
}

impl Bound {
    pub fn new(confidence: f64, error: ErrorBound) -> Self {
        Self { confidence, error }
    }

    /// Bound on a guide that `target` sets; `None` for a fixed size.
    pub fn of(target: Target) -> Option<Self> {
        match target {
            Target::Bound { confidence, error } => Some(Self::new(confidence, error)),
            Target::Static { .. } => None,
        }
    }

    /// The half-width asked for, and of what kind it is.
    pub fn asked(&self) -> ErrorBound {
        self.error
    }

    /// The half-width asked for, relative to the mean or in the metric's unit.
    pub fn error(&self) -> f64 {
        match self.error {
            ErrorBound::Relative(error) | ErrorBound::Absolute(error) => error,
        }
    }

    /// The half-width asked for in the metric's unit, around that mean.
    pub fn half_width(&self, mean: GroupMean) -> f64 {
        match self.error {
            ErrorBound::Relative(error) => error * mean.ratio.abs(),
            ErrorBound::Absolute(error) => error,
        }
    }

    /// Divisor of residuals of ranks' totals, so that the bound is [`Bound::error`].
    pub fn unit(&self, mean: GroupMean) -> f64 {
        match self.error {
            ErrorBound::Relative(_) => mean.mean_n * mean.ratio,
            ErrorBound::Absolute(_) => mean.mean_n,
        }
    }

    /// The mean in the unit of [`Bound::error`].
    pub fn mean(&self, mean: GroupMean) -> f64 {
        match self.error {
            ErrorBound::Relative(_) => 1.0,
            ErrorBound::Absolute(_) => mean.ratio.abs(),
        }
    }

    /// Unit of bins, in the unit of [`Bound::error`]. It is the same for all common bounds, so that a looser bound,
    /// whose strata are cut along the same bins, takes no more ranks than a tighter one on average.
    pub fn bin_unit(&self, mean: GroupMean) -> f64 {
        const SHARE: f64 = 0.02;
        const COMMON: std::ops::RangeInclusive<f64> = 0.0049..=0.5;
        let (error, mean) = (self.error(), self.mean(mean));
        if COMMON.contains(&(error / mean)) { SHARE * mean } else { error }
    }

    /// Probability left to samples in which no rank has an observation: a tenth of the risk of missing the bound.
    pub fn unseen(&self) -> f64 {
        (1.0 - self.confidence) / 10.0
    }

    /// S² of the residuals of `ranks` about the group's mean, in the unit of [`Bound::error`]
    /// squared: z of STATISTICS §2 for a relative bound, e/N̄ for an absolute one.
    pub fn variance(&self, ranks: &Moments, mean: GroupMean) -> f64 {
        let scale = self.unit(mean);
        let variance = ranks.residual_variance_about(mean.ratio);
        if variance == 0.0 { 0.0 } else { variance / (scale * scale) }
    }
}
