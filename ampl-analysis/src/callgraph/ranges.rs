//! Sums over stretches of time, with answers remembered for parts of the trees.
//!
//! A stretch is taken apart into the largest nodes that lie in it, and the leaves at its ends, which are cut: of each
//! window of each thread there are at most as many as its tree is deep, times the number of nodes that one holds.
//! Sums below a node are remembered for nodes of every few heights, whatever asked for them: nodes that are shared
//! are summed once, for all of their places, all ranks and all later questions.
//!
//! # Source
//! Knüpfer and Nagel, ICCS 2005, §3. Departures: heights above the leaves are counted, not depths below the root, for a
//! node has several of these; durations and numbers of calls of all nodes are computed beforehand, in one pass. The
//! effort that the paper gives, d + b^x, leaves out that each node on the way to an end of the stretch has up to b others
//! beside it; it is d b^x.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::bound::Span;
use super::dag::NodeId;
use super::graph::{CallGraph, Sums, ThreadTree};
use super::names::{Name, NameId};
use super::times::Anchor;

/// Heights of which every so many remember their sums, where nothing else is asked for.
pub const EVERY: u32 = 4;

/// Sums by name, ascending.
pub type ByName = Vec<(NameId, Sums)>;

/// Questions about stretches of time to a graph.
#[derive(Clone, Debug)]
pub struct Ranges<'a> {
    graph: &'a CallGraph,
    /// Positions in each node: calls, recorded or not, and begins and ends of regions.
    lengths: Vec<u64>,
    /// Known time in each node.
    spans: Vec<Span>,
    /// True for nodes that end with time before a call that is not in them.
    trails: Vec<bool>,
    /// Most nodes between each node and a leaf.
    heights: Vec<u32>,
    every: u32,
    remembered: FxHashMap<NodeId, ByName>,
}

/// Moment between two limits, nanoseconds since T0.
#[derive(Clone, Copy, Debug)]
struct Moment {
    low_ns: i64,
    high_ns: i64,
}

impl Moment {
    fn after(self, span: Span) -> Self {
        Self {
            low_ns: self.low_ns.saturating_add_unsigned(span.low_ns),
            high_ns: self.high_ns.saturating_add_unsigned(span.high_ns),
        }
    }

    fn value_ns(self) -> i64 {
        self.low_ns + (self.high_ns - self.low_ns) / 2
    }
}

/// Parts of trees that lie in a stretch.
#[derive(Debug, Default)]
struct Pieces {
    /// Nodes that lie in it wholly, and how often.
    whole: BTreeMap<NodeId, u64>,
    /// Leaves at its ends: time of them that lies in it, and true where the call counts.
    cut: Vec<(NodeId, Span, bool)>,
}

impl<'a> Ranges<'a> {
    /// Questions to `graph`; sums are remembered at one in `every` heights.
    pub fn new(graph: &'a CallGraph, every: u32) -> Self {
        let dag = graph.dag();
        let nodes = dag.len();
        let (mut lengths, mut spans) = (vec![0u64; nodes], vec![Span::default(); nodes]);
        let (mut trails, mut heights) = (vec![false; nodes], vec![0u32; nodes]);
        for node in 0..nodes {
            let id = node as NodeId;
            if let Some((facts, span)) = dag.leaf(id) {
                // Calls that end outside of the time asked for have no number.
                lengths[node] = facts.calls.saturating_add(facts.missing);
                spans[node] = if facts.weight().is_some() { span } else { Span::default() };
                trails[node] = *dag.name(id) == Name::Outside;
                continue;
            }
            for edge in dag.parts(id) {
                let (inner, times) = (edge.node as usize, u64::from(edge.times));
                lengths[node] = lengths[node].saturating_add(lengths[inner].saturating_mul(times));
                let span = spans[inner].times(times);
                spans[node] += span;
                heights[node] = heights[node].max(heights[inner].saturating_add(1));
                trails[node] = trails[inner];
            }
            if let Name::Region(region) = dag.name(id) {
                let edges = u64::from(region.begins) + u64::from(region.ends);
                lengths[node] = lengths[node].saturating_add(edges);
                trails[node] &= !region.ends;
            }
        }
        let remembered = FxHashMap::default();
        Self { graph, lengths, spans, trails, heights, every: every.max(1), remembered }
    }

