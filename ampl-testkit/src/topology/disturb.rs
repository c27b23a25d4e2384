//! Graphs renumbered, put side by side, disturbed, and graphs that are none of the families.

use std::collections::BTreeSet;

use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::Edges;

/// The same graph with its vertices numbered at random, its edges in another order and direction.
pub fn shuffled((vertices, edges): &Edges, seed: u64) -> Edges {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut numbers: Vec<u32> = (0..*vertices).collect();
    numbers.shuffle(&mut random);
    let number = |vertex: u32| numbers[vertex as usize];
    let mut edges: Vec<(u32, u32)> = edges
        .iter()
        .map(|&(u, v)| if random.random() { (number(u), number(v)) } else { (number(v), number(u)) })
        .collect();
    edges.shuffle(&mut random);
    (*vertices, edges)
}

/// Copies of a graph, numbered one after the other.
pub fn copies((vertices, edges): &Edges, count: u32) -> Edges {
    let copy = |copy: u32| edges.iter().map(move |&(u, v)| (u + copy * vertices, v + copy * vertices));
    (vertices * count, (0..count).flat_map(copy).collect())
}

/// The graph without one of its edges.
pub fn without_edge((vertices, edges): &Edges, seed: u64) -> Edges {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut edges = edges.clone();
    edges.swap_remove(random.random_range(0..edges.len()));
    (*vertices, edges)
}

/// The graph with one edge more; `None` where all are there.
pub fn with_edge((vertices, edges): &Edges, seed: u64) -> Option<Edges> {
    let present = set(edges);
    let missing: Vec<(u32, u32)> = (0..*vertices)
        .flat_map(|u| (u + 1..*vertices).map(move |v| (u, v)))
        .filter(|pair| !present.contains(pair))
        .collect();
    let added = missing.choose(&mut ChaCha8Rng::seed_from_u64(seed))?;
    Some((*vertices, [&edges[..], &[*added]].concat()))
}

/// The graph with two edges a-b and c-d replaced by a-d and c-b; `None` where there are none that can be.
pub fn switched((vertices, edges): &Edges, seed: u64) -> Option<Edges> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let present = set(edges);
    (0..1000).find_map(|_| {
        let (first, second) = (random.random_range(0..edges.len()), random.random_range(0..edges.len()));
        let ((a, b), (c, d)) = (edges[first], edges[second]);
        let (fresh, other) = ((a.min(d), a.max(d)), (c.min(b), c.max(b)));
        if first == second || a == d || b == c || present.contains(&fresh) || present.contains(&other) {
            return None;
        }
        let mut edges = edges.clone();
        edges[first] = fresh;
        edges[second] = other;
        Some((*vertices, edges))
    })
}

fn set(edges: &[(u32, u32)]) -> BTreeSet<(u32, u32)> {
    edges.iter().map(|&(u, v)| (u.min(v), u.max(v))).collect()
}

/// A graph in which every vertex has `degree` neighbours, drawn by switching edges of a circulant.
///
/// # Panics
/// Where there is no such graph.
pub fn random_regular(vertices: u32, degree: u32, seed: u64) -> Edges {
    assert!(
        degree < vertices && (vertices * degree).is_multiple_of(2),
        "no {degree}-regular graph of {vertices}"
    );
    let mut edges = Vec::new();
    for vertex in 0..vertices {
        edges.extend((1..=degree / 2).map(|by| (vertex, (vertex + by) % vertices)));
        if degree % 2 == 1 && vertex < vertices / 2 {
            edges.push((vertex, vertex + vertices / 2));
        }
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut present = set(&edges);
    for _ in 0..10 * edges.len() {
        let (first, second) = (random.random_range(0..edges.len()), random.random_range(0..edges.len()));
        let ((a, b), (c, d)) = (edges[first], edges[second]);
        let (fresh, other) = ((a.min(d), a.max(d)), (c.min(b), c.max(b)));
        if first == second || a == d || b == c || present.contains(&fresh) || present.contains(&other) {
            continue;
        }
        present.remove(&(a.min(b), a.max(b)));
        present.remove(&(c.min(d), c.max(d)));
        present.extend([fresh, other]);
        edges[first] = fresh;
        edges[second] = other;
    }
    (vertices, edges)
}

/// A torus of `rows` x `columns` whose columns close with a shift of `twist` along the row.
pub fn twisted_torus(rows: u32, columns: u32, twist: u32) -> Edges {
    let mut edges = Vec::new();
    for (x, y) in (0..rows).flat_map(|x| (0..columns).map(move |y| (x, y))) {
        let number = |x: u32, y: u32| x * columns + y % columns;
        let below = if x + 1 == rows { number(0, y + twist) } else { number(x + 1, y) };
        edges.extend([(number(x, y), number(x, y + 1)), (number(x, y), below)]);
    }
    (rows * columns, edges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disturbances_change_what_they_say() {
        let torus = twisted_torus(5, 6, 0);
        assert_eq!(set(&torus.1).len(), 60);
        assert_eq!(without_edge(&torus, 1).1.len(), 59);
        assert_eq!(set(&with_edge(&torus, 1).unwrap().1).len(), 61);
        let switched = switched(&torus, 1).unwrap();
        assert_eq!(set(&switched.1).len(), 60);
        assert_eq!(set(&switched.1).intersection(&set(&torus.1)).count(), 58);
        assert!(with_edge(&(3, vec![(0, 1), (1, 2), (0, 2)]), 1).is_none());
        let (vertices, edges) = random_regular(31, 4, 7);
        let degree = |vertex| edges.iter().filter(|&&(u, v)| u == vertex || v == vertex).count();
        assert!((0..vertices).all(|vertex| degree(vertex) == 4));
        assert_eq!(copies(&torus, 3).0, 90);
    }
}
