//! Names of one graph: which of several is said, and which others there are.

use super::Match;
use super::catalogue;
use super::graph::{Component, Graph};
use super::identify::{Pattern, Placed};
use super::shape::{Axis, Definition, Shape, strides, unrank};
use super::verify::verify;

/// Most steps of the search for aliases of a small graph.
const STEPS: u64 = 20_000_000;

/// Other shapes that `graph`, which is `shape`, is as well: all of them of a small graph, and at any size those that
/// take rings of 4 for squares.
pub(super) fn aliases(graph: &Graph, shape: &Shape) -> Vec<Shape> {
    let mut aliases: Vec<Shape> = catalogue::all(graph, STEPS).into_iter().map(|(alias, _)| alias).collect();
    aliases.extend(readings(shape));
    let mut seen = std::collections::BTreeSet::from([shape.clone()]);
    aliases.retain(|alias| seen.insert(alias.clone()));
    aliases
}

/// Lattices that are the same graph as `shape`, by how many of its pairs of twos are rings of 4; and the stencil of six
/// points that is one of eight, since around two places both diagonals lead to the same.
fn readings(shape: &Shape) -> Vec<Shape> {
    let axes = match shape {
        Shape::Moore(axes) => {
            return match axes[..] {
                [long, Axis { size: 2, .. }] => {
                    vec![Shape::Skewed([long, Axis { size: 2, periodic: true }])]
                }
                _ => Vec::new(),
            };
        }
        Shape::Lattice(axes) => axes.clone(),
        Shape::Hypercube(bits) => vec![Axis { size: 2, periodic: false }; *bits as usize],
        _ => return Vec::new(),
    };
    let four = Axis { size: 4, periodic: true };
    let twos =
        axes.iter().map(|&axis| if axis == four { 2 } else { usize::from(axis.size == 2) }).sum::<usize>();
    let others: Vec<Axis> = axes.into_iter().filter(|&axis| axis.size != 2 && axis != four).collect();
    let reading = |fours: usize| {
        let mut axes = others.clone();
        axes.extend(std::iter::repeat_n(four, fours));
        axes.extend(std::iter::repeat_n(Axis { size: 2, periodic: false }, twos - 2 * fours));
        axes.sort_by_key(|axis| std::cmp::Reverse((axis.size, axis.periodic)));
        axes
    };
    let mut readings: Vec<Shape> = (0..=twos / 2).rev().map(|fours| Shape::Lattice(reading(fours))).collect();
    if others.is_empty() {
        readings.push(Shape::Hypercube(twos as u32));
    }
    readings
}

/// A reading of the lattice or stencil `found` that the ranks themselves follow, row by row in some order of the axes.
pub(super) fn natural(component: &Component, found: &Match) -> Option<Match> {
    if let Shape::Skewed(axes) = found.shape {
        return skewed(component, axes);
    }
    let all = readings(&found.shape);
    if all.len() < 2 {
        return None;
    }
    let places = places(component);
    // Vertex 0 is of the least rank. What its neighbours do not fit needs no closer look.
    let mut around: Vec<u32> =
        component.graph.neighbours(0).iter().map(|&next| places[next as usize]).collect();
    around.sort_unstable();
    let fits = |shape: &Shape| {
        let mut expected = Vec::new();
        Definition::of(shape).neighbours(0, &mut expected);
        expected.sort_unstable();
        expected == around && verify(&component.graph, shape, &places)
    };
    // What was found goes first, so that it stays where it fits as well as another.
    let found_first = std::iter::once(&found.shape).chain(all.iter().filter(|&shape| *shape != found.shape));
    for shape in found_first {
        let axes = shape.axes();
        for order in orders(&axes) {
            let permuted: Vec<Axis> = order.iter().map(|&axis| axes[axis]).collect();
            if !fits(&Shape::Lattice(permuted.clone())) {
                continue;
            }
            let sizes: Vec<u32> = permuted.iter().map(|axis| axis.size).collect();
            let own = strides(axes.iter().map(|axis| axis.size));
            let position = |&place: &u32| -> u32 {
                unrank(place, &sizes).iter().zip(&order).map(|(along, &axis)| along * own[axis]).sum()
            };
            let positions = places.iter().map(position).collect();
            return Some(Match { shape: shape.clone(), positions });
        }
    }
    None
}

