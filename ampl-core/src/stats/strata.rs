//! Retrospective decision about a window: strata along its histogram, and how many ranks of each keep it.
//!
//! The outermost bins are taken in full, as many as pays; the others are cut into a few strata of about equal
//! √f, and the sizes are Neyman's with limits. Dynamic programs and moves of single cuts improve on that. Every
//! combination is priced, and the cheapest one is taken. The work depends on the number of bins, not on how many ranks
//! are in them.
//!
//! # Source
//! STATISTICS §2: Dalenius & Hodges 1959 for the cuts, Hidiroglou 1986 for what is taken in full, Cochran §5.5 and
//! §5.9 for the sizes.

mod outline;
mod program;
mod search;
mod view;

use super::bins::{Histogram, Shift};
use super::sizing::{Stratum, mean_variance};
use outline::{Cuts, Outline};
use view::{Limits, View, allocate, unlimited};

/// Numbers of strata that are tried.
const COUNTS: [usize; 6] = [1, 2, 3, 4, 6, 8];

/// Strata at most.
const MOST: usize = 8;

/// Divisor of V0: a mean over few ranks is not quite normal.
const SLACK: f64 = 1.05;

/// Divisor of the bound that a single rank's deviation, multiplied by its weight, must not exceed.
const INFLUENCE: f64 = 2.0;

/// Largest share of the ranks that are kept because each is so far below the mean that it alone moves it.
const IDLE: f64 = 0.25;

/// Moves of a cut by one bin that are tried to improve on the best of what √f gives.
const MOVES: usize = 64;

/// Bins that are taken in full without a gain before the search for more stops.
const MOST_FAILURES: usize = 2;

/// Runs of bins that a dynamic program has strata of, at most; fewer where several groups are decided.
const PLACES: usize = 48;

/// Runs of bins from which on a dynamic program is worth it.
const FEWEST_PLACES: usize = 8;

/// Dynamic programs at most, each with other multipliers.
const ROUNDS: usize = 5;

/// Fewest ranks of a stratum.
const FEWEST: f64 = 2.0;

/// Fewest ranks of a stratum where coins are flipped.
const FEWEST_COINS: f64 = 8.0;
/// Smallest stratum that coins are flipped in.
const SMALLEST_COINS: f64 = 8.0;

/// Requirement of one guide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Shift to residuals about the window's own mean.
    pub shift: Shift,
    /// The error bound, in the unit that `shift` leads to.
    pub error: f64,
    /// The two-sided normal quantile of the confidence asked for.
    pub quantile: f64,
}

/// Conditions that do not depend on the guide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// M: ranks of the whole group, with those in no histogram because they are kept anyway.
    pub population: u64,
    /// Fewest ranks that the histogram's ranks may be cut down to.
    pub floor: u64,
    /// Strata at most; no more than 8 are made.
    pub strata: usize,
    /// Number of groups that are decided together, at least 1: the more, the fewer ways are tried for each.
    pub groups: usize,
    /// `true` if every rank flips a coin, so that sizes are expectations.
    pub coins: bool,
}

/// Ranks of one stratum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// M_h.
    pub ranks: u64,
    /// m_h; expected where coins are flipped.
    pub size: u64,
    /// S_h² of the guide that asks for most, in the unit of its error squared.
    pub variance: f64,
}

/// Strata of a window, and the ranks of each that keep it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Strata {
    /// Stratum h has the bins from `cuts[h]` to below `cuts[h + 1]`; bins outside of all are kept in full.
    pub cuts: Vec<u16>,
    /// The strata: one less than `cuts`.
    pub parts: Vec<Part>,
    /// Ranks of the bins that are kept in full.
    pub full: u64,
    /// The guide that asks for most, an index into the histogram's.
    pub guide: usize,
    /// The variance of its mean that this attains, in the unit of its error squared.
    pub attained: f64,
}

impl Strata {
    /// Ranks kept; expected where coins are flipped.
    pub fn size(&self) -> u64 {
        self.parts.iter().fold(self.full, |sum, part| sum.saturating_add(part.size))
    }

    /// Leaves no more than that share of what is drawn, below every need; `population` is M.
    pub fn shrink(&mut self, share: f64, population: u64) {
        self.resize(population, |part| ((part.size as f64 * share) as u64).min(part.size));
    }

    pub(super) fn resize(&mut self, population: u64, size: impl Fn(&Part) -> u64) {
        self.parts.iter_mut().for_each(|part| part.size = size(part));
        let stratum = |part: &Part| Stratum { ranks: part.ranks, variance: part.variance };
        let variance = |part: &Part| mean_variance(stratum(part), part.size as f64, population);
        self.attained = self.parts.iter().map(variance).sum();
    }
}

