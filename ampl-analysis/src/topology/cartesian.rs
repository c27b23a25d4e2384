//! Cartesian factorisation of connected graphs: edges in classes that are parallel, and coordinates from the classes.
//!
//! # Source
//! T. Feder, *Product graph representations*, J. Graph Theory 16 (1992), and W. Imrich, I. Peterin, *Recognizing
//! Cartesian products in linear time*, Discrete Math. 307 (2007), for the relation between edges. Edges of one
//! factor are found by squares and triangles; what the relation leaves apart although it belongs together is found
//! when coordinates do not fit. Those are proved in the end, so that the relation need not be.

use super::graph::{Graph, Sets};

/// Most factors that are looked for.
const MOST_FACTORS: usize = 32;

/// A graph as a product: its factors, and each vertex's place in each of them.
pub(super) struct Product {
    /// Factors; vertex 0 of each is where vertex 0 of the graph is.
    pub factors: Vec<Graph>,
    /// Row by row, for each vertex of the graph a vertex of each factor.
    pub places: Vec<u32>,
}

/// Factors `graph`, which is connected and numbered breadth first; `None` where it is prime as far as was found.
///
/// Takes steps of the order of the sum of squared degrees, and none where that is more than `most`.
pub(super) fn factorise(graph: &Graph, most: u64) -> Option<Product> {
    let vertices = 0..graph.vertices();
    let work: u64 = vertices
        .map(|vertex| {
            let degree = u64::from(graph.degree(vertex));
            let around: u64 =
                graph.neighbours(vertex).iter().map(|&next| u64::from(graph.degree(next))).sum();
            around + degree * degree
        })
        .sum();
    if work > most {
        return None;
    }
    let numbers = graph.edge_numbers();
    let mut sets = parallel(graph, &numbers)?;
    // Joins that come of coordinates that do not fit: few, or the graph is no product.
    for _ in 0..MOST_FACTORS {
        let (classes, count) = classes(graph, &mut sets)?;
        if count < 2 {
            return None;
        }
        let class = |at: usize| classes[numbers[at] as usize];
        match place(graph, count, class) {
            Ok(product) => return Some(product),
            Err((a, b)) => {
                let edge_of = |class| classes.iter().position(|&other| other == class).map(|at| at as u32);
                sets.join(edge_of(a)?, edge_of(b)?);
            }
        }
    }
    None
}

/// Classes of the edges as numbers from 0, and how many there are; `None` beyond [`MOST_FACTORS`].
fn classes(graph: &Graph, sets: &mut Sets) -> Option<(Vec<u8>, usize)> {
    let edges = graph.edges() as usize;
    let mut classes = vec![u8::MAX; edges];
    let mut count = 0;
    for edge in 0..edges as u32 {
        // The least edge of a set is its representative, so it has been met.
        let top = sets.find(edge);
        if top == edge {
            if count == MOST_FACTORS {
                return None;
            }
            classes[edge as usize] = count as u8;
            count += 1;
        } else {
            classes[edge as usize] = classes[top as usize];
        }
    }
    Some((classes, count))
}

/// A vertex at distance 2, or at the end of a triangle, while the surroundings of one vertex are looked at.
#[derive(Clone, Copy)]
struct Seen {
    from: u32,
    /// Neighbours between: how many, and the first two as places in the row, with the edges on from them.
    count: u32,
    between: [u32; 2],
    edges: [u32; 2],
}

