//! Ranks that poll the tree as rarely as they may, each at times of its own: windows that gather meanwhile are decided
//! one by one, however high the tree is and however much is remembered of a window.

use std::collections::VecDeque;

use ampl_client::{Node, Policy};
use ampl_core::config::{Config, DEFAULT_TARGET, Selection};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Kind, Population};

use crate::common::{group, summary, undivided};

/// Milliseconds from one poll of a rank to the next, at most.
const REST: u64 = 250;
/// Windows of a job.
const WINDOWS: u64 = 160;
/// Batches of messages on an edge: one that is being received, and one that waits for the next poll.
const UNDER_WAY: usize = 2;

/// One direction of an edge.
type Edge = VecDeque<Vec<Vec<u8>>>;

/// Puts what there is to send on its way, if the edge takes it.
fn send(edge: &mut Edge, next: impl FnMut() -> Option<Vec<u8>>) {
    if edge.len() < UNDER_WAY {
        let batch: Vec<Vec<u8>> = std::iter::from_fn(next).collect();
        edge.extend((!batch.is_empty()).then_some(batch));
    }
}

/// Number of windows, of `window_ms` milliseconds, that are decided by their values in the rank that has fewest. Rests
/// are up to `varies` percent shorter than they may be.
fn decided(ranks: u32, groups: u32, window_ms: u64, varies: u64) -> u64 {
    let mut config = Config::default();
    config.sampling.selection = Selection::Retrospective;
    let members = |of: u32| format!("{}-{}", of * ranks / groups, (of + 1) * ranks / groups - 1);
    let group = |of: u32| group(&of.to_string(), &members(of), DEFAULT_TARGET, "");
    config.groups = (0..groups).map(group).collect();
    let plan = Plan::new(undivided(config), ranks).unwrap();
    let mut population = Population::new(Kind::Normal, ranks as usize, 3);
    let totals: Vec<Vec<Total>> = (0..WINDOWS).map(|_| population.next_window()).collect();
    let mut policy = Policy::new(&plan);
    let mut nodes: Vec<Node> = (0..ranks).map(|rank| Node::new(&plan, Rank(rank))).collect();
    nodes[0].direct(policy.first_directive().0);
    let most = nodes[0].gathers().unwrap() as u64;
    assert!(nodes.iter().all(|node| node.gathers() == Some(most as usize)), "all say the same");
    let mut random = 12_345u64;
    let mut rest = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        REST - REST * ((random >> 33) % (varies + 1)) / 100
    };
    let count = ranks as usize;
    let (mut up, mut down) = (vec![Edge::new(); count], vec![Edge::new(); count]);
    let mut due: Vec<u64> = (0..ranks).map(|_| rest()).collect();
    let (mut handed, mut decided) = (vec![0; count], vec![0; count]);
    for now in (0..WINDOWS * window_ms + 80 * REST).step_by(5) {
        let over = (now / window_ms).min(WINDOWS);
        for rank in 0..count {
            if over - handed[rank] < most && now < due[rank] {
                continue;
            }
            due[rank] = now + rest();
            let parent = nodes[rank].parent();
            let node = &mut nodes[rank];
            for window in handed[rank]..over {
                let summary = summary(&plan, totals[window as usize][rank]);
                node.local(WindowId(window), WindowId(window), &summary);
            }
            handed[rank] = over;
            node.tick(now * 1_000_000);
            for bytes in down[rank].pop_front().unwrap_or_default() {
                node.receive_down(&bytes).unwrap();
            }
            let children: Vec<Rank> = node.children().collect();
            for &child in &children {
                for bytes in up[child.0 as usize].pop_front().unwrap_or_default() {
                    node.take_up(child, &bytes).unwrap();
                }
            }
            node.advance();
            while let Some(census) = node.next_census() {
                assert!(!census.late, "{:?} of {ranks} ranks", census.first_window);
                if let Some((directive, _)) = policy.end_window(&census) {
                    node.direct(directive);
                }
                while let Some(reference) = policy.reference() {
                    node.refer(reference);
                }
            }
            while let Some(binned) = node.next_binned() {
                if let Some((decision, _)) = policy.judge(&binned) {
                    node.judge(&decision);
                }
            }
            if parent.is_some() {
                send(&mut up[rank], || node.next_up().map(<[u8]>::to_vec));
            }
            for &child in &children {
                send(&mut down[child.0 as usize], || node.next_down(child).map(<[u8]>::to_vec));
            }
            while let Some(judged) = node.next_judged() {
                decided[rank] += u64::from(judged.keep.is_some());
            }
        }
    }
    decided.into_iter().min().unwrap()
}

#[test]
fn every_window_of_every_rank_is_decided() {
    for (ranks, groups) in [(1, 1), (9, 1), (73, 1), (73, 8), (100, 2), (700, 4)] {
        for (window_ms, varies) in [(5, 30), (20, 0), (20, 70), (100, 30), (250, 70)] {
            let decided = decided(ranks, groups, window_ms, varies);
            assert_eq!(
                decided, WINDOWS,
                "{ranks} ranks, {groups} groups, windows of {window_ms} ms, {varies} %"
            );
        }
    }
}
