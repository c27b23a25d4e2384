//! The choice between a ring of 4 and two pairs, which are the same graph, by what a program's places do.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::identify::Pattern;
use super::shape::{Axis, Shape, strides, unrank};

/// Coordinates of the places on a ring of 4, by two bits of which neighbours differ in one.
const AROUND: [u32; 4] = [0, 1, 3, 2];

const FOUR: Axis = Axis { size: 4, periodic: true };
const TWO: Axis = Axis { size: 2, periodic: false };

/// Reads the rings of 4 and the pairs in `pattern` as `directions` do, each of which is the edges of one partner of a
/// place: where one of them has every edge of two bits, and no other edge, these two are a ring.
///
/// The pattern stays as it is where no direction tells, or two of them differ.
pub(super) fn choose_reading(pattern: &mut Pattern, directions: &[Vec<(u32, u32)>]) {
    let Some(bits) = Bits::of(&pattern.shape) else { return };
    let mut rings: Vec<[usize; 2]> = Vec::new();
    for direction in directions {
        if let Some(ring) = bits.ring(pattern, direction).filter(|ring| !rings.contains(ring)) {
            if rings.iter().flatten().any(|bit| ring.contains(bit)) {
                return;
            }
            rings.push(ring);
        }
    }
    if rings.iter().all(|ring| bits.rings.contains(ring)) {
        return;
    }
    let is_free = |ring: &&[usize; 2]| !rings.iter().flatten().any(|bit| ring.contains(bit));
    let kept: Vec<[usize; 2]> = bits.rings.iter().filter(is_free).copied().collect();
    rings.extend(kept);
    let (shape, position) = bits.read(&rings);
    for copy in &mut pattern.copies {
        copy.positions.iter_mut().for_each(|own| *own = position(*own));
    }
    let before = std::mem::replace(&mut pattern.shape, shape);
    pattern.aliases.retain(|alias| *alias != pattern.shape);
    if before != pattern.shape {
        pattern.aliases.insert(0, before);
    }
}

/// The pattern as it is printed: a torus of fours and at least one two is a hypercube, as a two is no ring.
///
/// `pattern` itself keeps the axes that the program's places or the ranks' numbers follow.
pub fn printed(pattern: &Pattern) -> Cow<'_, Pattern> {
    let axes = pattern.shape.axes();
    let is_cube = matches!(pattern.shape, Shape::Lattice(_))
        && axes.iter().all(|axis| [FOUR, TWO].contains(axis))
        && axes.contains(&FOUR)
        && axes.contains(&TWO);
    let Some(bits) = Bits::of(&pattern.shape).filter(|_| is_cube) else { return Cow::Borrowed(pattern) };
    let mut cube = pattern.clone();
    cube.shape = Shape::Hypercube(bits.count as u32);
    for position in cube.copies.iter_mut().flat_map(|copy| &mut copy.positions) {
        *position = bits.place(*position).0;
    }
    cube.aliases.retain(|alias| *alias != cube.shape);
    cube.aliases.insert(0, pattern.shape.clone());
    Cow::Owned(cube)
}

/// A lattice whose rings of 4 and pairs are taken as bits.
struct Bits {
    axes: Vec<Axis>,
    /// Bits of the axes: none, one or two, the first of them by its number.
    first: Vec<usize>,
    count: usize,
    /// Rings of 4, by their two bits.
    rings: Vec<[usize; 2]>,
}

/// Place of a vertex: its bits, and its coordinates along the other axes.
type Place = (u32, Vec<u32>);

impl Bits {
    /// Bits of `shape`; `None` where it has fewer than two.
    fn of(shape: &Shape) -> Option<Self> {
        let axes = match shape {
            Shape::Lattice(axes) => axes.clone(),
            Shape::Hypercube(_) => shape.axes(),
            _ => return None,
        };
        let (mut first, mut count, mut rings) = (Vec::new(), 0, Vec::new());
        for axis in &axes {
            first.push(count);
            if *axis == FOUR {
                rings.push([count, count + 1]);
            }
            count += bits_of(*axis);
        }
        (2..=31).contains(&count).then_some(Self { axes, first, count, rings })
    }

