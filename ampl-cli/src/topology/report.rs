//! Output of `ampl topology --json`.

use ampl_analysis::topology::{Layer, Parent, Pattern, Shape};
use serde::Serialize;

use super::edges::Edges;
use super::rank_set;

/// The document.
#[derive(Debug, Serialize)]
pub struct Report {
    schema: u32,
    /// Ranks: one more than the highest that is named.
    vertices: u32,
    edges: usize,
    /// Edges from a rank to itself, which are left out.
    loops: u64,
    /// Ranks without an edge.
    isolated: String,
    pub patterns: Vec<Found>,
    pub unexplained: Unexplained,
}

/// Share of the edges that no pattern accounts for.
#[derive(Debug, Serialize)]
pub struct Unexplained {
    #[serde(flatten)]
    pub share: Share,
}

/// Shares of the whole. Calls and volumes that the file lacks are known only where the share is 0 or 1.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Share {
    pub edges_share: f64,
    calls_share: Option<f64>,
    pub bytes_share: Option<f64>,
}

/// One pattern, or the edges without a pattern.
#[derive(Debug, Serialize)]
pub struct Found {
    #[serde(flatten)]
    name: Name,
    ranks: String,
    copies: usize,
    aliases: Vec<Name>,
    verified: bool,
    /// Coordinates of each rank, null for ranks outside; null for edges without a pattern.
    coordinates: Option<Vec<Option<Vec<u32>>>>,
    /// Number of each rank's copy, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    copy: Option<Vec<Option<usize>>>,
    #[serde(flatten)]
    pub share: Share,
    /// Edges of lesser volume were left to other patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    least_volume: Option<f64>,
}

/// A shape.
#[derive(Debug, Serialize)]
struct Name {
    name: String,
    dims: Vec<u32>,
    periodic: Vec<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arity: Option<u32>,
    /// Bit of a rank's place in a binomial tree that its parent's place lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    cleared_bit: Option<&'static str>,
    /// Factors of a product.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    factors: Vec<Name>,
}

impl Name {
    fn of(shape: &Shape) -> Self {
        let axes = shape.axes();
        Self {
            name: shape.name().to_owned(),
            dims: axes.iter().map(|axis| axis.size).collect(),
            periodic: axes.iter().map(|axis| axis.periodic).collect(),
            arity: match shape {
                Shape::Tree { arity, .. } => Some(*arity),
                _ => None,
            },
            cleared_bit: match shape {
                Shape::BinomialTree { parent: Parent::WithoutLowestBit, .. } => Some("lowest"),
                Shape::BinomialTree { parent: Parent::WithoutHighestBit, .. } => Some("highest"),
                _ => None,
            },
            factors: match shape {
                Shape::Product(shapes) => shapes.iter().map(Self::of).collect(),
                _ => Vec::new(),
            },
        }
    }
}

impl Report {
    /// Report of the layers `found` in the edges that were `read`.
    pub fn of(read: &Edges, found: &[Layer]) -> Self {
        let mut patterns = Vec::new();
        let mut none = (0, 0.0);
        for layer in found {
            for pattern in &layer.topology.patterns {
                patterns.push(named(pattern, layer, read));
            }
            let unknown = &layer.topology.unknown;
            if !unknown.is_empty() {
                let mut ranks: Vec<u32> = unknown.iter().flatten().copied().collect();
                ranks.sort_unstable();
                let inside = within(layer, read.vertices, ranks.iter().copied());
                none = (none.0 + inside.0, none.1 + inside.1);
                patterns.push(Found {
                    name: Name {
                        name: "none".into(),
                        dims: Vec::new(),
                        periodic: Vec::new(),
                        arity: None,
                        cleared_bit: None,
                        factors: Vec::new(),
                    },
                    ranks: rank_set(ranks),
                    copies: unknown.len(),
                    aliases: Vec::new(),
                    verified: false,
                    coordinates: None,
                    copy: None,
                    share: Share::of(read, inside),
                    least_volume: layer.least,
                });
            }
        }
        let mut touched = vec![false; read.vertices as usize];
        for &(u, v, _) in &read.edges {
            touched[u as usize] = true;
            touched[v as usize] = true;
        }
        Self {
            schema: 1,
            vertices: read.vertices,
            edges: read.edges.len(),
            loops: read.loops,
            isolated: rank_set((0..read.vertices).filter(|&rank| !touched[rank as usize])),
            patterns,
            unexplained: Unexplained { share: Share::of(read, none) },
        }
    }
}

fn named(pattern: &Pattern, layer: &Layer, read: &Edges) -> Found {
    let mut coordinates = vec![None; read.vertices as usize];
    let mut copy_of = vec![None; read.vertices as usize];
    for (number, copy) in pattern.copies.iter().enumerate() {
        for (&rank, &position) in copy.ranks.iter().zip(&copy.positions) {
            coordinates[rank as usize] = Some(pattern.shape.coordinates(position));
            copy_of[rank as usize] = Some(number);
        }
    }
    let ranks = (0..read.vertices).filter(|&rank| copy_of[rank as usize].is_some());
    let inside = within(layer, read.vertices, ranks.clone());
    Found {
        name: Name::of(&pattern.shape),
        ranks: rank_set(ranks),
        copies: pattern.copies.len(),
        aliases: pattern.aliases.iter().map(Name::of).collect(),
        verified: true,
        coordinates: Some(coordinates),
        copy: (pattern.copies.len() > 1).then_some(copy_of),
        share: Share::of(read, inside),
        least_volume: layer.least,
    }
}

/// Number and volume of the layer's edges among `ranks`, which are whole components.
fn within(layer: &Layer, vertices: u32, ranks: impl Iterator<Item = u32>) -> (usize, f64) {
    let mut inside = vec![false; vertices as usize];
    ranks.for_each(|rank| inside[rank as usize] = true);
    let edges = layer.edges.iter().filter(|&&(u, _, _)| inside[u as usize]);
    edges.fold((0, 0.0), |(count, sum), &(_, _, volume)| (count + 1, sum + volume))
}

impl Share {
    fn of(read: &Edges, (count, volume): (usize, f64)) -> Self {
        let known = if count == 0 {
            Some(0.0)
        } else if count == read.edges.len() {
            Some(1.0)
        } else {
            None
        };
        let total: f64 = read.edges.iter().map(|&(_, _, volume)| volume).sum();
        let edges_share = if count == 0 { 0.0 } else { count as f64 / read.edges.len() as f64 };
        let by_volume = (read.weighted && total > 0.0).then(|| volume / total);
        Self { edges_share, calls_share: known, bytes_share: known.or(by_volume) }
    }
}
