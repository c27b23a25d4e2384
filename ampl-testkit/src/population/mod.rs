//! The populations that sampling is judged on (STATISTICS §4): what every rank of a synthetic job
//! measures in window after window.

mod kind;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use kind::Kind;

/// One rank's observations of one metric in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Total {
    /// Observations.
    pub n: u64,
    /// Total of the observations.
    pub y: f64,
}

/// A synthetic job's measurements, a function of kind, ranks and seed.
#[derive(Clone, Debug)]
pub struct Population {
    kind: Kind,
    window: u32,
    random: ChaCha8Rng,
    /// Persistent part of each rank: a standard normal number, or the AR(1) process's state.
    ranks: Vec<f64>,
}

impl Population {
    /// The population before its first window.
    pub fn new(kind: Kind, ranks: usize, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let ranks = (0..ranks).map(|_| normal(&mut random)).collect();
        Self { kind, window: 0, random, ranks }
    }

    /// Every rank's totals in the next window.
    pub fn next_window(&mut self) -> Vec<Total> {
        let count = self.ranks.len();
        let window = f64::from(self.window);
        let noisy_phase = (self.window / 10) % 2 == 1;
        self.window += 1;
        (0..count).map(|rank| self.total(rank, count, window, noisy_phase)).collect()
    }

    fn total(&mut self, rank: usize, count: usize, window: f64, noisy_phase: bool) -> Total {
        let random = &mut self.random;
        let own = self.ranks[rank];
        let z = normal(random);
        let one = |y: f64| Total { n: 1, y: 100.0 * y.max(0.01) };
        match self.kind {
            Kind::Normal => one(1.0 + 0.3 * z),
            Kind::LogNormal => one(z.exp()),
            Kind::Bimodal => one(if rank.is_multiple_of(2) { 1.0 } else { 3.0 } + 0.1 * z),
            Kind::Slow => {
                let slow = rank < count.div_ceil(100);
                one(if slow { 10.0 } else { 1.0 } * (1.0 + 0.1 * z))
            }
            Kind::Heterogeneous => one((0.4 * own).exp() * (1.0 + 0.05 * z)),
            Kind::Drift => one(1.01f64.powf(window) * (1.0 + 0.15 * 1.02f64.powf(window) * z)),
            Kind::Phases => {
                let variance = if noisy_phase { 3.0 } else { 1.0 };
                one(1.0 + 0.25 * f64::sqrt(variance) * z)
            }
            Kind::Autoregressive => {
                self.ranks[rank] = 0.8 * own + 0.6 * z;
                one(1.0 + 0.3 * self.ranks[rank])
            }
            Kind::VaryingCounts => {
                let n = (20.0 * (0.5 * own + 0.2 * z).exp()).ceil();
                let value = (0.3 * own).exp() * (1.0 + 0.1 * normal(random));
                Total { n: n as u64, y: n * value }
            }
            Kind::ZeroInflated => {
                let busy = random.random::<f64>() < 0.2;
                Total { n: 1, y: if busy { 100.0 * z.abs() } else { 0.0 } }
            }
            Kind::Spikes => {
                let spike = if random.random::<f64>() < 0.01 { 5.0 } else { 0.0 };
                one(1.0 + 0.1 * z + spike)
            }
        }
    }
}

/// A standard normal number (Box & Muller 1958).
pub fn normal(random: &mut impl Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio_and_cv(kind: Kind) -> (f64, f64) {
        let window = Population::new(kind, 100_000, 1).next_window();
        let count = window.len() as f64;
        let n: f64 = window.iter().map(|total| total.n as f64).sum();
        let y: f64 = window.iter().map(|total| total.y).sum();
        let ratio = y / n;
        let squares: f64 = window.iter().map(|total| (total.y - ratio * total.n as f64).powi(2)).sum();
        (ratio, (squares / count).sqrt() / (y / count))
    }

    #[test]
    fn populations_are_what_they_say() {
        for kind in Kind::ALL {
            let (mean, cv) = ratio_and_cv(kind);
            let stated = kind.mean_and_cv();
            assert!((mean / stated.0 - 1.0).abs() < 0.015, "{kind:?}: mean {mean} not {}", stated.0);
            // The fourth moments are large where a few ranks make the variance.
            assert!((cv / stated.1 - 1.0).abs() < 0.05, "{kind:?}: cv {cv} not {}", stated.1);
            assert_eq!(Kind::by_name(kind.name()), Some(kind));
        }
    }

    /// Residuals of all ranks in each of some windows, relative to the mean.
    fn residuals(kind: Kind, windows: usize) -> Vec<Vec<f64>> {
        let mut population = Population::new(kind, 20_000, 5);
        let residuals = |totals: Vec<Total>| -> Vec<f64> {
            let mean = totals.iter().map(|total| total.y).sum::<f64>() / totals.len() as f64;
            totals.iter().map(|total| total.y / mean - 1.0).collect()
        };
        (0..windows).map(|_| residuals(population.next_window())).collect()
    }

    fn variance(values: &[f64]) -> f64 {
        values.iter().map(|value| value * value).sum::<f64>() / values.len() as f64
    }

    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let sum: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
        sum / a.len() as f64 / (variance(a) * variance(b)).sqrt()
    }

    #[test]
    fn windows_depend_on_each_other_as_they_say() {
        let near = |found: f64, stated: f64| assert!((found - stated).abs() < 0.06, "{found} not {stated}");
        for (kind, stated) in [
            (Kind::Normal, 0.0),
            (Kind::Spikes, 0.0),
            (Kind::ZeroInflated, 0.0),
            (Kind::Autoregressive, 0.8),
            (Kind::Bimodal, 1.0),
            (Kind::Slow, 1.0),
            (Kind::Heterogeneous, 1.0),
        ] {
            let windows = residuals(kind, 2);
            near(correlation(&windows[0], &windows[1]), stated);
        }
        let phases = residuals(Kind::Phases, 21);
        near(variance(&phases[10]) / variance(&phases[9]) / 3.0, 1.0);
        near(variance(&phases[20]) / variance(&phases[9]), 1.0);
        let drift = residuals(Kind::Drift, 36);
        near((variance(&drift[35]) / variance(&drift[0])).sqrt() / 1.02f64.powi(35), 1.0);
    }

    #[test]
    fn a_seed_repeats() {
        for kind in Kind::ALL {
            let mut first = Population::new(kind, 20, 3);
            let mut again = first.clone();
            assert_eq!(first.next_window(), again.next_window());
            let other = Population::new(kind, 20, 4).next_window();
            assert_ne!(Population::new(kind, 20, 3).next_window(), other, "{kind:?}");
        }
    }
}
