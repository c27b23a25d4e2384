//! Input of the search for patterns: a list of edges, or the messages of a run.

use ampl_core::units::RankSet;
use ampl_reader::Symbols;
use serde::Serialize;

use super::traffic::{Found, Weight, all_edges};
use super::volumes::Layer;
use crate::messages::{Kind, Messages, Place};

/// Most places of a pattern that are named.
const MOST_SITES: usize = 40;

/// Edges of a graph.
#[derive(Debug, Default)]
pub struct Edges {
    /// One more than the highest rank.
    pub vertices: u32,
    /// Every pair once, the lesser rank first, ascending, with its volume; without volumes it is 1.
    pub edges: Vec<(u32, u32, f64)>,
    /// True if they have volumes.
    pub weighted: bool,
    /// Edges of a rank with itself, which are left out.
    pub loops: u64,
}

/// Facts about the edges that patterns are found in.
#[derive(Debug, Default)]
pub struct Input {
    /// Ranks.
    pub vertices: u32,
    /// Number of edges.
    pub edges: usize,
    /// Edges of ranks with themselves.
    pub loops: u64,
    /// Ranks without an edge.
    pub isolated: Vec<u32>,
    /// Traffic of all edges.
    pub total: Weight,
    /// True where numbers of messages are known.
    pub knows_calls: bool,
    /// True where bytes are known.
    pub knows_bytes: bool,
    /// Places of each of the findings.
    pub sites: Vec<Vec<String>>,
    /// Facts about a run's messages.
    pub facts: Option<Facts>,
}

/// Facts about a run's messages.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// Messages.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// True where the calls of all ranks are recorded and all partners are known.
    pub complete: bool,
    /// Ranks without recorded calls.
    pub missing: String,
    /// Ranks some of whose calls were only counted.
    pub gaps: String,
    /// Messages whose partners are not known.
    pub unplaced_messages: u64,
    /// Messages whose bytes are not known.
    pub unsized_messages: u64,
    /// Messages that are known from their receives only.
    pub received_only: u64,
    /// Calls of which no arguments are recorded.
    pub calls_without_arguments: u64,
    /// Messages to and from windows.
    pub one_sided: u64,
    /// Messages in collectives of neighbours.
    pub neighbour_collectives: u64,
}

impl Input {
    /// Facts about edges in which `found` was found.
    pub fn of_edges(read: &Edges, found: &[Found]) -> Self {
        let mut total = Weight::default();
        read.edges.iter().for_each(|edge| total.bytes += edge.2);
        Self {
            vertices: read.vertices,
            edges: read.edges.len(),
            loops: read.loops,
            isolated: isolated(read.vertices, read.edges.iter().map(|&(u, v, _)| (u, v))),
            total,
            knows_calls: false,
            knows_bytes: read.weighted && total.bytes > 0.0,
            sites: vec![Vec::new(); found.len()],
            facts: None,
        }
    }

    /// Facts about `messages` in which `found` was found.
    pub fn of_run(messages: &Messages, found: &[Found], symbols: &mut Symbols) -> Self {
        let all = all_edges(messages);
        let mut total = Weight::default();
        all.iter().for_each(|edge| total.add(edge.2));
        let edges = || messages.flows.iter().flat_map(|flow| &flow.edges);
        let of_kind = |kind: Kind| {
            let flows = messages.flows.iter();
            let flows = flows.filter(|flow| messages.places[flow.place as usize].kind == kind);
            flows.flat_map(|flow| &flow.edges).map(|edge| edge.messages).sum()
        };
        let sum = messages.total();
        Self {
            vertices: messages.ranks,
            edges: all.len(),
            loops: edges().filter(|edge| edge.from == edge.to).map(|edge| edge.messages).sum(),
            isolated: isolated(messages.ranks, all.iter().map(|&(u, v, _)| (u, v))),
            total,
            knows_calls: true,
            knows_bytes: total.bytes > 0.0,
            sites: found.iter().map(|found| sites(messages, &found.places, symbols)).collect(),
            facts: Some(Facts {
                messages: sum.messages,
                bytes: sum.bytes,
                complete: messages.is_complete(),
                missing: rank_set(messages.missing.iter().copied()),
                gaps: rank_set(messages.gaps.iter().copied()),
                unplaced_messages: messages.unplaced.messages,
                unsized_messages: messages.unsized_messages,
                received_only: messages.received_only,
                calls_without_arguments: messages.without_arguments,
                one_sided: of_kind(Kind::OneSided),
                neighbour_collectives: of_kind(Kind::Neighbour),
            }),
        }
    }
}

/// The layers of a file of edges as findings; their volumes are bytes.
pub fn of_layers(layers: Vec<Layer>) -> Vec<Found> {
    let weight = |volume: f64| Weight { messages: 0.0, bytes: volume };
    let found = |layer: Layer| Found {
        edges: layer.edges.iter().map(|&(u, v, volume)| (u, v, weight(volume))).collect(),
        least: layer.least,
        topology: layer.topology,
        places: Vec::new(),
    };
    layers.into_iter().map(found).collect()
}

/// `MPI_Send heat.c:42`, of each of the places, each text once.
fn sites(messages: &Messages, places: &[u32], symbols: &mut Symbols) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for &place in places {
        let name = place_name(messages, &messages.places[place as usize], symbols);
        if !names.contains(&name) {
            names.push(name);
        }
        if names.len() == MOST_SITES {
            break;
        }
    }
    names
}

/// `MPI_Send heat.c:42`
fn place_name(messages: &Messages, place: &Place, symbols: &mut Symbols) -> String {
    let function = place.function.name();
    match messages.paths[place.path as usize].first() {
        Some(frame) => format!("{function} {}", symbols.name(&frame.module, frame.offset)),
        None => function.to_owned(),
    }
}

/// `0-3,8`: `ranks`, which ascend.
pub(super) fn rank_set(ranks: impl IntoIterator<Item = u32>) -> String {
    ranks.into_iter().collect::<RankSet>().to_string()
}

fn isolated(vertices: u32, edges: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut touched = vec![false; vertices as usize];
    for (u, v) in edges {
        touched[u as usize] = true;
        touched[v as usize] = true;
    }
    (0..vertices).filter(|&rank| !touched[rank as usize]).collect()
}
