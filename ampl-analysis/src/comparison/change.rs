//! Change of a time between two sides, its interval, and how unlikely it is without a cause.

use ampl_core::stats::quantile::{normal_above, normal_two_sided, student_above, student_two_sided};

use super::bootstrap::{self, median};
use super::rank_test;

/// Fewest runs of one side that a single run of the other is compared with.
pub const FEWEST_FOR_ONE: usize = 5;

/// Scale of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// New over base, less one.
    Ratio,
    /// New less base: of shares.
    Difference,
}

/// Knowledge of how much equal runs differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// Only that of the runs themselves.
    Runs,
    /// Standard deviation of one run, as a share, as the user gives it.
    Given(f64),
    /// The same, learned from so many equal runs.
    Learned {
        /// Standard deviation of the logarithm.
        deviation: f64,
        /// Number of the runs.
        runs: u64,
    },
}

/// Way in which an interval is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The values are exact.
    Exact,
    /// Bootstrap of the ratio of medians.
    Bootstrap,
    /// Student's prediction interval of one run's logarithm, from several others'.
    Prediction,
    /// From a given standard deviation.
    Given,
    /// From a learned standard deviation.
    Learned,
    /// There is no interval: too few runs.
    TooFewRuns,
}

impl Method {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Bootstrap => "bootstrap",
            Self::Prediction => "prediction",
            Self::Given => "given noise",
            Self::Learned => "learned noise",
            Self::TooFewRuns => "too few runs",
        }
    }
}

/// Values of a time on two sides, one a run.
#[derive(Clone, Debug)]
pub struct Samples {
    base: Vec<f64>,
    new: Vec<f64>,
    scale: Scale,
    /// Way in which their change is judged.
    pub method: Method,
    noise: Noise,
}

impl Samples {
    /// The values of the runs of each side.
    pub fn new(base: Vec<f64>, new: Vec<f64>, scale: Scale, noise: Noise) -> Self {
        let (n, m) = (base.len(), new.len());
        let no_logarithm = scale == Scale::Ratio && base.iter().chain(&new).any(|&value| value <= 0.0);
        let method = match noise {
            _ if n == 0 || m == 0 => Method::TooFewRuns,
            Noise::Given(_) if !no_logarithm => Method::Given,
            Noise::Learned { runs, .. } if runs >= 2 && !no_logarithm => Method::Learned,
            _ if n >= 2 && m >= 2 => Method::Bootstrap,
            _ if n.max(m) >= FEWEST_FOR_ONE && !no_logarithm => Method::Prediction,
            _ => Method::TooFewRuns,
        };
        Self { base, new, scale, method, noise }
    }

    /// The value that stands for a side: the median, or the mean of logarithms where one run is predicted.
    fn middle(&self, values: &[f64]) -> Option<f64> {
        match self.method {
            Method::Prediction => {
                let logs = self.logs(values);
                Some(self.unlog(logs.iter().sum::<f64>() / logs.len() as f64))
            }
            _ => median(values),
        }
    }

    /// The base's value.
    pub fn base(&self) -> Option<f64> {
        self.middle(&self.base)
    }

    /// The new runs' value.
    pub fn new_value(&self) -> Option<f64> {
        self.middle(&self.new)
    }

    /// Change from the base's value to the new one: relative, or the difference of shares.
    pub fn change(&self) -> Option<f64> {
        let change = self.between(self.base()?, self.new_value()?);
        change.is_finite().then_some(change)
    }

    fn between(&self, base: f64, new: f64) -> f64 {
        match self.scale {
            Scale::Ratio if base == 0.0 && new == 0.0 => 0.0,
            Scale::Ratio if base == 0.0 => f64::INFINITY,
            Scale::Ratio => new / base - 1.0,
            Scale::Difference => new - base,
        }
    }

    fn logs(&self, values: &[f64]) -> Vec<f64> {
        match self.scale {
            Scale::Ratio => values.iter().map(|value| value.ln()).collect(),
            Scale::Difference => values.to_vec(),
        }
    }

    fn unlog(&self, value: f64) -> f64 {
        if self.scale == Scale::Ratio { value.exp() } else { value }
    }

