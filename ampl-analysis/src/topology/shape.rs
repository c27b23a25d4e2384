//! Definitions of the topologies: vertices, coordinates and neighbours of each.

use std::sync::Arc;

use super::graph::Graph;

/// One axis of a lattice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Axis {
    /// Number of places, from 2.
    pub size: u32,
    /// True if the last place is next to the first.
    pub periodic: bool,
}

/// How the parent of a vertex of a binomial tree is numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Parent {
    /// Without the lowest bit of the vertex's own number that is set.
    WithoutLowestBit,
    /// Without the highest.
    WithoutHighestBit,
}

/// A topology with its sizes: a graph on `0..vertices()`, whose vertices have coordinates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Shape {
    /// A path of so many vertices.
    Line(u32),
    /// A cycle of so many vertices, from 3.
    Ring(u32),
    /// Every vertex next to every other.
    Complete(u32),
    /// Vertex 0 next to all others, and these to no other.
    Star(u32),
    /// Every vertex of the first `.0` next to every one of the other `.1`.
    CompleteBipartite(u32, u32),
    /// Cartesian product of lines and rings: a grid, a torus, or a mixture.
    Lattice(Vec<Axis>),
    /// Numbers of so many bits; neighbours differ in one.
    Hypercube(u32),
    /// Cartesian product of complete graphs: neighbours differ in one coordinate, by anything.
    Hamming(Vec<u32>),
    /// Neighbours at ±(1, 0), ±(0, 1) and ±(1, -1): six of them.
    Skewed([Axis; 2]),
    /// Neighbours differ by at most 1 in every coordinate: eight of them in two dimensions, 26 in three.
    Moore(Vec<Axis>),
    /// Tree in which the parent of vertex v is (v - 1) / `arity`.
    Tree {
        /// Number of vertices.
        vertices: u32,
        /// Most children of a vertex.
        arity: u32,
    },
    /// Tree in which a vertex's parent has one bit less.
    BinomialTree {
        /// Number of vertices.
        vertices: u32,
        /// The bit that is less.
        parent: Parent,
    },
    /// Levels `0..=.0` of 2^`.0` rows; vertices of level l are next to those of level l + 1 in their own row and in that which differs in bit l.
    Butterfly(u32),
    /// 2^`bits` rows of as many columns: each row a hypercube, and (r, c) next to (c, r). With `doubled`, two copies with an edge between equals.
    Cg {
        /// Binary logarithm of the number of rows.
        bits: u32,
        /// True if there are two copies.
        doubled: bool,
    },
    /// Cartesian product of other shapes.
    Product(Vec<Shape>),
    /// A graph that somebody named.
    Named(Arc<NamedGraph>),
}

/// A graph with a name, as users give one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedGraph {
    /// Its name.
    pub name: String,
    /// Sizes of the axes; the number of vertices is their product.
    pub axes: Vec<Axis>,
    /// Neighbours of every vertex, ascending; vertices count row by row, the last axis fastest.
    pub neighbours: Vec<Vec<u32>>,
}

impl Shape {
    /// Name of the family, as `ampl topology` prints it.
    pub fn name(&self) -> &str {
        match self {
            Self::Line(_) => "line",
            Self::Ring(_) => "ring",
            Self::Complete(_) => "complete",
            Self::Star(_) => "star",
            Self::CompleteBipartite(..) => "complete-bipartite",
            Self::Lattice(axes) if axes.iter().any(|axis| axis.periodic) => "torus",
            Self::Lattice(_) => "grid",
            Self::Hypercube(_) => "hypercube",
            Self::Hamming(_) => "hamming",
            Self::Skewed(_) => "stencil6",
            Self::Moore(axes) if axes.len() == 2 => "stencil8",
            Self::Moore(_) => "stencil26",
            Self::Tree { .. } => "tree",
            Self::BinomialTree { .. } => "binomial-tree",
            Self::Butterfly(_) => "butterfly",
            Self::Cg { .. } => "cg",
            Self::Product(_) => "product",
            Self::Named(graph) => &graph.name,
        }
    }

    /// Number of vertices; `None` where it does not fit.
    pub fn vertices(&self) -> Option<u32> {
        fn product(mut sizes: impl Iterator<Item = Option<u32>>) -> Option<u32> {
            sizes.try_fold(1_u32, |product, size| product.checked_mul(size?))
        }
        match self {
            Self::Line(size) | Self::Ring(size) | Self::Complete(size) | Self::Star(size) => Some(*size),
            Self::CompleteBipartite(a, b) => a.checked_add(*b),
            Self::Lattice(axes) | Self::Moore(axes) => product(axes.iter().map(|axis| Some(axis.size))),
            Self::Skewed(axes) => product(axes.iter().map(|axis| Some(axis.size))),
            Self::Hamming(sizes) => product(sizes.iter().map(|&size| Some(size))),
            Self::Hypercube(bits) => 1_u32.checked_shl(*bits),
            Self::Tree { vertices, .. } | Self::BinomialTree { vertices, .. } => Some(*vertices),
            Self::Butterfly(bits) => 1_u32.checked_shl(*bits)?.checked_mul(bits + 1),
            Self::Cg { bits, doubled } => 1_u32.checked_shl(2 * bits + u32::from(*doubled)),
            Self::Product(shapes) => product(shapes.iter().map(Self::vertices)),
            Self::Named(graph) => u32::try_from(graph.neighbours.len()).ok(),
        }
    }

