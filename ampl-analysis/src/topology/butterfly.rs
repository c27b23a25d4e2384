//! Butterfly networks, by their levels and by what falls apart without the outer ones.

use rustc_hash::FxHashMap;

use super::Match;
use super::graph::{Graph, Sets};
use super::shape::Shape;

/// The butterfly that the connected `graph` is; a guess that the caller proves.
///
/// Vertices of levels up to l that are connected have equal bits from l on, those of levels from l on equal bits below
/// l. Where another level joins two such parts, they differ in one bit; either may be 0.
pub(super) fn butterfly(graph: &Graph) -> Option<Match> {
    let vertices = graph.vertices();
    let bits = (2..27).find(|&bits| (bits + 1) << bits == vertices)?;
    if graph.edges() != u64::from(bits) << (bits + 1) {
        return None;
    }
    let levels = levels(graph, bits)?;
    let mut rows = vec![0_u32; vertices as usize];
    let mut upward = Sets::new(vertices as usize);
    let mut downward = Sets::new(vertices as usize);
    for bit in 0..bits {
        let inside = |level: u32| level <= bit;
        join(graph, &levels, bit, inside, &mut upward, &mut rows);
        let bit = bits - 1 - bit;
        join(graph, &levels, bit, |level| level > bit, &mut downward, &mut rows);
    }
    let positions = levels.iter().zip(rows).map(|(level, row)| level << bits | row).collect();
    Some(Match { shape: Shape::Butterfly(bits), positions })
}

/// Joins `sets` along the edges between levels `bit` and `bit + 1`, and gives the vertices `inside` that bit.
fn join(
    graph: &Graph,
    levels: &[u32],
    bit: u32,
    inside: impl Fn(u32) -> bool,
    sets: &mut Sets,
    rows: &mut [u32],
) {
    let within: Vec<u32> = (0..graph.vertices()).filter(|&vertex| inside(levels[vertex as usize])).collect();
    let before: Vec<u32> = within.iter().map(|&vertex| sets.find(vertex)).collect();
    for vertex in (0..graph.vertices()).filter(|&vertex| levels[vertex as usize] == bit) {
        for &next in graph.neighbours(vertex).iter().filter(|&&next| levels[next as usize] == bit + 1) {
            sets.join(vertex, next);
        }
    }
    let mut zero: FxHashMap<u32, u32> = FxHashMap::default();
    for (&vertex, &half) in within.iter().zip(&before) {
        if *zero.entry(sets.find(vertex)).or_insert(half) != half {
            rows[vertex as usize] |= 1 << bit;
        }
    }
}

/// Level of every vertex. Vertices of the two outer levels have two neighbours, and one shortest path joins each of
/// one with each of the other; within a level there are several.
fn levels(graph: &Graph, bits: u32) -> Option<Vec<u32>> {
    let outer = |vertex: u32| graph.degree(vertex) == 2;
    let start = (0..graph.vertices()).find(|&vertex| outer(vertex))?;
    let distances = graph.distances(&[start]);
    let mut order: Vec<u32> = (0..graph.vertices()).collect();
    order.sort_by_key(|&vertex| distances[vertex as usize]);
    let mut paths = vec![0_u32; order.len()];
    paths[start as usize] = 1;
    for &vertex in &order[1..] {
        let below = |next: &&u32| distances[**next as usize] < distances[vertex as usize];
        let sum = |sum: u32, &next: &u32| sum.saturating_add(paths[next as usize]);
        paths[vertex as usize] = graph.neighbours(vertex).iter().filter(below).fold(0, sum);
    }
    let last =
        |vertex: &u32| outer(*vertex) && distances[*vertex as usize] == bits && paths[*vertex as usize] == 1;
    let last: Vec<u32> = (0..graph.vertices()).filter(last).collect();
    let from_last = graph.distances(&last);
    from_last.into_iter().map(|distance| bits.checked_sub(distance)).collect()
}
