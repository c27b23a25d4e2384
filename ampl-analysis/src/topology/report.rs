//! Patterns with their names, ranks, coordinates and shares.

use serde::Serialize;

use super::directions::printed;
use super::identify::Pattern;
use super::input::{Facts, Input, rank_set};
use super::shape::{Parent, Shape};
use super::traffic::{Found, Weight};

/// Report of the patterns of a graph; the order of fields is part of the format.
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
    /// Patterns, and edges without one.
    pub patterns: Vec<Row>,
    /// Share of the edges without a pattern.
    pub unexplained: Unexplained,
    /// Facts about a run's messages; none of a file of edges.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<Facts>,
}

/// Share of the edges that no pattern accounts for.
#[derive(Debug, Serialize)]
pub struct Unexplained {
    /// The share.
    #[serde(flatten)]
    pub share: Share,
}

/// Shares of the whole. Calls and volumes that are not known have a share only where it is 0 or 1.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Share {
    /// Share of the edges.
    pub edges_share: f64,
    /// Share of the messages.
    pub calls_share: Option<f64>,
    /// Share of the bytes, or of the volume.
    pub bytes_share: Option<f64>,
}

/// One pattern, or the edges without a pattern.
#[derive(Debug, Serialize)]
pub struct Row {
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
    /// Its share.
    #[serde(flatten)]
    pub share: Share,
    /// Edges of lesser volume were left to other patterns.
    #[serde(skip_serializing_if = "Option::is_none")]
    least_volume: Option<f64>,
    /// Places of a run that send these messages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sites: Vec<String>,
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
    /// Report of what was `found` in `input`.
    pub fn of(input: &Input, found: &[Found]) -> Self {
        let mut patterns = Vec::new();
        let mut none = (0, Weight::default());
        for (found, sites) in found.iter().zip(&input.sites) {
            for pattern in &found.topology.patterns {
                patterns.push(named(&printed(pattern), found, input, sites));
            }
            let unknown = &found.topology.unknown;
            if !unknown.is_empty() {
                let mut ranks: Vec<u32> = unknown.iter().flatten().copied().collect();
                ranks.sort_unstable();
                let inside = within(found, input.vertices, ranks.iter().copied());
                none.0 += inside.0;
                none.1.add(inside.1);
                patterns.push(Row {
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
                    share: Share::of(input, inside),
                    least_volume: found.least,
                    sites: sites.clone(),
                });
            }
        }
        Self {
            schema: 1,
            vertices: input.vertices,
            edges: input.edges,
            loops: input.loops,
            isolated: rank_set(input.isolated.iter().copied()),
            patterns,
            unexplained: Unexplained { share: Share::of(input, none) },
            messages: input.facts.clone(),
        }
    }
}

fn named(pattern: &Pattern, found: &Found, input: &Input, sites: &[String]) -> Row {
    let mut coordinates = vec![None; input.vertices as usize];
    let mut copy_of = vec![None; input.vertices as usize];
    for (number, copy) in pattern.copies.iter().enumerate() {
        for (&rank, &position) in copy.ranks.iter().zip(&copy.positions) {
            coordinates[rank as usize] = Some(pattern.shape.coordinates(position));
            copy_of[rank as usize] = Some(number);
        }
    }
    let ranks = (0..input.vertices).filter(|&rank| copy_of[rank as usize].is_some());
    let inside = within(found, input.vertices, ranks.clone());
    Row {
        name: Name::of(&pattern.shape),
        ranks: rank_set(ranks),
        copies: pattern.copies.len(),
        aliases: pattern.aliases.iter().map(Name::of).collect(),
        verified: true,
        coordinates: Some(coordinates),
        copy: (pattern.copies.len() > 1).then_some(copy_of),
        share: Share::of(input, inside),
        least_volume: found.least,
        sites: sites.to_vec(),
    }
}

/// Number and weight of the edges that were found among `ranks`, which are whole components.
fn within(found: &Found, vertices: u32, ranks: impl Iterator<Item = u32>) -> (usize, Weight) {
    let mut inside = vec![false; vertices as usize];
    ranks.for_each(|rank| inside[rank as usize] = true);
    let mut sum = (0, Weight::default());
    for &(_, _, weight) in found.edges.iter().filter(|&&(u, _, _)| inside[u as usize]) {
        sum.0 += 1;
        sum.1.add(weight);
    }
    sum
}

impl Share {
    fn of(input: &Input, (count, weight): (usize, Weight)) -> Self {
        // Without weights only all or nothing is known.
        let known = match count {
            0 => Some(0.0),
            _ if count == input.edges => Some(1.0),
            _ => None,
        };
        let edges_share = if count == 0 { 0.0 } else { count as f64 / input.edges as f64 };
        let share = |is_known: bool, part: f64, all: f64| {
            if is_known && all > 0.0 { Some(part / all) } else { known }
        };
        Self {
            edges_share,
            calls_share: share(input.knows_calls, weight.messages, input.total.messages),
            bytes_share: share(input.knows_bytes, weight.bytes, input.total.bytes),
        }
    }
}