/// Joins edges that are in one factor of every factorisation, if they meet or are opposite in a square.
///
/// Two edges that meet are in one factor unless they span exactly one square and that is without a diagonal. Every
/// vertex of a product has edges of each factor: where all edges of one are joined, there is `None`.
fn parallel(graph: &Graph, numbers: &[u32]) -> Option<Sets> {
    let mut sets = Sets::new(graph.edges() as usize);
    let empty = Seen { from: u32::MAX, count: 0, between: [0; 2], edges: [0; 2] };
    let mut seen = vec![empty; graph.vertices() as usize];
    let mut adjacent = vec![(u32::MAX, 0_u32); graph.vertices() as usize];
    let mut reached: Vec<u32> = Vec::new();
    // For every pair of neighbours, by places in the row: number of squares, and a vertex opposite.
    let mut squares: Vec<(u32, u32)> = Vec::new();
    let mut own: Vec<u32> = Vec::new();
    for vertex in 0..graph.vertices() {
        let row = graph.neighbours(vertex);
        let edges = &numbers[graph.row(vertex)];
        for (place, &next) in row.iter().enumerate() {
            adjacent[next as usize] = (vertex, place as u32);
        }
        reached.clear();
        for (place, &next) in row.iter().enumerate() {
            for (&end, &edge) in graph.neighbours(next).iter().zip(&numbers[graph.row(next)]) {
                if end == vertex {
                    continue;
                }
                if adjacent[end as usize].0 == vertex {
                    sets.join(edges[place], edges[adjacent[end as usize].1 as usize]);
                    continue;
                }
                let seen = &mut seen[end as usize];
                if seen.from != vertex {
                    *seen = Seen { from: vertex, ..empty };
                    reached.push(end);
                }
                match seen.count {
                    0 | 1 => {
                        seen.between[seen.count as usize] = place as u32;
                        seen.edges[seen.count as usize] = edge;
                    }
                    // Two vertices with three between them: no product has that across factors.
                    _ => {
                        for between in seen.between {
                            sets.join(edges[between as usize], edges[place]);
                        }
                    }
                }
                seen.count += 1;
            }
        }
        squares.clear();
        squares.resize(row.len() * row.len(), (0, 0));
        for &end in reached.iter().filter(|&&end| seen[end as usize].count == 2) {
            let [a, b] = seen[end as usize].between;
            let (count, opposite) = &mut squares[a as usize * row.len() + b as usize];
            *count += 1;
            *opposite = end;
        }
        // Pairs that are joined by way of others need no second look: a row of d edges takes d - 1 joins.
        own.clear();
        own.extend(0..row.len() as u32);
        for a in 0..row.len() {
            for b in a + 1..row.len() {
                let (count, opposite) = squares[a * row.len() + b];
                if count != 1 {
                    let (from, to) = (own[b], own[a]);
                    if from != to {
                        sets.join(edges[a], edges[b]);
                        own.iter_mut().filter(|set| **set == from).for_each(|set| *set = to);
                    }
                } else if vertex < opposite {
                    // From the other corners it is the same square.
                    let [on_from_a, on_from_b] = seen[opposite as usize].edges;
                    sets.join(edges[a], on_from_b);
                    sets.join(edges[b], on_from_a);
                }
            }
        }
        let first = sets.find(edges[0]);
        if edges[1..].iter().all(|&edge| sets.find(edge) == first) {
            return None;
        }
    }
    Some(sets)
}

/// Gives every vertex its place in each of `count` factors, whose edges are told apart by `class`, a function of the
/// place of an edge's end in [`Graph::row`]. The graph is connected, though it need not be numbered breadth first.
///
/// # Errors
/// Two classes that belong to one factor, where coordinates do not fit.
pub(super) fn place(graph: &Graph, count: usize, class: impl Fn(usize) -> u8) -> Result<Product, (u8, u8)> {
    let vertices = graph.vertices() as usize;
    let distances = graph.distances(&[0]);
    let mut order: Vec<u32> = (0..graph.vertices()).collect();
    order.sort_by_key(|&vertex| distances[vertex as usize]);
    let mut places = vec![0_u32; vertices * count];
    // For each factor, the vertices that lie in it through vertex 0.
    let mut layers: Vec<Vec<u32>> = vec![vec![0]; count];
    let first_but = |other: u8| (u8::from(other == 0), other);
    for &vertex in &order[1..] {
        let lower = graph
            .row(vertex)
            .zip(graph.neighbours(vertex))
            .filter(|&(_, &next)| distances[next as usize] < distances[vertex as usize]);
        let mut below = lower.map(|(at, &next)| (class(at), next as usize));
        let (axis, a) = below.next().ok_or((0, 1))?;
        let start = vertex as usize * count;
        places.copy_within(a * count..(a + 1) * count, start);
        match below.find(|&(other, _)| other != axis) {
            // Along another factor its place in this one does not change.
            Some((_, b)) => places[start + axis as usize] = places[b * count + axis as usize],
            None => {
                // All ways to it are in one factor: it is in that factor's layer.
                if places[start..start + count]
                    .iter()
                    .enumerate()
                    .any(|(at, &place)| at != axis as usize && place != 0)
                {
                    return Err(first_but(axis));
                }
                let layer = &mut layers[axis as usize];
                places[start + axis as usize] = layer.len() as u32;
                layer.push(vertex);
            }
        }
    }
    let sizes: Vec<u64> = layers.iter().map(|layer| layer.len() as u64).collect();
    if sizes.iter().try_fold(1_u64, |product, &size| product.checked_mul(size)) != Some(vertices as u64) {
        return Err(crossing(graph, count, &class));
    }
    // An edge moves along its own factor only.
    for vertex in 0..graph.vertices() {
        for (at, &next) in graph.row(vertex).zip(graph.neighbours(vertex)) {
            let own = &places[vertex as usize * count..][..count];
            let other = &places[next as usize * count..][..count];
            if let Some(wrong) =
                (0..count).find(|&axis| (own[axis] != other[axis]) != (axis == class(at) as usize))
            {
                let axis = class(at);
                return Err(if wrong as u8 == axis { first_but(axis) } else { (axis, wrong as u8) });
            }
        }
    }
    let factors = layers.iter().enumerate().map(|(axis, layer)| {
        let mut edges = Vec::new();
        for &vertex in layer {
            for (at, &next) in graph.row(vertex).zip(graph.neighbours(vertex)) {
                if class(at) as usize == axis && vertex < next {
                    edges
                        .push((places[vertex as usize * count + axis], places[next as usize * count + axis]));
                }
            }
        }
        Graph::from_edges(layer.len() as u32, &edges).expect("a part of a graph is no larger")
    });
    let factors: Vec<Graph> = factors.collect();
    Ok(Product { factors, places })
}

