//! Hamming graphs by their cliques: products of complete graphs, also where vertices have thousands of neighbours.

use super::cartesian::Product;
use super::graph::{Graph, Sets};

/// `graph`, which is connected and numbered breadth first, as a product of complete graphs.
///
/// The neighbours of a vertex fall into cliques, one for each factor. Whoever is further off differs in a coordinate
/// more from it than from its nearer neighbours, each time in another. It may not be one: the places are a guess that
/// the caller proves.
pub(super) fn cliques(graph: &Graph) -> Option<Product> {
    let row = graph.neighbours(0);
    if (1..graph.vertices()).any(|vertex| graph.degree(vertex) != graph.degree(0)) {
        return None;
    }
    let mut places_in_row = vec![u32::MAX; graph.vertices() as usize];
    for (place, &next) in row.iter().enumerate() {
        places_in_row[next as usize] = place as u32;
    }
    let mut sets = Sets::new(row.len());
    for (place, &next) in row.iter().enumerate() {
        for &end in graph.neighbours(next) {
            if places_in_row[end as usize] != u32::MAX {
                sets.join(place as u32, places_in_row[end as usize]);
            }
        }
    }
    let tops: Vec<u32> = (0..row.len() as u32).filter(|&place| sets.find(place) == place).collect();
    let count = tops.len();
    let mut sizes = vec![1_u32; count];
    let mut places = vec![0_u32; (graph.vertices() as usize).checked_mul(count)?];
    for (place, &next) in row.iter().enumerate() {
        let axis = tops.binary_search(&sets.find(place as u32)).ok()?;
        places[next as usize * count + axis] = sizes[axis];
        sizes[axis] += 1;
    }
    let product = sizes.iter().try_fold(1_u32, |product, &size| product.checked_mul(size));
    if count < 2 || product != Some(graph.vertices()) {
        return None;
    }
    let distances = graph.distances(&[0]);
    for vertex in 0..graph.vertices() {
        let distance = distances[vertex as usize];
        if distance < 2 {
            continue;
        }
        for &next in graph.neighbours(vertex) {
            if distances[next as usize] < distance {
                for axis in 0..count {
                    let place = places[next as usize * count + axis];
                    let own = &mut places[vertex as usize * count + axis];
                    *own = place.max(*own);
                }
            }
        }
    }
    let complete = |size: u32| {
        let edges: Vec<(u32, u32)> = (0..size).flat_map(|u| (u + 1..size).map(move |v| (u, v))).collect();
        Graph::from_edges(size, &edges).ok()
    };
    let factors = sizes.into_iter().map(complete).collect::<Option<Vec<Graph>>>()?;
    Some(Product { factors, places })
}