    /// Axes: sizes, and which are periodic. Axes of 2 that are no part of a [`Shape::Skewed`] are not, since both ways
    /// round lead to the same neighbour.
    pub fn axes(&self) -> Vec<Axis> {
        let plain = |sizes: &[u32]| sizes.iter().map(|&size| Axis { size, periodic: false }).collect();
        match self {
            Self::Ring(size) => vec![Axis { size: *size, periodic: true }],
            Self::Line(size) | Self::Complete(size) | Self::Star(size) => plain(&[*size]),
            Self::CompleteBipartite(a, b) => plain(&[*a, *b]),
            Self::Lattice(axes) | Self::Moore(axes) => axes.clone(),
            Self::Skewed(axes) => axes.to_vec(),
            Self::Hypercube(bits) => plain(&vec![2; *bits as usize]),
            Self::Hamming(sizes) => plain(sizes),
            Self::Tree { vertices, .. } | Self::BinomialTree { vertices, .. } => plain(&[*vertices]),
            Self::Butterfly(bits) => plain(&[bits + 1, 1 << bits]),
            Self::Cg { bits, doubled: false } => plain(&[1 << bits, 1 << bits]),
            Self::Cg { bits, doubled: true } => plain(&[1 << bits, 1 << bits, 2]),
            Self::Product(shapes) => shapes.iter().flat_map(Self::axes).collect(),
            Self::Named(graph) => graph.axes.clone(),
        }
    }

    /// Coordinates of `vertex`, as many as there are axes in most shapes; of a complete bipartite graph the side and
    /// the number on it.
    pub fn coordinates(&self, vertex: u32) -> Vec<u32> {
        match self {
            Self::CompleteBipartite(a, _) if vertex < *a => vec![0, vertex],
            Self::CompleteBipartite(a, _) => vec![1, vertex - a],
            Self::Product(shapes) => {
                let sizes: Vec<u32> = shapes.iter().map(|shape| shape.vertices().unwrap_or(1)).collect();
                let parts = unrank(vertex, &sizes);
                shapes.iter().zip(parts).flat_map(|(shape, part)| shape.coordinates(part)).collect()
            }
            _ => unrank(vertex, &self.axes().iter().map(|axis| axis.size).collect::<Vec<_>>()),
        }
    }

    /// The graph itself; `None` where it is too large.
    pub fn graph(&self) -> Option<Graph> {
        let vertices = self.vertices()?;
        let mut edges = Vec::new();
        let mut neighbours = Vec::new();
        let definition = Definition::of(self);
        for vertex in 0..vertices {
            definition.neighbours(vertex, &mut neighbours);
            edges.extend(neighbours.iter().filter(|&&next| vertex < next).map(|&next| (vertex, next)));
        }
        Graph::from_edges(vertices, &edges).ok()
    }
}

/// Coordinates of `index` in a box of `sizes`, the last fastest.
pub(super) fn unrank(mut index: u32, sizes: &[u32]) -> Vec<u32> {
    let mut coordinates = vec![0; sizes.len()];
    for (coordinate, &size) in coordinates.iter_mut().zip(sizes).rev() {
        *coordinate = index % size;
        index /= size;
    }
    coordinates
}

/// Differences that a step along each axis makes in a vertex's number.
pub(super) fn strides(sizes: impl DoubleEndedIterator<Item = u32> + ExactSizeIterator) -> Vec<u32> {
    let mut strides = vec![1; sizes.len()];
    let mut stride = 1;
    for (place, size) in strides.iter_mut().rev().zip(sizes.rev()) {
        *place = stride;
        stride *= size;
    }
    strides
}

/// A shape, prepared to be asked for the neighbours of every vertex.
pub(super) struct Definition<'a> {
    shape: &'a Shape,
    /// Of stencils: axes, strides, and steps to neighbours.
    axes: Vec<Axis>,
    strides: Vec<u32>,
    steps: Vec<Vec<i8>>,
    /// Of products: the factors, and their strides in `strides`.
    factors: Vec<(Definition<'a>, u32)>,
}

