//! Sums of divided groups, and the messages that carry them.

use super::*;
use crate::config::{Config, DEFAULT_TARGET, Group, GroupStrata, Mechanism, Quantity, Selection};
use crate::message::MetricSummary;
use crate::message::{CensusWindow, Directive, DownMessage, MessageLayout, StratumDirective, UpMessage};
use crate::units::RankSet;

fn plan(ranks: u32) -> Plan {
    let mut config = Config::default();
    config.sampling.selection = Selection::Predictive;
    // No decision is retrospective.
    config.sampling.budget = Some(1e6);
    config.groups.push(Group {
        name: "g".into(),
        members: RankSet::range(0, ranks - 1).into(),
        target: DEFAULT_TARGET,
        pinned: RankSet::range(0, 2),
    });
    config.strata.push(GroupStrata { group: "g".into(), k: None });
    Plan::new(config, ranks).unwrap()
}

fn summary(plan: &Plan, value: f64) -> Summary {
    Summary { metrics: vec![MetricSummary::one(value); plan.metrics.len()], ..Summary::empty(plan) }
}

/// Report of `rank` by division `number`.
fn told(plan: &Plan, shape: &MessageLayout, rank: u32, number: u32) -> CensusWindow {
    let divisions = shape.divisions.as_ref().unwrap();
    let mut window = CensusWindow::new(shape, WindowId(7), WindowId(7));
    let value = f64::from(100 + rank % 5);
    let stratum = Some((rank % 2) as u8);
    let seen = vec![Moments::of_rank(1, value, 0.0, 0.0, 0.0); divisions.guides.len()];
    let sums = &mut window.partial.divided[0];
    sums.add(number, stratum, rank < 3, 1, &seen);
    if rank >= 3 {
        sums.sample(number, Sampled::of(divisions, 5, Rank(rank), stratum, &summary(plan, value)));
    }
    window
}

#[test]
fn the_same_ranks_are_sampled_however_sums_are_merged() {
    let plan = plan(300);
    let shape = MessageLayout::of(&plan);
    let most = usize::from(shape.divisions.as_ref().unwrap().sample);
    let all: Vec<CensusWindow> = (0..300).map(|rank| told(&plan, &shape, rank, 1)).collect();
    let empty = || CensusWindow::new(&shape, WindowId(7), WindowId(7));
    let mut forth = empty();
    all.iter().for_each(|window| forth.merge(window));
    let mut parts = empty();
    for chunk in all.rchunks(17) {
        let mut part = empty();
        chunk.iter().for_each(|window| part.merge(window));
        parts.merge(&part);
    }
    let (forth, parts) = (&forth.partial.divided[0], &parts.partial.divided[0]);
    assert_eq!(forth.sample, parts.sample);
    assert_eq!(forth.sample.len(), most);
    let mut order: Vec<u32> = (3..300).map(|rank| permute::order(5, Rank(rank))).collect();
    order.sort_unstable();
    assert!(forth.sample.iter().map(|sampled| sampled.place).eq(order.into_iter().take(most)));
    assert_eq!(forth.counts().collect::<Vec<_>>(), [(148, 2), (149, 1)]);
    assert_eq!(parts.counts().collect::<Vec<_>>(), [(148, 2), (149, 1)]);
}

#[test]
fn the_newer_division_counts() {
    let plan = plan(20);
    let shape = MessageLayout::of(&plan);
    for order in [[(5, 1), (6, 2), (7, 2)], [(6, 2), (7, 2), (5, 1)], [(6, 2), (5, 1), (7, 2)]] {
        let mut window = CensusWindow::new(&shape, WindowId(7), WindowId(7));
        order.iter().for_each(|&(rank, number)| window.merge(&told(&plan, &shape, rank, number)));
        let sums = &window.partial.divided[0];
        assert_eq!(sums.number, 2);
        assert_eq!(sums.counts().collect::<Vec<_>>(), [(1, 0), (1, 0)]);
        let known = sums.sample.iter().filter(|sampled| sampled.stratum.is_some()).count();
        assert_eq!((sums.sample.len(), known), (3, 2));
    }
    // A range has no rank's single windows.
    let mut range = told(&plan, &shape, 5, 1);
    let mut next = told(&plan, &shape, 5, 1);
    (next.first_window, next.last_window) = (WindowId(8), WindowId(8));
    range.merge(&next);
    let sums = &range.partial.divided[0];
    assert_eq!((sums.sample.len(), sums.counts().nth(1)), (0, Some((2, 0))));
}

