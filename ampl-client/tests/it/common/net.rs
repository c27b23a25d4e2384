//! Many nodes joined by queues.

use ampl_client::tree::WindowDecision;
use ampl_client::{Node, Policy, Topology};
use ampl_core::config::Config;
use ampl_core::draw::{Keep, kept};
use ampl_core::message::{CensusWindow, Decision, RetrospectiveDecision};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_testkit::population::Total;
use ampl_testkit::{Kind, Population};
use proptest::prelude::*;

use super::{GUIDE, summary, undivided};

/// A network without processes. Every edge carries one message at a time and takes its time.
pub struct Net {
    pub plan: Plan,
    pub nodes: Vec<Node>,
    /// Per rank: bytes on the edge to its parent and from it, with the steps they still take.
    up: Vec<Option<(u32, Vec<u8>)>>,
    down: Vec<Option<(u32, Vec<u8>)>>,
    pub policy: Policy,
    pub census: Vec<CensusWindow>,
    /// Decisions that directives draw by.
    pub decisions: Vec<Decision>,
    /// Retrospective decisions.
    pub afterwards: Vec<Decision>,
    random: u64,
    slowest: u32,
    now_ns: u64,
    pub step_ns: u64,
    /// Ranks that are not in MPI: they take and send nothing meanwhile.
    pub away: Vec<bool>,
    /// Decides windows of which the ranks have been binned.
    pub judge: Option<fn(&CensusWindow) -> RetrospectiveDecision>,
    /// WindowDecisions of `judge`.
    pub retrospective: Vec<RetrospectiveDecision>,
    /// Decisions that the ranks got.
    pub judged: Vec<(Rank, WindowDecision)>,
}

impl Net {
    pub fn new(config: Config, ranks: u32, root: u32, slowest: u32, seed: u64) -> Self {
        let plan = Plan::new(undivided(config), ranks).unwrap();
        let topology = Topology::new(ranks, Rank(root), 8);
        let mut policy = Policy::new(&plan);
        let mut nodes: Vec<Node> =
            (0..ranks).map(|rank| Node::with_topology(&plan, Rank(rank), topology)).collect();
        let (directive, decisions) = policy.first_directive();
        nodes[root as usize].direct(directive);
        Self {
            up: vec![None; ranks as usize],
            down: vec![None; ranks as usize],
            nodes,
            plan,
            policy,
            census: Vec::new(),
            decisions,
            afterwards: Vec::new(),
            random: seed,
            slowest,
            now_ns: 0,
            step_ns: 1_000_000,
            away: vec![false; ranks as usize],
            judge: None,
            retrospective: Vec::new(),
            judged: Vec::new(),
        }
    }

