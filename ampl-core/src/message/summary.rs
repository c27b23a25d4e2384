//! One rank's part of the sums of a window.

use crate::plan::Plan;
use crate::stats::Moments;

/// One rank's observations of one metric in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricSummary {
    /// Observations.
    pub n: u64,
    /// Their total, in the metric's unit.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_sq: f64,
    /// The smallest; infinite without any.
    pub min: f64,
    /// The largest; minus infinity without any.
    pub max: f64,
}

impl Default for MetricSummary {
    fn default() -> Self {
        Self { n: 0, sum: 0.0, sum_sq: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl MetricSummary {
    /// The summary of a single observation.
    pub fn one(value: f64) -> Self {
        Self { n: 1, sum: value, sum_sq: value * value, min: value, max: value }
    }

    /// Adds one observation.
    pub fn observe(&mut self, value: f64) {
        self.merge(&Self::one(value));
    }

    /// Adds the observations of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.n = self.n.saturating_add(other.n);
        self.sum += other.sum;
        self.sum_sq += other.sum_sq;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(super) fn moments(&self, windows: u64) -> Moments {
        Moments::of_rank_windows(windows, self.n, self.sum, self.sum_sq, self.min, self.max)
    }
}

/// One rank's window.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// One entry per metric, in the order of [`Plan::metrics`].
    pub metrics: Vec<MetricSummary>,
    /// `true` if the rank keeps the window.
    pub kept: bool,
    /// Keep probability, in [0, 1].
    pub probability: f64,
    /// Bytes that keeping it took; under a retrospective decision, bytes that it would take.
    pub bytes: u64,
    /// Bytes that the rank has kept since the window before, of any windows.
    pub spent: u64,
}

impl Summary {
    /// A window of that plan without observations, not kept.
    pub fn empty(plan: &Plan) -> Self {
        let metrics = vec![MetricSummary::default(); plan.metrics.len()];
        Self { metrics, kept: false, probability: 0.0, bytes: 0, spent: 0 }
    }
}