    /// A change as the difference of logarithms.
    fn log_of(&self, change: f64) -> f64 {
        if self.scale == Scale::Ratio { (1.0 + change).max(f64::MIN_POSITIVE).ln() } else { change }
    }

    fn change_of(&self, log: f64) -> f64 {
        if self.scale == Scale::Ratio { log.exp() - 1.0 } else { log }
    }

    /// Difference of logarithms, its standard error, and degrees of freedom; infinite of a given noise.
    fn moments(&self) -> Option<(f64, f64, f64)> {
        let (n, m) = (self.base.len() as f64, self.new.len() as f64);
        let change = self.log_of(self.change()?);
        match (self.method, self.noise) {
            (Method::Given, Noise::Given(noise)) => {
                let deviation = if self.scale == Scale::Ratio { noise.ln_1p() } else { noise };
                Some((change, deviation * (1.0 / n + 1.0 / m).sqrt(), f64::INFINITY))
            }
            (Method::Learned, Noise::Learned { deviation, runs }) => {
                Some((change, deviation * (1.0 / n + 1.0 / m).sqrt(), runs.saturating_sub(1) as f64))
            }
            (Method::Prediction, _) => {
                let many = self.logs(if n > m { &self.base } else { &self.new });
                let count = many.len() as f64;
                Some((change, deviation(&many) * (1.0 + 1.0 / count).sqrt(), count - 1.0))
            }
            _ => None,
        }
    }

    /// Interval of the change at that confidence.
    pub fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        if self.method == Method::Bootstrap {
            let change = |base, new| self.between(base, new);
            return bootstrap::interval(&self.base, &self.new, confidence, change);
        }
        let (change, error, freedom) = self.moments()?;
        let quantile = match freedom.is_finite() {
            true => student_two_sided(confidence, freedom),
            false => normal_two_sided(confidence),
        };
        let half = if error == 0.0 { 0.0 } else { quantile * error };
        Some((self.change_of(change - half), self.change_of(change + half)))
    }

    /// Probability of a change as high as this one, or higher, if the true one is `reference`; 1 where it cannot be
    /// told.
    pub fn above(&self, reference: f64) -> f64 {
        self.beyond(reference, true)
    }

    /// The same of a change as low.
    pub fn below(&self, reference: f64) -> f64 {
        self.beyond(reference, false)
    }

    fn beyond(&self, reference: f64, upwards: bool) -> f64 {
        if self.method == Method::Bootstrap {
            let back = |&value: &f64| match self.scale {
                Scale::Ratio => value / (1.0 + reference).max(f64::MIN_POSITIVE),
                Scale::Difference => value - reference,
            };
            let new: Vec<f64> = self.new.iter().map(back).collect();
            let (low, high) = if upwards { (&self.base, &new) } else { (&new, &self.base) };
            return rank_test::above(low, high);
        }
        let Some((change, error, freedom)) = self.moments() else { return 1.0 };
        let distance = (change - self.log_of(reference)) * if upwards { 1.0 } else { -1.0 };
        match error == 0.0 {
            true => f64::from(u8::from(distance <= 0.0)),
            false if freedom.is_finite() => student_above(distance / error, freedom),
            false => normal_above(distance / error),
        }
    }

    /// Least probability that [`above`](Self::above) and [`below`](Self::below) can have for so many runs.
    pub fn least(&self) -> f64 {
        match self.method {
            Method::Bootstrap => rank_test::least(self.base.len(), self.new.len()),
            Method::TooFewRuns => 1.0,
            _ => 0.0,
        }
    }

    /// Bound on the probability that one run is beyond all of the other side by chance, 1/(n + 1), if it is; needs no
    /// model of noise.
    pub fn rank_bound(&self) -> Option<f64> {
        let (one, many) = match (&self.base[..], &self.new[..]) {
            ([one], many) | (many, [one]) => (*one, many),
            _ => return None,
        };
        let beyond = many.iter().all(|&other| other < one) || many.iter().all(|&other| other > one);
        (beyond && !many.is_empty()).then(|| 1.0 / (many.len() as f64 + 1.0))
    }
}