    /// Number of nodes whose sums are remembered.
    pub fn remembered(&self) -> usize {
        self.remembered.len()
    }

    /// Sums by name over all calls of the ranks that `takes` accepts.
    pub fn whole(&mut self, takes: impl Fn(u32) -> bool) -> ByName {
        let ranks = self.graph.ranks().iter().filter(|rank| takes(rank.rank));
        let mut whole = BTreeMap::new();
        ranks.for_each(|rank| *whole.entry(rank.node).or_default() += 1);
        self.sums(Pieces { whole, cut: Vec::new() })
    }

    /// Sums by name of the ranks that `takes` accepts, from `from_ns` until `until_ns`, nanoseconds since T0: of the
    /// calls whose times are known. Time counts as far as it lies inside, and a call counts where it ends.
    ///
    /// Where durations were merged, sums have the limits of what may lie inside; a call then counts by the middle
    /// of the limits of its end.
    pub fn between(&mut self, takes: impl Fn(u32) -> bool, from_ns: i64, until_ns: i64) -> ByName {
        let mut pieces = Pieces::default();
        let graph = self.graph;
        for thread in graph.ranks().iter().filter(|rank| takes(rank.rank)).flat_map(|rank| &rank.threads) {
            self.thread(thread, from_ns, until_ns, &mut pieces);
        }
        self.sums(pieces)
    }

    /// The same of one rank for each of `pixels` parts of that stretch, in their order.
    pub fn timeline(&mut self, rank: u32, from_ns: i64, until_ns: i64, pixels: u32) -> Vec<ByName> {
        let length = i128::from(until_ns) - i128::from(from_ns);
        let edge = |pixel: u32| {
            let at = i128::from(from_ns) + length * i128::from(pixel) / i128::from(pixels.max(1));
            i64::try_from(at).unwrap_or(until_ns)
        };
        (0..pixels).map(|pixel| self.between(|own| own == rank, edge(pixel), edge(pixel + 1))).collect()
    }

    fn thread(&self, thread: &ThreadTree, from_ns: i64, until_ns: i64, pieces: &mut Pieces) {
        // The last that begins before it may reach into it, and its last call may end where the next one begins.
        let first = thread.windows.partition_point(|window| window.start_ns < from_ns).saturating_sub(1);
        for window in &thread.windows[first..] {
            // Limits of times before it do not reach into a window: it begins where it is stored.
            if window.start_ns >= until_ns {
                break;
            }
            self.window(thread.node, window, (from_ns, until_ns), pieces);
        }
    }

