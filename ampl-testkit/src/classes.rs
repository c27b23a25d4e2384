//! Populations whose ranks fall into lasting classes, as strata are to find them.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::population::{Total, normal};

/// Classes of ranks, and how alike the ranks of a class are.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    /// Share of the ranks, and their mean; shares add up to 1.
    pub classes: Vec<(f64, f64)>,
    /// Lasting differences between ranks of a class: σ of a lognormal factor.
    pub lasting: f64,
    /// Differences between windows of a rank: σ of a lognormal factor.
    pub noise: f64,
}

impl Classes {
    /// Equally large classes of those means, with noise only.
    pub fn equal(means: &[f64], noise: f64) -> Self {
        let share = 1.0 / means.len() as f64;
        Self { classes: means.iter().map(|&mean| (share, mean)).collect(), lasting: 0.0, noise }
    }

    /// Mean time in `MPI_Waitsome` of a statically divided mesh, as in the strata of AMPL 2008 §4.7: three ranks
    /// in five are busy, the others wait for them 2.3 times as long. The cv over all ranks is about .45, which is
    /// what the 28 times less data of its figure 7 (2048 ranks, 90 %, 8 %) take; .15 of it remains in a class.
    /// The paper gives neither the classes nor their sizes: they are chosen here.
    pub fn wait_times() -> Self {
        Self { classes: vec![(0.6, 1.0), (0.4, 2.3)], lasting: 0.1, noise: 0.11 }
    }

    /// The job before its first window, a function of ranks and seed.
    pub fn job(&self, ranks: usize, seed: u64) -> ClassJob {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut labels = Vec::with_capacity(ranks);
        let mut share = 0.0;
        for (class, &(part, _)) in self.classes.iter().enumerate() {
            share += part;
            labels.resize(((share * ranks as f64).round() as usize).min(ranks), class);
        }
        labels.resize(ranks, self.classes.len() - 1);
        // Scattered over the ranks (Fisher & Yates).
        for last in (1..ranks).rev() {
            labels.swap(last, random.random_range(0..=last));
        }
        let own = |&class: &usize| self.classes[class].1 * (self.lasting * normal(&mut random)).exp();
        let own = labels.iter().map(own).collect();
        ClassJob { own, labels, noise: self.noise, random }
    }
}

/// A job whose ranks fall into classes.
#[derive(Clone, Debug)]
pub struct ClassJob {
    /// The class of every rank.
    pub labels: Vec<usize>,
    own: Vec<f64>,
    noise: f64,
    random: ChaCha8Rng,
}

impl ClassJob {
    /// Every rank's total in the next window, one observation each.
    pub fn next_window(&mut self) -> Vec<Total> {
        let Self { own, noise, random, .. } = self;
        own.iter().map(|own| Total { n: 1, y: 100.0 * own * (*noise * normal(random)).exp() }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_their_shares_and_means() {
        let kind = Classes::wait_times();
        let mut job = kind.job(20_000, 4);
        let window = job.next_window();
        for (class, (share, mean)) in kind.classes.iter().enumerate() {
            let own: Vec<f64> =
                window.iter().zip(&job.labels).filter(|(_, l)| **l == class).map(|(t, _)| t.y).collect();
            assert_eq!(own.len(), (share * 20_000.0) as usize);
            // A lognormal factor's mean is above 1.
            let expected = 100.0 * mean * (0.5 * (0.1_f64.powi(2) + 0.11_f64.powi(2))).exp();
            assert!((own.iter().sum::<f64>() / own.len() as f64 / expected - 1.0).abs() < 0.01, "{class}");
        }
        let mean = window.iter().map(|total| total.y).sum::<f64>() / 20_000.0;
        let squares = window.iter().map(|total| (total.y / mean - 1.0).powi(2)).sum::<f64>() / 20_000.0;
        assert!((squares.sqrt() / 0.45 - 1.0).abs() < 0.05, "{}", squares.sqrt());
        assert_ne!(kind.job(9, 1).labels, kind.job(9, 2).labels);
    }
}