fn directive(reference: Option<Reference>) -> Directive {
    let part =
        |stratum, size, probability| StratumDirective { group: 0, stratum, size, probability, policy: 3 };
    let count = |ranks, before| StratumCount { ranks, before };
    let newest = reference.map(|reference| Stratification {
        number: 2,
        from: WindowId(16),
        first: WindowId(1),
        windows: 0b1010_1010,
        reference,
    });
    Directive {
        update: 5,
        first_window: WindowId(20),
        seed: 1,
        mechanism: Mechanism::Subset,
        strata: vec![part(0, 5, 0.25), part(4, 3, 0.5)],
        divided: vec![StratifiedGroup {
            group: 0,
            number: 1,
            counted: WindowId(12),
            counts: vec![count(20, Some(7)), count(6, None)],
            newest,
            own: None,
        }],
    }
}

/// Directives do not grow beyond 4 KiB for strata that the configuration does not ask for.
#[test]
fn of_many_groups_only_those_are_divided_that_are_to_be() {
    let divided = |groups: u32| {
        let of_hundred = |group: u32| Group {
            name: group.to_string(),
            members: RankSet::range(group * 100, group * 100 + 99).into(),
            target: DEFAULT_TARGET,
            pinned: RankSet::default(),
        };
        let mut config = Config { groups: (0..groups).map(of_hundred).collect(), ..Config::default() };
        config.sampling.selection = Selection::Predictive;
        config.strata.push(GroupStrata { group: "1".into(), k: None });
        let shape = MessageLayout::of(&Plan::new(config, 100 * groups).unwrap());
        assert!(DownMessage::encoded_len(&shape) <= 4096, "{groups}");
        shape.divisions.unwrap().groups.len()
    };
    assert_eq!([2, 3, 40].map(divided), [2, 3, 1]);
}

#[test]
fn messages_come_back_and_hostile_ones_are_named() {
    let sizes = [40, 1_000_000].map(|ranks| {
        let plan = plan(ranks);
        let shape = MessageLayout::of(&plan);
        let mut bytes = Vec::new();
        let mut window = CensusWindow::new(&shape, WindowId(7), WindowId(7));
        (0..40).for_each(|rank| window.merge(&told(&plan, &shape, rank, 1)));
        UpMessage { pass: 0, finished: 0, window: Some(window.clone()) }.encode(&shape, &mut bytes);
        assert!(bytes.len() <= UpMessage::encoded_len(&shape) && UpMessage::fits(&bytes, &shape));
        let again = UpMessage::decode(&bytes).unwrap().window.unwrap();
        let (sums, again) = (&window.partial.divided[0], &again.partial.divided[0]);
        assert_eq!((again.number, &again.sample), (sums.number, &sums.sample));
        for (sums, again) in sums.strata.iter().zip(&again.strata) {
            assert_eq!((again.ranks, again.pinned), (sums.ranks, sums.pinned));
            for (sums, again) in sums.guides.iter().zip(&again.guides) {
                assert_eq!(
                    (again.ranks, again.n, again.y, again.cyy),
                    (sums.ranks, sums.n, sums.y, sums.cyy)
                );
                let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs();
                assert!(near(again.cy3, sums.cy3) && near(again.cy4, sums.cy4), "{again:?} {sums:?}");
                assert!(sums.cy4 > 0.0);
            }
        }
        (0..bytes.len()).for_each(|end| assert!(UpMessage::decode(&bytes[..end]).is_err(), "{end}"));
        let columns = vec![(5.0, 2.0), (1.0, 0.0), (2.5, 0.5)];
        let reference = Reference::from_parts(columns, 2, vec![vec![0.5, -1.0], vec![2.0, 3.25]]).unwrap();
        for reference in [None, Some(reference)] {
            let message = DownMessage::Directive(directive(reference));
            bytes.clear();
            message.encode(&shape, &mut bytes);
            assert_eq!(bytes.len(), DownMessage::encoded_len(&shape));
            assert_eq!(DownMessage::decode(&bytes), Ok(message));
            (0..108).for_each(|end| assert!(DownMessage::decode(&bytes[..end]).is_err(), "{end}"));
        }
        (UpMessage::encoded_len(&shape), DownMessage::encoded_len(&shape))
    });
    assert_eq!(sizes[0], sizes[1]);
    // Two pages are read at once; a sum of each built-in metric is in the way up.
    let most = 4096 + 400 * Quantity::ALL.len().saturating_sub(6);
    assert!(sizes[0].0 <= most && sizes[0].1 <= 4096, "{sizes:?}");
    assert_eq!(Reference::from_parts(vec![(1.0, 1.0)], 1, vec![vec![]]), None);
    assert_eq!(Reference::from_parts(vec![(f64::NAN, 1.0)], 1, vec![]), None);
    assert_eq!(Reference::from_parts(vec![], 0, vec![]), None);
}