impl<'a> Definition<'a> {
    /// Definition of `shape`, whose number of vertices fits.
    pub fn of(shape: &'a Shape) -> Self {
        let (axes, steps) = match shape {
            Shape::Line(size) => (vec![Axis { size: *size, periodic: false }], unit_steps(1)),
            Shape::Ring(size) => (vec![Axis { size: *size, periodic: true }], unit_steps(1)),
            Shape::Lattice(axes) => (axes.clone(), unit_steps(axes.len())),
            Shape::Skewed(axes) => {
                let skewed: [[i8; 2]; 6] = [[1, 0], [-1, 0], [0, 1], [0, -1], [1, -1], [-1, 1]];
                (axes.to_vec(), skewed.map(|step| step.to_vec()).to_vec())
            }
            Shape::Moore(axes) => (axes.clone(), all_steps(axes.len())),
            _ => (Vec::new(), Vec::new()),
        };
        let mut strides = strides(axes.iter().map(|axis| axis.size));
        let mut factors = Vec::new();
        if let Shape::Product(shapes) = shape {
            factors = shapes
                .iter()
                .map(|shape| (Definition::of(shape), shape.vertices().unwrap_or(1)))
                .collect::<Vec<_>>();
            strides = self::strides(factors.iter().map(|(_, size)| *size));
        }
        Self { shape, axes, strides, steps, factors }
    }

    /// Replaces `found` with the neighbours of `vertex`, each once, in no order.
    pub fn neighbours(&self, vertex: u32, found: &mut Vec<u32>) {
        found.clear();
        let all_but = |from: u32, to: u32| (from..to).filter(move |&other| other != vertex);
        match self.shape {
            Shape::Line(_) | Shape::Ring(_) | Shape::Lattice(_) | Shape::Skewed(_) | Shape::Moore(_) => {
                self.stencil(vertex, found);
            }
            Shape::Complete(size) => found.extend(all_but(0, *size)),
            Shape::Star(size) if vertex == 0 => found.extend(1..*size),
            Shape::Star(_) => found.push(0),
            Shape::CompleteBipartite(a, b) if vertex < *a => found.extend(*a..a + b),
            Shape::CompleteBipartite(a, _) => found.extend(0..*a),
            Shape::Hypercube(bits) => found.extend((0..*bits).map(|bit| vertex ^ 1 << bit)),
            Shape::Hamming(sizes) => {
                let mut stride = 1;
                for &size in sizes.iter().rev() {
                    let own = vertex / stride % size;
                    let first = vertex - own * stride;
                    let others = (0..size).filter(|&other| other != own);
                    found.extend(others.map(|other| first + other * stride));
                    stride *= size;
                }
            }
            &Shape::Tree { vertices, arity } => {
                found.extend(vertex.checked_sub(1).map(|before| before / arity));
                let first = u64::from(vertex) * u64::from(arity) + 1;
                let last = (first + u64::from(arity)).min(u64::from(vertices));
                found.extend((first..last).map(|child| child as u32));
            }
            &Shape::BinomialTree { vertices, parent } => binomial(vertex, vertices, parent, found),
            &Shape::Butterfly(bits) => {
                let (level, row) = (vertex >> bits, vertex & ((1 << bits) - 1));
                for (other, bit) in [(Some(level + 1), level), (level.checked_sub(1), level.wrapping_sub(1))]
                {
                    if let Some(other) = other.filter(|&other| other <= bits) {
                        found.extend([other << bits | row, other << bits | (row ^ 1 << bit)]);
                    }
                }
            }
            &Shape::Cg { bits, doubled } => {
                let low = u32::from(doubled);
                let (copy, place) = (vertex & low, vertex >> low);
                let (row, column) = (place >> bits, place & ((1 << bits) - 1));
                found.extend((0..bits).map(|bit| (place ^ 1 << bit) << low | copy));
                if row != column {
                    found.push((column << bits | row) << low | copy);
                }
                found.extend(doubled.then_some(vertex ^ 1));
            }
            Shape::Product(_) => {
                let mut part = Vec::new();
                for ((definition, size), &stride) in self.factors.iter().zip(&self.strides) {
                    let own = vertex / stride % size;
                    definition.neighbours(own, &mut part);
                    found.extend(part.iter().map(|&other| vertex - own * stride + other * stride));
                }
            }
            Shape::Named(graph) => found.extend(&graph.neighbours[vertex as usize]),
        }
    }

