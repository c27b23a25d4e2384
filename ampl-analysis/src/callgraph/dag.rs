//! Nodes that are stored once, whatever holds them.

use rustc_hash::{FxHashMap, FxHasher};
use std::hash::Hasher;

use super::bound::{Bins, Bound, Span};
use super::names::{Name, NameId, Names};

/// Number of a node: it comes behind all nodes that it holds.
pub type NodeId = u32;

/// A node that another holds, and how often in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The node.
    pub node: NodeId,
    /// Times in a row, from 1.
    pub times: u32,
}

/// Nodes in their order, each with the number of times in a row.
pub type List = Vec<(NodeId, u64)>;

/// Facts of a node without parts that are never merged with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Facts {
    /// Calls: failed polls that share an entry are several.
    pub calls: u64,
    /// Calls that were counted and not recorded.
    pub missing: u64,
    /// Bytes that each call sends and receives; `None` where they cannot be computed.
    pub bytes: Option<(u64, u64)>,
    /// Bits of the design weight of its window; `None` where its duration is not known.
    weight: Option<u64>,
}

impl Facts {
    /// Facts of calls without a duration.
    pub fn untimed(calls: u64, bytes: Option<(u64, u64)>) -> Self {
        Self { calls, missing: 0, bytes, weight: None }
    }

    /// Facts of calls whose duration is known, in a window of that design weight.
    pub fn timed(calls: u64, bytes: Option<(u64, u64)>, weight: f64) -> Self {
        Self { calls, missing: 0, bytes, weight: Some(weight.to_bits()) }
    }

    /// Facts of a call that was counted and not recorded.
    pub fn gap() -> Self {
        Self { missing: 1, ..Self::default() }
    }

    /// Design weight of its window; `None` where its duration is not known.
    pub fn weight(&self) -> Option<f64> {
        self.weight.map(f64::from_bits)
    }
}

/// Contents of a node.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// Index of its facts, and its duration.
    Leaf(u32, Span),
    /// Its edges: the first, and how many.
    Parts(u32, u32),
}

/// A graph of nodes without a circle. Durations stand in nodes without parts: others last as long as what they hold.
#[derive(Clone, Debug)]
pub struct Dag {
    names: Names,
    of_nodes: Vec<NameId>,
    content: Vec<Content>,
    edges: Vec<Edge>,
    facts: Vec<Facts>,
    of_facts: FxHashMap<(NameId, Facts), u32>,
    leaves: FxHashMap<(u32, u64), NodeId>,
    /// Nodes with parts by hash; those of equal hash follow each other in `next`.
    inner: FxHashMap<u64, NodeId>,
    next: FxHashMap<NodeId, NodeId>,
    bins: Bins,
    branching: usize,
    split: NameId,
    body: NameId,
    leaves_out_empty: bool,
}

/// Least number of parts from which on a node is split.
const LEAST_BRANCHING: usize = 2;

impl Dag {
    /// A graph without nodes whose durations are merged within `bound`, and whose nodes hold at most `branching` others.
    pub fn new(bound: Bound, branching: usize) -> Self {
        let mut names = Names::default();
        let [split, body] = [Name::Split, Name::Body].map(|name| names.id(name));
        Self {
            names,
            of_nodes: Vec::new(),
            content: Vec::new(),
            edges: Vec::new(),
            facts: Vec::new(),
            of_facts: FxHashMap::default(),
            leaves: FxHashMap::default(),
            inner: FxHashMap::default(),
            next: FxHashMap::default(),
            bins: bound.bins(),
            branching: branching.max(LEAST_BRANCHING),
            split,
            body,
            leaves_out_empty: false,
        }
    }

    /// Leaves regions out that hold nothing, from now on.
    pub(super) fn leave_out_empty(&mut self) {
        self.leaves_out_empty = true;
    }

    /// True where regions are left out that hold nothing.
    pub(super) fn leaves_out_empty(&self) -> bool {
        self.leaves_out_empty
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.of_nodes.len()
    }

    /// True where there is no node.
    pub fn is_empty(&self) -> bool {
        self.of_nodes.is_empty()
    }

    /// Number of references to nodes.
    pub fn references(&self) -> usize {
        self.edges.len()
    }

    /// Names of nodes.
    pub fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn names_mut(&mut self) -> &mut Names {
        &mut self.names
    }

    /// Number of the name of `node`.
    pub fn name_id(&self, node: NodeId) -> NameId {
        self.of_nodes[node as usize]
    }

    /// Name of `node`.
    pub fn name(&self, node: NodeId) -> &Name {
        self.names.get(self.name_id(node))
    }

    /// Nodes that `node` holds, in their order.
    pub fn parts(&self, node: NodeId) -> &[Edge] {
        match self.content[node as usize] {
            Content::Parts(first, count) => &self.edges[first as usize..][..count as usize],
            Content::Leaf(..) => &[],
        }
    }

    /// Facts and duration of a node without parts; `None` for others.
    pub fn leaf(&self, node: NodeId) -> Option<(&Facts, Span)> {
        match self.content[node as usize] {
            Content::Leaf(facts, span) => Some((&self.facts[facts as usize], span)),
            Content::Parts(..) => None,
        }
    }

