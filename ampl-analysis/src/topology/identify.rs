//! The decision which shape a graph is, component by component.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::Match;
use super::butterfly::butterfly;
use super::cartesian::factorise;
use super::catalogue;
use super::cg::cg;
use super::graph::Graph;
use super::hamming::cliques;
use super::lattice;
use super::moore::moore;
use super::naming;
use super::refine::isomorphism;
use super::shape::{NamedGraph, Shape};
use super::simple::simple;
use super::skewed::skewed;
use super::tree::{self, tree};
use super::verify::verify;

/// Patterns of a user's own, and how much work an answer may take.
pub struct Options<'a> {
    /// Graphs of the user's that have so many vertices and edges; they go before the built-in shapes.
    pub named: &'a dyn Fn(u32, u64) -> Vec<Arc<NamedGraph>>,
    /// Most steps of a search by trial, per component; a step looks at one end of an edge.
    pub steps: u64,
    /// Most steps of the factorisation of a component.
    pub products: u64,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { named: &|_, _| Vec::new(), steps: 300_000_000, products: 3_000_000_000 }
    }
}

/// Components of a graph by what they are.
#[derive(Clone, Debug, Default)]
pub struct Topology {
    /// Shapes that were found and proved, those of most ranks first.
    pub patterns: Vec<Pattern>,
    /// Ranks of the components, of at least two ranks, that are none of the shapes; ascending.
    pub unknown: Vec<Vec<u32>>,
    /// Ranks without an edge.
    pub isolated: Vec<u32>,
}

/// A shape that components of a graph are.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The shape.
    pub shape: Shape,
    /// Other shapes that are the same graph.
    pub aliases: Vec<Shape>,
    /// The components, by their least ranks.
    pub copies: Vec<Placed>,
}

/// One component, with the proof of its shape.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Its ranks, ascending.
    pub ranks: Vec<u32>,
    /// For each of them the vertex of the shape that it is.
    pub positions: Vec<u32>,
}

impl Placed {
    /// Component of these `ranks` at `positions`, in any order.
    fn of(ranks: &[u32], positions: Vec<u32>) -> Self {
        let mut places: Vec<(u32, u32)> = ranks.iter().copied().zip(positions).collect();
        places.sort_unstable();
        let (ranks, positions) = places.into_iter().unzip();
        Self { ranks, positions }
    }
}

/// Shapes of `graph`'s components.
///
/// Every answer is proved: each component of a pattern has been compared with the shape's definition, vertex by vertex.
/// A component that is not named is none of the shapes, or took more than `options` allow.
pub fn identify(graph: &Graph, options: &Options<'_>) -> Topology {
    let mut topology = Topology::default();
    let mut known: FxHashMap<Shape, usize> = FxHashMap::default();
    // For each copy of each pattern, the reading that its own ranks follow.
    let mut naturals: Vec<Vec<Option<(Shape, Placed)>>> = Vec::new();
    for component in graph.components() {
        if component.ranks.len() == 1 {
            topology.isolated.extend(component.ranks);
            continue;
        }
        let Some(found) = component_shape(&component.graph, options) else {
            let mut ranks = component.ranks;
            ranks.sort_unstable();
            topology.unknown.push(ranks);
            continue;
        };
        let natural = naming::natural(&component, &found);
        let at = *known.entry(found.shape).or_insert_with_key(|shape| {
            let aliases = naming::aliases(&component.graph, shape);
            topology.patterns.push(Pattern { shape: shape.clone(), aliases, copies: Vec::new() });
            naturals.push(Vec::new());
            topology.patterns.len() - 1
        });
        naturals[at].push(natural.map(|of| (of.shape, Placed::of(&component.ranks, of.positions))));
        topology.patterns[at].copies.push(Placed::of(&component.ranks, found.positions));
    }
    for (pattern, naturals) in topology.patterns.iter_mut().zip(naturals) {
        naming::follow(pattern, naturals);
        naming::squares(pattern);
    }
    let ranks = |pattern: &Pattern| pattern.copies.iter().map(|copy| copy.ranks.len()).sum::<usize>();
    topology.patterns.sort_by_key(|pattern| std::cmp::Reverse(ranks(pattern)));
    topology
}

/// Shape of a component, with the proof.
fn component_shape(graph: &Graph, options: &Options<'_>) -> Option<Match> {
    let proved = |found: &Match| verify(graph, &found.shape, &found.positions);
    let mut steps = options.steps;
    let named = (options.named)(graph.vertices(), graph.edges()).into_iter().find_map(|named| {
        let shape = Shape::Named(named);
        let other = shape.graph()?;
        let positions = if graph.edges() + 1 == u64::from(graph.vertices()) {
            tree::isomorphism(graph, &other)?
        } else {
            isomorphism(graph, &other, &mut steps)?
        };
        Some(Match { shape, positions }).filter(proved)
    });
    if named.is_some() {
        return named;
    }
    let found = whole(graph, options.products).filter(proved);
    if found.is_some() {
        return found;
    }
    let (shape, positions) = match catalogue::all(graph, steps).into_iter().next() {
        Some(found) => found,
        None => catalogue::narrow(graph, &mut steps)?,
    };
    Some(Match { shape, positions }).filter(proved)
}

/// Shape of a connected graph, not yet proved.
fn whole(graph: &Graph, most: u64) -> Option<Match> {
    if let Some(found) = prime(graph, most) {
        return Some(found);
    }
    let known = |factor: &Graph| prime(factor, most);
    if let Some(found) = cliques(graph).and_then(|product| lattice::named(graph, &product, known))
        && verify(graph, &found.shape, &found.positions)
    {
        return Some(found);
    }
    lattice::named(graph, &factorise(graph, most)?, known)
}

/// Shape of a connected graph, with the proof, if it is one that is no Cartesian product.
fn prime(graph: &Graph, most: u64) -> Option<Match> {
    if let Some(found) = simple(graph) {
        return Some(found);
    }
    let proved = |found: &Match| verify(graph, &found.shape, &found.positions);
    if graph.edges() + 1 == u64::from(graph.vertices()) {
        return tree(graph).filter(proved);
    }
    // In these stencils every edge is in a triangle.
    let corner = graph.neighbours(0).first()?;
    if graph.neighbours(0).iter().any(|&next| graph.adjacent(*corner, next)) {
        return skewed(graph).or_else(|| moore(graph, most)).filter(proved);
    }
    cg(graph).filter(proved).or_else(|| butterfly(graph).filter(proved))
}
