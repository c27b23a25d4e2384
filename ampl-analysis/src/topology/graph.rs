//! Undirected simple graphs in compressed rows.

/// An undirected graph without loops and double edges; neighbours are ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    // Row of vertex v: `targets[offsets[v]..offsets[v + 1]]`.
    offsets: Vec<u32>,
    targets: Vec<u32>,
}

/// A graph with more vertices, or ends of edges, than [`Graph`] can number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the graph has more than 2^32 - 1 ends of edges")
    }
}

impl std::error::Error for TooLarge {}

impl Graph {
    /// Graph of the vertices `0..vertices`; loops and repeated edges are dropped.
    ///
    /// # Errors
    /// [`TooLarge`] from 2^31 edges on.
    ///
    /// # Panics
    /// Where an edge names a vertex that does not exist.
    pub fn from_edges(vertices: u32, edges: &[(u32, u32)]) -> Result<Self, TooLarge> {
        let kept = || edges.iter().filter(|(u, v)| u != v);
        if 2 * kept().count() as u64 > u64::from(u32::MAX) || vertices == u32::MAX {
            return Err(TooLarge);
        }
        let size = vertices as usize;
        let mut offsets = vec![0_u32; size + 1];
        for &(u, v) in kept() {
            assert!(u < vertices && v < vertices, "edge {u}-{v} of a graph of {vertices} vertices");
            offsets[u as usize + 1] += 1;
            offsets[v as usize + 1] += 1;
        }
        for at in 0..size {
            offsets[at + 1] += offsets[at];
        }
        let mut free = offsets.clone();
        let mut rows = vec![0_u32; offsets[size] as usize];
        let mut put = |from: u32, to: u32, rows: &mut [u32]| {
            rows[free[from as usize] as usize] = to;
            free[from as usize] += 1;
        };
        for &(u, v) in kept() {
            put(u, v, &mut rows);
            put(v, u, &mut rows);
        }
        // Read back in the order of the sources, every row comes out ascending.
        let mut sorted = vec![0_u32; rows.len()];
        free = offsets.clone();
        for source in 0..size {
            for &target in &rows[offsets[source] as usize..offsets[source + 1] as usize] {
                sorted[free[target as usize] as usize] = source as u32;
                free[target as usize] += 1;
            }
        }
        drop(rows);
        Ok(Self::without_repeats(offsets, sorted))
    }

    /// Graph of ascending rows in which a neighbour may be repeated.
    fn without_repeats(mut offsets: Vec<u32>, mut targets: Vec<u32>) -> Self {
        let mut filled = 0;
        for vertex in 0..offsets.len() - 1 {
            let (from, to) = (offsets[vertex] as usize, offsets[vertex + 1] as usize);
            let start = filled;
            for at in from..to {
                if filled == start || targets[filled - 1] != targets[at] {
                    targets[filled] = targets[at];
                    filled += 1;
                }
            }
            offsets[vertex] = start as u32;
        }
        *offsets.last_mut().expect("one more offset than vertices") = filled as u32;
        targets.truncate(filled);
        Self { offsets, targets }
    }

    /// Number of vertices.
    pub fn vertices(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// Number of edges.
    pub fn edges(&self) -> u64 {
        self.targets.len() as u64 / 2
    }

    /// Neighbours of `vertex`, ascending.
    pub fn neighbours(&self, vertex: u32) -> &[u32] {
        &self.targets[self.row(vertex)]
    }

    /// Number of neighbours of `vertex`.
    pub fn degree(&self, vertex: u32) -> u32 {
        self.row(vertex).len() as u32
    }

    /// True if `u` and `v` are neighbours.
    pub fn adjacent(&self, u: u32, v: u32) -> bool {
        let (from, to) = if self.degree(u) <= self.degree(v) { (u, v) } else { (v, u) };
        self.neighbours(from).binary_search(&to).is_ok()
    }

    /// Every edge once, the lesser end first, ascending.
    pub fn each_edge(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.vertices())
            .flat_map(|u| self.neighbours(u).iter().filter(move |&&v| u < v).map(move |&v| (u, v)))
    }

    /// Places of `vertex`'s edges in an array with one place for each end of an edge.
    pub(super) fn row(&self, vertex: u32) -> std::ops::Range<usize> {
        self.offsets[vertex as usize] as usize..self.offsets[vertex as usize + 1] as usize
    }

    /// For each end of an edge (see [`Self::row`]), the edge's number in the order of [`Self::each_edge`].
    pub(super) fn edge_numbers(&self) -> Vec<u32> {
        let mut numbers = vec![0; self.targets.len()];
        // Rows are ascending and so are the sources: each row's lesser neighbours come in its own order.
        let mut next: Vec<u32> = self.offsets.clone();
        let mut number = 0;
        for u in 0..self.vertices() {
            for at in self.row(u) {
                let v = self.targets[at];
                if v > u {
                    numbers[at] = number;
                    numbers[next[v as usize] as usize] = number;
                    next[v as usize] += 1;
                    number += 1;
                }
            }
        }
        numbers
    }