/// Gives `pattern` the reading that the ranks of each copy follow, where it is the same for all; `naturals` has those of
/// its copies.
pub(super) fn follow(pattern: &mut Pattern, naturals: Vec<Option<(Shape, Placed)>>) {
    let Some(naturals) = naturals.into_iter().collect::<Option<Vec<_>>>() else { return };
    let Some(shape) = naturals.first().map(|(shape, _)| shape.clone()) else { return };
    if naturals.iter().any(|(other, _)| *other != shape) {
        return;
    }
    pattern.copies = naturals.into_iter().map(|(_, placed)| placed).collect();
    if shape != pattern.shape {
        pattern.aliases.retain(|alias| *alias != shape);
        pattern.aliases.insert(0, std::mem::replace(&mut pattern.shape, shape));
    }
}

/// Names a pattern of rings of 4 by squares, where the ranks of all copies are numbered row by row.
pub(super) fn squares(pattern: &mut Pattern) {
    // The first and the last of a square's ranks are opposite, and so are the others.
    let is_square = |copy: &Placed| (copy.positions[0] + 2) % 4 == copy.positions[3];
    if pattern.shape != Shape::Ring(4) || !pattern.copies.iter().all(is_square) {
        return;
    }
    let square = Shape::Lattice(vec![Axis { size: 2, periodic: false }; 2]);
    let ring = std::mem::replace(&mut pattern.shape, square.clone());
    pattern.aliases.retain(|alias| *alias != square);
    pattern.aliases.push(ring);
    pattern.copies.iter_mut().for_each(|copy| copy.positions = (0..4).collect());
}

/// Place of each vertex among the ranks of its component.
fn places(component: &Component) -> Vec<u32> {
    let mut sorted: Vec<u32> = (0..component.ranks.len() as u32).collect();
    sorted.sort_unstable_by_key(|&vertex| component.ranks[vertex as usize]);
    let mut places = vec![0; sorted.len()];
    for (place, &vertex) in sorted.iter().enumerate() {
        places[vertex as usize] = place as u32;
    }
    places
}

/// Coordinates that the ranks themselves follow, row by row along either axis, with diagonals of either direction.
fn skewed(component: &Component, axes: [Axis; 2]) -> Option<Match> {
    let (places, shape) = (places(component), Shape::Skewed(axes));
    let [p, q] = axes.map(|axis| axis.size);
    for (by_columns, mirrored) in [(false, false), (true, false), (false, true), (true, true)] {
        let position = |&place: &u32| {
            let (x, y) = if by_columns { (place % p, place / p) } else { (place / q, place % q) };
            x * q + if mirrored { q - 1 - y } else { y }
        };
        let positions: Vec<u32> = places.iter().map(position).collect();
        if verify(&component.graph, &shape, &positions) {
            return Some(Match { shape, positions });
        }
    }
    None
}

