//! The announcement of the program's steps, through the nodes of a tree.

use std::collections::VecDeque;

use ampl_client::Node;
use ampl_client::steps::{Naming, StepFinder};
use ampl_core::config::Config;
use ampl_core::message::{OwnSteps, StepCall, StepMarker, Summary};
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
    fn window(&mut self, window: u64, own: impl Fn(u32) -> Option<OwnSteps>) -> Option<StepMarker> {
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
                self.nodes[0].announce(marker);
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
    Some(OwnSteps { calls, rate: 2.5 })
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
        let announced: Vec<Option<StepMarker>> =
            (0..9).map(|window| job.window(window, |rank| of(window, rank))).collect();
        assert!(
            announced.iter().enumerate().all(|(at, marker)| marker.is_some() == (at == 6)),
            "{announced:?}"
        );
        let marker = announced[6].unwrap();
        // Two levels below the root: 6 windows up and down, twice.
        let visit = 62 + 30;
        assert_eq!(marker, StepMarker { call: SUM, visit, window: WindowId(13), every: 1, timeout_s: 10 });
        assert!(job.nodes.iter().all(|node| node.announced() == Some(marker)));
        assert_eq!(job.finder.unannounced(), None);
    }
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
