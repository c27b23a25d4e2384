//! Windows kept for the sake of others: where a rank is drawn, the ranks that it exchanges messages with keep
//! their windows too, so that both ends of its messages are there.
//!
//! A draw is a pure function of the directive, so a rank needs no message to know whether a partner of it was
//! drawn. What it keeps that way is no simple sample any more: a rank with many partners is kept more often.
//! So each such window is stored with π, the probability that the rank or any partner of it was drawn, which
//! makes totals over all that is stored Horvitz–Thompson estimates. Means and their bounds rest on the ranks'
//! own draws alone, as if partners were not kept.
//!
//! # Source
//! Taking in the units linked to drawn ones, and weighting each by the probability that any of its links is
//! drawn: Thompson, *Sampling*, 3rd ed. (2012), ch. 15 (network sampling).

use super::{Keep, Lot};
use crate::config::Mechanism;
use crate::message::Directive;
use crate::plan::Plan;
use crate::units::{Rank, WindowId};

/// Most partners of a rank that are considered.
pub const MOST: usize = 64;

/// Draw of `rank` for `window` while `directive` is in force: kept if it or any of its `partners` is drawn, with the
/// probability π of that, in [0, 1].
///
/// `partners` are ranks of the job, each once, and not `rank`; those beyond [`MOST`] are left out. Without any, the
/// result is that of [`kept`](super::kept).
///
/// Coins of `global` are independent: π = 1 − ∏ (1 − pₖ). Under `subset` the N ranks of a (group, stratum) that
/// are not pinned share an order, of which the first n are drawn: with a of them among `rank` and `partners`,
/// none is drawn with probability C(N − a, n) / C(N, n), and groups are independent.
pub fn kept(plan: &Plan, rank: Rank, partners: &[Rank], window: WindowId, directive: &Directive) -> Keep {
    if partners.is_empty() {
        return super::kept(plan, rank, window, directive);
    }
    let partners = &partners[..partners.len().min(MOST)];
    // How many of each group came by so far; a group's index fits (see the directive's).
    let mut groups = [u16::MAX; MOST + 1];
    let (mut kept, mut none) = (false, 1.0);
    for (number, &one) in std::iter::once(&rank).chain(partners).enumerate() {
        let Some(lot) = Lot::of(plan, one, directive) else { return Keep::ALWAYS };
        none *= match directive.mechanism {
            Mechanism::Global => 1.0 - lot.target.probability,
            Mechanism::Subset => {
                let group = lot.target.group;
                let before = groups[..number].iter().filter(|&&have| have == group).count() as u64;
                groups[number] = group;
                let (drawn, others) = lot.drawn_of(plan);
                left_out(drawn, others, before)
            }
        };
        kept = kept || lot.is_drawn(plan, one, window, directive);
    }
    Keep { kept, probability: 1.0 - none }
}