    fn place(&self, position: u32) -> Place {
        let sizes: Vec<u32> = self.axes.iter().map(|axis| axis.size).collect();
        let (mut word, mut others) = (0, Vec::new());
        for ((&axis, &first), along) in self.axes.iter().zip(&self.first).zip(unrank(position, &sizes)) {
            match bits_of(axis) {
                0 => others.push(along),
                1 => word |= along << first,
                _ => word |= AROUND[along as usize] << first,
            }
        }
        (word, others)
    }

    /// The two bits along which all edges of `direction` go, if these are all edges of both in all copies of `pattern`.
    fn ring(&self, pattern: &Pattern, direction: &[(u32, u32)]) -> Option<[usize; 2]> {
        let mut at: FxHashMap<u32, (usize, u32)> = FxHashMap::default();
        for (number, copy) in pattern.copies.iter().enumerate() {
            at.extend(copy.ranks.iter().zip(&copy.positions).map(|(&rank, &own)| (rank, (number, own))));
        }
        let mut edges = vec![0; self.count];
        for (u, v) in direction {
            let (one, other) = (at.get(u)?, at.get(v)?);
            let ((word, others), (next, beside)) = (self.place(one.1), self.place(other.1));
            let step = word ^ next;
            if one.0 != other.0 || others != beside || step.count_ones() != 1 {
                return None;
            }
            edges[step.trailing_zeros() as usize] += 1;
        }
        let mut met = (0..self.count).filter(|&bit| edges[bit] > 0);
        let ring = [met.next()?, met.next()?];
        let is_whole = ring.iter().all(|&bit| 2 * edges[bit] == at.len());
        (met.next().is_none() && is_whole).then_some(ring)
    }

    /// The lattice that has these `rings`, and the new place of each vertex.
    fn read(&self, rings: &[[usize; 2]]) -> (Shape, impl Fn(u32) -> u32) {
        #[derive(Clone, Copy)]
        enum From {
            Other(usize),
            Ring([usize; 2]),
            Bit(usize),
        }
        let others = self.axes.iter().copied().filter(|&axis| bits_of(axis) == 0);
        let mut axes: Vec<(Axis, From)> =
            others.enumerate().map(|(at, axis)| (axis, From::Other(at))).collect();
        axes.extend(rings.iter().map(|&ring| (FOUR, From::Ring(ring))));
        let is_alone = |bit: &usize| !rings.iter().flatten().any(|other| other == bit);
        axes.extend((0..self.count).filter(is_alone).map(|bit| (TWO, From::Bit(bit))));
        axes.sort_by_key(|(axis, _)| std::cmp::Reverse((axis.size, axis.periodic)));
        let strides = strides(axes.iter().map(|(axis, _)| axis.size));
        let shape = Shape::Lattice(axes.iter().map(|(axis, _)| *axis).collect());
        let position = move |own: u32| {
            let (word, others) = self.place(own);
            let bit = |bit: usize| word >> bit & 1;
            let along = |from: From| match from {
                From::Other(at) => others[at],
                From::Bit(at) => bit(at),
                From::Ring([low, high]) => AROUND[(bit(low) | bit(high) << 1) as usize],
            };
            axes.iter().zip(&strides).map(|(&(_, from), stride)| along(from) * stride).sum()
        };
        (shape, position)
    }
}

