//! Retrospective decisions in the tree: exact samples of strata that only their ranks' values tell apart, whatever the
//! tree and its delays, without a list of ranks.

use std::collections::BTreeMap;

use ampl_client::Policy;
use ampl_core::config::{Config, Mechanism, Sampling, Selection, Sizing, Summaries, Target};
use ampl_core::message::{
    CensusWindow, GroupDecision, GroupReference, MessageLayout, Reference, RetrospectiveDecision,
    StratumDecision,
};
use ampl_core::stats::bins::{Histogram, Origin};
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use proptest::prelude::*;

use crate::common::net::Net;
use crate::common::{config, group, relative};

const CUTS: [u16; 4] = [30, 60, 66, 100];

fn setting(mechanism: Mechanism) -> Config {
    let mut config = config(Summaries::Census, Sizing::Neyman, mechanism);
    config.sampling.selection = Selection::Retrospective;
    config
}

/// About half of every stratum.
fn half(binned: &CensusWindow) -> RetrospectiveDecision {
    let decision = |group: &Histogram| {
        let strata = CUTS.windows(2).map(|cut| {
            let inside = usize::from(cut[0])..usize::from(cut[1]);
            let inside = group.occupied().filter(|occupied| inside.contains(&occupied.bin));
            let ranks: u64 = inside.map(|occupied| occupied.ranks).sum();
            StratumDecision { ranks: ranks as u32, size: ranks.div_ceil(2) as u32, before: 0 }
        });
        GroupDecision { cuts: CUTS.to_vec(), strata: strata.collect() }
    };
    RetrospectiveDecision {
        window: binned.first_window,
        policy: 3,
        seed: 77,
        groups: binned.partial.binned.iter().map(|group| Some(decision(group))).collect(),
    }
}

/// Every window is binned by its distance from 100, one error bound being 1.
fn reference(shape: &MessageLayout, first: u64, last: u64) -> Reference {
    let groups = shape.retrospective.as_ref().unwrap().groups.len();
    let origin = Origin { ratio: 100.0, mean_n: 1.0, unit: 1.0 };
    let one = GroupReference { guide: 0, error: 1.0, origins: vec![origin] };
    Reference { first_window: WindowId(first), last_window: WindowId(last), groups: vec![Some(one); groups] }
}

fn value(rank: u32, window: u64) -> f64 {
    let mixed = (u64::from(rank) << 20 ^ window).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    100.0 + [0.0, -2.0, 2.0, 900.0, -900.0][mixed as usize % 5]
}

fn net(config: Config, ranks: u32, root: u32, slowest: u32, windows: u64) -> Net {
    let mut net = Net::new(config, ranks, root, slowest, 5);
    net.judge = Some(half);
    let shape = MessageLayout::of(&net.plan);
    net.nodes[root as usize].refer(reference(&shape, 0, windows / 2));
    net.nodes[root as usize].refer(reference(&shape, windows / 2 + 1, windows));
    net
}

