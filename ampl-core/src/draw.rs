//! Draws of ranks: pure functions of the recorded seed. Every rank repeats its own, and so does a reader of the trace,
//! without a list of ranks ever being sent.
//!
//! `subset` orders the ranks of a (group, stratum) that are not pinned by a seeded permutation,
//! new at every update interval, and keeps the first m − pinned of them: a larger m only adds
//! ranks. The order is that of the window's interval, whichever directive is in force: a rank that a directive
//! reaches late draws from the same order as the others, so a size that stays is kept exactly. `global` flips a
//! coin per rank and window. Pinned ranks are always kept.
//!
//! A retrospective decision has strata that depend on what happened in the window; their orders are drawn per window
//! ([`kept_after`]), and the tree sends every rank its place.
//!
//! A sample of exactly m ranks could also come from splitting m on the way down the tree, each node
//! drawing its children's shares by the hypergeometric distribution. The permutation is as exact, every
//! rank's part of it costs a fraction of a microsecond whatever the size of the job, and it needs less:
//! every node hands on the same bytes; nothing depends on the tree's form, on who reported, or on
//! which ranks a message has reached; and a reader of the trace repeats the draw of one rank without
//! those of all the others. Splitting would be needed only where nobody but a subtree's root knows how
//! many ranks a stratum has there, and strata follow from the plan.
//!
//! # Source
//! AMPL 2008 §3.2 for the two mechanisms; Black & Rogaway, *Ciphers with Arbitrary Finite
//! Domains* (2002), for the permutation (Feistel network with cycle walking).

use crate::config::Mechanism;
use crate::message::{Directive, Own, RetrospectiveDecision, StratumDecision, StratumDirective};
use crate::permute::{Key, coin, position};
use crate::plan::Plan;
use crate::units::{Rank, WindowId};

pub mod partners;

/// Outcome of a draw, and its keep probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keep {
    /// The outcome of the draw.
    pub kept: bool,
    /// Inclusion probability, in [0, 1]; the design weight is its inverse.
    pub probability: f64,
}

impl Keep {
    /// Outcome for pinned ranks.
    pub const ALWAYS: Self = Self { kept: true, probability: 1.0 };
}

/// Draw of `rank` for `window` while `directive` is in force.
///
/// A directive that does not name the rank's group keeps everything.
pub fn kept(plan: &Plan, rank: Rank, window: WindowId, directive: &Directive) -> Keep {
    kept_as(plan, rank, window, directive, own(plan, rank, directive))
}

/// Place of `rank`, the directive's receiver, in the strata of its group.
fn own(plan: &Plan, rank: Rank, directive: &Directive) -> Option<Own> {
    if directive.divided.is_empty() {
        return None;
    }
    directive.divided(plan.group_of(rank) as u16)?.own
}

/// The same for a rank that is at `own` in the strata of its group, where that is divided.
pub fn kept_as(plan: &Plan, rank: Rank, window: WindowId, directive: &Directive, own: Option<Own>) -> Keep {
    match Lot::at(plan, rank, directive, own) {
        Some(lot) => {
            Keep { kept: lot.is_drawn(plan, rank, window, directive), probability: lot.target.probability }
        }
        None => Keep::ALWAYS,
    }
}

/// The stratum of a divided group that `rank` is drawn in; none where its group is one stratum, it is pinned, or
/// it has not found one.
pub fn stratum(plan: &Plan, rank: Rank, directive: &Directive) -> Option<u16> {
    let lot = Lot::of(plan, rank, directive)?;
    directive.divided(lot.target.group)?.own.map(|_| lot.target.stratum)
}

/// Draw of a retrospective decision for the rank at `place` (from 0) of stratum `index` of `group`, an index into the
/// plan's groups. The keep probability is m_h/M_h.
///
/// Under `subset` exactly m_h places of the stratum are drawn, in an order of the window's own.
pub fn kept_after(
    mechanism: Mechanism,
    rank: Rank,
    group: u16,
    (index, stratum): (usize, StratumDecision),
    place: u64,
    decision: &RetrospectiveDecision,
) -> Keep {
    let (drawn, ranks) = (u64::from(stratum.size), u64::from(stratum.ranks));
    if drawn >= ranks || place >= ranks {
        return Keep::ALWAYS;
    }
    let probability = drawn as f64 / ranks as f64;
    let kept = match mechanism {
        Mechanism::Global => coin(decision.seed, rank, decision.window) < probability,
        Mechanism::Subset => {
            // No update has so high a number: other orders are drawn for updates.
            let update = decision.window.0 | 1 << 63;
            let key = Key { seed: decision.seed, group, stratum: index as u16, update };
            position(key, place, ranks) < drawn
        }
    };
    Keep { kept, probability }
}

