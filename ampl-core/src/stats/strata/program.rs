//! Dynamic program over all cuts at some places of a window.
//!
//! A search bin by bin ends in a different local optimum under every need, so that a looser one may take more ranks than
//! a tighter one. The program finds the best cuts, and the outermost bins to be taken in full, for what a unit of
//! variance is worth in ranks. That worth is a Lagrange multiplier per view, halved in until the needs are just met.
//!
//! # Source
//! Bühler & Deutler, *Optimal stratification and grouping by dynamic programming* (Metrika 22, 1975); Everett,
//! *Generalized Lagrange multiplier method* (Operations Research 11, 1963). Departure: sizes are whole numbers with limits.

use super::outline::{Cuts, Outline};
use super::view::{Limits, View, allocate};
use super::{Candidate, KnownLimits, MOST, Pricing, ROUNDS};

/// Factor of a multiplier that is not yet known to be too low and too high.
const STEP: f64 = 4.0;

/// Values of a run of bins under one view.
#[derive(Clone, Copy)]
struct Run {
    /// M_h² S_h².
    squared: f64,
    /// M_h S_h².
    square: f64,
    /// Fewest ranks.
    least: f64,
}

impl Run {
    /// Contribution to the variance of the sum at that size.
    fn variance(&self, size: f64) -> f64 {
        self.squared / size - self.square
    }
}

/// Best way under some multipliers.
struct Found {
    candidate: Candidate,
    /// Number of ranks that no way along the same places falls below.
    bound: f64,
}

/// All runs between places, from the first end on, and each end's from the first begin on.
struct Program {
    places: Vec<usize>,
    /// Ranks of every run.
    ranks: Vec<f64>,
    /// Values of every run, one entry per view.
    runs: Vec<Run>,
    /// Ranks and the worth of variance of every run.
    costs: Vec<f64>,
    /// Per view, `true` if the way found last meets its need.
    met: Vec<bool>,
}

impl Pricing<'_> {
    /// The cheapest of `best` and of the ways that programs over at most `most` runs of bins within `within` find.
    pub(super) fn programmed(
        &self,
        mut best: Candidate,
        outline: &Outline,
        within: (usize, usize),
        most: usize,
    ) -> Candidate {
        let mut multipliers = self.multipliers(&best);
        let is_usable = |multiplier: &f64| multiplier.is_finite();
        if self.at_floor(&best) || within.0 >= within.1 || !multipliers.iter().all(is_usable) {
            return best;
        }
        let mut program = Program::new(self, outline.places(within, most));
        let mut looked = KnownLimits::default();
        // Multipliers that are too low, and others that are high enough.
        let mut brackets = vec![(0.0, f64::INFINITY); multipliers.len()];
        for _ in 0..ROUNDS {
            let Found { candidate, bound } = program.best(self, &multipliers);
            if candidate.cuts.count > 0 {
                let priced = self.price(candidate, best.total, &KnownLimits::default(), &mut looked);
                if priced.total < best.total {
                    best = priced;
                }
            }
            if best.total < bound + 1.0 || self.at_floor(&best) {
                break;
            }
            let of_views = multipliers.iter_mut().zip(&mut brackets).zip(&program.met);
            for ((multiplier, (low, high)), &met) in of_views {
                match met {
                    true => *high = *multiplier,
                    false => *low = *multiplier,
                }
                // What was known is no longer true where another view's multiplier has changed since.
                match met {
                    true if *low >= *high => *low = 0.0,
                    false if *low >= *high => *high = f64::INFINITY,
                    _ => {}
                }
                *multiplier = match (*low, *high) {
                    (0.0, high) => high / STEP,
                    (low, f64::INFINITY) => low * STEP,
                    (low, high) => (low * high).sqrt(),
                };
            }
        }
        best
    }

    /// `true` if no way can have fewer ranks, because of the floor.
    pub(super) fn at_floor(&self, best: &Candidate) -> bool {
        best.total <= self.terms.floor as f64
    }

    /// Per view, the multiplier of a candidate's strata; 0 where none of them is drawn from.
    fn multipliers(&self, candidate: &Candidate) -> Vec<f64> {
        let count = candidate.cuts.count;
        let of_view = |view: &View| {
            let (mut limits, mut ranks, mut sizes) = ([Limits::default(); MOST], [0.0; MOST], [0.0; MOST]);
            for (h, run) in candidate.cuts.runs().enumerate() {
                ranks[h] = self.before[run.1] - self.before[run.0];
                limits[h] = view.moments(ranks[h], run);
                view.limit(&mut limits[h], ranks[h], run, self.terms);
            }
            allocate(view.allowed, &ranks[..count], &limits[..count], &mut sizes[..count]);
            let drawn = (0..count).filter(|&h| sizes[h] < ranks[h] && limits[h].variance > 0.0);
            // m_h = M_h S_h times its root; where the fewest ranks are more, it seems larger.
            let of_stratum = drawn.map(|h| (sizes[h] / ranks[h]).powi(2) / limits[h].variance);
            of_stratum.reduce(f64::min).unwrap_or(0.0)
        };
        self.views.iter().map(of_view).collect()
    }
}

