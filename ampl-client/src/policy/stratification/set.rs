//! Strata that a group is divided into, and how many ranks of each are drawn.

use ampl_core::message::{Stratification as Sent, StratifiedSums};
use ampl_core::stats::outliers::{CoverageTarget, with_far};
use ampl_core::stats::sizing::{Stratum, mean_variance, neyman};
use ampl_core::units::WindowId;

use crate::policy::census::CensusTracker;

/// Strata that have been sent.
#[derive(Clone, Debug)]
pub struct Set {
    pub strata: Vec<Lasting>,
    pub sent: Sent,
    /// Window in which most of their ranks were counted.
    pub counted: WindowId,
    /// Ranks that were counted in it.
    pub all: u64,
}

/// A stratum that lasts.
#[derive(Clone, Debug)]
pub struct Lasting {
    pub id: u16,
    /// Medoid's place in the seeded order.
    pub medoid: u32,
    /// M_h without pinned ranks.
    pub ranks: u64,
    /// Pinned ranks.
    pub pinned: u64,
    /// m_h without pinned ranks: ranks that are drawn.
    pub size: u64,
    /// Fewest ranks that reported a window of the interval.
    pub reported: Option<u64>,
    /// Per guide: the predictor of the variance, `true` if it has observed this interval, and the S² that it priced.
    pub guides: Vec<(CensusTracker, bool, f64)>,
}

impl Lasting {
    /// S² that the size was priced for.
    pub fn variance(&self, guide: usize) -> f64 {
        self.guides.get(guide).map_or(0.0, |guide| guide.2)
    }

    /// Inclusion probability of its ranks that are not pinned.
    pub fn probability(&self) -> f64 {
        if self.ranks == 0 { 1.0 } else { self.size as f64 / self.ranks as f64 }
    }

    /// Ranks that its variance is to be reckoned with: samples of random size may be smaller.
    pub fn drawn(&self, terms: Terms) -> f64 {
        self.drawn_of(self.size, terms)
    }

    /// The same with another size.
    fn drawn_of(&self, size: u64, terms: Terms) -> f64 {
        let less = u64::from(terms.coins && size < self.ranks);
        size.saturating_sub(less) as f64
    }

    /// Kurtosis of the ranks whose variance the size was priced for.
    fn kurtosis(&self, guide: usize) -> Option<f64> {
        self.guides.get(guide)?.0.kurtosis()
    }

    fn stratum(&self, guide: usize) -> Stratum {
        Stratum { ranks: self.ranks, variance: self.variance(guide) }
    }
}

/// Requirement of a guide.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub guide: usize,
    /// Error bound.
    pub error: f64,
    /// Probability that it is to hold with, in (0, 1).
    pub confidence: f64,
    /// V0.
    pub allowed: f64,
}

/// Conditions on sizes.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Ranks of the group, pinned ones included.
    pub population: u64,
    /// Fewest ranks that are drawn of all strata together.
    pub floor: u64,
    /// `true` if samples are of random size.
    pub coins: bool,
}

impl Set {
    /// Takes how many ranks every stratum has in a window, or in several.
    pub fn count(&mut self, sums: &StratifiedSums, window: WindowId, windows: u64) {
        let counts: Vec<(u64, u64)> = sums.counts().collect();
        for (stratum, (ranks, pinned)) in self.strata.iter_mut().zip(&counts) {
            let reported = (ranks + pinned) / windows;
            stratum.reported = Some(stratum.reported.map_or(reported, |fewest| fewest.min(reported)));
        }
        let all = counts.iter().map(|(ranks, _)| ranks).sum();
        // Positions are unknown for merged windows and stay valid while membership is unchanged.
        if windows == 1 && all > self.all {
            (self.all, self.counted) = (all, window);
            for (number, stratum) in self.strata.iter_mut().enumerate() {
                (stratum.ranks, stratum.pinned) = counts.get(number).copied().unwrap_or_default();
            }
        }
    }

    /// Variance of the group's mean as it was priced, with the sizes in force.
    pub fn priced(&self, guide: usize, terms: Terms) -> f64 {
        let of =
            |stratum: &Lasting| mean_variance(stratum.stratum(guide), stratum.drawn(terms), terms.population);
        self.strata.iter().map(of).sum()
    }

    /// Ranks to be drawn of every stratum so that every one of `asks` is met by the fewest, and which of them takes
    /// the most.
    ///
    /// # Source
    /// Neyman's allocation ([`neyman`]), the larger of the guides' in each stratum; two ranks of each at least, or
    /// their variance would be unknown.
    pub fn allocate(&self, asks: &[Ask], terms: Terms) -> (Vec<u64>, Option<usize>) {
        let mut sizes = vec![0; self.strata.len()];
        let mut weights = vec![0.0_f64; self.strata.len()];
        let mut most: Option<(u64, usize)> = None;
        for &Ask { guide, allowed, .. } in asks {
            let strata: Vec<Stratum> = self.strata.iter().map(|stratum| stratum.stratum(guide)).collect();
            let asked = neyman(&strata, terms.population, allowed);
            let all = asked.iter().sum();
            if most.is_none_or(|(before, _)| all > before) {
                most = Some((all, guide));
            }
            for (index, (asked, stratum)) in asked.iter().zip(&strata).enumerate() {
                sizes[index] = (*asked).max(sizes[index]);
                let weight = stratum.ranks as f64 * (stratum.variance / allowed).sqrt();
                weights[index] = weight.max(weights[index]);
            }
        }
        let least = if terms.coins { 8 } else { 2 };
        let extra = u64::from(terms.coins);
        for (size, stratum) in sizes.iter_mut().zip(&self.strata) {
            *size = ((*size).max(least) + extra).min(stratum.ranks);
        }
        for &ask in asks {
            self.add_far(&mut sizes, ask, terms);
        }
        let mut left = terms.floor.saturating_sub(sizes.iter().sum());
        while left > 0 {
            let gain = |index: usize| {
                let drawn = sizes[index] as f64;
                // Where ranks do not differ, one is as good as another.
                let weight = weights[index].max(1e-9 * self.strata[index].ranks as f64);
                weight / (drawn * (drawn + 1.0)).max(0.25).sqrt()
            };
            let open = (0..sizes.len()).filter(|&index| sizes[index] < self.strata[index].ranks);
            let Some(index) = open.reduce(|best, next| if gain(next) > gain(best) { next } else { best })
            else {
                break;
            };
            sizes[index] += 1;
            left -= 1;
        }
        (sizes, most.map(|(_, guide)| guide))
    }

    /// Adds ranks to strata that have outliers ([`with_far`]).
    fn add_far(&self, sizes: &mut [u64], ask: Ask, terms: Terms) {
        let Ask { guide, error, confidence, .. } = ask;
        let part = |index: usize, size: u64| {
            let stratum = &self.strata[index];
            mean_variance(stratum.stratum(guide), stratum.drawn_of(size, terms), terms.population)
        };
        for (index, stratum) in self.strata.iter().enumerate() {
            let Some(kurtosis) = stratum.kurtosis(guide) else { continue };
            let others = (0..sizes.len()).filter(|&other| other != index);
            let others = others.map(|other| part(other, sizes[other])).sum();
            let promise = CoverageTarget { population: terms.population, error, confidence, others };
            sizes[index] = with_far(sizes[index], (stratum.stratum(guide), kurtosis), promise);
        }
    }
}