/// Draw of a rank that is not pinned and whose group the directive names.
#[derive(Clone, Copy, Debug)]
struct Lot<'a> {
    /// Index of its group in the plan.
    group: usize,
    target: &'a StratumDirective,
    /// Where the group is divided: the rank's place in its stratum, if it was counted, and how many ranks of that are
    /// not pinned.
    among: Option<(Option<u64>, u64)>,
}

impl<'a> Lot<'a> {
    /// Draw of `rank`; `None` where it is certain to be kept.
    fn of(plan: &Plan, rank: Rank, directive: &'a Directive) -> Option<Self> {
        Self::at(plan, rank, directive, own(plan, rank, directive))
    }

    /// The same for a rank that is at `own` in the strata of its group, where that is divided.
    fn at(plan: &Plan, rank: Rank, directive: &'a Directive, own: Option<Own>) -> Option<Self> {
        let group = plan.group_of(rank);
        if plan.groups[group].pinned.contains(rank) {
            return None;
        }
        let index = group as u16;
        let Some(divided) = directive.divided(index) else {
            let target = directive.of_group(index).next()?;
            return Some(Self { group, target, among: None });
        };
        let of_stratum = |own: Own| {
            let count = divided.counts.get(usize::from(own.stratum))?;
            let target = directive.of_group(index).nth(usize::from(own.stratum))?;
            Some(Self { group, target, among: Some((own.place.map(u64::from), u64::from(count.ranks))) })
        };
        // A rank that has not found its stratum gets the largest keep probability of the group.
        let likeliest = || {
            let more = |most: &'a StratumDirective, next: &'a StratumDirective| {
                if next.probability > most.probability { next } else { most }
            };
            let target = directive.of_group(index).reduce(more)?;
            Some(Self { group, target, among: Some((None, 0)) })
        };
        own.and_then(of_stratum).or_else(likeliest)
    }

    /// Ranks of the group that `subset` draws beside the pinned ones, and ranks that are not pinned.
    fn drawn_of(self, plan: &Plan) -> (u64, u64) {
        let group = &plan.groups[self.group];
        let pinned = group.pinned.len();
        (u64::from(self.target.size).saturating_sub(pinned), group.members.len() - pinned)
    }

    /// `true` if `rank`, whose draw this is, is drawn in `window`.
    fn is_drawn(self, plan: &Plan, rank: Rank, window: WindowId, directive: &Directive) -> bool {
        match directive.mechanism {
            Mechanism::Global => coin(directive.seed, rank, window) < self.target.probability,
            Mechanism::Subset => {
                let update = plan.update_of(window);
                let (group, stratum) = (self.target.group, self.target.stratum);
                let key = Key { seed: directive.seed, group, stratum, update };
                let probability = self.target.probability;
                match self.among {
                    None => {
                        let (drawn, others) = self.drawn_of(plan);
                        place(plan, self.group, rank).is_some_and(|at| position(key, at, others) < drawn)
                    }
                    Some((Some(at), ranks)) if at < ranks => {
                        position(key, at, ranks) < (probability * ranks as f64).round() as u64
                    }
                    // The rank's place is unknown: a coin that lasts for the interval has the same probability.
                    Some(_) => coin(directive.seed, rank, WindowId(update | 1 << 63)) < probability,
                }
            }
        }
    }
}

