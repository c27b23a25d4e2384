//! Exact test by ranks of two sets of runs.

use ampl_core::stats::quantile::normal_above;

use super::bootstrap::choose;

/// Most runs of both sides for which the distribution is computed; beyond it is nearly normal.
const MOST_EXACT: usize = 80;

/// Probability that `new` is as high above `base` as it is, or higher, if all runs are alike: the sum of the ranks of
/// `new`, over all ways to divide the runs.
///
/// # Source
/// Mann, Whitney, *Ann. Math. Statist.* 18 (1947), 50–60; ties take the mean of their ranks.
pub fn above(base: &[f64], new: &[f64]) -> f64 {
    let (n, m) = (base.len(), new.len());
    if n == 0 || m == 0 {
        return 1.0;
    }
    let mut all: Vec<(f64, bool)> = base.iter().map(|&value| (value, false)).collect();
    all.extend(new.iter().map(|&value| (value, true)));
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Twice the ranks: those of ties may be halves.
    let mut ranks = Vec::with_capacity(all.len());
    for ties in all.chunk_by(|a, b| a.0 == b.0) {
        let first = ranks.len();
        ranks.extend(std::iter::repeat_n(2 * first + 1 + ties.len(), ties.len()));
    }
    let observed: usize =
        ranks.iter().zip(&all).filter(|(_, (_, is_new))| *is_new).map(|(rank, _)| rank).sum();
    if all.len() > MOST_EXACT {
        let (n, m) = (n as f64, m as f64);
        let mean = m * (n + m + 1.0);
        let variance = n * m * (n + m + 1.0) / 3.0;
        return normal_above((observed as f64 - 1.0 - mean) / variance.sqrt());
    }
    // Ways to choose so many runs with such a sum.
    let most: usize = ranks.iter().sum();
    let mut ways = vec![vec![0.0f64; most + 1]; m + 1];
    ways[0][0] = 1.0;
    for (index, &rank) in ranks.iter().enumerate() {
        for taken in (1..=m.min(index + 1)).rev() {
            let (before, own) = ways.split_at_mut(taken);
            for sum in rank..=most {
                own[0][sum] += before[taken - 1][sum - rank];
            }
        }
    }
    let high: f64 = ways[m][observed..].iter().sum();
    (high / choose(n + m, m)).min(1.0)
}

/// Least value that [`above`] can have for so many runs.
pub fn least(base: usize, new: usize) -> f64 {
    if base == 0 || new == 0 { 1.0 } else { 1.0 / choose(base + new, base) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(base: &[f64], new: &[f64]) -> f64 {
        let all: Vec<f64> = base.iter().chain(new).copied().collect();
        let rank = |value: f64| {
            let below = all.iter().filter(|&&other| other < value).count() as f64;
            below + all.iter().filter(|&&other| other == value).count() as f64 / 2.0
        };
        let observed: f64 = new.iter().map(|&value| rank(value)).sum();
        let (mut high, mut ways) = (0, 0);
        for set in 0u32..1 << all.len() {
            if set.count_ones() as usize == new.len() {
                let chosen = (0..all.len()).filter(|at| set >> at & 1 == 1);
                ways += 1;
                high += usize::from(chosen.map(|at| rank(all[at])).sum::<f64>() >= observed - 1e-9);
            }
        }
        f64::from(high as u32) / f64::from(ways)
    }

    proptest! {
        #[test]
        fn it_counts_the_ways(
            base in prop::collection::vec(0u8..6, 1..6), new in prop::collection::vec(0u8..6, 1..6),
        ) {
            let float = |values: &[u8]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
            let (base, new) = (float(&base), float(&new));
            prop_assert!((above(&base, &new) - naive(&base, &new)).abs() < 1e-12);
            prop_assert!(above(&base, &new) >= least(base.len(), new.len()) - 1e-12);
        }
    }

    #[test]
    fn many_runs_are_nearly_normal() {
        let side =
            |from: usize, to: usize| (from..to).map(|at| (at * 7919 % 1009) as f64).collect::<Vec<_>>();
        let (exact, normal) = (above(&side(0, 40), &side(40, 80)), above(&side(0, 41), &side(41, 82)));
        assert!((exact - normal).abs() < 0.1, "{exact} {normal}");
        assert!(
            (above(&side(0, 41), &side(41, 82)) - (1.0 - above(&side(41, 82), &side(0, 41)))).abs() < 0.02
        );
    }
}