    /// The leaf of that name with a duration; one that is similar serves.
    pub fn put_leaf(&mut self, name: NameId, facts: Facts, duration_ns: u64) -> NodeId {
        let facts = self.facts_id(name, facts);
        self.put_leaf_of(name, facts, duration_ns)
    }

    /// Number of facts, for [`Self::put_leaf_of`].
    pub fn facts_id(&mut self, name: NameId, facts: Facts) -> u32 {
        let next = self.facts.len() as u32;
        let id = *self.of_facts.entry((name, facts)).or_insert(next);
        if id == next {
            self.facts.push(facts);
        }
        id
    }

    /// As [`Self::put_leaf`], with the number that [`Self::facts_id`] gives for the name and its facts.
    pub fn put_leaf_of(&mut self, name: NameId, facts: u32, duration_ns: u64) -> NodeId {
        let next = self.of_nodes.len() as NodeId;
        let node = *self.leaves.entry((facts, self.bins.number(duration_ns))).or_insert(next);
        if node == next {
            self.of_nodes.push(name);
            self.content.push(Content::Leaf(facts, Span::exact(duration_ns)));
        } else if let Content::Leaf(_, span) = &mut self.content[node as usize] {
            span.widen(duration_ns);
        }
        node
    }

    /// The node of that name that holds `list`.
    pub fn put(&mut self, name: NameId, list: &[(NodeId, u64)]) -> NodeId {
        let mut edges = self.edges_of(list);
        while edges.len() > self.branching {
            edges = edges.chunks(self.branching).map(|chunk| self.part(chunk)).collect();
            edges = merged(&edges);
        }
        self.intern(name, &edges)
    }

    /// `list` as one entry where it has several: parts that come together again where the list does.
    pub fn put_body(&mut self, list: List) -> List {
        match list.len() {
            0 | 1 => list,
            _ => vec![(self.put(self.body, &list), 1)],
        }
    }

    /// `list` with no more entries than a node holds.
    pub fn put_parts(&mut self, list: List) -> List {
        match list.len() > self.branching {
            false => list,
            true => vec![(self.put(self.split, &list), 1)],
        }
    }

    fn part(&mut self, edges: &[Edge]) -> Edge {
        match edges {
            &[edge] => edge,
            _ => Edge { node: self.intern(self.split, edges), times: 1 },
        }
    }

    /// References for `list`; numbers of times that are too large are taken apart.
    fn edges_of(&mut self, list: &[(NodeId, u64)]) -> Vec<Edge> {
        let mut edges = Vec::with_capacity(list.len());
        for &(mut node, mut times) in list {
            while times > u64::from(u32::MAX) {
                let rest = (times % MANY) as u32;
                if rest > 0 {
                    edges.push(Edge { node, times: rest });
                }
                node = self.intern(self.split, &[Edge { node, times: MANY as u32 }]);
                times /= MANY;
            }
            if times > 0 {
                edges.push(Edge { node, times: times as u32 });
            }
        }
        edges
    }

    fn intern(&mut self, name: NameId, edges: &[Edge]) -> NodeId {
        let mut hasher = FxHasher::default();
        hasher.write_u32(name);
        edges.iter().for_each(|edge| hasher.write_u64(u64::from(edge.node) << 32 | u64::from(edge.times)));
        let hash = hasher.finish();
        let mut found = self.inner.get(&hash).copied();
        let mut last = None;
        while let Some(node) = found {
            if self.name_id(node) == name && self.parts(node) == edges && self.leaf(node).is_none() {
                return node;
            }
            last = Some(node);
            found = self.next.get(&node).copied();
        }
        let node = self.of_nodes.len() as NodeId;
        match last {
            Some(last) => _ = self.next.insert(last, node),
            None => _ = self.inner.insert(hash, node),
        }
        self.of_nodes.push(name);
        self.content.push(Content::Parts(self.edges.len() as u32, edges.len() as u32));
        self.edges.extend_from_slice(edges);
        node
    }
}

/// Times of a reference that stands for part of a larger number.
const MANY: u64 = 1 << 31;

/// Edges of which neighbours differ.
fn merged(edges: &[Edge]) -> Vec<Edge> {
    let mut merged: Vec<Edge> = Vec::with_capacity(edges.len());
    for &edge in edges {
        match merged.last_mut() {
            Some(last) if last.node == edge.node && last.times.checked_add(edge.times).is_some() => {
                last.times += edge.times;
            }
            _ => merged.push(edge),
        }
    }
    merged
}

/// Appends `node`, `times` in a row, to `list`.
pub fn push(list: &mut List, node: NodeId, times: u64) {
    match list.last_mut() {
        Some((last, sum)) if *last == node => *sum = sum.saturating_add(times),
        _ if times == 0 => {}
        _ => list.push((node, times)),
    }
}

/// Appends all of `other` to `list`.
pub fn extend(list: &mut List, other: &[(NodeId, u64)]) {
    other.iter().for_each(|&(node, times)| push(list, node, times));
}