/// Standard deviation of `values`, by n − 1.
pub fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
    }

    fn runs(random: &mut ChaCha8Rng, number: usize, scale: f64, noise: f64) -> Vec<f64> {
        (0..number).map(|_| scale * (noise * normal(random)).exp()).collect()
    }

    #[test]
    fn equal_runs_fail_no_more_often_than_stated() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        for (n, m, noise) in [
            (5, 5, Noise::Runs),
            (3, 3, Noise::Runs),
            (5, 1, Noise::Runs),
            (1, 8, Noise::Runs),
            (1, 1, Noise::Given(0.03)),
            (2, 2, Noise::Given(0.03)),
        ] {
            let mut failures = 0;
            for _ in 0..1000 {
                let (base, new) = (runs(&mut random, n, 2.0, 0.03), runs(&mut random, m, 2.0, 0.03));
                let samples = Samples::new(base, new, Scale::Ratio, noise);
                failures += usize::from(samples.above(0.0) <= 0.05);
            }
            assert!(failures <= 70, "{n} and {m}: {failures} of 1000");
        }
    }

    #[test]
    fn learned_noise_counts_its_runs() {
        let mut random = ChaCha8Rng::seed_from_u64(6);
        let mut covered = 0;
        for _ in 0..1000 {
            let known: Vec<f64> = runs(&mut random, 6, 1.0, 0.03).iter().map(|value| value.ln()).collect();
            let noise = Noise::Learned { deviation: deviation(&known), runs: 6 };
            let (base, new) = (runs(&mut random, 1, 1.0, 0.03), runs(&mut random, 1, 1.1, 0.03));
            let samples = Samples::new(base, new, Scale::Ratio, noise);
            let (low, high) = samples.interval(0.95).unwrap();
            covered += usize::from(low <= 0.1 && 0.1 <= high);
        }
        assert!((930..=970).contains(&covered), "{covered}");
    }

    #[test]
    fn a_prediction_covers_one_new_run() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let mut covered = 0;
        for _ in 0..1000 {
            let (base, new) = (runs(&mut random, 6, 1.0, 0.05), runs(&mut random, 1, 1.1, 0.05));
            let samples = Samples::new(base, new, Scale::Ratio, Noise::Runs);
            assert_eq!(samples.method, Method::Prediction);
            let (low, high) = samples.interval(0.9).unwrap();
            covered += usize::from(low <= 0.1 && 0.1 <= high);
        }
        assert!((875..=925).contains(&covered), "{covered}");
    }

    #[test]
    fn too_few_runs_tell_nothing() {
        for (n, m) in [(1, 1), (1, 4), (3, 1), (0, 3)] {
            let samples = Samples::new(vec![1.0; n], vec![2.0; m], Scale::Ratio, Noise::Runs);
            assert_eq!(samples.method, Method::TooFewRuns);
            assert_eq!((samples.interval(0.95), samples.above(0.0), samples.least()), (None, 1.0, 1.0));
        }
        let samples = Samples::new(vec![1.0], vec![2.0], Scale::Ratio, Noise::Runs);
        assert_eq!(samples.change(), Some(1.0));
        // Equal runs without any noise still differ by nothing.
        let same = Samples::new(vec![1.0; 5], vec![1.0], Scale::Ratio, Noise::Runs);
        assert_eq!((same.interval(0.95), same.above(0.0)), (Some((0.0, 0.0)), 1.0));
    }

    #[test]
    fn shares_change_in_points() {
        let samples =
            Samples::new(vec![0.9, 0.91, 0.92], vec![0.8, 0.81, 0.82], Scale::Difference, Noise::Runs);
        assert!((samples.change().unwrap() + 0.1).abs() < 1e-12);
        let (low, high) = samples.interval(0.95).unwrap();
        assert!(low < -0.1 && high > -0.1 && high < 0.0);
        assert!((samples.below(0.0) - 0.05).abs() < 1e-12 && samples.below(-0.2) > 0.9);
        assert_eq!(samples.rank_bound(), None);
        let one = Samples::new(vec![1.0; 9], vec![2.0], Scale::Ratio, Noise::Runs);
        assert_eq!(one.rank_bound(), Some(0.1));
    }
}
