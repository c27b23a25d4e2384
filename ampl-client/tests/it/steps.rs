//! The announcement of the program's steps, through the nodes of a tree.

use std::collections::VecDeque;

use ampl_client::Node;
use ampl_client::steps::{Naming, StepFinder};
use ampl_core::config::Config;
use ampl_core::message::{OwnCall, OwnSteps, StepAnnouncement, StepCall, StepMarker, Summary};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

const RANKS: u32 = 73;
const SUM: StepCall = StepCall { function: 3, path: 1 << 60 };

/// A job whose ranks make `steps` by the end of each window.
struct Job {
    plan: Plan,
    nodes: Vec<Node>,
    finder: StepFinder,
}

impl Job {
    fn new(config: &str) -> Self {
        let plan = Plan::new(Config::parse(config).expect("a configuration").0, RANKS).expect("a job");
        let nodes = (0..RANKS).map(|rank| Node::new(&plan, Rank(rank))).collect();
        let finder = StepFinder::new(&plan).expect("windows follow steps");
        Self { plan, nodes, finder }
    }

    /// Ends `window` on all ranks and lets the tree come to rest; returns the announcement.
    fn window(&mut self, window: u64, own: impl Fn(u32) -> Option<OwnSteps>) -> Option<StepAnnouncement> {
        let summary = Summary::empty(&self.plan);
        let mut messages = VecDeque::new();
        for rank in (0..RANKS).rev() {
            let node = &mut self.nodes[rank as usize];
            node.name_steps(own(rank));
            node.local(WindowId(window), WindowId(window), &summary);
        }
        for rank in (0..RANKS).rev() {
            let node = &mut self.nodes[rank as usize];
            let parent = node.parent();
            while let Some(bytes) = node.next_up() {
                messages.push_back(bytes.to_vec());
            }
            while let Some(bytes) = messages.pop_front() {
                let parent = parent.expect("a sender has a parent");
                self.nodes[parent.0 as usize].receive_up(Rank(rank), &bytes).expect("a sound message");
            }
        }
        let mut announced = None;
        while let Some(census) = self.nodes[0].next_census() {
            if let Some(marker) = self.finder.end_window(&census) {
                self.nodes[0].announce(marker.clone());
                announced = Some(marker);
            }
        }
        for rank in 0..RANKS {
            let children: Vec<Rank> = self.nodes[rank as usize].children().collect();
            for child in children {
                while let Some(bytes) = self.nodes[rank as usize].next_down(child) {
                    messages.push_back(bytes.to_vec());
                }
                while let Some(bytes) = messages.pop_front() {
                    self.nodes[child.0 as usize].receive_down(&bytes).expect("a sound message");
                }
            }
        }
        announced
    }
}

fn steps(calls: Vec<(StepCall, u64)>) -> Option<OwnSteps> {
    let own = |(call, visits)| OwnCall { call, visits, before: 0, per_step: 1 };
    Some(OwnSteps { calls: calls.into_iter().map(own).collect(), rate: 2.5 })
}

#[test]
fn a_call_that_all_ranks_name_is_announced_to_all() {
    for config in ["", "[sampling]\nselection = \"predictive\"\nsummaries = \"sampled\"\n"] {
        let mut job = Job::new(&format!("{config}[window]\nmarker = \"auto\"\n"));
        // Each rank has a call of its own besides, and the last rank is two windows behind the others.
        let of = |window: u64, rank: u32| {
            let own = StepCall { function: 5, path: rank.into() };
            let visits = 10 * window + u64::from(rank % 3);
            let late = rank == RANKS - 1 && window < 6;
            if late { None } else { steps(vec![(own, 7), (SUM, visits)]) }
        };
        let announced: Vec<Option<StepAnnouncement>> =
            (0..9).map(|window| job.window(window, |rank| of(window, rank))).collect();
        assert!(
            announced.iter().enumerate().all(|(at, marker)| marker.is_some() == (at == 6)),
            "{announced:?}"
        );
        let marker = announced[6].as_ref().unwrap();
        // Two levels below the root: 6 windows up and down, twice.
        let visit = 62 + 30;
        let expected =
            StepMarker { call: SUM, visit, window: WindowId(13), every: 1, per_step: 1, timeout_s: 10 };
        assert_eq!(*marker, expected.into());
        assert!(job.nodes.iter().all(|node| node.announced() == Some(marker)));
        assert_eq!(job.finder.unannounced(), None);
    }
}

#[test]
fn shared_calls_that_join_all_ranks_are_announced_to_all() {
    let mut job = Job::new("[window]\nmarker = \"auto\"\n");
    let call = |path: u64| StepCall { function: 5, path };
    // A grid of 9 columns and 8 rows, and a rank beyond: calls for each neighbour, as its place is in a row and a column.
    let own = |rank: u32, visits: u64| {
        let (column, row) = (rank % 9, rank / 9);
        let has = [column > 0, column < 8, row > 0, row < 8];
        let calls = (0..4).filter(|&side| has[side as usize]);
        let before = |side: u64| 3 * side + 1;
        let own = calls.map(|side| OwnCall {
            call: call(side),
            visits: visits + before(side),
            before: before(side),
            per_step: 1,
        });
        Some(OwnSteps { calls: own.collect(), rate: 2.5 })
    };
    let announced = job.window(8, |rank| own(rank, 50 + u64::from(rank == 70))).expect("all are joined");
    let visits: Vec<u64> =
        (0..4).map(|side| announced.calls.iter().find(|of| of.0 == call(side)).unwrap().1).collect();
    assert_eq!(visits, [1, 4, 7, 10].map(|before| 51 + 30 + before));
    assert!(job.nodes.iter().all(|node| node.announced() == Some(&announced)));
}

#[test]
fn ranks_that_disagree_keep_the_period() {
    let mut job = Job::new("[window]\nmarker = \"auto\"\n");
    let own = |rank: u32| StepCall { function: 5, path: u64::from(rank < 9) };
    for window in 0..20 {
        assert_eq!(job.window(window, |rank| steps(vec![(own(rank), window)])), None);
    }
    assert!(job.nodes.iter().all(|node| node.announced().is_none()));
    let naming = Naming { reported: RANKS.into(), naming: RANKS.into(), agreeing: u64::from(RANKS) - 9 };
    assert_eq!(job.finder.unannounced(), Some(naming));
}

#[test]
fn without_a_loop_nothing_is_announced() {
    let mut job = Job::new("[window]\nmarker = \"auto\"\n");
    assert!((0..20).all(|window| job.window(window, |_| None).is_none()));
    let naming = Naming { reported: RANKS.into(), naming: 0, agreeing: 0 };
    assert_eq!(job.finder.unannounced(), Some(naming));
}