/// The cheapest way to keep a window so that every one of `needs`, one entry per guide of `histogram`, is met;
/// strata are along the guide `binned`. Guides without a need ask for nothing.
///
/// A need that no sample can meet takes all ranks.
pub fn stratify(histogram: &Histogram, binned: usize, needs: &[Option<Need>], terms: Terms) -> Strata {
    let guides = needs.iter().enumerate().filter_map(|(guide, need)| Some((guide, (*need)?)));
    let views: Vec<View> = guides.map(|(guide, need)| View::new(histogram, guide, need, terms)).collect();
    let occupied: Vec<usize> = histogram.occupied().map(|occupied| occupied.bin).collect();
    let before = running(histogram.occupied().map(|occupied| occupied.ranks as f64));
    let need = needs.get(binned).copied().flatten();
    let outline = Outline::new(histogram, binned, need);
    let alone = need.map_or(f64::INFINITY, |need| terms.population as f64 * need.error);
    let within = outline.within(alone, &before, IDLE * terms.population as f64);
    let best = Pricing { views: &views, before: &before, terms }.cheapest(&outline, within);
    best.strata(&occupied, histogram.bins(), &views, &before, terms)
}

/// Running sums over the bins, from none to all.
fn running(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let sums = values.scan(0.0, |sum, value| {
        *sum += value;
        Some(*sum)
    });
    std::iter::once(0.0).chain(sums).collect()
}

/// One way to keep a window.
#[derive(Clone, Copy, Default)]
struct Candidate {
    cuts: Cuts,
    full: f64,
    sizes: [f64; MOST],
    total: f64,
    /// The view that asks for most.
    view: usize,
}

impl Candidate {
    /// Candidate of those strata, not priced yet, with `full` ranks beside them.
    fn new(cuts: Cuts, full: f64) -> Self {
        Self { cuts, full, ..Self::default() }
    }
}

/// Limits of a candidate's strata, view by view.
#[derive(Default)]
struct KnownLimits {
    cuts: Cuts,
    limits: Vec<[Limits; MOST]>,
}

impl KnownLimits {
    /// `true` if stratum `h` is that run of bins.
    fn has(&self, h: usize, (a, b): (usize, usize)) -> bool {
        h < self.cuts.count && (self.cuts.at[h], self.cuts.at[h + 1]) == (a, b)
    }
}

/// Inputs that candidates are priced by.
struct Pricing<'a> {
    views: &'a [View],
    /// Ranks up to every occupied bin.
    before: &'a [f64],
    terms: Terms,
}

impl Pricing<'_> {
    /// Candidate with sizes that meet every view's need, and their total; infinite where that is no less than `most`.
    /// Strata in `known` are not computed again; `looked` then has those of a candidate with a finite total.
    fn price(
        &self,
        mut candidate: Candidate,
        most: f64,
        known: &KnownLimits,
        looked: &mut KnownLimits,
    ) -> Candidate {
        let Self { views, before, terms } = *self;
        let Candidate { cuts, full, .. } = candidate;
        let count = cuts.count;
        let mut ranks = [0.0; MOST];
        for (ranks, (a, b)) in ranks.iter_mut().zip(cuts.runs()) {
            *ranks = before[b] - before[a];
        }
        let ranks = &ranks[..count];
        let mut largest = -1.0;
        let mut least = [1.0_f64; MOST];
        let KnownLimits { limits, .. } = looked;
        looked.cuts = cuts;
        limits.clear();
        candidate.total = f64::INFINITY;
        // Whether so many ranks that are not taken in full, or the next whole number of them, are no less than `most`.
        let beaten = |drawn: f64| (full + drawn * (1.0 - 1e-9)).ceil() >= most;
        for (index, view) in views.iter().enumerate() {
            let mut of_view = [Limits::default(); MOST];
            for (h, run) in cuts.runs().enumerate() {
                of_view[h] = match known.has(h, run) {
                    true => known.limits[index][h],
                    false => view.moments(ranks[h], run),
                };
            }
            // Most candidates end here, before their limits are computed.
            if beaten(unlimited(view.allowed, &of_view[..count])) {
                return candidate;
            }
            limits.push(of_view);
        }
        for (index, (view, of_view)) in views.iter().zip(limits.iter_mut()).enumerate() {
            for (h, run) in cuts.runs().enumerate() {
                if !known.has(h, run) {
                    view.limit(&mut of_view[h], ranks[h], run, terms);
                }
                least[h] = least[h].max(of_view[h].least);
            }
            let mut asked = [0.0; MOST];
            allocate(view.allowed, ranks, &of_view[..count], &mut asked[..count]);
            let total = asked[..count].iter().sum();
            if total > largest {
                (largest, candidate.view) = (total, index);
            }
            for (size, asked) in candidate.sizes.iter_mut().zip(&asked[..count]) {
                *size = size.max(*asked);
            }
            // What rounding up can take is taken back at most.
            if beaten(total) || full + candidate.sizes[..count].iter().sum::<f64>() >= most {
                return candidate;
            }
        }
        let extra = f64::from(u8::from(terms.coins));
        // A hair above a whole number is that number.
        let whole = |size: f64| (size * (1.0 - 1e-9)).ceil() + extra;
        for h in 0..count {
            candidate.sizes[h] = whole(candidate.sizes[h]).max(1.0).min(ranks[h]);
            least[h] = whole(least[h]).min(ranks[h]);
        }
        candidate.round_down(views, limits, ranks, &least, extra);
        let sizes = &mut candidate.sizes[..count];
        let all: f64 = ranks.iter().sum();
        let floor = (terms.floor as f64 - full).min(all);
        let mut drawn: f64 = sizes.iter().sum();
        while drawn < floor {
            // Where a rank stands for most others.
            let lacks = |h: &usize| (ranks[*h] - sizes[*h]) / sizes[*h];
            let Some(next) = (0..count).rev().max_by(|a, b| lacks(a).total_cmp(&lacks(b))) else { break };
            sizes[next] += 1.0;
            drawn += 1.0;
        }
        candidate.total = full + drawn;
        candidate
    }
}

