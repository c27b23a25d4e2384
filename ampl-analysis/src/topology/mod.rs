//! Communication topologies: which grid, torus, tree or other shape an undirected graph is, with proof.
//!
//! Nothing is assumed of how vertices are numbered. Each family has its own way to find coordinates, of the order of
//! the edges or little more; every answer is then compared with the definition, vertex by vertex ([`verify`]). Work is
//! bounded: what is none of the shapes is `unknown` after as many steps as an answer would have taken.
//!
//! ```
//! use ampl_analysis::topology::{Axis, Graph, Options, Shape, identify};
//!
//! // A torus of 3 x 5, its vertices numbered as it happens.
//! let number = |x: u32, y: u32| ((x % 3) * 5 + y % 5) * 7 % 15;
//! let places = (0..3).flat_map(|x| (0..5).map(move |y| (x, y)));
//! let edges: Vec<(u32, u32)> = places
//!     .flat_map(|(x, y)| [(number(x, y), number(x + 1, y)), (number(x, y), number(x, y + 1))])
//!     .collect();
//!
//! let graph = Graph::from_edges(15, &edges).unwrap();
//! let topology = identify(&graph, &Options::default());
//! let [torus] = &topology.patterns[..] else { panic!("one pattern") };
//! let axis = |size| Axis { size, periodic: true };
//! assert_eq!(torus.shape, Shape::Lattice(vec![axis(5), axis(3)]));
//! // Neighbours have neighbouring coordinates.
//! let of = |rank: u32| torus.shape.coordinates(torus.copies[0].positions[rank as usize]);
//! assert_eq!(of(number(0, 0))[1], of(number(0, 1))[1]);
//! ```

mod butterfly;
mod cartesian;
mod catalogue;
mod cg;
mod directions;
mod graph;
mod hamming;
mod identify;
mod input;
mod lattice;
mod moore;
mod naming;
pub mod pattern;
mod refine;
mod report;
mod shape;
mod simple;
mod skewed;
mod traffic;
mod tree;
mod verify;
mod volumes;

pub use directions::printed;
pub use graph::{Graph, TooLarge};
pub use identify::{Options, Pattern, Placed, Topology, identify};
pub use input::{Edges, Facts, Input, of_layers};
pub use report::{Report, Row, Share, Unexplained};
pub use shape::{Axis, NamedGraph, Parent, Shape};
pub use traffic::{Found, Weight, WeightedEdge, all_edges, patterns};
pub use verify::verify;
pub use volumes::{Layer, layers};

/// A shape, and for each vertex of a graph the vertex of the shape that it is said to be.
#[derive(Clone, Debug)]
struct Match {
    shape: Shape,
    positions: Vec<u32>,
}