/// Every decision's sizes must be those of the ranks that heard of it.
fn check(net: &Net, members: impl Fn(Rank) -> Option<usize>) -> Result<(), TestCaseError> {
    let mut seen: BTreeMap<(u64, usize, u16), (u32, u32, f64)> = BTreeMap::new();
    for &(rank, judged) in &net.judged {
        let (Some(group), Some((keep, stratum))) = (members(rank), judged.keep) else { continue };
        let entry = seen.entry((judged.window.0, group, stratum)).or_insert((0, 0, keep.probability));
        entry.0 += 1;
        entry.1 += u32::from(keep.kept);
        prop_assert_eq!(entry.2, keep.probability);
        prop_assert!(stratum != 0 || keep.kept);
    }
    for decision in &net.retrospective {
        for (group, part) in decision.groups.iter().enumerate() {
            for (index, stratum) in part.as_ref().unwrap().strata.iter().enumerate() {
                let heard = seen.get(&(decision.window.0, group, index as u16 + 1)).copied();
                let (ranks, kept, probability) = heard.unwrap_or((0, 0, 0.0));
                prop_assert_eq!((ranks, kept), (stratum.ranks, stratum.size), "{:?}", decision.window);
                let expected = f64::from(stratum.size) / f64::from(stratum.ranks);
                prop_assert!(ranks == 0 || (probability - expected).abs() < 1e-12 || probability == 1.0);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn samples_are_of_exactly_the_size_that_was_decided(
        ranks in 1u32..150, root in 0u32..150, slowest in 0u32..4, windows in 1u64..24,
    ) {
        let mut net = net(setting(Mechanism::Subset), ranks, root % ranks, slowest, windows);
        for window in 0..windows {
            for rank in 0..ranks {
                net.local(rank as usize, window, Total { n: 1, y: value(rank, window) });
            }
            (0..30).for_each(|_| net.step());
        }
        net.finish();
        prop_assert_eq!(net.retrospective.len() as u64, windows);
        prop_assert_eq!(net.judged.len() as u64, windows * u64::from(ranks));
        prop_assert!(net.judged.iter().all(|(_, judged)| judged.keep.is_some()));
        check(&net, |_| Some(0))?;
    }
}

#[test]
fn pinned_ranks_and_fixed_sizes_are_decided_beforehand() {
    let mut config = setting(Mechanism::Subset);
    config.groups.push(group("bound", "0-29", relative(0.9, 0.08), "4-6"));
    config.groups.push(group("fixed", "30-49", Target::Static { ranks: 3 }, ""));
    let mut net = net(config, 70, 3, 2, 8);
    assert_eq!(MessageLayout::of(&net.plan).retrospective.unwrap().groups, [0, 2]);
    for window in 0..8 {
        (0..70).for_each(|rank| net.local(rank, window, Total { n: 1, y: value(rank as u32, window) }));
        (0..30).for_each(|_| net.step());
    }
    net.finish();
    let group = |rank: Rank| match rank.0 {
        4..=6 | 30..=49 => None,
        0..=29 => Some(0),
        _ => Some(1),
    };
    assert!(net.judged.iter().all(|(rank, judged)| judged.keep.is_some() == group(*rank).is_some()));
    check(&net, group).unwrap();
    let last = net.retrospective.last().unwrap();
    let counted: u32 = last.groups.iter().flatten().flat_map(|group| &group.strata).map(|s| s.ranks).sum();
    assert!((20..47).contains(&counted), "{counted}");
}

#[test]
fn who_is_not_counted_is_not_judged_and_the_others_are_drawn_exactly() {
    // Rank 9 hangs below rank 1, and 80 below 9: all of them are away for longer than the time-out lasts.
    let mut net = net(setting(Mechanism::Subset), 90, 0, 0, 40);
    net.step_ns = 100_000_000;
    for window in 0..40 {
        for rank in 0..90 {
            if rank == 9 && (5..25).contains(&window) {
                net.away[9] = true;
                continue;
            }
            net.away[9] &= window < 25;
            net.local(rank, window, Total { n: 1, y: value(rank as u32, window) });
        }
        (0..30).for_each(|_| net.step());
    }
    net.finish();
    assert!(net.retrospective.len() > 30, "{}", net.retrospective.len());
    let heard = |rank: u32, window: u64| {
        net.judged
            .iter()
            .any(|(who, judged)| (who.0, judged.window.0) == (rank, window) && judged.keep.is_some())
    };
    assert!(heard(9, 2) && heard(8, 12) && !heard(9, 12) && heard(9, 38));
    check(&net, |_| Some(0)).unwrap();
}

#[test]
fn windows_wait_for_a_reference_and_are_given_up_where_none_comes() {
    let mut net = Net::new(setting(Mechanism::Global), 20, 0, 1, 5);
    net.judge = Some(half);
    let shape = MessageLayout::of(&net.plan);
    let feed = |net: &mut Net, windows: std::ops::Range<u64>| {
        for window in windows {
            (0..20).for_each(|rank| net.local(rank, window, Total { n: 1, y: value(rank as u32, window) }));
            (0..20).for_each(|_| net.step());
        }
    };
    feed(&mut net, 0..6);
    assert!(net.judged.is_empty() && net.retrospective.is_empty());
    // Windows 0 and 1 are left out of it.
    net.nodes[0].refer(reference(&shape, 2, 100));
    feed(&mut net, 6..8);
    net.finish();
    let decided =
        |window| net.judged.iter().filter(|(_, j)| j.window.0 == window && j.keep.is_some()).count();
    assert_eq!([0, 1, 2, 5, 7].map(decided), [0, 0, 20, 20, 20]);
    let kept = net.judged.iter().filter(|(_, judged)| judged.keep.is_some_and(|(keep, _)| keep.kept)).count();
    assert!((40..110).contains(&kept), "{kept} of 120 by coins of about a half");
}

#[test]
fn a_policy_without_a_second_pass_has_none() {
    let beforehand = |change: fn(&mut Sampling)| {
        let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
        change(&mut config.sampling);
        config
    };
    for config in [
        beforehand(|sampling| sampling.partners = true),
        beforehand(|sampling| sampling.budget = Some(1e6)),
        config(Summaries::Sampled, Sizing::Neyman, Mechanism::Subset),
    ] {
        let net = Net::new(config, 4, 0, 0, 1);
        assert!(MessageLayout::of(&net.plan).retrospective.is_none());
        assert_eq!(Policy::new(&net.plan).first_directive().1.len(), 1);
    }
}

/// With predictive selection too there is nothing to draw the first interval by: it is decided as with retrospective
/// selection, and then nothing more goes up than sums.
#[test]
fn the_first_interval_is_decided_when_it_is_over() {
    let (ranks, first) = (90, 4);
    let job = |selection, slowest| {
        let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
        config.sampling.selection = selection;
        let mut net = Net::new(config, ranks, 3, slowest, 5);
        for window in 0..5 * first {
            for rank in 0..ranks {
                net.local(rank as usize, window, Total { n: 1, y: value(rank, window) });
            }
            (0..40).for_each(|_| net.step());
        }
        let passed = net.nodes.iter_mut().filter_map(|node| node.next_up().map(|_| ())).count();
        net.finish();
        (net, passed)
    };
    for slowest in [0, 3] {
        let (always, _) = job(Selection::Retrospective, slowest);
        let (net, passed) = job(Selection::Predictive, slowest);
        assert_eq!(passed, 0, "all is said");
        let expected: Vec<_> =
            always.retrospective.iter().filter(|decision| decision.window.0 < first).collect();
        assert_eq!(net.retrospective.iter().collect::<Vec<_>>(), expected);
        assert_eq!(expected.len() as u64, first);
        let mut heard = vec![0; first as usize];
        for (rank, judged) in &net.judged {
            let (keep, _) = judged.keep.unwrap_or_else(|| panic!("{rank:?} {judged:?}"));
            heard[judged.window.0 as usize] += 1;
            let same = always.judged.iter().find(|(other, of)| other == rank && of.window == judged.window);
            assert_eq!(same.and_then(|(_, of)| of.keep).map(|(keep, _)| keep), Some(keep));
        }
        assert_eq!(heard, [ranks; 4]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Ranks leave one after the other, in the middle of everything.
    #[test]
    fn every_job_settles(
        ends in prop::collection::vec(1u64..60, 1..40), root in any::<prop::sample::Index>(),
        slowest in 0u32..6, steps in 1u32..12, updates in 1u32..6, seed: u64,
    ) {
        let mut config = setting(Mechanism::Subset);
        config.sampling.windows_per_update = updates;
        let ranks = ends.len() as u32;
        let mut net = Net::new(config, ranks, root.index(ends.len()) as u32, slowest, seed);
        net.step_ns = 50_000_000;
        for window in 0..60 {
            for (rank, &end) in ends.iter().enumerate() {
                match window.cmp(&end) {
                    std::cmp::Ordering::Less => {
                        net.local(rank, window, Total { n: 1, y: value(rank as u32, window) })
                    }
                    std::cmp::Ordering::Equal => net.nodes[rank].local_finished(),
                    std::cmp::Ordering::Greater => {}
                }
            }
            (0..steps).for_each(|_| net.step());
        }
        net.finish();
        // Where edges are slower than windows some decisions are passed over, and no other rank is drawn instead.
        let decided = net.retrospective.iter().flat_map(|decision| decision.groups.iter().flatten());
        let drawn: u32 = decided.flat_map(|group| &group.strata).map(|stratum| stratum.size).sum();
        let heard = net.judged.iter().filter(|(_, j)| j.keep.is_some_and(|(keep, stratum)| keep.kept && stratum > 0));
        prop_assert!(heard.count() as u32 <= drawn);
    }
}
