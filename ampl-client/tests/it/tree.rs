//! Many nodes joined by queues: what arrives at the client, whatever the network does.

use ampl_client::tree::RING;
use ampl_client::{Node, Policy};
use ampl_core::config::{Config, Mechanism, Sizing, Summaries};
use ampl_core::message::{CensusWindow, Directive, DownMessage, MessageLayout, Summary, UpMessage};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::Kind;
use ampl_testkit::population::Total;
use proptest::prelude::*;

use crate::common::net::{Net, check_census, whole};
use crate::common::{GUIDE, config, group, relative, summary};

fn groups(config: &mut Config, ranks: u32) {
    if ranks > 60 {
        config.groups.push(group("low", "3-29", relative(0.9, 0.05), "3,7-9"));
    }
}

fn two_groups(mechanism: Mechanism, ranks: u32) -> Config {
    let mut config = config(Summaries::Census, Sizing::Neyman, mechanism);
    groups(&mut config, ranks);
    config
}

/// Ranks in step (windows end together), the network up to `slowest` steps slow.
fn in_step(config: Config, ranks: u32, root: u32, slowest: u32, seed: u64) -> (Net, Vec<Vec<Total>>) {
    let windows = 23;
    let truth = whole(Kind::VaryingCounts, ranks, windows, 3);
    let mut net = Net::new(config, ranks, root, slowest, seed);
    for (number, totals) in truth.iter().enumerate() {
        for (rank, &total) in totals.iter().enumerate() {
            net.local(rank, number as u64, total);
        }
        // As long as a window takes, and longer than the time-out.
        (0..4 * (slowest + 2)).for_each(|_| net.step());
    }
    net.finish();
    (net, truth)
}

#[test]
fn every_size_of_job_is_summed_and_decided_the_same_way_whatever_the_delays() {
    for (ranks, root) in [(1, 0), (2, 1), (3, 0), (7, 6), (64, 0), (200, 50)] {
        for mechanism in [Mechanism::Subset, Mechanism::Global] {
            let config = || two_groups(mechanism, ranks);
            let (net, truth) = in_step(config(), ranks, root, 0, 1);
            check_census(&net, &truth).unwrap();
            assert!(net.nodes.iter().all(|node| node.dropped() == 0 && node.finished()));
            let per_update = net.plan.groups.len();
            assert!(net.decisions.iter().all(|row| row.update == row.window / 4));
            let of_intervals = net.decisions.iter().filter(|row| row.window % 4 == 0);
            let updates: Vec<u64> = of_intervals.map(|row| row.update).collect();
            let expected: Vec<u64> =
                (0..=5).flat_map(|update| std::iter::repeat_n(update, per_update)).collect();
            assert_eq!(updates, expected, "every interval is decided once");
            assert!(net.decisions.iter().all(|d| !d.late && d.reported == d.population));
            let slow = in_step(config(), ranks, root, 5, 2).0;
            assert_eq!(net.decisions, slow.decisions);
            if ranks >= 64 {
                assert!(net.decisions.iter().any(|d| u64::from(d.size) < d.population));
            }
        }
    }
}

#[test]
fn ten_thousand_ranks() {
    let ranks = 10_000;
    let config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
    let truth = whole(Kind::Normal, ranks, 9, 3);
    let mut net = Net::new(config, ranks, 0, 0, 1);
    for (number, totals) in truth.iter().enumerate() {
        for (rank, &total) in totals.iter().enumerate() {
            net.local(rank, number as u64, total);
        }
        (0..20).for_each(|_| net.step());
    }
    net.finish();
    check_census(&net, &truth).unwrap();
    assert_eq!(net.decisions.len(), 3);
    // The directive was everywhere in time: exactly m ranks kept the last window.
    let last = net.census.last().unwrap().partial.cell(0, 0, false).unwrap();
    assert_eq!(last.kept, u64::from(net.decisions.last().unwrap().size));
    assert!(last.kept < 100, "{}", last.kept);
}

#[test]
fn interval_totals_reach_the_client_with_sampled_summaries() {
    let config = config(Summaries::Sampled, Sizing::Ampl2008, Mechanism::Subset);
    let (net, truth) = in_step(config, 64, 0, 0, 1);
    for window in &net.census {
        let metric = window.partial.cells[0].metrics[GUIDE];
        assert_eq!(metric.census.ranks, 0, "unsampled ranks send no values");
        let ends = (window.last_window.0 + 1).is_multiple_of(4);
        assert_eq!(metric.interval.ranks > 0, ends, "{:?}", window.last_window);
    }
    // All ranks are kept in the first interval: its totals are exact.
    let interval = net.census[3].partial.cells[0].metrics[GUIDE].interval;
    assert_eq!(interval.ranks, 64);
    assert_eq!(interval.y, truth[..4].iter().flatten().map(|total| total.y).sum::<f64>());
    assert!(net.decisions[1].size < 64);
}

