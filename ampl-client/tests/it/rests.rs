//! Ranks that look after the tree as rarely as they may, each at its own time: what gathers meanwhile is decided window
//! by window, and nobody is taken for late, however high the tree is.

use ampl_client::tree::Gathering;
use ampl_client::{Node, Policy};
use ampl_core::config::{Mechanism, Selection, Sizing, Summaries};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Kind, Population};

use crate::common::{config, summary};

/// How many windows of every rank are decided by their values, of `windows` that are so many nanoseconds long.
fn decided(ranks: u32, windows: u64, window_ns: u64) -> Vec<u64> {
    let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
    config.sampling.selection = Selection::Retrospective;
    let plan = Plan::new(config, ranks).unwrap();
    let mut population = Population::new(Kind::Normal, ranks as usize, 3);
    let totals: Vec<Vec<Total>> = (0..windows).map(|_| population.next_window()).collect();
    let mut policy = Policy::new(&plan);
    let mut nodes: Vec<Node> = (0..ranks).map(|rank| Node::new(&plan, Rank(rank))).collect();
    nodes[0].direct(policy.first_directive().0);
    let Gathering { windows: most, rest_ns } = nodes[0].gathering().unwrap();
    let every = (rest_ns / window_ns).clamp(1, most as u64);
    let mut arrived: Vec<Vec<(Rank, Vec<u8>)>> = vec![Vec::new(); ranks as usize];
    let mut handed = vec![0; ranks as usize];
    let mut decided = vec![0; ranks as usize];
    for now in 0..windows + 40 * every {
        for rank in 0..ranks as usize {
            let phase = u64::from((rank as u32).wrapping_mul(0x9e37_79b9) >> 16);
            if (now + phase) % every != 0 {
                continue;
            }
            let (here, parent) = (Rank(rank as u32), nodes[rank].parent());
            for window in handed[rank]..now.min(windows) {
                let summary = summary(&plan, totals[window as usize][rank]);
                nodes[rank].local(WindowId(window), WindowId(window), &summary);
            }
            handed[rank] = handed[rank].max(now.min(windows));
            nodes[rank].tick(now * window_ns);
            for (from, bytes) in std::mem::take(&mut arrived[rank]) {
                if Some(from) == parent {
                    nodes[rank].receive_down(&bytes).unwrap();
                } else {
                    nodes[rank].take_up(from, &bytes).unwrap();
                }
            }
            nodes[rank].advance();
            while let Some(census) = nodes[rank].next_census() {
                assert!(!census.late, "{:?} of {ranks} ranks", census.first_window);
                if let Some((directive, _)) = policy.end_window(&census) {
                    nodes[rank].direct(directive);
                }
                while let Some(reference) = policy.reference() {
                    nodes[rank].refer(reference);
                }
            }
            while let Some(binned) = nodes[rank].next_binned() {
                if let Some((verdict, _)) = policy.judge(&binned) {
                    nodes[rank].judge(&verdict);
                }
            }
            while let Some(bytes) = parent.and_then(|_| nodes[rank].next_up()) {
                arrived[parent.unwrap().0 as usize].push((here, bytes.to_vec()));
            }
            let children: Vec<Rank> = nodes[rank].children().collect();
            for child in children {
                while let Some(bytes) = nodes[rank].next_down(child) {
                    arrived[child.0 as usize].push((here, bytes.to_vec()));
                }
            }
            while let Some(judged) = nodes[rank].next_judged() {
                decided[rank] += u64::from(judged.keep.is_some());
            }
        }
    }
    decided
}

#[test]
fn every_window_of_every_rank_is_decided() {
    const WINDOWS: u64 = 120;
    for ranks in [1, 9, 100, 5000] {
        for window_ns in [20_000_000, 250_000_000] {
            let decided = decided(ranks, WINDOWS, window_ns);
            let fewest = decided.into_iter().min();
            assert_eq!(fewest, Some(WINDOWS), "{ranks} ranks, windows of {window_ns} ns");
        }
    }
}
