//! Shapes that follow each other as a directed graph, and the loops in it.
//!
//! # Source
//! R. Tarjan, *Depth-first search and linear graph algorithms*, SIAM J. Comput. 1 (1972); K. Cooper, T. Harvey,
//! K. Kennedy, *A simple, fast dominance algorithm* (2001); natural loops as in Aho, Sethi, Ullman, *Compilers* (1986).

use rustc_hash::{FxHashMap, FxHashSet};

use super::sequence::Flow;

/// A set of shapes.
pub type Set = FxHashSet<u32>;

/// Shapes, and which follow which.
#[derive(Clone, Debug)]
pub struct FlowGraph {
    /// Shapes, ascending.
    shapes: Vec<u32>,
    next: Vec<Vec<usize>>,
    before: Vec<Vec<usize>>,
}

impl FlowGraph {
    /// The graph of `flow`, of the shapes in `within` where that is given, and with the sets of `joined`, which are
    /// disjoint, as one vertex each, named by its least shape. Such a vertex has no edge to itself.
    pub fn of(flow: &Flow, within: Option<&Set>, joined: &[&Set]) -> Self {
        let mut names: FxHashMap<u32, u32> = FxHashMap::default();
        for set in joined {
            let name = set.iter().min().copied().unwrap_or(0);
            names.extend(set.iter().map(|&shape| (shape, name)));
        }
        let is_in = |shape: &u32| within.is_none_or(|within| within.contains(shape));
        let name = |shape: u32| names.get(&shape).copied().unwrap_or(shape);
        let mut shapes: Vec<u32> = flow.calls.keys().copied().filter(is_in).map(name).collect();
        shapes.sort_unstable();
        shapes.dedup();
        let place = |shape: u32| shapes.binary_search(&name(shape)).ok();
        let mut edges: Vec<(usize, usize)> = flow
            .edges
            .keys()
            .filter(|(from, to)| is_in(from) && is_in(to))
            .filter(|(from, to)| !(names.contains_key(from) && name(*from) == name(*to)))
            .filter_map(|&(from, to)| Some((place(from)?, place(to)?)))
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let (mut next, mut before) = (vec![Vec::new(); shapes.len()], vec![Vec::new(); shapes.len()]);
        for (from, to) in edges {
            next[from].push(to);
            before[to].push(from);
        }
        Self { shapes, next, before }
    }

    /// Number of shapes.
    pub fn size(&self) -> usize {
        self.shapes.len()
    }

    fn place(&self, shape: u32) -> Option<usize> {
        self.shapes.binary_search(&shape).ok()
    }

    /// Sets of shapes on common cycles, one shape that follows itself included.
    pub fn cycles(&self) -> Vec<Set> {
        let is_cycle = |part: &Vec<usize>| part.len() > 1 || self.next[part[0]].contains(&part[0]);
        let parts = self.components(usize::MAX).into_iter().filter(is_cycle);
        parts.map(|part| part.into_iter().map(|at| self.shapes[at]).collect()).collect()
    }

    /// Strongly connected parts, without vertex `without`.
    fn components(&self, without: usize) -> Vec<Vec<usize>> {
        let number = self.shapes.len();
        let (mut order, mut low) = (vec![usize::MAX; number], vec![0; number]);
        let (mut is_open, mut open, mut parts) = (vec![false; number], Vec::new(), Vec::new());
        let mut count = 0;
        for root in 0..number {
            if order[root] != usize::MAX || root == without {
                continue;
            }
            let mut stack = vec![(root, 0)];
            while let Some(&mut (at, ref mut edge)) = stack.last_mut() {
                if *edge == 0 {
                    (order[at], low[at]) = (count, count);
                    count += 1;
                    open.push(at);
                    is_open[at] = true;
                }
                if let Some(&to) = self.next[at].get(*edge) {
                    *edge += 1;
                    if to == without {
                        continue;
                    }
                    if order[to] == usize::MAX {
                        stack.push((to, 0));
                    } else if is_open[to] {
                        low[at] = low[at].min(order[to]);
                    }
                    continue;
                }
                stack.pop();
                if let Some(&(parent, _)) = stack.last() {
                    low[parent] = low[parent].min(low[at]);
                }
                if low[at] == order[at] {
                    let mut part = Vec::new();
                    while let Some(member) = open.pop() {
                        is_open[member] = false;
                        part.push(member);
                        if member == at {
                            break;
                        }
                    }
                    parts.push(part);
                }
            }
        }
        parts
    }

    fn is_acyclic_without(&self, vertex: usize) -> bool {
        self.components(vertex).iter().all(|part| part.len() == 1 && !self.next[part[0]].contains(&part[0]))
    }

    /// Shapes that every cycle passes through; none where there is no cycle.
    pub fn on_all_cycles(&self) -> Vec<u32> {
        let Some(cycle) = self.a_cycle() else { return Vec::new() };
        let mut found: Vec<u32> =
            cycle.into_iter().filter(|&at| self.is_acyclic_without(at)).map(|at| self.shapes[at]).collect();
        found.sort_unstable();
        found
    }