/// A rank is in the interval's sample if it kept any window of it, and be it one in which nothing happened.
#[test]
fn a_rank_that_kept_an_empty_window_is_in_the_interval_s_sample() {
    let plan = Plan::new(config(Summaries::Sampled, Sizing::Ampl2008, Mechanism::Global), 1).unwrap();
    let windows = u64::from(plan.config.sampling.windows_per_update);
    let mut node = Node::new(&plan, Rank(0));
    for window in 0..2 * windows {
        let mut empty = Summary::empty(&plan);
        empty.kept = window == 1;
        node.local(WindowId(window), WindowId(window), &empty);
    }
    let sampled = |window: CensusWindow| window.partial.cells[0].metrics[GUIDE].interval.ranks;
    let ends: Vec<u64> = std::iter::from_fn(|| node.next_census()).map(sampled).collect();
    assert_eq!((ends[windows as usize - 1], ends.iter().sum::<u64>()), (1, 1), "{ends:?}");
}

#[test]
fn a_blocked_parent_costs_bounded_memory() {
    let plan = Plan::new(config(Summaries::Census, Sizing::Neyman, Mechanism::Subset), 17).unwrap();
    let mut node = Node::new(&plan, Rank(1)); // children 9-16
    let shape = MessageLayout::of(&plan);
    let windows = 1_000_000;
    let total = Total { n: 1, y: 2.0 };
    let mut bytes = Vec::new();
    let mut report = |node: &mut Node, window: u64| {
        let mut census = CensusWindow::new(&shape, WindowId(window), WindowId(window));
        census.reported = 1;
        census.partial.add(&shape, 0, 1, &summary(&plan, total));
        bytes.clear();
        let message = UpMessage { pass: 0, finished: 0, window: Some(census) };
        message.encode(&shape, &mut bytes);
        for child in 9..=16 {
            node.receive_up(Rank(child), &bytes).unwrap();
        }
    };
    // The node's own rank hangs for the first tenth: its children do not wait for ever.
    for window in 0..windows / 10 {
        report(&mut node, window);
        node.tick(window * 250_000_000);
    }
    for window in windows / 10..windows {
        let silent = summary(&plan, total);
        node.local(WindowId(window), WindowId(window), &silent);
        if window % 100 == 0 {
            // Most windows need no decoding to make the point.
            report(&mut node, window);
        }
    }
    let mut records = 0;
    let mut next = 0;
    while let Some(bytes) = node.next_up() {
        let window = UpMessage::decode(bytes).unwrap().window.unwrap();
        assert_eq!(window.first_window.0, next);
        next = window.last_window.0 + 1;
        records += 1;
    }
    assert!((RING / 2..=RING).contains(&records), "{records}");
    assert!(next > windows - 200, "{next}");
}

#[test]
fn a_straggler_is_waited_for_four_windows_and_then_counted() {
    let plan = Plan::new(config(Summaries::Census, Sizing::Neyman, Mechanism::Subset), 3).unwrap();
    let mut net = Net::new(plan.config.clone(), 3, 0, 0, 1);
    let total = Total { n: 1, y: 5.0 };
    net.step_ns = 300_000_000;
    for window in 0..4 {
        net.local(0, window, total);
        net.local(1, window, total);
        (0..4).for_each(|_| net.step());
        assert!(net.census.is_empty());
    }
    // Four windows behind, and for a second.
    net.local(0, 4, total);
    (0..4).for_each(|_| net.step());
    assert!(net.census.is_empty());
    net.step();
    let first = &net.census[0];
    assert_eq!((net.census.len(), first.reported, first.late), (1, 2, true));
    // No node waits a second again for a rank that is still silent.
    net.local(0, 5, total);
    net.step();
    assert_eq!((net.census.len(), net.census[1].reported), (2, 2));
    // It comes back: what is over is dropped, what is open counts.
    for window in 0..6 {
        net.local(2, window, total);
    }
    net.local(1, 4, total);
    net.local(1, 5, total);
    (0..30).for_each(|_| net.step());
    assert_eq!(net.nodes[0].dropped(), 2);
    let reported: Vec<u64> = net.census.iter().map(|window| window.reported).collect();
    assert_eq!(reported, [2, 2, 3, 3, 3, 3]);
    assert!(net.decisions[1].late && net.decisions[1].reported == 2);
    // A rank that has finished is not waited for, and not late.
    net.nodes[2].local_finished();
    (0..4).for_each(|_| net.step());
    net.local(0, 6, total);
    net.local(1, 6, total);
    (0..4).for_each(|_| net.step());
    let last = net.census.last().unwrap();
    assert_eq!((last.reported, last.late), (2, false));
    net.finish();
}

