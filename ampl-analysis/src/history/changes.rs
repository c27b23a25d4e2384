//! Changes of the level of a series: when, by how much, and how surely.

use serde::Serialize;

use crate::comparison::median;

/// Fewest values in which a change can be significant.
pub const FEWEST: usize = 12;
/// Probability, of a series without a change, that one is reported; of each part of a series that is divided again.
pub const SIGNIFICANCE: f64 = 0.01;

/// Fewest values before and after a change.
const SIDE: usize = 3;
/// Values around the most likely place of a change that are tried.
const AROUND: usize = 64;

/// A change of the level.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Index of the first value after it.
    pub at: usize,
    /// Median of the values from the change before to this one.
    pub before: f64,
    /// Median of those from this one to the next.
    pub after: f64,
    /// Probability of as clear a change where there is none.
    pub p: f64,
}

/// Changes in `values`, all of them above 0, in their order.
///
/// A part is divided where the greatest of its tests of ranks, one for each place, finds a change, and the parts are tested
/// again. A part of 90 values shows a change by the fifth value after it, however large it is. The place is that of least
/// absolute deviations from the medians of both sides, of logarithms: a few runs that took far longer do not move it.
///
/// # Source
/// B. Lausen and M. Schumacher, *Maximally selected rank statistics*, Biometrics 48 (1992); the probability is R. Miller's
/// and D. Siegmund's, *Maximally selected chi square statistics*, Biometrics 38 (1982).
pub fn changes(values: &[f64]) -> Vec<Change> {
    let logs: Vec<f64> = values.iter().map(|value| value.max(f64::MIN_POSITIVE).ln()).collect();
    let mut found = divide(&logs);
    found.sort_unstable_by_key(|&(at, _)| at);
    let ends = |index: usize| found.get(index).map_or(values.len(), |&(at, _)| at);
    let level = |from: usize, to: usize| median(&values[from..to]).unwrap_or(0.0);
    let change = |(index, &(at, p)): (usize, &(usize, f64))| Change {
        at,
        before: level(if index == 0 { 0 } else { ends(index - 1) }, at),
        after: level(at, ends(index + 1)),
        p,
    };
    found.iter().enumerate().map(change).collect()
}

/// Places of changes in `logs`, and their probabilities without a change.
fn divide(logs: &[f64]) -> Vec<(usize, f64)> {
    let mut found = Vec::new();
    let mut parts = vec![(0, logs.len())];
    while let Some((from, to)) = parts.pop() {
        let part = &logs[from..to];
        if part.len() < FEWEST {
            continue;
        }
        let (near, p) = rank_test(part);
        if p < SIGNIFICANCE {
            let at = from + place(part, near);
            found.push((at, p));
            parts.extend([(from, at), (at, to)]);
        }
    }
    found
}

