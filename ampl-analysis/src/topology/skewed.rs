//! Stencils of six points: lattices with one diagonal.

use super::Match;
use super::cartesian::place;
use super::graph::{Graph, Sets};
use super::shape::{Axis, Shape};
use super::simple::simple;
use super::verify::verify;

/// The six-point stencil that the connected `graph` is.
///
/// Two triangles on one edge make a rhombus, and opposite sides of a rhombus are of one direction. There are three
/// directions; two of them, whichever, make a lattice, and the third must then be its diagonal. Where an axis is
/// periodic with fewer than four places there are more triangles, and nothing is found.
pub(super) fn skewed(graph: &Graph) -> Option<Match> {
    if (0..graph.vertices()).any(|vertex| graph.degree(vertex) > 6) {
        return None;
    }
    let numbers = graph.edge_numbers();
    let number = |u: u32, v: u32| {
        let place = graph.neighbours(u).binary_search(&v).expect("an edge of a triangle");
        numbers[graph.row(u)][place]
    };
    let mut sets = Sets::new(graph.edges() as usize);
    for (u, v) in graph.each_edge() {
        let common = |next: &&u32| graph.neighbours(v).contains(next);
        let mut common = graph.neighbours(u).iter().filter(common).copied();
        match (common.next(), common.next(), common.next()) {
            (Some(a), Some(b), None) if !graph.adjacent(a, b) => {
                sets.join(number(u, a), number(v, b));
                sets.join(number(u, b), number(v, a));
            }
            (Some(_), _, None) => {}
            _ => return None,
        }
    }
    let tops: Vec<u32> = (0..graph.edges() as u32).filter(|&edge| sets.find(edge) == edge).take(4).collect();
    let &[a, b, c] = &tops[..] else { return None };
    [(a, b, c), (a, c, b), (b, c, a)].into_iter().find_map(|(x, y, diagonal)| {
        let tops: Vec<u32> = (0..graph.edges() as u32).map(|edge| sets.find(edge)).collect();
        let lattice = graph.filtered(&numbers, |edge| tops[edge as usize] != diagonal);
        let own = lattice.edge_numbers();
        let classes: Vec<u8> =
            lattice.each_edge().map(|(u, v)| u8::from(tops[number(u, v) as usize] == y)).collect();
        debug_assert!(x != y);
        if lattice.distances(&[0]).contains(&u32::MAX) {
            return None;
        }
        let product = place(&lattice, 2, |at| classes[own[at] as usize]).ok()?;
        let factors = [simple(&product.factors[0])?, simple(&product.factors[1])?];
        let axes = factors.each_ref().map(|factor| match factor.shape {
            Shape::Line(size) => Some(Axis { size, periodic: false }),
            Shape::Ring(size) => Some(Axis { size, periodic: true }),
            _ => None,
        });
        let axes = [axes[0]?, axes[1]?];
        let places: Vec<[u32; 2]> = product
            .places
            .chunks(2)
            .map(|place| [0, 1].map(|axis| factors[axis].positions[place[axis] as usize]))
            .collect();
        oriented(graph, axes, &places)
    })
}

/// The longer axis first, and the second turned so that the diagonal leads up and down.
fn oriented(graph: &Graph, axes: [Axis; 2], places: &[[u32; 2]]) -> Option<Match> {
    let swap = (axes[0].size, axes[0].periodic) < (axes[1].size, axes[1].periodic);
    let (first, second) = if swap { (1, 0) } else { (0, 1) };
    let shape = Shape::Skewed([axes[first], axes[second]]);
    let size = axes[second].size;
    [false, true].into_iter().find_map(|turned| {
        let positions: Vec<u32> = places
            .iter()
            .map(|place| {
                let along = match (turned, axes[second].periodic) {
                    (false, _) => place[second],
                    (true, true) => (size - place[second]) % size,
                    (true, false) => size - 1 - place[second],
                };
                place[first] * size + along
            })
            .collect();
        verify(graph, &shape, &positions).then(|| Match { shape: shape.clone(), positions })
    })
}
