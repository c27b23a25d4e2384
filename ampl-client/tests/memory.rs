//! Bytes allocated by a parent that never polls, and by one that does; one test, for the count is the process's.

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "it/common/mod.rs"]
mod common;

use ampl_client::Node;
use ampl_client::tree::Topology;
use ampl_core::config::{Mechanism, Sizing, Summaries};
use ampl_core::message::{CensusWindow, MetricSummary, Summary};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use common::{config, group, relative};
use peak_alloc::PeakAlloc;

#[global_allocator]
static BYTES: PeakAlloc = PeakAlloc;

const MEGABYTE: usize = 1_000_000;

/// Largest growth of allocated bytes while `work` ran.
fn growth<T>(work: impl FnOnce() -> T) -> (usize, T) {
    BYTES.reset_peak_usage();
    let before = BYTES.current_usage();
    let result = work();
    (BYTES.peak_usage().saturating_sub(before), result)
}

fn value(rank: u64, window: u64) -> u64 {
    1 + (window * 7 + rank * 3) % 11
}

/// A parent and its children, each with an edge that takes one message at a time.
struct Family {
    plan: Plan,
    nodes: Vec<Node>,
    edges: Vec<Option<Vec<u8>>>,
    census: Vec<CensusWindow>,
}

impl Family {
    /// `members` ranks, all but the first of which are children of it.
    fn new(members: u32, groups: u32) -> Self {
        let mut config = config(Summaries::Census, Sizing::Neyman, Mechanism::Subset);
        for number in 0..groups.saturating_sub(1).min(members) {
            let member = number.to_string();
            config.groups.push(group(&format!("g{number}"), &member, relative(0.9, 0.08), ""));
        }
        let plan = Plan::new(config, members).unwrap();
        let nodes = (0..members).map(|rank| Node::new(&plan, Rank(rank))).collect();
        Self { plan, nodes, edges: vec![None; members as usize], census: Vec::new() }
    }

    fn summary(&self, rank: usize, windows: std::ops::Range<u64>) -> Summary {
        let n = windows.end - windows.start;
        let sum = windows.map(|window| value(rank as u64, window)).sum::<u64>() as f64;
        let metric = MetricSummary { n, sum, ..MetricSummary::one(1.0) };
        Summary {
            metrics: vec![metric; self.plan.metrics.len()],
            kept: false,
            probability: 0.0,
            bytes: 0,
            spent: 0,
        }
    }

    /// One rank closes windows, each on its own, and sends what its edge takes.
    fn close(&mut self, rank: usize, windows: std::ops::Range<u64>) {
        let mut summary = self.summary(rank, 0..1);
        for window in windows {
            summary.metrics.fill(MetricSummary::one(value(rank as u64, window) as f64));
            self.nodes[rank].local(WindowId(window), WindowId(window), &summary);
            self.nodes[rank].tick(window * 1000);
            self.send(rank);
        }
    }

    fn send(&mut self, rank: usize) {
        if rank > 0 && self.edges[rank].is_none() {
            self.edges[rank] = self.nodes[rank].next_up().map(<[u8]>::to_vec);
        }
    }

    /// The parent polls, until nothing moves any more.
    fn settle(&mut self) {
        let mut moved = true;
        while std::mem::take(&mut moved) {
            for rank in 1..self.nodes.len() {
                if let Some(bytes) = self.edges[rank].take() {
                    self.nodes[0].receive_up(Rank(rank as u32), &bytes).unwrap();
                    moved = true;
                }
                self.send(rank);
            }
            while let Some(window) = self.nodes[0].next_census() {
                self.census.push(window);
            }
        }
    }

    /// Every window once, in order, alone or in a range, and every total exact.
    fn check(&self, windows: u64) {
        let mut next = 0;
        for window in &self.census {
            assert_eq!(window.first_window.0, next);
            next = window.last_window.0 + 1;
            let inside = window.first_window.0..next;
            assert_eq!(window.reported, self.nodes.len() as u64 * window.windows());
            assert!(!window.late);
            let truth: u64 = inside
                .flat_map(|window| (0..self.nodes.len() as u64).map(move |rank| value(rank, window)))
                .sum();
            let sum: f64 = window.partial.cells.iter().map(|cell| cell.metrics[0].census.y).sum();
            assert_eq!(sum, truth as f64);
        }
        assert_eq!(next, windows);
        assert!(self.nodes.iter().all(|node| node.dropped() == 0));
    }
}

/// Windows that are passed on as they come ask for no memory, at a leaf and above it.
fn windows_that_flow_cost_nothing() {
    let plan = Family::new(3, 1).plan;
    let chain = Topology::new(3, Rank(0), 1);
    let [mut middle, mut leaf] = [1, 2].map(|rank| Node::with_topology(&plan, Rank(rank), chain));
    let mut summary = Summary::empty(&plan);
    let mut pass = |windows: std::ops::Range<u64>| {
        for window in windows {
            summary.metrics.fill(MetricSummary::one(value(1, window) as f64));
            for node in [&mut middle, &mut leaf] {
                node.local(WindowId(window), WindowId(window), &summary);
            }
            middle.receive_up(Rank(2), leaf.next_up().expect("a window")).unwrap();
            assert!(middle.next_up().is_some());
        }
    };
    pass(0..10);
    // The harness's thread allocates beside the first. Each range passes a power of two, at which a vector would grow.
    let growths = [10..1000, 1000..2000, 2000..3000].map(|windows| growth(|| pass(windows)).0);
    assert!(growths.contains(&0), "{growths:?} bytes");
}

#[test]
fn a_million_windows_below_a_blocked_parent_cost_less_than_a_megabyte() {
    windows_that_flow_cost_nothing();
    let windows = 1_000_000;
    let mut family = Family::new(2, 1);
    let (bytes, ()) = growth(|| family.close(1, 0..windows));
    println!("child's million windows: {bytes} bytes");
    assert!(bytes < MEGABYTE, "{bytes}");
    // The parent comes back and closes the windows that it missed, one by one.
    let (bytes, ()) = growth(|| {
        family.close(0, 0..windows);
        family.settle();
    });
    println!("parent's return: {bytes} bytes, {} records", family.census.len());
    assert!(bytes < MEGABYTE, "{bytes}");
    family.check(windows);

    // Or it closes them at once: no call was made in them.
    let mut family = Family::new(2, 1);
    family.close(1, 0..windows);
    let gap = family.summary(0, 0..windows);
    family.nodes[0].local(WindowId(0), WindowId(windows - 1), &gap);
    family.settle();
    family.check(windows);
    assert_eq!(family.census.len(), 1, "what is known of all is known of the whole gap");

    // A full family, and as many groups as ranks.
    for groups in [1, 9] {
        let mut family = Family::new(9, groups);
        let windows = 20_000;
        let (bytes, ()) = growth(|| (1..9).for_each(|rank| family.close(rank, 0..windows)));
        println!("eight children, {groups} groups: {bytes} bytes");
        assert!(bytes < 8 * MEGABYTE, "{bytes}");
        let (bytes, ()) = growth(|| {
            // Children's messages wait in the parent for its own windows.
            family.settle();
            family.close(0, 0..windows);
            family.settle();
        });
        println!("the parent, {groups} groups: {bytes} bytes");
        assert!(bytes < MEGABYTE, "{bytes}");
        family.check(windows);
    }
}