impl Candidate {
    /// Takes back ranks that only rounding up has brought.
    fn round_down(
        &mut self,
        views: &[View],
        limits: &mut [[Limits; MOST]],
        ranks: &[f64],
        least: &[f64; MOST],
        extra: f64,
    ) {
        let count = ranks.len();
        let term = |limits: &Limits, ranks: f64, size: f64| match limits.variance {
            0.0 => 0.0,
            _ if size >= ranks => 0.0,
            variance => (ranks * ranks / (size - extra) - ranks) * variance,
        };
        // What a stratum adds to the variance of the sum, as it is and with a rank less.
        let terms = |of_run: &mut Limits, ranks: f64, size: f64| {
            (of_run.term, of_run.next) = (term(of_run, ranks, size), term(of_run, ranks, size - 1.0));
        };
        for of_view in limits.iter_mut() {
            let sizes = self.sizes.iter().zip(ranks);
            of_view.iter_mut().zip(sizes).for_each(|(of_run, (&size, &ranks))| terms(of_run, ranks, size));
        }
        // Rounding up brings less than a rank per stratum; several guides may leave a little more.
        for _ in 0..2 * count {
            // The share of what is allowed that a rank less would use up, of the guide that has least left.
            let mut used = [0.0_f64; MOST];
            for (view, of_view) in views.iter().zip(limits.iter()) {
                let sum: f64 = of_view[..count].iter().map(|of_run| of_run.term).sum();
                for (used, of_run) in used.iter_mut().zip(&of_view[..count]) {
                    let share = (sum - of_run.term + of_run.next) / view.allowed;
                    *used = if share.is_nan() { f64::INFINITY } else { used.max(share) };
                }
            }
            let mut cheapest: Option<usize> = None;
            for h in (0..count).filter(|&h| self.sizes[h] - 1.0 >= least[h].max(1.0)) {
                if used[h] <= 1.0 + 1e-9 && cheapest.is_none_or(|best| used[h] < used[best] * (1.0 - 1e-9)) {
                    cheapest = Some(h);
                }
            }
            let Some(h) = cheapest else { return };
            self.sizes[h] -= 1.0;
            limits.iter_mut().for_each(|of_view| terms(&mut of_view[h], ranks[h], self.sizes[h]));
        }
    }

    fn strata(
        &self,
        occupied: &[usize],
        bins: usize,
        views: &[View],
        before: &[f64],
        terms: Terms,
    ) -> Strata {
        let count = self.cuts.count;
        let mut strata = Strata { full: self.full as u64, ..Strata::default() };
        if count > 0 {
            let bin = |at: usize| if at == occupied.len() { bins } else { occupied[at] };
            strata.cuts = self.cuts.at[..=count].iter().map(|&at| bin(at) as u16).collect();
        }
        let view = views.get(self.view);
        strata.guide = view.map_or(0, |view| view.guide);
        for (&size, (a, b)) in self.sizes.iter().zip(self.cuts.runs()) {
            let ranks = before[b] - before[a];
            let variance = view.map_or(0.0, |view| view.moments(ranks, (a, b)).variance);
            strata.parts.push(Part { ranks: ranks as u64, size: size as u64, variance });
            let worth = if terms.coins && size < ranks { size - 1.0 } else { size };
            if variance != 0.0 && worth < ranks {
                let share = ranks / terms.population as f64;
                strata.attained += share * share * (1.0 / worth - 1.0 / ranks) * variance;
            }
        }
        strata
    }
}