    /// The graph of the edges that `keep` accepts, by number.
    pub(super) fn filtered(&self, numbers: &[u32], keep: impl Fn(u32) -> bool) -> Self {
        let mut offsets = Vec::with_capacity(self.offsets.len());
        let mut targets = Vec::new();
        offsets.push(0);
        for vertex in 0..self.vertices() {
            targets.extend(self.row(vertex).filter(|&at| keep(numbers[at])).map(|at| self.targets[at]));
            offsets.push(targets.len() as u32);
        }
        Self { offsets, targets }
    }

    /// Degrees, ascending.
    pub(super) fn degrees(&self) -> Vec<u32> {
        let mut degrees: Vec<u32> = (0..self.vertices()).map(|vertex| self.degree(vertex)).collect();
        degrees.sort_unstable();
        degrees
    }

    /// Distances of all vertices from the nearest of `starts`; `u32::MAX` where there is no way.
    pub(super) fn distances(&self, starts: &[u32]) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.vertices() as usize];
        let mut order = starts.to_vec();
        for &start in starts {
            distances[start as usize] = 0;
        }
        let mut at = 0;
        while let Some(&vertex) = order.get(at) {
            at += 1;
            for &next in self.neighbours(vertex) {
                if distances[next as usize] == u32::MAX {
                    distances[next as usize] = distances[vertex as usize] + 1;
                    order.push(next);
                }
            }
        }
        distances
    }

    /// Connected components by their least vertex, each renumbered breadth first from it.
    ///
    /// Renumbered, neighbours lie close together in memory whatever numbers they had.
    pub(super) fn components(&self) -> Vec<Component> {
        let mut local = vec![u32::MAX; self.vertices() as usize];
        let mut components = Vec::new();
        for start in 0..self.vertices() {
            if local[start as usize] != u32::MAX {
                continue;
            }
            let mut order = vec![start];
            local[start as usize] = 0;
            let mut at = 0;
            let mut ends = 0;
            while let Some(&vertex) = order.get(at) {
                at += 1;
                ends += self.degree(vertex) as usize;
                for &next in self.neighbours(vertex) {
                    if local[next as usize] == u32::MAX {
                        local[next as usize] = order.len() as u32;
                        order.push(next);
                    }
                }
            }
            let mut offsets = Vec::with_capacity(order.len() + 1);
            let mut targets = Vec::with_capacity(ends);
            offsets.push(0);
            for &vertex in &order {
                let from = targets.len();
                targets.extend(self.neighbours(vertex).iter().map(|&next| local[next as usize]));
                targets[from..].sort_unstable();
                offsets.push(targets.len() as u32);
            }
            components.push(Component { graph: Self { offsets, targets }, ranks: order });
        }
        components
    }
}

/// A connected part of a graph, with its vertices renumbered.
pub(super) struct Component {
    pub graph: Graph,
    /// For each of its vertices the number that it has in the whole graph; the first is the least.
    pub ranks: Vec<u32>,
}

/// Sets that are joined, by numbers.
pub(super) struct Sets(Vec<u32>);

impl Sets {
    /// Each of `0..count` on its own.
    pub fn new(count: usize) -> Self {
        Self((0..count as u32).collect())
    }

    /// A number that all members of `member`'s set agree on.
    pub fn find(&mut self, mut member: u32) -> u32 {
        while self.0[member as usize] != member {
            let above = self.0[member as usize];
            self.0[member as usize] = self.0[above as usize];
            member = self.0[above as usize];
        }
        member
    }

    /// Joins the sets of `a` and `b`.
    pub fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.find(a), self.find(b));
        // The lesser number stays on top: it was met first, and its neighbours lie next to it.
        self.0[a.max(b) as usize] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_and_repeats_are_dropped_and_rows_ascend() {
        let graph = Graph::from_edges(5, &[(3, 1), (1, 3), (2, 2), (0, 3), (3, 0), (4, 3)]).unwrap();
        assert_eq!((graph.vertices(), graph.edges()), (5, 3));
        assert_eq!(graph.neighbours(3), [0, 1, 4]);
        assert!(graph.neighbours(2).is_empty());
        assert!(graph.adjacent(1, 3) && !graph.adjacent(1, 0));
        assert_eq!(graph.each_edge().collect::<Vec<_>>(), [(0, 3), (1, 3), (3, 4)]);
        let numbers = graph.edge_numbers();
        assert_eq!(&numbers[graph.row(3)], [0, 1, 2]);
        assert_eq!(Graph::from_edges(0, &[]).unwrap().vertices(), 0);
    }

    #[test]
    fn components_begin_at_their_least_vertex() {
        let graph = Graph::from_edges(6, &[(5, 1), (1, 3), (0, 4)]).unwrap();
        let components = graph.components();
        let ranks: Vec<&[u32]> = components.iter().map(|component| &component.ranks[..]).collect();
        assert_eq!(ranks, [&[0, 4][..], &[1, 3, 5], &[2]]);
        assert_eq!(components[1].graph.neighbours(0), [1, 2]);
    }
}
