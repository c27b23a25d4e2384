//! A metric that no bound is about, estimated from the ranks that were kept for another one.

use ampl_client::simulate::Job;
use ampl_core::config::ErrorBound;
use ampl_core::message::MetricSummary;
use ampl_testkit::{Kind, Population};

/// Correlation of the metric with the guide.
const CORRELATION: f64 = 0.5;
/// Coefficient of variation of the metric.
const SPREAD: f64 = 0.3;

/// Source of the metric's values.
pub struct Other {
    noise: Population,
}

/// Every rank's value, and the guide's.
pub struct Values {
    own: Vec<f64>,
    guide: Vec<f64>,
}

/// Number of windows, and how many were estimated within the guide's bound.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undeclared {
    windows: f64,
    covered: f64,
    calibrated: f64,
}

impl Other {
    pub fn new(ranks: u32, seed: u64) -> Self {
        Self { noise: Population::new(Kind::Normal, ranks as usize, seed ^ 0x5a5a) }
    }

    pub fn next_window(&mut self, guide: &[MetricSummary]) -> Values {
        let guide: Vec<f64> = guide.iter().map(|seen| seen.sum).collect();
        let noise: Vec<f64> = self.noise.next_window().into_iter().map(|total| total.y).collect();
        let pairs = standard(&guide).into_iter().zip(standard(&noise));
        let own = pairs.map(|(score, noise)| {
            1.0 + SPREAD * (CORRELATION * score + (1.0 - CORRELATION * CORRELATION).sqrt() * noise)
        });
        Values { own: own.collect(), guide }
    }
}

/// Values with mean 0 and variance 1; zeros where all are the same.
fn standard(values: &[f64]) -> Vec<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let deviation = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    values.iter().map(|value| if deviation > 0.0 { (value - mean) / deviation } else { 0.0 }).collect()
}

impl Undeclared {
    /// Takes a window that these ranks kept, each with its probability.
    pub fn window(&mut self, values: &Values, kept: &[(u32, f64)], job: &Job) {
        let Some((_, ErrorBound::Relative(error))) = job.bound(0, 0) else { return };
        let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
        let weights: f64 = kept.iter().map(|(_, probability)| 1.0 / probability).sum();
        let weighted = |of: &dyn Fn(usize) -> f64| {
            kept.iter().map(|&(rank, probability)| of(rank as usize) / probability).sum::<f64>() / weights
        };
        let (own, guide) = (weighted(&|rank| values.own[rank]), weighted(&|rank| values.guide[rank]));
        let cross = weighted(&|rank| (values.own[rank] - own) * (values.guide[rank] - guide));
        let square = weighted(&|rank| (values.guide[rank] - guide).powi(2));
        // The guide's mean is known exactly: what the sample has of it too much, the regression takes away.
        let slope = if square > 0.0 { cross / square } else { 0.0 };
        let calibrated = own + slope * (mean(&values.guide) - guide);
        let truth = mean(&values.own);
        let covered = |estimate: f64| f64::from(u8::from((estimate - truth).abs() <= error * truth.abs()));
        self.windows += 1.0;
        self.covered += covered(own);
        self.calibrated += covered(calibrated);
    }

    pub fn merge(&mut self, other: &Self) {
        self.windows += other.windows;
        self.covered += other.covered;
        self.calibrated += other.calibrated;
    }

    /// Coverage by the weighted mean, and by the one that is calibrated on the guide's total.
    pub fn coverage(&self) -> (f64, f64) {
        (self.covered / self.windows, self.calibrated / self.windows)
    }
}
