//! Shapes that degrees give away: lines, rings, complete graphs, stars, complete bipartite graphs.

use super::Match;
use super::graph::Graph;
use super::shape::Shape;

/// The simple shape that the connected `graph` is.
pub(super) fn simple(graph: &Graph) -> Option<Match> {
    let (vertices, edges) = (graph.vertices(), graph.edges());
    let size = u64::from(vertices);
    let most = (0..vertices).map(|vertex| graph.degree(vertex)).max()?;
    if most <= 2 && vertices >= 2 {
        return Some(line_or_ring(graph));
    }
    if edges == size * (size - 1) / 2 {
        return Some(Match { shape: Shape::Complete(vertices), positions: (0..vertices).collect() });
    }
    if edges + 1 == size && most + 1 == vertices {
        let centre = (0..vertices).find(|&vertex| graph.degree(vertex) == most)?;
        let place = |vertex: u32| match vertex.cmp(&centre) {
            std::cmp::Ordering::Less => vertex + 1,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => vertex,
        };
        return Some(Match { shape: Shape::Star(vertices), positions: (0..vertices).map(place).collect() });
    }
    bipartite(graph)
}

/// A line or ring; no vertex of `graph` has more than two neighbours.
fn line_or_ring(graph: &Graph) -> Match {
    let vertices = graph.vertices();
    let ends: Vec<u32> = (0..vertices).filter(|&vertex| graph.degree(vertex) < 2).collect();
    // From the end that is nearest to vertex 0, or around from there the way of the lesser neighbour.
    let from_first = graph.distances(&[0]);
    let start = ends.iter().copied().min_by_key(|&end| from_first[end as usize]).unwrap_or(0);
    let mut positions = vec![u32::MAX; vertices as usize];
    let mut next = Some(start);
    let mut position = 0;
    while let Some(vertex) = next {
        positions[vertex as usize] = position;
        position += 1;
        next = graph.neighbours(vertex).iter().copied().find(|&next| positions[next as usize] == u32::MAX);
    }
    let shape = if ends.is_empty() { Shape::Ring(vertices) } else { Shape::Line(vertices) };
    Match { shape, positions }
}

fn bipartite(graph: &Graph) -> Option<Match> {
    let vertices = graph.vertices();
    let far = graph.degree(0);
    let near = vertices - far;
    if u64::from(near) * u64::from(far) != graph.edges() {
        return None;
    }
    let mut is_far = vec![false; vertices as usize];
    for &vertex in graph.neighbours(0) {
        is_far[vertex as usize] = true;
    }
    let crosses = |vertex: u32| {
        let far = is_far[vertex as usize];
        graph.neighbours(vertex).iter().all(|&next| is_far[next as usize] != far)
    };
    // As many edges as there are pairs across, and all of them across.
    if !(0..vertices).all(crosses) {
        return None;
    }
    // The lesser side first; of equal ones that of vertex 0.
    let (first, second) = if near <= far { (near, far) } else { (far, near) };
    let (mut next, mut next_far) = if near <= far { (0, near) } else { (far, 0) };
    let mut positions = Vec::with_capacity(vertices as usize);
    for far in is_far {
        let next = if far { &mut next_far } else { &mut next };
        positions.push(*next);
        *next += 1;
    }
    Some(Match { shape: Shape::CompleteBipartite(first, second), positions })
}
