//! Bootstrap interval of the change between two medians, computed exactly: no random numbers.

use ampl_core::stats::quantile::{normal_above, student_two_sided};

/// A value and its probability.
type Point = (f64, f64);

/// Most points of one side's distribution.
const MOST_POINTS: usize = 128;

/// Interval of `change(base median, new median)` with that confidence: percentiles of the bootstrap distribution, in
/// which both sides are drawn anew with replacement. Percentiles are those of Student's t for the smaller side, without
/// which intervals of few runs are too short.
///
/// # Source
/// Efron, Tibshirani, *An Introduction to the Bootstrap* (1993), ch. 13; probabilities of order statistics of a resample
/// are binomial, which makes the distribution exact. Hesterberg, *The American Statistician* 69 (2015), 371–386, for the
/// expanded percentiles.
pub fn interval(
    base: &[f64],
    new: &[f64],
    confidence: f64,
    change: impl Fn(f64, f64) -> f64,
) -> Option<(f64, f64)> {
    let tail = tail(base.len().min(new.len()), confidence);
    let (base, new) = (medians(base), medians(new));
    let mut points: Vec<Point> = Vec::with_capacity(base.len() * new.len());
    for &(one, likely) in &base {
        for &(other, probability) in &new {
            points.push((change(one, other), likely * probability));
        }
    }
    if points.is_empty() || points.iter().any(|(value, _)| value.is_nan()) {
        return None;
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let beyond = |points: &mut dyn Iterator<Item = &Point>| {
        let mut sum = 0.0;
        for &(value, probability) in points {
            sum += probability;
            if sum > tail * (1.0 + 1e-9) {
                return Some(value);
            }
        }
        None
    };
    Some((beyond(&mut points.iter())?, beyond(&mut points.iter().rev())?))
}

/// Share of the bootstrap distribution beyond either end of an interval from `runs` values a side.
fn tail(runs: usize, confidence: f64) -> f64 {
    if runs < 2 {
        return (1.0 - confidence) / 2.0;
    }
    let runs = runs as f64;
    normal_above((runs / (runs - 1.0)).sqrt() * student_two_sided(confidence, runs - 1.0))
}

/// The median of `values`; of an even number the mean of the two in the middle.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    let middle = values.len() / 2;
    let is_even = values.len().is_multiple_of(2);
    if values.is_empty() {
        return None;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if is_even => Some((lower + upper) / 2.0),
        _ => Some(upper),
    }
}

/// Distribution of the median of as many values drawn from `values` with replacement.
fn medians(values: &[f64]) -> Vec<Point> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n == 0 {
        return Vec::new();
    }
    let (low, high) = (n.div_ceil(2), n / 2 + 1);
    let mut points = Vec::new();
    let single =
        |i: usize| at_least(n, low, i as f64 / n as f64) - at_least(n, low, (i - 1) as f64 / n as f64);
    for i in 1..=n {
        if low == high {
            points.push((sorted[i - 1], single(i)));
            continue;
        }
        // `low` draws are at most value i, which is one of them; the others are at least value j, which is one of them.
        let share = |part: usize, draws: usize| (part as f64 / n as f64).powi(draws as i32);
        let lower = share(i, low) - share(i - 1, low);
        let mut both = single(i);
        for j in i + 1..=n {
            let upper = share(n - j + 1, n - low) - share(n - j, n - low);
            let probability = choose(n, low) * lower * upper;
            both -= probability;
            points.push(((sorted[i - 1] + sorted[j - 1]) / 2.0, probability));
        }
        points.push((sorted[i - 1], both.max(0.0)));
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    thinned(points)
}

/// `points`, in order, with neighbours put together where there are many.
fn thinned(points: Vec<Point>) -> Vec<Point> {
    if points.len() <= MOST_POINTS {
        return points;
    }
    let mut kept: Vec<Point> = Vec::new();
    let mut open: Point = (0.0, 0.0);
    for (value, probability) in points {
        open = (open.0 + value * probability, open.1 + probability);
        if open.1 >= 1.0 / MOST_POINTS as f64 {
            kept.push((open.0 / open.1, open.1));
            open = (0.0, 0.0);
        }
    }
    if open.1 > 0.0 {
        kept.push((open.0 / open.1, open.1));
    }
    kept
}