    fn delay(&mut self) -> u32 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if self.slowest == 0 { 0 } else { (self.random >> 40) as u32 % (self.slowest + 1) }
    }

    /// Every edge moves on once; the client decides.
    pub fn step(&mut self) {
        self.now_ns += self.step_ns;
        for rank in 0..self.nodes.len() {
            if !self.away[rank] {
                self.nodes[rank].tick(self.now_ns);
            }
            while let Some(judged) = self.nodes[rank].next_judged() {
                self.judged.push((Rank(rank as u32), judged));
            }
            let Some(parent) = self.nodes[rank].parent() else {
                while let Some(window) = self.nodes[rank].next_census() {
                    let decided = self.policy.end_window(&window);
                    self.census.push(window);
                    // Where a test judges by itself it refers to itself, too.
                    while let Some(reference) = self.policy.reference().filter(|_| self.judge.is_none()) {
                        self.nodes[rank].refer(reference);
                    }
                    if let Some((directive, decisions)) = decided {
                        self.nodes[rank].direct(directive);
                        self.decisions.extend(decisions);
                    }
                }
                while let Some(binned) = self.nodes[rank].next_binned() {
                    let decision = match self.judge {
                        Some(judge) => Some(judge(&binned)),
                        None => self.policy.judge(&binned).map(|(decision, decisions)| {
                            self.afterwards.extend(decisions);
                            decision
                        }),
                    };
                    if let Some(decision) = decision {
                        self.nodes[rank].judge(&decision);
                        self.retrospective.push(decision);
                    }
                }
                continue;
            };
            let (here, above) = (Rank(rank as u32), parent.0 as usize);
            let delay = self.delay();
            match &mut self.up[rank] {
                Some((0, _)) if self.away[above] => {}
                Some((0, bytes)) => {
                    self.nodes[above].receive_up(here, bytes).unwrap();
                    self.up[rank] = None;
                }
                Some((left, _)) => *left -= 1,
                None if self.away[rank] => {}
                None => {
                    self.up[rank] = self.nodes[rank].next_up().map(|bytes| (delay, bytes.to_vec()));
                }
            }
            match &mut self.down[rank] {
                Some((0, _)) if self.away[rank] => {}
                Some((0, bytes)) => {
                    self.nodes[rank].receive_down(bytes).unwrap();
                    self.down[rank] = None;
                }
                Some((left, _)) => *left -= 1,
                None if self.away[above] => {}
                None => {
                    let bytes = self.nodes[above].next_down(here);
                    self.down[rank] = bytes.map(|bytes| (delay, bytes.to_vec()));
                }
            }
        }
    }

    /// One rank's window, drawn by what it has heard so far.
    pub fn local(&mut self, rank: usize, window: u64, total: Total) {
        let window = WindowId(window);
        let node = &mut self.nodes[rank];
        let keep = match node.directive(window) {
            Some(directive) => kept(&self.plan, Rank(rank as u32), window, directive),
            None => Keep::ALWAYS,
        };
        let mut summary = summary(&self.plan, total);
        (summary.kept, summary.probability) = (keep.kept, keep.probability);
        node.local(window, window, &summary);
    }

    pub fn finish(&mut self) {
        self.nodes.iter_mut().for_each(Node::local_finished);
        for _ in 0..100_000 {
            if self.nodes.iter().all(Node::closed) {
                return;
            }
            self.step();
        }
        panic!("the tree does not settle");
    }
}

/// Whole numbers: their sums are exact in any order.
pub fn whole(kind: Kind, ranks: u32, windows: usize, seed: u64) -> Vec<Vec<Total>> {
    let mut population = Population::new(kind, ranks as usize, seed);
    let mut window = || -> Vec<Total> {
        let totals = population.next_window();
        totals.into_iter().map(|Total { n, y }| Total { n, y: (y * 1e6).round() }).collect()
    };
    (0..windows).map(|_| window()).collect()
}

/// The census must tile the windows, and be exact where it is not flagged as late.
pub fn check_census(net: &Net, truth: &[Vec<Total>]) -> Result<(), TestCaseError> {
    let mut next = 0;
    for window in &net.census {
        prop_assert_eq!(window.first_window.0, next);
        next = window.last_window.0 + 1;
        let ranks = u64::from(net.plan.ranks);
        prop_assert!(window.reported <= ranks * window.windows());
        prop_assert_eq!(window.late, window.reported < ranks * window.windows());
        if window.late {
            continue;
        }
        let inside = &truth[window.first_window.0 as usize..next as usize];
        let (mut n, mut y, mut reported) = (0, 0.0, 0);
        for cell in &window.partial.cells {
            let all = cell.metrics[GUIDE].census;
            (n, y, reported) = (n + all.n, y + all.y, reported + cell.reported);
        }
        prop_assert_eq!(n, inside.iter().flatten().map(|total| total.n).sum::<u64>());
        prop_assert_eq!(y, inside.iter().flatten().map(|total| total.y).sum::<f64>());
        prop_assert_eq!(reported, window.reported);
    }
    prop_assert_eq!(next, truth.len() as u64);
    Ok(())
}
