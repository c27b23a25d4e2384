//! Isomorphism by refinement and individualisation, within a bounded number of steps.
//!
//! # Source
//! B. McKay, A. Piperno, *Practical graph isomorphism, II*, J. Symb. Comput. 60 (2014), for the method; here both
//! graphs are refined together, so that colours need no canonical order.

use super::graph::Graph;

/// For each vertex of `a` a vertex of `b`, so that neighbours stay neighbours; `None` where there is no such
/// mapping, or none was found before `steps` was used up. What is used is taken off `steps`.
pub(super) fn isomorphism(a: &Graph, b: &Graph, steps: &mut u64) -> Option<Vec<u32>> {
    if a.vertices() != b.vertices() || a.edges() != b.edges() || a.degrees() != b.degrees() {
        return None;
    }
    let mut search = Search { a, b, steps, counts: vec![0; 2 * a.vertices() as usize] };
    let mut colours = Colours::new(2 * a.vertices());
    let first = vec![0];
    search.refine(&mut colours, first).then_some(())?;
    search.individualise(colours, 0)
}

/// Deepest that vertices are told apart one by one; complete graphs of the catalogue need one step a vertex.
const MOST_DEPTH: u32 = 64;

/// A partition of the vertices of both graphs into cells of one colour.
#[derive(Clone)]
struct Colours {
    /// Vertices, those of a cell together, and where each stands.
    order: Vec<u32>,
    places: Vec<u32>,
    /// For each vertex the beginning of its cell, and for each beginning the cell's length.
    cells: Vec<u32>,
    lengths: Vec<u32>,
}

impl Colours {
    fn new(vertices: u32) -> Self {
        let all: Vec<u32> = (0..vertices).collect();
        let mut lengths = vec![0; vertices as usize];
        if let Some(first) = lengths.first_mut() {
            *first = vertices;
        }
        Self { order: all.clone(), places: all, cells: vec![0; vertices as usize], lengths }
    }

    fn members(&self, cell: u32) -> &[u32] {
        &self.order[cell as usize..(cell + self.lengths[cell as usize]) as usize]
    }

    fn swap(&mut self, vertex: u32, place: u32) {
        let own = self.places[vertex as usize];
        let other = self.order[place as usize];
        self.order.swap(own as usize, place as usize);
        self.places[vertex as usize] = place;
        self.places[other as usize] = own;
    }

    /// Makes the last `count` members of `cell` a cell of their own.
    fn split(&mut self, cell: u32, count: u32) -> u32 {
        let fresh = cell + self.lengths[cell as usize] - count;
        self.lengths[cell as usize] -= count;
        self.lengths[fresh as usize] = count;
        for place in fresh..fresh + count {
            self.cells[self.order[place as usize] as usize] = fresh;
        }
        fresh
    }
}

struct Search<'a> {
    a: &'a Graph,
    b: &'a Graph,
    steps: &'a mut u64,
    counts: Vec<u32>,
}

