//! Placement of ranks on nodes: which rank runs where, so that fewer bytes and messages cross between nodes.
//!
//! Several placements are made and improved by swaps; the cheapest is the answer. Where the topology is a verified
//! lattice, its boxes are among them. Nothing is said of time.
//!
//! # Source
//! B. W. Kernighan, S. Lin, *An efficient heuristic procedure for partitioning graphs*, Bell System Technical Journal
//! 49 (1970). Departures: any number of parts, which keep their sizes.

mod blocks;
mod greedy;
mod report;
mod swaps;

use serde::Serialize;

use crate::topology::{Found, WeightedEdge};

pub use report::{Basis, LEAST_SAVING, Nodes, Report, Traffic, Unplaceable};

/// Weight of a message beside that of its bytes: as many bytes as this share of the mean message.
const MESSAGE_SHARE: f64 = 0.1;

/// A way to make a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The placement that was given.
    Given,
    /// Ranks in their order.
    Order,
    /// Boxes of a lattice.
    Blocks,
    /// Halves of a lattice, and halves of these.
    Halves,
    /// Nodes filled with the ranks that have most to do with those on them.
    Greedy,
}

/// Traffic between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Crossing {
    /// Messages that cross.
    pub messages: f64,
    /// Their bytes.
    pub bytes: f64,
    /// Messages that enter or leave the node with most bytes.
    pub busiest_messages: f64,
    /// Their bytes.
    pub busiest_bytes: f64,
    /// The node.
    pub busiest: u32,
}

/// A node for each rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// Node of each rank.
    pub nodes: Vec<u32>,
    /// The way in which it was begun; swaps have improved it.
    pub method: Method,
    /// Traffic between the nodes.
    pub crossing: Crossing,
}

/// Traffic of `edges` between nodes, where `nodes` has the node of each rank.
pub fn crossing(edges: &[WeightedEdge], nodes: &[u32]) -> Crossing {
    let count = nodes.iter().max().map_or(0, |&most| most as usize + 1);
    let mut of_node = vec![(0.0, 0.0); count];
    let mut sum = Crossing::default();
    for &(u, v, weight) in edges {
        let (one, other) = (nodes[u as usize], nodes[v as usize]);
        if one == other {
            continue;
        }
        sum.messages += weight.messages;
        sum.bytes += weight.bytes;
        for node in [one, other] {
            of_node[node as usize].0 += weight.bytes;
            of_node[node as usize].1 += weight.messages;
        }
    }
    for (node, &(bytes, messages)) in (0..).zip(&of_node) {
        if (bytes, messages) > (sum.busiest_bytes, sum.busiest_messages) {
            (sum.busiest_bytes, sum.busiest_messages, sum.busiest) = (bytes, messages, node);
        }
    }
    sum
}

/// The cheapest placement that is found. Every node keeps as many ranks as it has in `given`, which has the node of
/// each rank.
pub fn place(edges: &[WeightedEdge], given: &[u32], found: &[Found]) -> Placement {
    let traffic = swaps::Traffic::of(edges, given.len(), price(edges));
    let sizes = sizes(given);
    let mut candidates = vec![(Method::Given, given.to_vec()), (Method::Order, in_order(&sizes))];
    for found in found {
        candidates.extend(blocks::boxes(found, edges, &sizes, given).map(|nodes| (Method::Blocks, nodes)));
        candidates.extend(blocks::halves(found, &sizes, given.len()).map(|nodes| (Method::Halves, nodes)));
    }
    candidates.push((Method::Greedy, greedy::grown(&traffic, &sizes)));
    let mut best: Option<(f64, Method, Vec<u32>)> = None;
    for (method, mut nodes) in candidates {
        traffic.improve(&mut nodes, sizes.len());
        let cost = traffic.cost(&nodes);
        // The first of equals: the given placement stays where none is better.
        if best.as_ref().is_none_or(|(least, ..)| cost < *least * (1.0 - 1e-9)) {
            best = Some((cost, method, nodes));
        }
    }
    let (_, method, nodes) = best.unwrap_or((0.0, Method::Given, given.to_vec()));
    let nodes = renumbered(&nodes, &sizes);
    Placement { crossing: crossing(edges, &nodes), nodes, method }
}

/// Price of an edge from its weight.
fn price(edges: &[WeightedEdge]) -> impl Fn(&WeightedEdge) -> f64 {
    let (mut messages, mut bytes) = (0.0, 0.0);
    for (_, _, weight) in edges {
        messages += weight.messages;
        bytes += weight.bytes;
    }
    let each = if bytes > 0.0 && messages > 0.0 { MESSAGE_SHARE * bytes / messages } else { 1.0 };
    move |(_, _, weight)| weight.bytes + each * weight.messages
}

/// Ranks of each node.
fn sizes(nodes: &[u32]) -> Vec<u32> {
    let mut sizes = vec![0; nodes.iter().max().map_or(0, |&most| most as usize + 1)];
    nodes.iter().for_each(|&node| sizes[node as usize] += 1);
    sizes
}

/// Ranks in their order, node after node.
fn in_order(sizes: &[u32]) -> Vec<u32> {
    (0..).zip(sizes).flat_map(|(node, &size)| std::iter::repeat_n(node, size as usize)).collect()
}

/// The same parts on nodes of the same sizes, those of the lowest ranks first.
fn renumbered(nodes: &[u32], sizes: &[u32]) -> Vec<u32> {
    let mut places: Vec<u32> = (0..sizes.len() as u32).collect();
    places.sort_by_key(|&node| (sizes[node as usize], node));
    let mut lowest = vec![u32::MAX; sizes.len()];
    for (rank, &node) in (0..).zip(nodes) {
        lowest[node as usize] = lowest[node as usize].min(rank);
    }
    let mut parts = places.clone();
    parts.sort_by_key(|&node| (sizes[node as usize], lowest[node as usize]));
    let mut new = vec![0; sizes.len()];
    for (&part, &place) in parts.iter().zip(&places) {
        new[part as usize] = place;
    }
    nodes.iter().map(|&node| new[node as usize]).collect()
}

#[cfg(test)]
mod tests;
