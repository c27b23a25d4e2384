//! Shapes with given numbers of vertices and edges, for small graphs.

use super::graph::Graph;
use super::refine::isomorphism;
use super::shape::{Axis, Parent, Shape};

/// Largest graph that is compared with all shapes of its size.
pub(super) const SMALL: u32 = 64;

/// Every shape that a graph of so many `vertices` may be, at most [`SMALL`], the plainest first.
fn shapes(vertices: u32) -> Vec<Shape> {
    let mut shapes = vec![Shape::Line(vertices)];
    if vertices >= 3 {
        shapes.push(Shape::Ring(vertices));
    }
    shapes.extend([Shape::Complete(vertices), Shape::Star(vertices)]);
    shapes.extend((1..=vertices / 2).map(|side| Shape::CompleteBipartite(side, vertices - side)));
    if vertices.is_power_of_two() {
        shapes.push(Shape::Hypercube(vertices.ilog2()));
    }
    for sizes in factorisations(vertices, vertices) {
        let lattices = axes(&sizes, 3);
        match &sizes[..] {
            [_] => {}
            &[a, b] => {
                shapes.extend(lattices.iter().map(|axes| Shape::Moore(axes.clone())));
                shapes.extend(axes(&[a, b], 2).iter().map(|axes| Shape::Skewed([axes[0], axes[1]])));
            }
            [_, _, _] => shapes.extend(lattices.iter().map(|axes| Shape::Moore(axes.clone()))),
            _ => {}
        }
        if sizes.len() > 1 {
            shapes.extend(lattices.into_iter().map(Shape::Lattice));
            // With threes and twos alone it is a lattice.
            if sizes[0] > 3 {
                shapes.push(Shape::Hamming(sizes));
            }
        }
    }
    shapes.extend((2..vertices).map(|arity| Shape::Tree { vertices, arity }));
    shapes.push(Shape::BinomialTree { vertices, parent: Parent::WithoutLowestBit });
    if !vertices.is_power_of_two() {
        shapes.push(Shape::BinomialTree { vertices, parent: Parent::WithoutHighestBit });
    }
    shapes.extend((2..5).map(Shape::Butterfly));
    let cg = |bits| [false, true].map(|doubled| Shape::Cg { bits, doubled });
    shapes.extend([1, 2, 3].into_iter().flat_map(cg));
    shapes.retain(|shape| shape.vertices() == Some(vertices));
    shapes
}

/// Factors from 2 with that product, in descending order, none above `most`.
fn factorisations(product: u32, most: u32) -> Vec<Vec<u32>> {
    if product == 1 {
        return vec![Vec::new()];
    }
    (2..=most.min(product))
        .rev()
        .filter(|first| product.is_multiple_of(*first))
        .flat_map(|first| {
            let rest = factorisations(product / first, first);
            rest.into_iter().map(move |rest| [&[first][..], &rest].concat())
        })
        .collect()
}

/// Axes of those sizes, periodic in every way that makes a difference from `least` places on.
fn axes(sizes: &[u32], least: u32) -> Vec<Vec<Axis>> {
    let mut all: Vec<Vec<Axis>> = vec![Vec::new()];
    for &size in sizes {
        let ways = if size >= least { &[true, false][..] } else { &[false] };
        all = all
            .iter()
            .flat_map(|axes| ways.iter().map(|&periodic| [&axes[..], &[Axis { size, periodic }]].concat()))
            .collect();
    }
    // Of equal sizes the periodic come first.
    all.retain(|axes| {
        axes.windows(2).all(|pair| pair[0].size != pair[1].size || pair[0].periodic >= pair[1].periodic)
    });
    all
}

/// Shapes that the small and connected `graph` is, with a vertex of the shape for each vertex; what takes more than `steps` is not
/// found.
pub(super) fn all(graph: &Graph, mut steps: u64) -> Vec<(Shape, Vec<u32>)> {
    if graph.vertices() > SMALL || graph.vertices() < 2 {
        return Vec::new();
    }
    let own = surroundings(graph);
    shapes(graph.vertices())
        .into_iter()
        .filter_map(|shape| {
            let other = shape.graph()?;
            if other.edges() != graph.edges() || surroundings(&other) != own {
                return None;
            }
            Some((shape, isomorphism(graph, &other, &mut steps)?))
        })
        .collect()
}

/// For every vertex, how many vertices are how far, and how many edges join them to those as far; sorted.
///
/// Equal for graphs that are isomorphic, and different for nearly all others: a search by trial has little to try.
fn surroundings(graph: &Graph) -> Vec<Vec<(u32, u32)>> {
    let around = |vertex: u32| {
        let distances = graph.distances(&[vertex]);
        let mut levels = vec![(0, 0); distances.len()];
        for other in 0..graph.vertices() {
            let distance = distances[other as usize];
            let level = &mut levels[distance as usize];
            let beside = graph.neighbours(other).iter().filter(|&&next| distances[next as usize] == distance);
            *level = (level.0 + 1, level.1 + beside.count() as u32);
        }
        levels
    };
    let mut all: Vec<Vec<(u32, u32)>> = (0..graph.vertices()).map(around).collect();
    all.sort_unstable();
    all
}

/// Six-point stencils that lie around in so few places that their triangles do not tell directions apart.
pub(super) fn narrow(graph: &Graph, steps: &mut u64) -> Option<(Shape, Vec<u32>)> {
    let vertices = graph.vertices();
    let most = (0..vertices).map(|vertex| graph.degree(vertex)).max()?;
    let widths =
        [2, 3].into_iter().filter(|width| vertices.is_multiple_of(*width) && vertices / width >= *width);
    let pairs = widths.flat_map(|width| axes(&[vertices / width, width], 2));
    let periodic = pairs.filter(|axes| axes[1].periodic);
    periodic.filter(|_| (4..=6).contains(&most)).find_map(|axes| {
        let shape = Shape::Skewed([axes[0], axes[1]]);
        let positions = isomorphism(graph, &shape.graph()?, steps)?;
        Some((shape, positions))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shapes_have_all_their_names() {
        let names = |shape: Shape| -> Vec<Shape> {
            all(&shape.graph().unwrap(), 10_000_000).into_iter().map(|(shape, _)| shape).collect()
        };
        let axis = |size, periodic| Axis { size, periodic };
        let square = names(Shape::Ring(4));
        let two = axis(2, false);
        for shape in [Shape::CompleteBipartite(2, 2), Shape::Hypercube(2), Shape::Lattice(vec![two, two])] {
            assert!(square.contains(&shape), "{shape:?}");
        }
        assert!(names(Shape::Hypercube(3)).contains(&Shape::Lattice(vec![axis(4, true), two])));
        let skewed = names(Shape::Skewed([axis(3, true), axis(3, true)]));
        assert!(skewed.contains(&Shape::Skewed([axis(3, true), axis(3, true)])));
        let cg = names(Shape::Cg { bits: 1, doubled: true });
        assert!(cg.contains(&Shape::Lattice(vec![axis(4, false), two])));
        assert_eq!(factorisations(12, 12), [vec![12], vec![6, 2], vec![4, 3], vec![3, 2, 2]]);
    }
}