    /// Vertices of a cycle.
    fn a_cycle(&self) -> Option<Vec<usize>> {
        let part = self
            .components(usize::MAX)
            .into_iter()
            .find(|part| part.len() > 1 || self.next[part[0]].contains(&part[0]))?;
        let inside: FxHashSet<usize> = part.iter().copied().collect();
        // A shortest way back to the first one.
        let start = part[0];
        let mut from: FxHashMap<usize, usize> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(at) = queue.pop_front() {
            for &to in self.next[at].iter().filter(|to| inside.contains(to)) {
                if to == start {
                    let way = std::iter::successors(Some(at), |&at| from.get(&at).copied());
                    return Some(way.collect());
                }
                if to != start && !from.contains_key(&to) {
                    from.insert(to, at);
                    queue.push_back(to);
                }
            }
        }
        None
    }

    /// Sets of shapes on common cycles that do not pass through `shape`.
    pub fn cycles_without(&self, shape: u32) -> Vec<Set> {
        let without = self.place(shape).unwrap_or(usize::MAX);
        let is_cycle = |part: &Vec<usize>| part.len() > 1 || self.next[part[0]].contains(&part[0]);
        let parts = self.components(without).into_iter().filter(is_cycle);
        parts.map(|part| part.into_iter().map(|at| self.shapes[at]).collect()).collect()
    }

    /// Bodies of the loops of a program that comes in at `entry`: shapes from which a call that ends an iteration is
    /// reached without another iteration's beginning. Of those that begin alike, which overlap are one unless one has
    /// the other. No two are equal, and the graph as a whole is none.
    pub fn loops(&self, entry: u32) -> Vec<Set> {
        let Some(entry) = self.place(entry) else { return Vec::new() };
        let (order, dominator) = self.dominators(entry);
        let mut found: Vec<(usize, FxHashSet<usize>)> = Vec::new();
        for (from, next) in self.next.iter().enumerate() {
            for &head in next {
                if order[from] == usize::MAX || !dominates(&dominator, head, from, entry) {
                    continue;
                }
                let mut body = FxHashSet::from_iter([head]);
                let mut stack = vec![from];
                while let Some(at) = stack.pop() {
                    if body.insert(at) {
                        stack.extend(&self.before[at]);
                    }
                }
                found.push((head, body));
            }
        }
        // Other ways through one body.
        found.sort_by_key(|(head, body)| (*head, body.len()));
        let mut merged: Vec<(usize, FxHashSet<usize>)> = Vec::new();
        for (head, mut body) in found {
            while let Some(at) = merged.iter().position(|(other, known)| {
                *other == head && !known.is_subset(&body) && !known.is_superset(&body)
            }) {
                body.extend(merged.swap_remove(at).1);
            }
            if !merged.iter().any(|(_, known)| *known == body) {
                merged.push((head, body));
            }
        }
        merged.retain(|(_, body)| body.len() < self.shapes.len());
        let mut sets: Vec<Set> = Vec::new();
        for (_, body) in merged {
            let set: Set = body.into_iter().map(|at| self.shapes[at]).collect();
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        sets
    }

    /// Number of each vertex in reverse postorder, and the dominator next to it.
    fn dominators(&self, entry: usize) -> (Vec<usize>, Vec<usize>) {
        let mut post = Vec::new();
        let mut is_seen = vec![false; self.shapes.len()];
        let mut stack = vec![(entry, 0)];
        is_seen[entry] = true;
        while let Some((at, edge)) = stack.last_mut() {
            match self.next[*at].get(*edge) {
                Some(&to) => {
                    *edge += 1;
                    if !std::mem::replace(&mut is_seen[to], true) {
                        stack.push((to, 0));
                    }
                }
                None => {
                    post.push(*at);
                    stack.pop();
                }
            }
        }
        let mut order = vec![usize::MAX; self.shapes.len()];
        for (number, &at) in post.iter().rev().enumerate() {
            order[at] = number;
        }
        let mut dominator = vec![usize::MAX; self.shapes.len()];
        dominator[entry] = entry;
        let mut has_changed = true;
        while has_changed {
            has_changed = false;
            for &at in post.iter().rev().filter(|&&at| at != entry) {
                let known = self.before[at].iter().copied().filter(|&from| dominator[from] != usize::MAX);
                let common = known.reduce(|mut one, mut other| {
                    while one != other {
                        while order[one] > order[other] {
                            one = dominator[one];
                        }
                        while order[other] > order[one] {
                            other = dominator[other];
                        }
                    }
                    one
                });
                if let Some(common) = common.filter(|&common| dominator[at] != common) {
                    dominator[at] = common;
                    has_changed = true;
                }
            }
        }
        (order, dominator)
    }
}

/// True where every way from `entry` to `vertex` passes through `head`.
fn dominates(dominator: &[usize], head: usize, vertex: usize, entry: usize) -> bool {
    let mut at = vertex;
    loop {
        if at == head {
            return true;
        }
        if at == entry || dominator[at] == usize::MAX {
            return false;
        }
        at = dominator[at];
    }
}
