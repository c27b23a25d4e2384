//! Names of Cartesian products by what their factors are: grids, tori, hypercubes, Hamming graphs, and the rest.

use super::Match;
use super::cartesian::Product;
use super::graph::Graph;
use super::shape::{Axis, Shape, strides};

/// One factor of a product: its shape, and for each vertex of the whole its place in the factor.
pub(super) struct Part {
    pub shape: Shape,
    pub places: Vec<u32>,
    /// The neighbour of vertex 0 that is one further along the factor.
    pub next: u32,
}

/// Name of `product`, a factorisation of `graph`; `known` names factors, which are prime.
///
/// Of sizes that are equal, the axis whose neighbour of vertex 0 has the higher number comes first.
pub(super) fn named(
    graph: &Graph,
    product: &Product,
    known: impl Fn(&Graph) -> Option<Match>,
) -> Option<Match> {
    let count = product.factors.len();
    let mut parts = Vec::with_capacity(count);
    for (axis, factor) in product.factors.iter().enumerate() {
        let found = known(factor)?;
        let places: Vec<u32> =
            product.places.chunks(count).map(|row| found.positions[row[axis] as usize]).collect();
        let next = after_first(graph, &places);
        parts.push(Part { shape: found.shape, places, next });
    }
    Some(combined(parts))
}

/// The neighbour of vertex 0 whose place is one higher, around or not.
pub(super) fn after_first(graph: &Graph, places: &[u32]) -> u32 {
    let by_one = |&&next: &&u32| places[next as usize] == places[0] + 1;
    graph.neighbours(0).iter().find(by_one).copied().unwrap_or(0)
}

fn combined(mut parts: Vec<Part>) -> Match {
    let linear = |part: &Part| matches!(part.shape, Shape::Line(_) | Shape::Ring(_));
    let pairs = |part: &Part| part.shape == Shape::Line(2);
    if parts.iter().all(pairs) {
        parts.sort_by_key(|part| std::cmp::Reverse(part.next));
        let bits = parts.len() as u32;
        return flat(parts, |_| Shape::Hypercube(bits));
    }
    if parts.iter().all(linear) {
        // A cycle of 4 is a square: in a torus it is named as what the others are.
        if !parts.iter().any(|part| matches!(part.shape, Shape::Line(size) if size > 2)) {
            parts = with_rings_of_four(parts);
        }
        sort(&mut parts);
        return flat(parts, |parts| Shape::Lattice(parts.iter().map(axis).collect()));
    }
    let complete = |part: &Part| matches!(part.shape, Shape::Line(2) | Shape::Ring(3) | Shape::Complete(_));
    if parts.iter().all(complete) {
        parts.sort_by_key(|part| (std::cmp::Reverse(size(part)), std::cmp::Reverse(part.next)));
        return flat(parts, |parts| Shape::Hamming(parts.iter().map(size).collect()));
    }
    if let [a, b] = &parts[..]
        && let (Shape::Cg { bits, doubled: false }, Shape::Line(2))
        | (Shape::Line(2), Shape::Cg { bits, doubled: false }) = (&a.shape, &b.shape)
    {
        let bits = *bits;
        parts.sort_by_key(pairs);
        return flat(parts, |_| Shape::Cg { bits, doubled: true });
    }
    let (lines, mut others): (Vec<Part>, Vec<Part>) = parts.into_iter().partition(linear);
    others.sort_by(|a, b| a.shape.cmp(&b.shape).then(b.next.cmp(&a.next)));
    if lines.len() == 1 {
        others.extend(lines);
    } else if !lines.is_empty() {
        let lattice = combined(lines);
        others.push(Part { shape: lattice.shape, places: lattice.positions, next: 0 });
    }
    flat(others, |parts| Shape::Product(parts.iter().map(|part| part.shape.clone()).collect()))
}

/// The longest first, of equal ones the periodic, of these that whose neighbour of vertex 0 has the highest number.
pub(super) fn sort(parts: &mut [Part]) {
    let line = |part: &Part| matches!(part.shape, Shape::Line(_));
    parts.sort_by_key(|part| (std::cmp::Reverse(size(part)), line(part), std::cmp::Reverse(part.next)));
}

pub(super) fn size(part: &Part) -> u32 {
    part.shape.vertices().expect("a factor is no larger than its product")
}

pub(super) fn axis(part: &Part) -> Axis {
    Axis { size: size(part), periodic: matches!(part.shape, Shape::Ring(_)) }
}

/// Places in all `parts` as one number, the last fastest, of the shape that `shape` makes of them.
pub(super) fn flat(parts: Vec<Part>, shape: impl FnOnce(&[Part]) -> Shape) -> Match {
    let strides = strides(parts.iter().map(size));
    let mut positions = vec![0; parts[0].places.len()];
    for (part, stride) in parts.iter().zip(strides) {
        for (position, place) in positions.iter_mut().zip(&part.places) {
            *position += place * stride;
        }
    }
    Match { shape: shape(&parts), positions }
}

/// The same factors, with every two pairs as one ring of four; one pair may remain.
fn with_rings_of_four(parts: Vec<Part>) -> Vec<Part> {
    let (mut pairs, mut others): (Vec<Part>, Vec<Part>) =
        parts.into_iter().partition(|part| part.shape == Shape::Line(2));
    // Numbered row by row, the two neighbours in one ring of four follow each other.
    pairs.sort_by_key(|part| part.next);
    let mut pairs = pairs.into_iter();
    while let Some(a) = pairs.next() {
        let Some(b) = pairs.next() else {
            others.push(a);
            break;
        };
        let places = a.places.iter().zip(&b.places).map(|(&a, &b)| ring_of_four(a, b)).collect();
        others.push(Part { shape: Shape::Ring(4), places, next: a.next });
    }
    others
}

/// The corner of a square at `a` and `b`, counted around from (0, 0) by way of (1, 0).
pub(super) fn ring_of_four(a: u32, b: u32) -> u32 {
    a ^ (3 * b)
}
