//! The populations that sampling is judged on (STATISTICS §4): what every rank of a synthetic job
//! measures in window after window.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One rank's observations of one metric in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Total {
    /// Observations.
    pub n: u64,
    /// Their total.
    pub y: f64,
}

/// How ranks differ from each other and from themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Independent normal values, cv .3.
    Normal,
    /// Independent lognormal values, σ = 1.
    LogNormal,
    /// Half of the ranks around 1, half around 3, the same ones always.
    Bimodal,
    /// One rank in a hundred (at least one) ten times slower than the others.
    Slow,
    /// Persistent differences between ranks, cv .4, and little noise.
    Heterogeneous,
    /// The spread between ranks grows by 2 % per window, and so does the mean by 1 %.
    Drift,
    /// Normal with a variance that triples for every other ten windows.
    Phases,
    /// Each rank an AR(1) process, coefficient .8.
    Autoregressive,
    /// Observations per rank vary fourfold and correlate with the value.
    VaryingCounts,
    /// Four in five ranks have nothing in a window.
    ZeroInflated,
    /// Now and then the operating system takes five times a window's work from a rank.
    Spikes,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Normal,
        Self::LogNormal,
        Self::Bimodal,
        Self::Slow,
        Self::Heterogeneous,
        Self::Drift,
        Self::Phases,
        Self::Autoregressive,
        Self::VaryingCounts,
        Self::ZeroInflated,
        Self::Spikes,
    ];
}

/// A synthetic job's measurements, a function of kind, ranks and seed.
#[derive(Clone, Debug)]
pub struct Population {
    kind: Kind,
    window: u32,
    random: ChaCha8Rng,
    /// What persists of each rank: a standard normal number, or the AR(1) process's state.
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
        let window = Population::new(kind, 20_000, 1).next_window();
        let count = window.len() as f64;
        let n: f64 = window.iter().map(|total| total.n as f64).sum();
        let y: f64 = window.iter().map(|total| total.y).sum();
        let ratio = y / n;
        let squares: f64 = window.iter().map(|total| (total.y - ratio * total.n as f64).powi(2)).sum();
        (ratio, (squares / count).sqrt() / (y / count))
    }

    #[test]
    fn populations_are_what_they_say() {
        let close = |(mean, cv): (f64, f64), expected: (f64, f64)| {
            assert!((mean / expected.0 - 1.0).abs() < 0.04, "{mean} not {}", expected.0);
            assert!((cv / expected.1 - 1.0).abs() < 0.08, "{cv} not {}", expected.1);
        };
        close(ratio_and_cv(Kind::Normal), (100.0, 0.3));
        close(ratio_and_cv(Kind::LogNormal), (164.9, 1.31));
        close(ratio_and_cv(Kind::Bimodal), (200.0, 0.5025));
        close(ratio_and_cv(Kind::Slow), (109.0, 0.834));
        close(ratio_and_cv(Kind::ZeroInflated), (15.96, 2.61));
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
