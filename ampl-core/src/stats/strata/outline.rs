//! Positions of a histogram's bins, and runs and cuts of them.

use super::{MOST, Need, running};
use crate::stats::bins::{Histogram, Occupied, Residuals, Shift};

/// Number of runs that are tried and lack only ranks with large values.
const STRIDES: usize = 16;

/// Positions of bins along the guide that they are of.
pub(super) struct Outline {
    /// √f up to every occupied bin.
    spread: Vec<f64>,
    /// Distance of an occupied bin's farthest rank from the window's mean.
    distance: Vec<f64>,
    /// Per occupied bin, `true` if its ranks are all below the mean.
    below: Vec<bool>,
}

impl Outline {
    /// Outline of a histogram along the guide `binned`, about the mean that its need leads to.
    pub fn new(histogram: &Histogram, binned: usize, need: Option<Need>) -> Self {
        let shift = need.map_or(Shift { scale: 1.0, offset: 0.0 }, |need| need.shift);
        let error = need.map_or(1.0, |need| need.error);
        let extremes = |bin: &Occupied<'_>| {
            let Residuals { min, max, .. } = bin.residuals[binned];
            (shift.scale * min + shift.offset, shift.scale * max + shift.offset)
        };
        let width = |bin: Occupied<'_>| {
            let (min, max) = extremes(&bin);
            // What rounding leaves of equal numbers is no width.
            let width = (max - min).abs().max(1e-9 * error);
            let weight = (bin.ranks as f64 * width).sqrt();
            if weight.is_finite() { weight } else { 0.0 }
        };
        let distance = |bin: Occupied<'_>| {
            let (min, max) = extremes(&bin);
            min.abs().max(max.abs())
        };
        Self {
            spread: running(histogram.occupied().map(width)),
            distance: histogram.occupied().map(distance).collect(),
            below: histogram.occupied().map(|bin| extremes(&bin)).map(|(a, b)| a.max(b) < 0.0).collect(),
        }
    }

    /// Run without the ranks that are kept whatever it costs: those farther than `alone` from the mean. Each of them
    /// moves the mean beyond the bound by itself, so no draw may leave it out. `before` counts ranks as [`running`]
    /// does.
    ///
    /// Ranks that have nothing are that far from the mean where the group is small and the bound tight (32 ranks and
    /// 3 %). If more than `idle` ranks are as far below, they are drawn like others, as each of them stands for the rest.
    pub fn within(&self, alone: f64, before: &[f64], idle: f64) -> (usize, usize) {
        // Not a number is far away.
        let far = |bin: usize| self.distance[bin].is_nan() || self.distance[bin] > alone;
        let bins = 0..self.distance.len();
        // Counted from the outside, so that a looser bound never forces ranks that a tighter one draws.
        let farther = |bin: usize| -> f64 {
            let others = bins.clone().filter(|&other| self.below[other]);
            let others = others.filter(|&other| self.distance[other] >= self.distance[bin]);
            others.map(|other| before[other + 1] - before[other]).sum()
        };
        let full = |bin: usize| far(bin) && (!self.below[bin] || farther(bin) <= idle);
        let high = bins.clone().rfind(|&bin| !full(bin)).map_or(0, |bin| bin + 1);
        let low = bins.clone().find(|&bin| !full(bin)).unwrap_or(high);
        (low, high)
    }

    /// Runs of occupied bins from `first` on, each without the outermost one of the run before, down to none. The
    /// outermost one is the farthest on `both` sides; else they are those with the largest values, some at once.
    pub fn nested(&self, first: (usize, usize), both: bool) -> impl Iterator<Item = (usize, usize)> {
        let stride = ((first.1 - first.0) / STRIDES).max(1);
        std::iter::successors(Some(first), move |&(low, high)| {
            if low >= high {
                return None;
            }
            if !both {
                return Some((low, high.saturating_sub(stride).max(low)));
            }
            // Not a number is far away.
            let inner = self.distance[low] <= self.distance[high - 1] || self.distance[high - 1].is_nan();
            Some(if inner { (low, high - 1) } else { (low + 1, high) })
        })
    }

    /// Ends of the run, and at most `most` - 1 places between them: all, or some at about equal √f.
    pub fn places(&self, (low, high): (usize, usize), most: usize) -> Vec<usize> {
        if high - low <= most {
            return (low..=high).collect();
        }
        let mut places = vec![low];
        let (from, to) = (self.spread[low], self.spread[high]);
        for part in 1..most {
            let goal = from + (to - from) * part as f64 / most as f64;
            let place = low + self.spread[low..=high].partition_point(|&sum| sum < goal);
            if place > places[places.len() - 1] && place < high {
                places.push(place);
            }
        }
        places.push(high);
        places
    }

    /// The run cut into at most `count` strata of about equal √f; none where it has fewer bins.
    pub fn cuts(&self, low: usize, high: usize, count: usize) -> Option<Cuts> {
        let mut cuts = Cuts::default();
        if high - low < count {
            // Nothing to cut is a way to keep all ranks.
            return (count == 1).then_some(cuts);
        }
        cuts.at[0] = low;
        let (from, to) = (self.spread[low], self.spread[high]);
        for part in 1..=count {
            let goal = from + (to - from) * part as f64 / count as f64 * (1.0 - 1e-9);
            let inside = &self.spread[low + 1..=high];
            let cut = match part == count {
                true => high,
                false => low + 1 + inside.partition_point(|&sum| sum < goal).min(high - low - 1),
            };
            if cut > cuts.at[cuts.count] {
                cuts.count += 1;
                cuts.at[cuts.count] = cut;
            }
        }
        Some(cuts)
    }
}

/// Strata as runs of occupied bins.
#[derive(Clone, Copy, Default)]
pub(super) struct Cuts {
    /// First bins of the strata, and the end of the last one.
    pub at: [usize; MOST + 1],
    /// Number of strata.
    pub count: usize,
}

impl Cuts {
    /// The same with any one of the cuts a bin further to the left or to the right, if it can be in that run.
    pub fn moved(self, (low, high): (usize, usize)) -> impl Iterator<Item = Self> {
        let left = (0..=self.count).filter(move |&cut| match cut {
            0 => self.at[0] > low,
            _ => self.at[cut] - self.at[cut - 1] > 1,
        });
        let right = (0..=self.count).filter(move |&cut| match cut {
            _ if cut == self.count => self.at[cut] < high,
            _ => self.at[cut + 1] - self.at[cut] > 1,
        });
        let to = move |cut: usize, place: usize| {
            let mut cuts = self;
            cuts.at[cut] = place;
            cuts
        };
        left.map(move |cut| to(cut, self.at[cut] - 1)).chain(right.map(move |cut| to(cut, self.at[cut] + 1)))
    }

    pub fn runs(&self) -> impl Iterator<Item = (usize, usize)> {
        self.at[..=self.count].windows(2).map(|pair| (pair[0], pair[1]))
    }
}