    /// Pieces of a window of the thread with the tree `root`.
    fn window(&self, root: NodeId, window: &Anchor, (from_ns, until_ns): (i64, i64), pieces: &mut Pieces) {
        let dag = self.graph.dag();
        let mut clock = Moment { low_ns: window.start_ns, high_ns: window.start_ns };
        // Nodes in their order, the next one last: node, times, calls before it.
        let mut stack = vec![(root, 1u64, 0u64)];
        while let Some((node, times, seq)) = stack.pop() {
            let at = node as usize;
            let end_seq = seq.saturating_add(self.lengths[at].saturating_mul(times));
            if seq >= window.end_seq {
                break;
            }
            // Time before a call belongs to the window of the call.
            let ends_before = end_seq < window.first_seq || end_seq == window.first_seq && !self.trails[at];
            if ends_before {
                continue;
            }
            let ends_inside = end_seq < window.end_seq || end_seq == window.end_seq && !self.trails[at];
            if seq >= window.first_seq && ends_inside {
                let end = clock.after(self.spans[at].times(times));
                if end.high_ns < from_ns {
                    clock = end;
                    continue;
                }
                if clock.low_ns >= until_ns {
                    break;
                }
                if clock.low_ns >= from_ns && end.high_ns < until_ns {
                    let sum = pieces.whole.entry(node).or_default();
                    *sum = sum.saturating_add(times);
                    clock = end;
                    continue;
                }
                if times == 1 && dag.leaf(node).is_some() {
                    let overlap = |start_ns: i64, end_ns: i64| {
                        let (start_ns, end_ns) = (start_ns.max(from_ns), end_ns.min(until_ns));
                        if start_ns < end_ns { end_ns.abs_diff(start_ns) } else { 0 }
                    };
                    let span = Span {
                        low_ns: overlap(clock.high_ns, end.low_ns),
                        high_ns: overlap(clock.low_ns, end.high_ns).min(self.spans[at].high_ns),
                    };
                    pieces.cut.push((node, span, (from_ns..until_ns).contains(&end.value_ns())));
                    clock = end;
                    continue;
                }
            }
            if times > 1 {
                let half = times / 2;
                let middle = seq.saturating_add(self.lengths[at].saturating_mul(half));
                stack.push((node, times - half, middle));
                stack.push((node, half, seq));
                continue;
            }
            let begin = stack.len();
            let begins = matches!(dag.name(node), Name::Region(region) if region.begins);
            let mut seq = seq.saturating_add(u64::from(begins));
            for edge in dag.parts(node) {
                stack.push((edge.node, edge.times.into(), seq));
                let own = self.lengths[edge.node as usize].saturating_mul(edge.times.into());
                seq = seq.saturating_add(own);
            }
            stack[begin..].reverse();
        }
    }

    /// Sums of pieces.
    fn sums(&mut self, pieces: Pieces) -> ByName {
        self.remember(&pieces.whole);
        let mut sums = self.below(pieces.whole);
        let dag = self.graph.dag();
        for (node, span, counts) in pieces.cut {
            sums.entry(dag.name_id(node)).or_default().add_part(dag, node, span, counts);
        }
        sums.into_iter().filter(|(_, sums)| *sums != Sums::default()).collect()
    }

    /// Computes what is to be remembered of `nodes` and of what they hold.
    fn remember(&mut self, nodes: &BTreeMap<NodeId, u64>) {
        let dag = self.graph.dag();
        let mut open: std::collections::BTreeSet<NodeId> = nodes.keys().copied().collect();
        let mut new = Vec::new();
        while let Some(node) = open.pop_last() {
            if self.remembered.contains_key(&node) || dag.leaf(node).is_some() {
                continue;
            }
            if self.heights[node as usize].is_multiple_of(self.every) {
                new.push(node);
            }
            open.extend(dag.parts(node).iter().map(|edge| edge.node));
        }
        // From the ones that others hold.
        for node in new.into_iter().rev() {
            let parts = dag.parts(node).iter();
            let mut inner: BTreeMap<NodeId, u64> = BTreeMap::new();
            parts.for_each(|edge| *inner.entry(edge.node).or_default() += u64::from(edge.times));
            let sums = self.below(inner).into_iter().collect();
            self.remembered.insert(node, sums);
        }
    }

    /// Sums of nodes, so often each; what is remembered is not gone into.
    fn below(&self, mut open: BTreeMap<NodeId, u64>) -> BTreeMap<NameId, Sums> {
        let dag = self.graph.dag();
        let mut sums: BTreeMap<NameId, Sums> = BTreeMap::new();
        while let Some((node, times)) = open.pop_last() {
            if let Some(known) = self.remembered.get(&node) {
                known.iter().for_each(|(name, own)| sums.entry(*name).or_default().add_times(own, times));
            } else if dag.leaf(node).is_some() {
                sums.entry(dag.name_id(node)).or_default().add_leaf(dag, node, times);
            } else {
                for edge in dag.parts(node) {
                    let sum = open.entry(edge.node).or_default();
                    *sum = sum.saturating_add(times.saturating_mul(edge.times.into()));
                }
            }
        }
        sums
    }
}