/// The number of `rank` among its group's ranks that are not pinned.
fn place(plan: &Plan, group: usize, rank: Rank) -> Option<u64> {
    let group = &plan.groups[group];
    let before = group.members.position(rank)?;
    let pinned_before: u64 = group
        .pinned
        .ranges()
        .filter(|&(low, _)| low < rank.0)
        .map(|(low, high)| u64::from(high.min(rank.0)) - u64::from(low) + 1)
        .sum();
    Some(before - pinned_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, DEFAULT_TARGET, Group};
    use crate::message::StratumDirective;
    use crate::stats::quantile::variance_ratio;
    use crate::units::RankSet;

    fn plan(ranks: u32, pinned: &str) -> Plan {
        let mut config = Config::default();
        config.groups.push(Group {
            name: "some".into(),
            members: RankSet::range(3, ranks - 1).into(),
            target: DEFAULT_TARGET,
            pinned: RankSet::parse(pinned).unwrap(),
        });
        Plan::new(config, ranks).unwrap()
    }

    fn directive(mechanism: Mechanism, size: u32, probability: f64, seed: u64) -> Directive {
        Directive {
            update: 1,
            first_window: WindowId(4),
            seed,
            mechanism,
            strata: vec![StratumDirective { group: 0, stratum: 0, size, probability, policy: 1 }],
            divided: Vec::new(),
        }
    }

    #[test]
    fn a_subset_has_exactly_its_size_and_grows_by_adding() {
        let plan = plan(40, "5,9-11");
        let members = 37;
        let mut before: Vec<u32> = Vec::new();
        for size in 4..=members {
            let p = f64::from(size - 4) / f64::from(members - 4);
            let directive = directive(Mechanism::Subset, size, p, 7);
            let keep = |rank: u32| kept(&plan, Rank(rank), WindowId(6), &directive);
            let now: Vec<u32> = (3..40).filter(|&rank| keep(rank).kept).collect();
            assert_eq!(now.len(), size as usize);
            assert!(before.iter().all(|rank| now.contains(rank)));
            for rank in [5, 9, 10, 11] {
                assert_eq!(keep(rank), Keep::ALWAYS);
            }
            assert_eq!(keep(20).probability, p);
            before = now;
        }
        // Ranks 0-2 are in a group that the directive does not name.
        let none = directive(Mechanism::Subset, 4, 0.0, 7);
        assert_eq!(kept(&plan, Rank(1), WindowId(6), &none), Keep::ALWAYS);
    }

    #[test]
    fn kept_frequencies_equal_the_stored_probability() {
        let plan = plan(33, "30-32");
        let seeds = 4000;
        for mechanism in [Mechanism::Subset, Mechanism::Global] {
            let (size, p) = (12, 9.0 / 27.0);
            let mut chi = 0.0;
            for rank in 3..30 {
                let count = (0..seeds)
                    .filter(|&seed| {
                        let directive = directive(mechanism, size, p, seed);
                        let keep = kept(&plan, Rank(rank), WindowId(5), &directive);
                        assert_eq!(keep.probability, p);
                        keep.kept
                    })
                    .count() as f64;
                let mean = p * seeds as f64;
                chi += (count - mean).powi(2) / (mean * (1.0 - p));
            }
            assert!(chi < 27.0 * variance_ratio(0.9999, 27.0), "{mechanism:?}: {chi}");
        }
    }

    #[test]
    fn coins_change_with_the_window_and_orders_with_the_update() {
        let plan = plan(400, "");
        let global = directive(Mechanism::Global, 198, 0.5, 1);
        let same = (3..400)
            .filter(|&rank| {
                kept(&plan, Rank(rank), WindowId(5), &global).kept
                    == kept(&plan, Rank(rank), WindowId(6), &global).kept
            })
            .count();
        assert!((150..250).contains(&same), "{same}");
        let subset = directive(Mechanism::Subset, 198, 198.0 / 397.0, 1);
        // Whom the next directive has not reached draws as the others do.
        let next = Directive { update: 2, ..subset.clone() };
        let same = |first: u64, second: u64| {
            let is_kept = |rank, window, directive| kept(&plan, Rank(rank), WindowId(window), directive).kept;
            (3..400).filter(|&rank| is_kept(rank, first, &subset) == is_kept(rank, second, &next)).count()
        };
        let interval = u64::from(plan.config.sampling.windows_per_update);
        assert_eq!(same(interval, 2 * interval - 1), 397);
        assert!((150..250).contains(&same(2 * interval - 1, 2 * interval)));
    }
}