#[test]
fn a_directive_waits_for_its_window() {
    let plan = Plan::new(config(Summaries::Census, Sizing::Neyman, Mechanism::Subset), 9).unwrap();
    let mut node = Node::new(&plan, Rank(3));
    assert!(node.directive(WindowId(0)).is_none());
    let mut bytes = Vec::new();
    let (first, _) = Policy::new(&plan).first_directive();
    // Copies and stale ones among them change nothing.
    for update in (0..20).flat_map(|update: u64| [update, update.saturating_sub(3), update]) {
        let first_window = WindowId(4 * update);
        let directive = Directive { update, first_window, ..first.clone() };
        bytes.clear();
        DownMessage::Directive(directive).encode(&MessageLayout::of(&plan), &mut bytes);
        node.receive_down(&bytes).unwrap();
    }
    // Within an interval the later one holds, and none that was overtaken.
    let mut within = Node::new(&plan, Rank(3));
    for window in [0, 4, 6, 5, 7] {
        within.direct(Directive { update: window / 4, first_window: WindowId(window), ..first.clone() });
    }
    let held = [3, 5, 6, 7, 9].map(|window| within.directive(WindowId(window)).unwrap().first_window.0);
    assert_eq!(held, [0, 4, 6, 7, 7]);
    let mut in_force = |window| node.directive(WindowId(window)).unwrap().update;
    // Of twenty, the one in force and the newest seven were kept.
    assert_eq!([in_force(0), in_force(51), in_force(52), in_force(55)], [0, 0, 13, 13]);
    assert_eq!([in_force(56), in_force(75), in_force(76), in_force(900)], [14, 18, 19, 19]);
}

#[test]
fn windows_shorter_than_a_messages_way_lose_nothing_and_do_not_pile_up() {
    let config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
    let truth = whole(Kind::Normal, 20, 4000, 3);
    let mut net = Net::new(config, 20, 0, 3, 1);
    for (number, totals) in truth.iter().enumerate() {
        for (rank, &total) in totals.iter().enumerate() {
            net.local(rank, number as u64, total);
        }
        if number % 10 == 9 {
            net.step();
        }
    }
    let known = net.census.last().unwrap().last_window.0;
    assert!(known > 2500, "{known}");
    net.finish();
    check_census(&net, &truth).unwrap();
    assert!(net.census.iter().all(|window| !window.late));
    assert!(net.census.iter().any(|window| window.windows() > 1), "some had to merge");
}

#[test]
fn messages_of_strangers_are_refused() {
    let plan = Plan::new(config(Summaries::Census, Sizing::Neyman, Mechanism::Subset), 9).unwrap();
    let other = Plan::new(config(Summaries::Sampled, Sizing::Neyman, Mechanism::Subset), 9).unwrap();
    let mut node = Node::new(&plan, Rank(0));
    let mut bytes = Vec::new();
    let message = UpMessage { pass: 0, finished: 1, window: None };
    let theirs = MessageLayout::of(&other);
    let window = CensusWindow::new(&theirs, WindowId(0), WindowId(0));
    UpMessage { window: Some(window), ..message.clone() }.encode(&theirs, &mut bytes);
    assert!(node.receive_up(Rank(1), &bytes).is_err());
    assert!(node.receive_down(&bytes).is_err());
    bytes.clear();
    message.encode(&MessageLayout::of(&plan), &mut bytes);
    assert!(node.receive_up(Rank(9), &bytes).is_err());
    assert!(node.receive_up(Rank(1), &bytes).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// Ranks run apart, hang and merge windows of their own accord.
    #[test]
    fn nothing_is_counted_twice(
        ranks in 1u32..80,
        root in 0u32..80,
        slowest in 0u32..6,
        seed: u64,
        moves in prop::collection::vec((0u32..80, 1u64..4), 1..600),
    ) {
        let windows = 30u64;
        let truth = whole(Kind::Spikes, ranks, windows as usize, seed);
        let mut net = Net::new(two_groups(Mechanism::Subset, ranks), ranks, root % ranks, slowest, seed);
        // Seconds pass, or none at all: stragglers are given up in some cases only.
        net.step_ns = if seed % 3 == 0 { 1_000 } else { 700_000_000 };
        let mut at = vec![0u64; ranks as usize];
        let mut go = |net: &mut Net, rank: usize, count: u64| {
            let last = (at[rank] + count).min(windows);
            if at[rank] == last {
                return;
            }
            let inside = &truth[at[rank] as usize..last as usize];
            let total = inside.iter().map(|window| window[rank]).fold(
                Total { n: 0, y: 0.0 },
                |sum, total| Total { n: sum.n + total.n, y: sum.y + total.y },
            );
            let summary = summary(&net.plan, total);
            net.nodes[rank].local(WindowId(at[rank]), WindowId(last - 1), &summary);
            at[rank] = last;
        };
        for (rank, count) in moves {
            go(&mut net, (rank % ranks) as usize, count);
            net.step();
        }
        for rank in 0..ranks as usize {
            go(&mut net, rank, windows);
            net.step();
        }
        net.step_ns = 1_000_000; // every rank has reported everything
        net.finish();
        check_census(&net, &truth)?;
        prop_assert!(net.decisions.is_sorted_by_key(|row| (row.update, row.window)));
        let first: Vec<u64> = net.decisions.iter().map(|row| row.window).collect();
        let mut once = first.clone();
        once.dedup();
        prop_assert_eq!(first.len(), once.len() * net.plan.groups.len());
    }
}