/// Probability that one more of `others` ranks is not among the `drawn`, given that `before` are not.
fn left_out(drawn: u64, others: u64, before: u64) -> f64 {
    let left = others.saturating_sub(before);
    if left <= drawn { 0.0 } else { (left - drawn) as f64 / left as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, DEFAULT_TARGET, Group};
    use crate::message::StratumDirective;
    use crate::stats::quantile::variance_ratio;
    use crate::units::RankSet;

    /// Ranks 0-19 and 20-49, of which 20-22 are pinned; 50-51 are in a group of their own.
    fn plan() -> Plan {
        let mut config = Config::default();
        for (name, members, pinned) in [("few", "0-19", ""), ("many", "20-49", "20-22")] {
            config.groups.push(Group {
                name: name.into(),
                members: RankSet::parse(members).unwrap().into(),
                target: DEFAULT_TARGET,
                pinned: RankSet::parse(pinned).unwrap(),
            });
        }
        Plan::new(config, 52).unwrap()
    }

    /// 5 of 20, and the 3 pinned with 2 of the other 27; nothing about the third group.
    fn directive(mechanism: Mechanism, seed: u64) -> Directive {
        let stratum =
            |group, size, probability| StratumDirective { group, stratum: 0, size, probability, policy: 1 };
        Directive {
            update: 1,
            first_window: WindowId(4),
            seed,
            mechanism,
            strata: vec![stratum(0, 5, 0.25), stratum(1, 5, 2.0 / 27.0)],
            divided: Vec::new(),
        }
    }

    fn ranks(numbers: &[u32]) -> Vec<Rank> {
        numbers.iter().copied().map(Rank).collect()
    }

    fn keep(mechanism: Mechanism, seed: u64, rank: u32, partners: &[u32]) -> Keep {
        kept(&plan(), Rank(rank), &ranks(partners), WindowId(5), &directive(mechanism, seed))
    }

    /// C(n, k), exact for what is used here.
    fn choose(n: u64, k: u64) -> f64 {
        (0..k).map(|i| (n - i) as f64 / (k - i) as f64).product()
    }

    #[test]
    fn probabilities_are_those_of_the_formulas() {
        let close = |keep: Keep, p: f64| assert!((keep.probability - p).abs() < 1e-12, "{keep:?} {p}");
        let few = |a: u64| choose(20 - a, 5) / choose(20, 5);
        let many = |a: u64| choose(27 - a, 2) / choose(27, 2);
        close(keep(Mechanism::Subset, 1, 3, &[]), 0.25);
        close(keep(Mechanism::Subset, 1, 3, &[4]), 1.0 - few(2));
        close(keep(Mechanism::Subset, 1, 3, &[30, 4, 31, 0]), 1.0 - few(3) * many(2));
        // 16 of 20: five cannot all be missed.
        let all: Vec<u32> = (0..16).filter(|&rank| rank != 3).collect();
        close(keep(Mechanism::Subset, 1, 3, &all), 1.0);
        assert!((0..200).all(|seed| keep(Mechanism::Subset, seed, 3, &all).kept));
        close(keep(Mechanism::Global, 1, 3, &[4, 30]), 1.0 - 0.75f64.powi(2) * (25.0 / 27.0));
    }

    #[test]
    fn a_partner_that_is_certain_makes_certain() {
        for mechanism in [Mechanism::Subset, Mechanism::Global] {
            assert_eq!(keep(mechanism, 3, 3, &[4, 21]), Keep::ALWAYS);
            assert_eq!(keep(mechanism, 3, 3, &[51]), Keep::ALWAYS, "a group that is not in the directive");
            assert_eq!(keep(mechanism, 3, 21, &[4]), Keep::ALWAYS);
        }
    }

    #[test]
    fn exactly_the_drawn_and_their_partners_keep() {
        let plan = plan();
        for (seed, mechanism) in (0..50).flat_map(|s| [(s, Mechanism::Subset), (s, Mechanism::Global)]) {
            let directive = directive(mechanism, seed);
            let own = |rank| super::super::kept(&plan, Rank(rank), WindowId(5), &directive).kept;
            for rank in 23..49 {
                let (before, behind) = (rank - 10, rank + 1);
                let union = keep(mechanism, seed, rank, &[before, behind]);
                assert_eq!(
                    union.kept,
                    own(rank) || own(before) || own(behind),
                    "{mechanism:?} {seed} {rank}"
                );
            }
        }
    }

    #[test]
    fn more_partners_than_are_looked_at_are_left_out() {
        let partners: Vec<u32> = (0..200).collect();
        let plan = Plan::new(Config::default(), 300).unwrap();
        let stratum = StratumDirective { group: 0, stratum: 0, size: 1, probability: 1.0 / 300.0, policy: 1 };
        let directive = Directive { strata: vec![stratum], ..directive(Mechanism::Subset, 1) };
        let keep = kept(&plan, Rank(299), &ranks(&partners), WindowId(5), &directive);
        assert!((keep.probability - 65.0 / 300.0).abs() < 1e-12, "{keep:?}");
    }

    /// χ² over some sets of partners, of two groups, of how often they were kept against π.
    #[test]
    fn frequencies_equal_the_stated_probability() {
        const SEEDS: u64 = 4000;
        let sets: [(u32, &[u32]); 8] = [
            (3, &[]),
            (3, &[4]),
            (7, &[6, 8]),
            (19, &[18, 23]),
            (40, &[39, 41, 0]),
            (23, &[24, 25, 26, 27, 28]),
            (0, &[19, 49, 30, 31, 32, 33]),
            (11, &[1, 2, 3, 4, 5, 6, 7, 45, 46, 47, 48]),
        ];
        for mechanism in [Mechanism::Subset, Mechanism::Global] {
            let mut chi = 0.0;
            for (rank, partners) in sets {
                let kept =
                    (0..SEEDS).filter(|&seed| keep(mechanism, seed, rank, partners).kept).count() as f64;
                let p = keep(mechanism, 0, rank, partners).probability;
                let mean = p * SEEDS as f64;
                chi += (kept - mean).powi(2) / (mean * (1.0 - p));
            }
            let freedom = sets.len() as f64;
            assert!(chi < freedom * variance_ratio(0.9999, freedom), "{mechanism:?}: {chi}");
        }
    }
}
