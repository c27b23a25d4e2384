//! The finished graph: trees of ranks, sums over them, and how much smaller it is than the trees.

use super::bound::{Bound, Span};
use super::dag::{Dag, Edge, NodeId};
use super::fragment::Fault;
use super::names::{Name, NameId};

/// Call trees of the ranks of a job, as a graph that has equal subtrees once.
#[derive(Clone, Debug)]
pub struct CallGraph {
    dag: Dag,
    bound: Bound,
    ranks: Vec<RankTree>,
    faults: Vec<(u32, Fault)>,
    damaged: Vec<u32>,
}

/// The tree of a rank.
#[derive(Clone, Debug, PartialEq)]
pub struct RankTree {
    /// The rank.
    pub rank: u32,
    /// Its node, which holds those of its threads.
    pub node: NodeId,
}

/// Sums over nodes. Time that is known, the calls that it covers, and what is estimated from it are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Calls.
    pub calls: u64,
    /// Calls whose durations are known.
    pub timed_calls: u64,
    /// Calls that were counted and not recorded.
    pub missing: u64,
    /// Calls whose bytes cannot be computed.
    pub unsized_calls: u64,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
    /// Known time in calls.
    pub inside: Span,
    /// Known time between calls.
    pub outside: Span,
    /// Known time in calls, each weighted by the design weight of its window, nanoseconds.
    pub inside_estimate_ns: f64,
    /// Known time between calls, weighted likewise, nanoseconds.
    pub outside_estimate_ns: f64,
}

/// Size of a graph, and of the trees that it stands for.
///
/// # Source
/// A. Knüpfer, W. E. Nagel, *New Algorithms for Performance Trace Analysis Based on Compressed Complete Call Graphs*,
/// ICCS 2005, §2.2, equation 1. Departure: nodes that only hold parts of another are counted in the graph and not in the
/// trees, so that a ratio is below 1 where nothing repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metrics {
    /// Nodes of the graph.
    pub nodes: u64,
    /// Nodes of the trees: ranks, threads, regions, calls, gaps, times between calls.
    pub nodes_uncompressed: u64,
    /// Bytes of the graph's nodes and references.
    pub bytes: u64,
    /// Bytes of the trees' nodes and references.
    pub bytes_uncompressed: u64,
}

/// Bytes of a node without its references: name, place of what it holds, two limits of its duration.
const NODE_BYTES: u64 = 4 + 8 + 16;
/// Bytes of a reference.
const REFERENCE_BYTES: u64 = size_of::<Edge>() as u64;

impl Metrics {
    /// Ratio of numbers of nodes, uncompressed to compressed.
    pub fn r_n(&self) -> f64 {
        self.nodes_uncompressed as f64 / self.nodes.max(1) as f64
    }

    /// Ratio of memory, uncompressed to compressed.
    pub fn r_m(&self) -> f64 {
        self.bytes_uncompressed as f64 / self.bytes.max(1) as f64
    }
}

impl Sums {
    /// Adds `times` times a leaf.
    pub(super) fn add_leaf(&mut self, dag: &Dag, node: NodeId, times: u64) {
        let Some((facts, span)) = dag.leaf(node) else { return };
        let add = |sum: &mut u64, own: u64| *sum = sum.saturating_add(own.saturating_mul(times));
        add(&mut self.calls, facts.calls);
        add(&mut self.missing, facts.missing);
        match facts.bytes {
            Some((sent, received)) => {
                add(&mut self.sent, sent.saturating_mul(facts.calls));
                add(&mut self.received, received.saturating_mul(facts.calls));
            }
            None => add(&mut self.unsized_calls, facts.calls),
        }
        let Some(weight) = facts.weight() else { return };
        add(&mut self.timed_calls, facts.calls);
        let (sum, estimate) = match dag.name(node) {
            Name::Outside => (&mut self.outside, &mut self.outside_estimate_ns),
            _ => (&mut self.inside, &mut self.inside_estimate_ns),
        };
        *sum += span.times(times);
        *estimate += weight * span.value_ns() as f64 * times as f64;
    }

