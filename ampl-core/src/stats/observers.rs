//! Samples without any rank that observes what is to be estimated.
//!
//! A ratio's variance ignores them: a rank without observations has no residual. Where few ranks observe, and these
//! agree, no variance asks for more than a rank or two.

use std::ops::Range;

use statrs::function::gamma::ln_gamma;

use super::bins::Histogram;
use super::strata::Strata;

/// Logarithm of the probability that `drawn` of `ranks` ranks have none of the `observers` among them; by coins,
/// `drawn` is the expected number.
///
/// # Source
/// C(M − N, m) / C(M, m), hypergeometric; (1 − m/M)^N by coins.
pub fn ln_none(ranks: u64, observers: f64, drawn: u64, coins: bool) -> f64 {
    let (all, drawn) = (ranks as f64, drawn as f64);
    let left = all - observers - drawn;
    if observers <= 0.0 {
        0.0
    } else if coins {
        observers * (-drawn / all).ln_1p()
    } else if left < 0.0 {
        f64::NEG_INFINITY
    } else {
        let ways = |of: f64, not: f64| ln_gamma(of + 1.0) - ln_gamma(not + 1.0);
        ways(all - observers, left) - ways(all, all - drawn)
    }
}

/// Fewest of `ranks` ranks, drawn at random, among which is one of those that observe, but for a chance of `risk`; by
/// coins, the expected number. `observing` is the share of those ranks, in (0, 1]. At least 1 of any.
pub fn observed(ranks: u64, observing: f64, risk: f64, coins: bool) -> u64 {
    let observers = (observing * ranks as f64).max(1.0);
    let (mut few, mut enough) = (0, ranks);
    // Mostly all do.
    if observers >= ranks as f64 && !coins {
        return ranks.min(1);
    }
    while few + 1 < enough {
        let middle = few + (enough - few) / 2;
        match ln_none(ranks, observers, middle, coins) <= risk.ln() {
            true => enough = middle,
            false => few = middle,
        }
    }
    enough
}

/// Ranks to be drawn of a part of `ranks` ranks, so that no smaller share of it is than `size` is of `all`; rounded up.
pub fn part_of(ranks: u64, size: u64, all: u64) -> u64 {
    (u128::from(ranks) * u128::from(size)).div_ceil(u128::from(all.max(1))).min(u128::from(ranks)) as u64
}

impl Strata {
    /// Logarithm of the probability that no rank is kept that has observed `guide`; ranks are those of `histogram`.
    pub fn ln_unseen(&self, histogram: &Histogram, guide: usize, coins: bool) -> f64 {
        let observers = |within: &dyn Fn(usize) -> bool| {
            let (mut ranks, mut sum, mut squares) = (0, 0.0, 0.0);
            for occupied in histogram.occupied().filter(|occupied| within(occupied.bin)) {
                // The observations of a rank, over those of an average one, are 1 + ν.
                let (own, residuals) = (occupied.ranks, &occupied.residuals[guide]);
                ranks = own.saturating_add(ranks);
                sum += own as f64 + residuals.v;
                squares += own as f64 + 2.0 * residuals.v + residuals.vv;
            }
            // A remainder of rounding is no rank.
            if sum <= 1e-6 * ranks as f64 { 0.0 } else { (sum * sum / squares).clamp(1.0, ranks as f64) }
        };
        let ends = |cuts: &[u16]| cuts.first().zip(cuts.last()).map_or(0..0, |(&a, &b)| a.into()..b.into());
        let drawn_from: Range<usize> = ends(&self.cuts);
        if observers(&|bin| !drawn_from.contains(&bin)) > 0.0 {
            return f64::NEG_INFINITY;
        }
        let none = self.parts.iter().zip(self.cuts.windows(2)).map(|(part, cuts)| {
            let stratum = ends(cuts);
            let observers = observers(&|bin| stratum.contains(&bin));
            ln_none(part.ranks, observers, part.size, coins)
        });
        none.sum()
    }

    /// Draws no smaller share of any stratum than `size` is of `population`, M.
    pub fn raise(&mut self, size: u64, population: u64) {
        self.resize(population, |part| part_of(part.ranks, size, population).max(part.size));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_somebody_who_observed() {
        // Every rank observed, or none can be left out.
        assert_eq!(observed(1000, 1.0, 0.01, false), 1);
        assert_eq!(observed(64, 1.0 / 64.0, 0.01, false), 64);
        assert_eq!((observed(1, 1.0, 0.01, false), observed(0, 1.0, 0.01, false)), (1, 0));
        for (ranks, observers) in [(512, 3), (2048, 41), (128, 13), (1_000_000, 10), (30, 29)] {
            for risk in [0.01, 0.001] {
                let none = |drawn: u64| -> f64 {
                    let chance = |i: u64| (ranks - drawn - i) as f64 / (ranks - i) as f64;
                    if drawn + observers > ranks { 0.0 } else { (0..observers).map(chance).product() }
                };
                let share = observers as f64 / ranks as f64;
                let size = observed(ranks, share, risk, false);
                assert!(none(size) <= risk * (1.0 + 1e-6), "{ranks} {observers} {size}");
                assert!(none(size - 1) > risk * (1.0 - 1e-6), "{ranks} {observers} {size}");
                let coins = observed(ranks, share, risk, true);
                assert!((1.0 - coins as f64 / ranks as f64).powi(observers as i32) <= risk && coins >= size);
            }
        }
    }

    #[test]
    fn shares_are_rounded_up_and_no_more_than_there_are() {
        assert_eq!([part_of(30, 1, 100), part_of(100, 7, 100), part_of(0, 7, 100)], [1, 7, 0]);
        assert_eq!((part_of(5, 9, 3), part_of(u64::MAX, u64::MAX, u64::MAX)), (5, u64::MAX));
    }
}