/// P(X ≥ k) of a binomial X of `n` trials.
fn at_least(n: usize, k: usize, probability: f64) -> f64 {
    let term =
        |x: usize| choose(n, x) * probability.powi(x as i32) * (1.0 - probability).powi((n - x) as i32);
    (k..=n).map(term).sum()
}

/// Number of ways to choose `k` of `n`.
pub fn choose(n: usize, k: usize) -> f64 {
    (0..k.min(n - k)).fold(1.0, |all, at| all * (n - at) as f64 / (at + 1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn a_median_is_the_middle() {
        for (values, middle) in [(&[3.0][..], 3.0), (&[5.0, 1.0], 3.0), (&[9.0, 1.0, 2.0], 2.0), (&[], 0.0)] {
            assert_eq!(median(values).unwrap_or(0.0), middle);
        }
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn the_distribution_is_that_of_resampling() {
        for values in [vec![1.0, 2.0, 4.0], vec![1.0, 2.0, 4.0, 8.0], vec![3.0; 5], vec![1.0, 5.0]] {
            let exact = medians(&values);
            assert!((exact.iter().map(|(_, probability)| probability).sum::<f64>() - 1.0).abs() < 1e-12);
            let mean: f64 = exact.iter().map(|(value, probability)| value * probability).sum();
            // Every resample, one by one.
            let n = values.len();
            let all = n.pow(n as u32);
            let one = |mut number: usize| {
                let draw: Vec<f64> = (0..n)
                    .map(|_| {
                        let value = values[number % n];
                        number /= n;
                        value
                    })
                    .collect();
                median(&draw).unwrap()
            };
            let medians: Vec<f64> = (0..all).map(one).collect();
            assert!((medians.iter().sum::<f64>() / all as f64 - mean).abs() < 1e-12, "{values:?}");
            for &(value, _) in &exact {
                let share = medians.iter().filter(|&&own| own <= value).count() as f64 / all as f64;
                let own: f64 = exact.iter().filter(|(own, _)| *own <= value).map(|(_, part)| part).sum();
                assert!((share - own).abs() < 1e-12, "{values:?} at {value}");
            }
        }
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_change_and_follows_units(
            base in prop::collection::vec(1.0f64..10.0, 1..60), new in prop::collection::vec(1.0f64..10.0, 1..60),
        ) {
            let ratio = |one: f64, other: f64| other / one - 1.0;
            let (low, high) = interval(&base, &new, 0.95, ratio).unwrap();
            let change = ratio(median(&base).unwrap(), median(&new).unwrap());
            // Thinned distributions have means of neighbours.
            let slack = if base.len().max(new.len()) > 15 { 0.05 * (1.0 + change.abs()) } else { 1e-9 };
            prop_assert!(low <= change + slack && change <= high + slack, "{low} {change} {high}");
            let scaled: Vec<f64> = new.iter().map(|value| value * 1024.0).collect();
            let (more, most) = interval(&base, &scaled, 0.95, ratio).unwrap();
            prop_assert!(((more + 1.0) / (low + 1.0) - 1024.0).abs() < 1e-6 && most >= more);
        }
    }

    #[test]
    fn the_interval_covers_a_planted_change() {
        let mut random = ChaCha8Rng::seed_from_u64(11);
        let mut covered = 0;
        for _ in 0..2000 {
            let mut side = |scale: f64| -> Vec<f64> {
                (0..5)
                    .map(|_| {
                        let noise: f64 = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
                        scale * (0.02 * noise).exp()
                    })
                    .collect()
            };
            let (base, new) = (side(1.0), side(1.1));
            let (low, high) = interval(&base, &new, 0.95, |one, other| other / one - 1.0).unwrap();
            covered += usize::from(low <= 0.1 && 0.1 <= high);
        }
        assert!(covered >= 1900, "{covered} of 2000");
    }
}