/// Two classes by which one reaches a vertex from vertex 0 each on its own; any two where there are none.
fn crossing(graph: &Graph, count: usize, class: &impl Fn(usize) -> u8) -> (u8, u8) {
    let mut reached = vec![u8::MAX; graph.vertices() as usize];
    for axis in 0..count as u8 {
        let mut stack = vec![0];
        let mut own = vec![false; graph.vertices() as usize];
        own[0] = true;
        while let Some(vertex) = stack.pop() {
            for (at, &next) in graph.row(vertex).zip(graph.neighbours(vertex)) {
                if class(at) != axis || own[next as usize] {
                    continue;
                }
                if reached[next as usize] != u8::MAX {
                    return (reached[next as usize], axis);
                }
                own[next as usize] = true;
                reached[next as usize] = axis;
                stack.push(next);
            }
        }
    }
    (0, 1)
}

#[cfg(test)]
mod tests {
    use super::super::shape::{Axis, Shape};
    use super::*;

    fn sizes(shape: &Shape) -> Vec<u32> {
        let graph = shape.graph().unwrap().components().remove(0).graph;
        let product = factorise(&graph, u64::MAX);
        let mut sizes: Vec<u32> =
            product.iter().flat_map(|product| &product.factors).map(Graph::vertices).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn prime_factors_are_found() {
        let axis = |size, periodic| Axis { size, periodic };
        let torus = Shape::Lattice(vec![axis(5, true), axis(4, true), axis(3, false)]);
        assert_eq!(sizes(&torus), [2, 2, 3, 5]);
        assert_eq!(sizes(&Shape::Hypercube(6)), [2; 6]);
        assert_eq!(sizes(&Shape::Hamming(vec![5, 3, 4])), [3, 4, 5]);
        assert_eq!(sizes(&Shape::Cg { bits: 2, doubled: true }), [2, 16]);
        assert_eq!(sizes(&Shape::Product(vec![Shape::Star(4), Shape::CompleteBipartite(2, 3)])), [4, 5]);
        assert_eq!(
            sizes(&Shape::Product(vec![Shape::Tree { vertices: 9, arity: 2 }, Shape::Ring(7)])),
            [7, 9]
        );
    }

    #[test]
    fn what_is_no_product_is_prime() {
        assert!(sizes(&Shape::Ring(7)).is_empty());
        assert!(sizes(&Shape::Cg { bits: 2, doubled: false }).is_empty());
        assert!(sizes(&Shape::Skewed([Axis { size: 5, periodic: true }; 2])).is_empty());
        // A 6 x 5 torus whose rows close with a shift of 2.
        let mut edges = Vec::new();
        for (x, y) in (0..6).flat_map(|x| (0..5).map(move |y| (x, y))) {
            let beyond = if x == 5 { (y + 2) % 5 } else { (x + 1) * 5 + y };
            edges.extend([(x * 5 + y, x * 5 + (y + 1) % 5), (x * 5 + y, beyond)]);
        }
        let twisted = Graph::from_edges(30, &edges).unwrap();
        assert!(factorise(&twisted.components()[0].graph, u64::MAX).is_none());
    }
}