/// Orders of `axes` that differ; the given one first, and no more than some hundred.
fn orders(axes: &[Axis]) -> Vec<Vec<usize>> {
    const MOST: usize = 200;
    let mut orders: Vec<Vec<usize>> = vec![Vec::new()];
    for _ in 0..axes.len() {
        let longer = orders.iter().flat_map(|order| {
            // Of equal axes that are left, the first stands for all.
            let left: Vec<usize> = (0..axes.len()).filter(|axis| !order.contains(axis)).collect();
            let fresh = left
                .iter()
                .enumerate()
                .filter(|&(at, &axis)| left[..at].iter().all(|&before| axes[before] != axes[axis]));
            fresh.map(|(_, &axis)| [&order[..], &[axis]].concat()).collect::<Vec<_>>()
        });
        orders = longer.take(MOST).collect();
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Options, identify};

    #[test]
    fn rings_of_four_are_squares() {
        let axis = |size, periodic| Axis { size, periodic };
        let readings = readings(&Shape::Hypercube(4));
        assert_eq!(readings.len(), 4);
        assert!(readings.contains(&Shape::Lattice(vec![axis(4, true), axis(4, true)])));
        assert_eq!(super::readings(&Shape::Lattice(vec![axis(5, true), axis(4, true)])).len(), 2);
        assert_eq!(super::readings(&Shape::Lattice(vec![axis(5, true), axis(3, true)])).len(), 1);
    }

    #[test]
    fn four_ranks_are_a_square_where_they_are_numbered_row_by_row() {
        let named = |ranks: u32, edges: &[(u32, u32)]| {
            let graph = Graph::from_edges(ranks, edges).unwrap();
            let topology = identify(&graph, &Options::default());
            let pattern = &topology.patterns[0];
            (pattern.shape.clone(), pattern.aliases.clone(), pattern.copies[0].positions.clone())
        };
        let square = Shape::Lattice(vec![Axis { size: 2, periodic: false }; 2]);
        let (shape, aliases, positions) = named(6, &[(1, 2), (4, 5), (1, 4), (2, 5)]);
        assert_eq!((shape, positions), (square.clone(), vec![0, 1, 2, 3]));
        assert!(aliases.contains(&Shape::Ring(4)) && !aliases.contains(&square), "{aliases:?}");
        let (shape, aliases, positions) = named(6, &[(1, 2), (2, 4), (4, 5), (1, 5)]);
        assert_eq!((shape, positions), (Shape::Ring(4), vec![0, 1, 2, 3]));
        assert!(aliases.contains(&square), "{aliases:?}");
        // Copies have one name.
        let both = [(0, 1), (2, 3), (0, 2), (1, 3), (4, 5), (5, 6), (6, 7), (4, 7)];
        assert_eq!(named(8, &both).0, Shape::Ring(4));
    }

    /// Copies of a cube of which one alone is numbered row by row as a torus are one pattern.
    #[test]
    fn copies_have_one_reading() {
        let shape = Shape::Lattice(vec![Axis { size: 4, periodic: true }, Axis { size: 2, periodic: false }]);
        let torus: Vec<(u32, u32)> = shape.graph().unwrap().each_edge().collect();
        let shuffled = |vertex: u32| [3, 6, 0, 5, 1, 7, 4, 2][vertex as usize];
        let copies = |numbers: &[&dyn Fn(u32) -> u32]| {
            let edges: Vec<(u32, u32)> = (0..)
                .zip(numbers)
                .flat_map(|(at, number)| {
                    torus.iter().map(move |&(u, v)| (8 * at + number(u), 8 * at + number(v)))
                })
                .collect();
            let graph = Graph::from_edges(8 * numbers.len() as u32, &edges).unwrap();
            let patterns = identify(&graph, &Options::default()).patterns;
            patterns.iter().map(|of| (of.shape.clone(), of.copies.len())).collect::<Vec<_>>()
        };
        assert_eq!(copies(&[&|vertex| vertex, &|vertex| vertex]), [(shape.clone(), 2)]);
        assert_eq!(copies(&[&|vertex| vertex, &shuffled]), [(Shape::Hypercube(3), 2)]);
    }

    #[test]
    fn stencils_follow_the_numbers_of_their_ranks() {
        let axis = |size| Axis { size, periodic: true };
        for (p, q) in [(5, 4), (4, 7)] {
            let shape = Shape::Skewed([axis(p), axis(q)]);
            // Numbered by columns, backwards along the last axis.
            let number = |vertex: u32| (q - 1 - vertex % q) * p + vertex / q;
            let edges: Vec<(u32, u32)> =
                shape.graph().unwrap().each_edge().map(|(u, v)| (number(u), number(v))).collect();
            let graph = Graph::from_edges(p * q, &edges).unwrap();
            let component = graph.components().pop().unwrap();
            let found = skewed(&component, [axis(p), axis(q)]).unwrap();
            assert!(verify(&component.graph, &shape, &found.positions));
            // A step along an axis is the same difference of numbers for all ranks, but at the ends.
            let at =
                |rank: u32| found.positions[component.ranks.iter().position(|&own| own == rank).unwrap()];
            assert!(
                (0..p - 1).all(|x| (at(x) / q).abs_diff(at(x + 1) / q) == 1 && at(x) % q == at(x + 1) % q)
            );
        }
    }

    #[test]
    fn orders_of_equal_axes_are_one() {
        let axis = |size| Axis { size, periodic: true };
        assert_eq!(orders(&[axis(3), axis(3), axis(3)]), [[0, 1, 2]]);
        assert_eq!(orders(&[axis(4), axis(3), axis(3)]), [[0, 1, 2], [1, 0, 2], [1, 2, 0]]);
        assert_eq!(orders(&[axis(4), axis(3), axis(2)]).len(), 6);
        assert!(orders(&(2..12).map(axis).collect::<Vec<_>>()).len() <= 200);
    }
}