impl Search<'_> {
    /// Splits cells until all members of a cell have as many neighbours in every other; false where a cell has not as
    /// many vertices of both graphs, or steps are used up.
    fn refine(&mut self, colours: &mut Colours, mut queue: Vec<u32>) -> bool {
        let size = self.a.vertices();
        let mut queued = vec![false; colours.order.len()];
        for &cell in &queue {
            queued[cell as usize] = true;
        }
        // For each cell, how many of its members were reached; those stand at its end.
        let mut reached = vec![0_u32; colours.order.len()];
        let mut touched: Vec<u32> = Vec::new();
        while let Some(splitter) = queue.pop() {
            queued[splitter as usize] = false;
            let members = colours.members(splitter).to_vec();
            for vertex in members {
                let (graph, shift) = if vertex < size { (self.a, 0) } else { (self.b, size) };
                let row = graph.neighbours(vertex - shift);
                let Some(left) = self.steps.checked_sub(row.len() as u64 + 1) else {
                    return false;
                };
                *self.steps = left;
                for next in row.iter().map(|next| next + shift) {
                    let cell = colours.cells[next as usize];
                    if self.counts[next as usize] == 0 {
                        if reached[cell as usize] == 0 {
                            touched.push(cell);
                        }
                        reached[cell as usize] += 1;
                        let place = cell + colours.lengths[cell as usize] - reached[cell as usize];
                        colours.swap(next, place);
                    }
                    self.counts[next as usize] += 1;
                }
            }
            let mut balanced = true;
            for cell in touched.drain(..) {
                let count = std::mem::take(&mut reached[cell as usize]);
                balanced &= self.split(colours, cell, count, &mut queue, &mut queued);
            }
            if !balanced {
                return false;
            }
        }
        true
    }

    /// Splits `cell` by the counts of its last `reached` members, which are reset.
    fn split(
        &mut self,
        colours: &mut Colours,
        cell: u32,
        reached: u32,
        queue: &mut Vec<u32>,
        queued: &mut [bool],
    ) -> bool {
        let size = self.a.vertices();
        let end = cell + colours.lengths[cell as usize];
        let tail = (end - reached) as usize..end as usize;
        let mut sorted: Vec<(u32, u32)> = colours.order[tail.clone()]
            .iter()
            .map(|&vertex| (self.counts[vertex as usize], vertex))
            .collect();
        sorted.sort_unstable();
        let mut balanced = true;
        let mut pieces: Vec<u32> = Vec::new();
        for piece in sorted.chunk_by(|a, b| a.0 == b.0) {
            let of_a = piece.iter().filter(|&&(_, vertex)| vertex < size).count();
            balanced &= 2 * of_a == piece.len();
            pieces.push(piece.len() as u32);
        }
        for (place, &(_, vertex)) in tail.zip(&sorted) {
            colours.order[place] = vertex;
            colours.places[vertex as usize] = place as u32;
            self.counts[vertex as usize] = 0;
        }
        if reached == colours.lengths[cell as usize] {
            pieces.remove(0);
        }
        let mut cells = vec![cell];
        for &piece in pieces.iter().rev() {
            cells.push(colours.split(cell, piece));
        }
        // Of a cell that has been split by already, all parts but one say everything.
        let largest = cells.iter().copied().max_by_key(|&cell| colours.lengths[cell as usize]);
        let waits = queued[cell as usize];
        for part in cells {
            if !queued[part as usize] && (waits || Some(part) != largest) {
                queued[part as usize] = true;
                queue.push(part);
            }
        }
        balanced
    }

    /// Tells one vertex of each graph after the other from its like, until all are told apart.
    fn individualise(&mut self, colours: Colours, depth: u32) -> Option<Vec<u32>> {
        let size = self.a.vertices();
        let mut smallest: Option<u32> = None;
        let mut cell = 0;
        while (cell as usize) < colours.order.len() {
            let length = colours.lengths[cell as usize];
            if length > 2 && smallest.is_none_or(|other| length < colours.lengths[other as usize]) {
                smallest = Some(cell);
            }
            cell += length;
        }
        let Some(cell) = smallest else {
            let mut mapping = vec![0; size as usize];
            for pair in colours.order.chunks(2) {
                mapping[pair[0].min(pair[1]) as usize] = pair[0].max(pair[1]) - size;
            }
            let kept = |(u, v): (u32, u32)| self.b.adjacent(mapping[u as usize], mapping[v as usize]);
            return self.a.each_edge().all(kept).then_some(mapping);
        };
        if depth == MOST_DEPTH {
            return None;
        }
        let (of_a, of_b): (Vec<u32>, Vec<u32>) =
            colours.members(cell).iter().partition(|&&vertex| vertex < size);
        let theirs = *of_b.first()?;
        for ours in of_a {
            let mut next = colours.clone();
            *self.steps = self.steps.checked_sub(u64::from(size))?;
            for (count, vertex) in [(1, ours), (2, theirs)] {
                next.swap(vertex, cell + next.lengths[cell as usize] - count);
            }
            let fresh = next.split(cell, 2);
            if self.refine(&mut next, vec![fresh])
                && let Some(mapping) = self.individualise(next, depth + 1)
            {
                return Some(mapping);
            }
            // Counts of a search that was broken off.
            self.counts.fill(0);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::shape::{Axis, Parent, Shape};
    use super::*;

    #[test]
    fn equal_graphs_are_mapped_and_others_are_not() {
        let axis = |size, periodic| Axis { size, periodic };
        let shapes = [
            Shape::Ring(12),
            Shape::Lattice(vec![axis(4, true), axis(3, true)]),
            Shape::Lattice(vec![axis(4, false), axis(3, true)]),
            Shape::Skewed([axis(4, true), axis(3, true)]),
            Shape::Tree { vertices: 12, arity: 2 },
            Shape::BinomialTree { vertices: 12, parent: Parent::WithoutLowestBit },
            Shape::BinomialTree { vertices: 12, parent: Parent::WithoutHighestBit },
            Shape::Hamming(vec![4, 3]),
            Shape::CompleteBipartite(6, 6),
        ];
        for (i, a) in shapes.iter().enumerate() {
            let graph = a.graph().unwrap();
            // 5 and 12 have no common divisor: a renumbering.
            let edges: Vec<_> = graph.each_edge().map(|(u, v)| (u * 5 % 12, v * 5 % 12)).collect();
            let shuffled = Graph::from_edges(12, &edges).unwrap();
            for (j, b) in shapes.iter().enumerate() {
                let mut steps = 1_000_000;
                let found = isomorphism(&shuffled, &b.graph().unwrap(), &mut steps);
                assert_eq!(found.is_some(), i == j, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn steps_run_out() {
        let graph = Shape::Hypercube(6).graph().unwrap();
        assert!(isomorphism(&graph, &graph, &mut 100).is_none());
        assert!(isomorphism(&graph, &graph, &mut 1_000_000).is_some());
    }
}