/// Place of the greatest standardised sum of ranks, and its probability without a change.
fn rank_test(values: &[f64]) -> (usize, f64) {
    let n = values.len() as f64;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    // Equal values share the mean of their ranks.
    let rank = |value: &f64| {
        let below = sorted.partition_point(|other| other.total_cmp(value).is_lt());
        let up_to = sorted.partition_point(|other| other.total_cmp(value).is_le());
        (below + up_to + 1) as f64 / 2.0
    };
    let mean = (n + 1.0) / 2.0;
    let distances: Vec<f64> = values.iter().map(|value| rank(value) - mean).collect();
    let variance = distances.iter().map(|distance| distance * distance).sum::<f64>() / (n - 1.0);
    let (mut sum, mut most, mut near) = (0.0, 0.0, SIDE);
    for (index, distance) in distances.iter().enumerate().take(values.len() - SIDE) {
        sum += distance;
        let before = (index + 1) as f64;
        let deviation = (before * (n - before) / n * variance).sqrt();
        if index + 1 >= SIDE && deviation > 0.0 && f64::abs(sum) / deviation > most {
            (most, near) = (f64::abs(sum) / deviation, index + 1);
        }
    }
    if most <= 1.0 {
        return (near, 1.0);
    }
    let density = (-most * most / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let odds = (n - SIDE as f64) / SIDE as f64;
    (near, (4.0 * density / most + density * (most - 1.0 / most) * 2.0 * odds.ln()).min(1.0))
}

/// The index, near the one given, at which both sides deviate least from their medians.
fn place(values: &[f64], near: usize) -> usize {
    let last = values.len() - SIDE;
    let near = near.clamp(SIDE, last);
    let tried = near.saturating_sub(AROUND).max(SIDE)..=(near + AROUND).min(last);
    let deviation = |side: &[f64]| {
        let middle = median(side).unwrap_or(0.0);
        side.iter().map(|value| (value - middle).abs()).sum::<f64>()
    };
    let cost = |at: usize| deviation(&values[..at]) + deviation(&values[at..]);
    tried.map(|at| (cost(at), at)).min_by(|a, b| a.0.total_cmp(&b.0)).map_or(near, |(_, at)| at)
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Times of `runs` runs around 100 s: `noise` is the standard deviation, every tenth or so is half as long again, and
    /// those from each `(index, factor)` on take that much longer.
    fn series(seed: u64, runs: usize, noise: f64, outliers: f64, steps: &[(usize, f64)]) -> Vec<f64> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut value = |at: usize| {
            let normal = (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0;
            let late = if random.random::<f64>() < outliers { 1.5 } else { 1.0 };
            let factor: f64 = steps.iter().filter(|step| at >= step.0).map(|step| step.1).product();
            100.0e9 * factor * (normal * noise).exp() * late
        };
        (0..runs).map(&mut value).collect()
    }

    #[test]
    fn a_slowdown_is_dated_within_two_runs() {
        for (noise, outliers, least) in [(0.03, 0.0, 39), (0.03, 0.1, 34), (0.01, 0.05, 39)] {
            let dated = |seed: &u64| {
                let found = changes(&series(*seed, 90, noise, outliers, &[(60, 1.1)]));
                let near = found.iter().find(|change| change.at.abs_diff(60) <= 2);
                near.is_some_and(|change| (change.after / change.before - 1.1).abs() < 0.03)
            };
            let count = (0..40).filter(dated).count();
            assert!(count >= least, "{count} of 40 at noise {noise}, outliers {outliers}");
        }
    }

    /// Runs became twice as slow last week, or were half as fast for the first nine.
    #[test]
    fn a_change_near_an_end_is_found() {
        for (at, factor) in [(80, 2.0), (82, 2.0), (84, 10.0), (9, 0.5), (10, 1.2)] {
            let dated = |seed: &u64| {
                let found = changes(&series(*seed, 90, 0.001, 0.0, &[(at, factor)]));
                found.iter().any(|change| change.at.abs_diff(at) <= 2)
            };
            let count = (0..20).filter(dated).count();
            assert!(count >= 19, "{count} of 20 at {at}");
        }
    }

    #[test]
    fn no_change_is_found_where_there_is_none() {
        let wrong = (0..200).filter(|&seed| !changes(&series(seed, 90, 0.05, 0.1, &[])).is_empty()).count();
        // Two are expected; 8 or more have a probability of 0.001.
        assert!(wrong < 8, "{wrong} of 200");
        for values in [&[][..], &[1.0], &[1.0; 50], &[0.0; 50]] {
            assert_eq!(changes(values), []);
        }
    }

    #[test]
    fn every_change_is_found_and_has_the_levels_beside_it() {
        let found = changes(&series(7, 300, 0.02, 0.0, &[(100, 1.2), (200, 0.5)]));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].at.abs_diff(100) <= 1 && found[1].at.abs_diff(200) <= 1, "{found:?}");
        assert!((found[0].before / 100.0e9 - 1.0).abs() < 0.02, "{found:?}");
        assert!((found[0].after / found[0].before - 1.2).abs() < 0.02, "{found:?}");
        assert!((found[1].after / found[1].before - 0.5).abs() < 0.02, "{found:?}");
        assert_eq!(found[0].after, found[1].before);
    }
}