    /// Adds the sums of others.
    pub(super) fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, own: u64| *sum = sum.saturating_add(own);
        add(&mut self.calls, other.calls);
        add(&mut self.timed_calls, other.timed_calls);
        add(&mut self.missing, other.missing);
        add(&mut self.unsized_calls, other.unsized_calls);
        add(&mut self.sent, other.sent);
        add(&mut self.received, other.received);
        self.inside += other.inside;
        self.outside += other.outside;
        self.inside_estimate_ns += other.inside_estimate_ns;
        self.outside_estimate_ns += other.outside_estimate_ns;
    }

    /// Known time, in calls and between them.
    pub fn time(&self) -> Span {
        let mut time = self.inside;
        time += self.outside;
        time
    }

    /// Time, estimated from what is known of it, nanoseconds.
    pub fn estimate_ns(&self) -> f64 {
        self.inside_estimate_ns + self.outside_estimate_ns
    }
}

impl CallGraph {
    pub(super) fn new(
        dag: Dag,
        bound: Bound,
        ranks: Vec<RankTree>,
        faults: Vec<(u32, Fault)>,
        damaged: Vec<u32>,
    ) -> Self {
        Self { dag, bound, ranks, faults, damaged }
    }

    /// The nodes.
    pub fn dag(&self) -> &Dag {
        &self.dag
    }

    /// Bound of deviations.
    pub fn bound(&self) -> Bound {
        self.bound
    }

    /// Trees of ranks, ascending.
    pub fn ranks(&self) -> &[RankTree] {
        &self.ranks
    }

    /// Ranks that have no tree, and why.
    pub fn faults(&self) -> &[(u32, Fault)] {
        &self.faults
    }

    /// Ranks of which stored times could not be read.
    pub fn damaged(&self) -> &[u32] {
        &self.damaged
    }

    /// Occurrences of each node in trees of which `nodes` are the roots, so often each; at most `u64::MAX`.
    pub fn occurrences(&self, nodes: impl IntoIterator<Item = (NodeId, u64)>) -> Vec<u64> {
        let mut occurrences = vec![0u64; self.dag.len()];
        for (node, times) in nodes {
            let sum = &mut occurrences[node as usize];
            *sum = sum.saturating_add(times);
        }
        // What holds a node comes behind it.
        for node in (0..occurrences.len()).rev() {
            let own = occurrences[node];
            if own == 0 {
                continue;
            }
            for edge in self.dag.parts(node as NodeId) {
                let sum = &mut occurrences[edge.node as usize];
                *sum = sum.saturating_add(own.saturating_mul(edge.times.into()));
            }
        }
        occurrences
    }

    /// Occurrences of each node in the trees of all ranks.
    pub fn in_all_ranks(&self) -> Vec<u64> {
        self.occurrences(self.ranks.iter().map(|rank| (rank.node, 1)))
    }

    /// Sums over trees of which `nodes` are the roots, so often each.
    pub fn sums(&self, nodes: impl IntoIterator<Item = (NodeId, u64)>) -> Sums {
        let mut sums = Sums::default();
        for (node, times) in (0..).zip(self.occurrences(nodes)).filter(|&(_, times)| times > 0) {
            sums.add_leaf(&self.dag, node, times);
        }
        sums
    }

    /// Sums of calls and of the time between them by name, of trees of which `nodes` are the roots.
    pub fn by_name(&self, nodes: impl IntoIterator<Item = (NodeId, u64)>) -> Vec<(NameId, Sums)> {
        let mut sums = vec![Sums::default(); self.dag.names().all().len()];
        let mut is_met = vec![false; sums.len()];
        for (node, times) in (0..).zip(self.occurrences(nodes)).filter(|&(_, times)| times > 0) {
            if self.dag.leaf(node).is_some() {
                let name = self.dag.name_id(node) as usize;
                is_met[name] = true;
                sums[name].add_leaf(&self.dag, node, times);
            }
        }
        (0..).zip(sums).zip(is_met).filter(|&(_, is_met)| is_met).map(|(sums, _)| sums).collect()
    }

    /// Size of the graph and of the trees.
    pub fn metrics(&self) -> Metrics {
        let mut uncompressed = 0u64;
        for (node, times) in (0..).zip(self.in_all_ranks()) {
            if !self.dag.name(node).is_part() {
                uncompressed = uncompressed.saturating_add(times);
            }
        }
        let bytes = |nodes: u64, references: u64| {
            nodes.saturating_mul(NODE_BYTES).saturating_add(references.saturating_mul(REFERENCE_BYTES))
        };
        let nodes = self.dag.len() as u64;
        Metrics {
            nodes,
            nodes_uncompressed: uncompressed,
            bytes: bytes(nodes, self.dag.references() as u64),
            bytes_uncompressed: bytes(uncompressed, uncompressed.saturating_sub(self.ranks.len() as u64)),
        }
    }
}
