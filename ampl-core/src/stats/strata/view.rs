//! What one guide asks of strata: their variances, limits and sizes.

use super::{FEWEST, FEWEST_COINS, INFLUENCE, MOST, Need, SLACK, SMALLEST_COINS, Terms};
use crate::stats::bins::{Histogram, Residuals, Shift};

/// What is known of a stratum under one need.
#[derive(Clone, Copy, Default)]
pub(super) struct Limits {
    /// S_h².
    pub variance: f64,
    /// Fewest ranks.
    pub least: f64,
}

/// One guide's sums, in a form in which those over any run of occupied bins are at hand.
pub(super) struct View {
    pub guide: usize,
    need: Need,
    /// M² V0.
    pub allowed: f64,
    /// Place in which outward sums begin.
    centre: usize,
    /// Σ z, z², ν, ν², z ν over the bins between the centre and a place. From the outside in they would be
    /// differences of what the farthest ranks alone make large.
    outward: Vec<[f64; 5]>,
    /// Smallest and largest z of every occupied bin.
    extremes: Vec<(f64, f64)>,
}

impl View {
    pub fn new(histogram: &Histogram, guide: usize, need: Need, terms: Terms) -> Self {
        let bins = || (0..histogram.bins()).filter(|&bin| histogram.ranks[bin] > 0);
        let count = bins().count();
        let centre = bins().filter(|&bin| bin < histogram.bins() / 2).count();
        let sums: Vec<Residuals> = bins().map(|bin| histogram.residuals(bin)[guide]).collect();
        let mut outward = vec![[0.0; 5]; count + 1];
        let added = |to: &[f64; 5], more: &Residuals| {
            let Residuals { z, zz, v, vv, zv, .. } = *more;
            [to[0] + z, to[1] + zz, to[2] + v, to[3] + vv, to[4] + zv]
        };
        for place in centre..count {
            outward[place + 1] = added(&outward[place], &sums[place]);
        }
        for place in (0..centre).rev() {
            outward[place] = added(&outward[place + 1], &sums[place]);
        }
        let deviation = need.error / need.quantile;
        let allowed = (terms.population as f64 * deviation).powi(2) / SLACK;
        let extremes = sums.iter().map(|sum| (sum.min, sum.max)).collect();
        Self { guide, need, allowed, centre, outward, extremes }
    }

    /// S_h² of the `ranks` of a run of bins, and the mean and the standard deviation that are not known to
    /// the guard: z̄ about the origin, and that of ν.
    pub fn moments(&self, ranks: f64, (a, b): (usize, usize)) -> (f64, f64, f64) {
        let (low, high) = (&self.outward[a], &self.outward[b]);
        let [z, zz, v, vv, zv] = std::array::from_fn(|index| {
            if a >= self.centre {
                high[index] - low[index]
            } else if b <= self.centre {
                low[index] - high[index]
            } else {
                low[index] + high[index]
            }
        });
        let Shift { scale, offset } = self.need.shift;
        let centred = [zz - z * z / ranks, vv - v * v / ranks, zv - z * v / ranks];
        let squares = scale * scale * centred[0] + offset * (offset * centred[1] + 2.0 * scale * centred[2]);
        let counts = if centred[1] > 0.0 { (centred[1] / ranks).sqrt() } else { 0.0 };
        if ranks < 2.0 {
            return (0.0, z, counts);
        }
        // Not a number stays one, and takes everyone.
        let variance = if squares < 0.0 { 0.0 } else { squares / (ranks - 1.0) };
        (variance, z / ranks, counts)
    }

    pub fn limits(&self, ranks: f64, run: (usize, usize), terms: Terms) -> Limits {
        let (variance, mean, counts) = self.moments(ranks, run);
        let extremes = &self.extremes[run.0..run.1];
        let min = extremes.iter().fold(f64::INFINITY, |least, &(min, _)| least.min(min));
        let max = extremes.iter().fold(f64::NEG_INFINITY, |most, &(_, max)| most.max(max));
        let Shift { scale, offset } = self.need.shift;
        // What is due to numbers of observations is known by its spread only.
        let deviation = scale.abs() * (max - mean).max(mean - min) + offset.abs() * 3.0 * counts;
        let population = terms.population as f64;
        let guard = INFLUENCE * ranks * deviation / (population * self.need.error);
        let (fewest, small) = match terms.coins {
            true => (FEWEST_COINS, ranks < SMALLEST_COINS),
            false => (FEWEST, false),
        };
        let least = if small || guard.is_nan() { ranks } else { guard.max(fewest).min(ranks) };
        Limits { variance, least }
    }
}

/// Real sizes of strata of `ranks` that bring the variance of the sum down to `allowed` with the fewest ranks.
///
/// # Source
/// Cochran §5.9: where a limit binds, that stratum is fixed, its variance leaves what is allowed, and the others
/// are solved again.
pub(super) fn allocate(allowed: f64, ranks: &[f64], limits: &[Limits], sizes: &mut [f64]) {
    let mut open = [false; MOST];
    for (h, limits) in limits.iter().enumerate() {
        open[h] = limits.variance.is_finite() && allowed.is_finite();
        sizes[h] = ranks[h];
    }
    let mut left = allowed;
    loop {
        let (mut spread, mut squares) = (0.0, 0.0);
        for h in (0..ranks.len()).filter(|&h| open[h]) {
            spread += ranks[h] * limits[h].variance.sqrt();
            squares += ranks[h] * limits[h].variance;
        }
        let room = left.max(0.0) + squares;
        let (mut above, mut below) = (false, false);
        for h in (0..ranks.len()).filter(|&h| open[h]) {
            let share = ranks[h] * limits[h].variance.sqrt();
            sizes[h] = if share == 0.0 { 0.0 } else { share * spread / room };
            above |= sizes[h] > ranks[h];
            below |= sizes[h] < limits[h].least;
        }
        if !above && !below {
            return;
        }
        for h in 0..ranks.len() {
            let beyond = match above {
                true => sizes[h] > ranks[h],
                false => sizes[h] < limits[h].least,
            };
            if open[h] && beyond {
                open[h] = false;
                sizes[h] = if above { ranks[h] } else { limits[h].least };
                left -= (ranks[h] * ranks[h] / sizes[h] - ranks[h]) * limits[h].variance;
            }
        }
    }
}