impl Program {
    fn new(pricing: &Pricing<'_>, places: Vec<usize>) -> Self {
        let count = places.len() - 1;
        let all = count * (count + 1) / 2;
        let mut ranks = Vec::with_capacity(all);
        let mut runs = Vec::with_capacity(all * pricing.views.len());
        for end in 1..=count {
            for begin in 0..end {
                let run = (places[begin], places[end]);
                let of_run = pricing.before[run.1] - pricing.before[run.0];
                ranks.push(of_run);
                for view in pricing.views {
                    let mut limits = view.moments(of_run, run);
                    view.limit(&mut limits, of_run, run, pricing.terms);
                    let square = of_run * limits.variance;
                    runs.push(Run { squared: of_run * square, square, least: limits.least });
                }
            }
        }
        Self { places, costs: vec![0.0; ranks.len()], met: vec![false; pricing.views.len()], ranks, runs }
    }

    /// The way with the least sum of ranks and of variances times `multipliers`.
    fn best(&mut self, pricing: &Pricing<'_>, multipliers: &[f64]) -> Found {
        let Pricing { views, before, terms } = *pricing;
        let extra = f64::from(u8::from(terms.coins));
        for (at, cost) in self.costs.iter_mut().enumerate() {
            let runs = &self.runs[at * views.len()..(at + 1) * views.len()];
            let size = size(runs, multipliers);
            let worth = |(run, multiplier): (&Run, &f64)| multiplier * run.variance(size);
            *cost = match size + extra < self.ranks[at] {
                true => size + extra + runs.iter().zip(multipliers).map(worth).sum::<f64>(),
                false => self.ranks[at],
            };
        }
        let count = self.places.len() - 1;
        let all = before[before.len() - 1];
        let below = |place: usize| before[self.places[place]];
        // Costs up to every place, with that many strata; what is below all strata is taken in full.
        let mut sums: Vec<f64> = (0..=count).map(below).collect();
        // Per number of strata and end, the place that the last one begins at.
        let mut begins: Vec<Vec<usize>> = Vec::new();
        let (mut least, mut last, mut strata) = (all, 0, 0);
        for stratum in 1..=terms.strata.clamp(1, MOST) {
            let (mut next, mut begin_of) = (vec![f64::INFINITY; count + 1], vec![0; count + 1]);
            let mut costs = self.costs.as_slice();
            for end in 1..=count {
                let (of_end, others) = costs.split_at(end);
                costs = others;
                for (begin, (cost, sum)) in of_end.iter().zip(&sums).enumerate() {
                    let sum = cost + sum;
                    if sum < next[end] {
                        (next[end], begin_of[end]) = (sum, begin);
                    }
                }
                let sum = next[end] + all - below(end);
                if sum < least {
                    (least, last, strata) = (sum, end, stratum);
                }
            }
            begins.push(begin_of);
            // More strata hardly pay where one more does not.
            if strata < stratum {
                break;
            }
            sums = next;
        }
        let mut ends = [last; MOST + 1];
        for stratum in (0..strata).rev() {
            ends[stratum] = begins[stratum][ends[stratum + 1]];
        }
        let mut cuts = Cuts { count: strata, ..Cuts::default() };
        for (at, &place) in cuts.at.iter_mut().zip(&ends[..=strata]) {
            *at = self.places[place];
        }
        let mut variances = vec![0.0; views.len()];
        for pair in ends[..=strata].windows(2) {
            let at = pair[1] * (pair[1] - 1) / 2 + pair[0];
            let runs = &self.runs[at * views.len()..(at + 1) * views.len()];
            let size = size(runs, multipliers);
            if size + extra < self.ranks[at] {
                variances.iter_mut().zip(runs).for_each(|(sum, run)| *sum += run.variance(size));
            }
        }
        let mut bound = least;
        for (index, (view, multiplier)) in views.iter().zip(multipliers).enumerate() {
            self.met[index] = variances[index] <= view.allowed;
            bound -= multiplier * view.allowed;
        }
        let full = all - (before[cuts.at[strata]] - before[cuts.at[0]]);
        Found { candidate: Candidate::new(cuts, full), bound }
    }
}

/// Size of a run from which on one rank more does not pay.
fn size(runs: &[Run], multipliers: &[f64]) -> f64 {
    let (mut worth, mut least) = (0.25, 1.0_f64);
    for (run, multiplier) in runs.iter().zip(multipliers) {
        worth += multiplier * run.squared;
        least = least.max(run.least);
    }
    // m (m + 1) ≥ λ M_h² S_h², for the smallest whole m. A conversion takes less time than `ceil`.
    f64::from((worth.sqrt() + 0.5) as u32).max(least)
}
