//! The proof of an answer: a numbering under which a graph is the shape that it is said to be.

use super::graph::Graph;
use super::shape::{Definition, Shape};

/// True if `graph` is `shape`, given for each of its vertices the vertex of `shape` that it is.
///
/// That is so only where `positions` is a bijection and the neighbours of every vertex are those of the definition, no more
/// and no fewer.
pub fn verify(graph: &Graph, shape: &Shape, positions: &[u32]) -> bool {
    let vertices = graph.vertices();
    if shape.vertices() != Some(vertices) || positions.len() != vertices as usize {
        return false;
    }
    let mut inverse = vec![u32::MAX; positions.len()];
    for (vertex, &position) in positions.iter().enumerate() {
        match inverse.get_mut(position as usize) {
            Some(place) if *place == u32::MAX => *place = vertex as u32,
            _ => return false,
        }
    }
    let definition = Definition::of(shape);
    let mut expected = Vec::new();
    let mut marked = vec![u32::MAX; positions.len()];
    (0..vertices).all(|vertex| {
        definition.neighbours(positions[vertex as usize], &mut expected);
        if expected.len() != graph.degree(vertex) as usize {
            return false;
        }
        for &next in graph.neighbours(vertex) {
            marked[next as usize] = vertex;
        }
        // As many as there are, each another: if all are marked, none is left over.
        expected.iter().all(|&position| marked[inverse[position as usize] as usize] == vertex)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_graph_is_verified() {
        let graph = Graph::from_edges(4, &[(0, 2), (2, 3), (3, 1), (1, 0)]).unwrap();
        assert!(verify(&graph, &Shape::Ring(4), &[0, 3, 1, 2]));
        assert!(!verify(&graph, &Shape::Ring(4), &[0, 1, 2, 3]));
        assert!(!verify(&graph, &Shape::Ring(4), &[0, 3, 1, 1]));
        assert!(!verify(&graph, &Shape::Ring(4), &[0, 3, 1, 7]));
        assert!(!verify(&graph, &Shape::Ring(5), &[0, 3, 1, 2]));
        assert!(!verify(&graph, &Shape::Line(4), &[0, 3, 1, 2]));
        assert!(!verify(&graph, &Shape::Star(4), &[0, 3, 1, 2]));
    }
}