    fn stencil(&self, vertex: u32, found: &mut Vec<u32>) {
        // Axes of 2 and 1 lead to one neighbour both ways.
        let repeats = self.axes.iter().any(|axis| axis.periodic && axis.size < 3);
        'steps: for step in &self.steps {
            let mut to = vertex;
            for ((axis, &stride), &by) in self.axes.iter().zip(&self.strides).zip(step) {
                if by == 0 {
                    continue;
                }
                let own = vertex / stride % axis.size;
                let last = axis.size - 1;
                let next = match (by > 0, axis.periodic) {
                    (true, _) if own < last => own + 1,
                    (false, _) if own > 0 => own - 1,
                    (true, true) => 0,
                    (false, true) => last,
                    _ => continue 'steps,
                };
                to = to - own * stride + next * stride;
            }
            if to != vertex && !(repeats && found.contains(&to)) {
                found.push(to);
            }
        }
    }
}

/// Steps to the neighbours of a lattice.
fn unit_steps(axes: usize) -> Vec<Vec<i8>> {
    let mut steps = Vec::new();
    for axis in 0..axes {
        for by in [1, -1] {
            let mut step = vec![0; axes];
            step[axis] = by;
            steps.push(step);
        }
    }
    steps
}

/// Steps by at most 1 along every axis.
fn all_steps(axes: usize) -> Vec<Vec<i8>> {
    let mut steps = vec![Vec::new()];
    for _ in 0..axes {
        steps = steps
            .iter()
            .flat_map(|step| [-1, 0, 1].map(|by| step.iter().copied().chain([by]).collect::<Vec<i8>>()))
            .collect();
    }
    steps.retain(|step| step.iter().any(|&by| by != 0));
    steps
}

/// Appends the neighbours of `vertex` in a binomial tree.
fn binomial(vertex: u32, vertices: u32, parent: Parent, found: &mut Vec<u32>) {
    let bits = 0..u32::BITS - 1;
    match parent {
        Parent::WithoutLowestBit => {
            found.extend((vertex > 0).then_some(vertex & vertex.wrapping_sub(1)));
            let free = vertex.trailing_zeros().min(u32::BITS - 1);
            found.extend((0..free).map(|bit| vertex | 1 << bit).filter(|&child| child < vertices));
        }
        Parent::WithoutHighestBit => {
            found.extend(vertex.checked_ilog2().map(|highest| vertex ^ 1 << highest));
            let above = bits.filter(|&bit| 1 << bit > vertex);
            found.extend(above.map(|bit| vertex | 1 << bit).filter(|&child| child < vertices));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(shape: &Shape) -> u64 {
        shape.graph().unwrap().edges()
    }

    #[test]
    fn shapes_have_the_edges_of_their_formulas() {
        let axis = |size, periodic| Axis { size, periodic };
        assert_eq!(edges(&Shape::Lattice(vec![axis(4, false), axis(5, true)])), 3 * 5 + 4 * 5);
        assert_eq!(edges(&Shape::Hypercube(5)), 5 * 16);
        assert_eq!(edges(&Shape::Skewed([axis(5, true), axis(7, true)])), 3 * 35);
        assert_eq!(edges(&Shape::Skewed([axis(4, false), axis(3, false)])), 3 * 3 + 4 * 2 + 3 * 2);
        assert_eq!(edges(&Shape::Moore(vec![axis(5, true); 3])), 13 * 125);
        assert_eq!(edges(&Shape::Moore(vec![axis(2, true), axis(2, false)])), 6);
        assert_eq!(edges(&Shape::Hamming(vec![4, 3])), 3 * 6 + 4 * 3);
        assert_eq!(edges(&Shape::CompleteBipartite(3, 4)), 12);
        assert_eq!(edges(&Shape::Butterfly(3)), 3 * 8 * 2);
        assert_eq!(edges(&Shape::Cg { bits: 2, doubled: false }), 16 + 6);
        assert_eq!(edges(&Shape::Cg { bits: 2, doubled: true }), 2 * 22 + 16);
        assert_eq!(edges(&Shape::Product(vec![Shape::Star(4), Shape::Ring(5)])), 3 * 5 + 4 * 5);
        for parent in [Parent::WithoutLowestBit, Parent::WithoutHighestBit] {
            for vertices in 1..40 {
                assert_eq!(edges(&Shape::BinomialTree { vertices, parent }), u64::from(vertices) - 1);
                assert_eq!(edges(&Shape::Tree { vertices, arity: 3 }), u64::from(vertices) - 1);
            }
        }
    }

    #[test]
    fn coordinates_count_row_by_row() {
        let axes = [3, 4].map(|size| Axis { size, periodic: false });
        assert_eq!(Shape::Lattice(axes.to_vec()).coordinates(7), [1, 3]);
        assert_eq!(Shape::Hypercube(3).coordinates(6), [1, 1, 0]);
        assert_eq!(Shape::CompleteBipartite(2, 3).coordinates(3), [1, 1]);
        let product = Shape::Product(vec![Shape::Star(3), Shape::Lattice(axes.to_vec())]);
        assert_eq!(product.coordinates(12 + 7), [1, 1, 3]);
    }
}
