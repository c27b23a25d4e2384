//! View of one guide: variances, limits and sizes of strata under its need.

use super::{FEWEST, FEWEST_COINS, INFLUENCE, MOST, Need, SLACK, SMALLEST_COINS, Terms};
use crate::stats::bins::{Histogram, Residuals, Shift};

/// Values of a stratum under one need.
#[derive(Clone, Copy, Default)]
pub(super) struct Limits {
    /// S_h².
    pub variance: f64,
    /// M_h S_h.
    weight: f64,
    /// M_h S_h².
    square: f64,
    /// z̄ about the origin: the mean, for the guard against single ranks.
    mean: f64,
    /// Standard deviation of ν.
    counts: f64,
    /// Fewest ranks, where [`View::limit`] has found them.
    pub least: f64,
    /// Contribution to the variance of the sum at the present size.
    pub term: f64,
    /// The same with a rank less.
    pub next: f64,
}

/// One guide's sums, in a form that gives the sums over any run of occupied bins.
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
    extremes: Extremes,
}

impl View {
    pub fn new(histogram: &Histogram, guide: usize, need: Need, terms: Terms) -> Self {
        let occupied = histogram.occupied();
        let count = occupied.len();
        let centre = occupied.clone().filter(|occupied| occupied.bin < histogram.bins() / 2).count();
        let sums: Vec<Residuals> = occupied.map(|occupied| occupied.residuals[guide]).collect();
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
        let extremes = Extremes::new(sums.iter().map(|sum| (sum.min, sum.max)).collect());
        Self { guide, need, allowed, centre, outward, extremes }
    }

    /// Limits of a run of bins with that many `ranks`, from its sums: all but the fewest ranks.
    pub fn moments(&self, ranks: f64, (a, b): (usize, usize)) -> Limits {
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
        // NaN stays NaN, and takes all ranks.
        let variance = if ranks < 2.0 || squares < 0.0 { 0.0 } else { squares / (ranks - 1.0) };
        let (weight, square) = (ranks * variance.sqrt(), ranks * variance);
        Limits { variance, weight, square, mean: z / ranks.max(1.0), counts, ..Limits::default() }
    }

    /// Fills in the fewest ranks of `limits`, which are those of a run of bins with that many `ranks`.
    pub fn limit(&self, limits: &mut Limits, ranks: f64, run: (usize, usize), terms: Terms) {
        let Limits { mean, counts, .. } = *limits;
        let (min, max) = self.extremes.of(run);
        let Shift { scale, offset } = self.need.shift;
        // What is due to numbers of observations is known by its spread only.
        let deviation = scale.abs() * (max - mean).max(mean - min) + offset.abs() * 3.0 * counts;
        let population = terms.population as f64;
        let guard = INFLUENCE * ranks * deviation / (population * self.need.error);
        let (fewest, small) = match terms.coins {
            true => (FEWEST_COINS, ranks < SMALLEST_COINS),
            false => (FEWEST, false),
        };
        // A whole number, so that what is left for others is not more than there is. A hair above one is that one.
        let least = (guard.max(fewest) * (1.0 - 1e-9)).ceil().min(ranks);
        limits.least = if small || guard.is_nan() { ranks } else { least };
    }
}

/// Smallest and largest z of runs of occupied bins: every candidate asks for those of all its strata.
///
/// # Source
/// Bender & Farach-Colton, *The LCA Problem Revisited* (LATIN 2000), §3: two overlapping runs of 2^k cover any other.
struct Extremes {
    /// By k, and the place where a run of 2^k bins begins.
    levels: Vec<Vec<(f64, f64)>>,
}

impl Extremes {
    /// Table from the smallest and largest z of every bin.
    fn new(bins: Vec<(f64, f64)>) -> Self {
        let mut levels = vec![bins];
        for half in (0..).map(|k| 1 << k) {
            let Some(of_half) = levels.last().filter(|of_half| of_half.len() > half) else { break };
            let twice = of_half.iter().zip(&of_half[half..]).map(|(&low, &high)| Self::both(low, high));
            let twice = twice.collect();
            levels.push(twice);
        }
        Self { levels }
    }

    fn both((min, max): (f64, f64), other: (f64, f64)) -> (f64, f64) {
        (min.min(other.0), max.max(other.1))
    }

    /// Smallest and largest z of the bins from `a` to below `b`, at least one.
    fn of(&self, (a, b): (usize, usize)) -> (f64, f64) {
        let k = (b - a).ilog2();
        let level = &self.levels[k as usize];
        Self::both(level[a], level[b - (1 << k)])
    }
}

/// Fewest ranks that bring the variance of the sum down to `allowed`, were there no limits: no limit makes them
/// fewer.
///
/// # Source
/// Cochran §5.9.
pub(super) fn unlimited(allowed: f64, limits: &[Limits]) -> f64 {
    let (spread, squares) = sums(limits.iter());
    if spread == 0.0 { 0.0 } else { spread * spread / (allowed + squares) }
}

/// Σ M_h S_h and Σ M_h S_h².
fn sums<'a>(limits: impl Iterator<Item = &'a Limits>) -> (f64, f64) {
    limits.fold((0.0, 0.0), |(spread, squares), limits| (spread + limits.weight, squares + limits.square))
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
        let (spread, squares) = sums((0..ranks.len()).filter(|&h| open[h]).map(|h| &limits[h]));
        let room = left.max(0.0) + squares;
        let (mut above, mut below) = (false, false);
        for h in (0..ranks.len()).filter(|&h| open[h]) {
            let share = limits[h].weight;
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