fn bits_of(axis: Axis) -> usize {
    match axis {
        FOUR => 2,
        _ if axis.size == 2 => 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{Graph, Options, identify, verify};

    /// Pattern of `shape`, its vertices renumbered by `step`, when the edges along each of its axes are a direction; and
    /// those directions with the coordinates that they should have.
    fn read(shape: &Shape, step: u32) -> (Pattern, Vec<Vec<(u32, u32)>>) {
        let vertices = shape.vertices().unwrap();
        let number = |vertex: u32| vertex * step % vertices;
        let mut directions = vec![Vec::new(); shape.axes().len()];
        for (u, v) in shape.graph().unwrap().each_edge() {
            let (from, to) = (shape.coordinates(u), shape.coordinates(v));
            let axis = (0..from.len()).find(|&axis| from[axis] != to[axis]).unwrap();
            directions[axis].push((number(u).min(number(v)), number(u).max(number(v))));
        }
        let graph = Graph::from_edges(vertices, &directions.concat()).unwrap();
        let mut pattern = identify(&graph, &Options::default()).patterns.remove(0);
        choose_reading(&mut pattern, &directions);
        assert!(verify(&graph, &pattern.shape, &pattern.copies[0].positions));
        (pattern, directions)
    }

    #[test]
    fn places_tell_a_ring_of_four_from_two_pairs() {
        let ring = |size| Axis { size, periodic: true };
        for axes in [
            vec![ring(4), ring(4)],
            vec![ring(4), ring(4), ring(4)],
            vec![ring(4), TWO, TWO],
            vec![ring(5), ring(4), TWO],
        ] {
            let shape = Shape::Lattice(axes.clone());
            for step in [1, 3, 7, 11, 13] {
                let (pattern, directions) = read(&shape, step);
                assert_eq!(pattern.shape, shape, "{step}");
                assert!(!pattern.aliases.contains(&shape), "{:?}", pattern.aliases);
                // Each direction is along one axis of the coordinates that are told, too.
                let copy = &pattern.copies[0];
                let at = |rank: u32| {
                    let place = copy.ranks.iter().position(|&own| own == rank).unwrap();
                    shape.coordinates(copy.positions[place])
                };
                for direction in directions {
                    let axis = |&(u, v): &(u32, u32)| {
                        let (from, to) = (at(u), at(v));
                        (0..from.len()).find(|&axis| from[axis] != to[axis]).unwrap()
                    };
                    assert!(direction.iter().all(|edge| axis(edge) == axis(&direction[0])), "{step}");
                }
            }
        }
        let cube = Shape::Hypercube(4);
        assert_eq!(read(&cube, 1).0.shape, cube);
        assert_eq!(read(&cube, 7).0.shape, cube);
    }

    #[test]
    fn a_torus_of_fours_and_a_two_is_printed_as_a_hypercube() {
        let ring = |size| Axis { size, periodic: true };
        let line = |size| Axis { size, periodic: false };
        for (axes, bits) in [
            (vec![ring(4), TWO], Some(3)),
            (vec![ring(4), TWO, TWO], Some(4)),
            (vec![ring(4), ring(4), TWO], Some(5)),
            (vec![ring(4), ring(4)], None),
            (vec![line(4), TWO], None),
            (vec![ring(5), ring(4), TWO], None),
        ] {
            let shape = Shape::Lattice(axes.clone());
            for step in [1, 3, 7, 11, 13] {
                let (pattern, directions) = read(&shape, step);
                let printed = printed(&pattern);
                let Some(bits) = bits else {
                    assert!(matches!(printed, Cow::Borrowed(_)), "{axes:?}");
                    continue;
                };
                assert_eq!((&printed.shape, &printed.aliases[0]), (&Shape::Hypercube(bits), &shape));
                assert!(!printed.aliases.contains(&printed.shape));
                let graph = Graph::from_edges(1 << bits, &directions.concat()).unwrap();
                assert!(verify(&graph, &printed.shape, &printed.copies[0].positions));
            }
        }
    }

    #[test]
    fn directions_that_differ_tell_nothing() {
        let cube = Shape::Hypercube(3);
        let mut pattern = identify(&cube.graph().unwrap(), &Options::default()).patterns.remove(0);
        let along = |bits: [u32; 2]| {
            let edges = cube.graph().unwrap();
            edges.each_edge().filter(|&(u, v)| bits.contains(&(u ^ v).trailing_zeros())).collect::<Vec<_>>()
        };
        let named = pattern.shape.clone();
        choose_reading(&mut pattern, &[along([0, 1]), along([1, 2])]);
        assert_eq!(pattern.shape, named);
        // Half of the edges of a ring are no ring.
        let mut some = along([0, 1]);
        some.pop();
        choose_reading(&mut pattern, &[some]);
        assert_eq!(pattern.shape, named);
        choose_reading(&mut pattern, &[along([0, 1])]);
        assert_eq!(pattern.shape, Shape::Lattice(vec![FOUR, TWO]));
    }
}
