//! Placements from the coordinates of a verified lattice.

use super::crossing;
use crate::topology::{Found, Shape, WeightedEdge};

/// Most divisions of a node's ranks into sides of a box that are tried.
const MOST_BOXES: usize = 2000;

/// The lattice that is all of what was found on all ranks: its sizes, and the coordinates of each rank.
fn lattice(found: &Found, ranks: usize) -> Option<(Vec<u32>, Vec<Vec<u32>>)> {
    let [pattern] = &found.topology.patterns[..] else { return None };
    let [copy] = &pattern.copies[..] else { return None };
    use Shape::{Hypercube, Lattice, Line, Moore, Ring, Skewed};
    let fits = matches!(pattern.shape, Lattice(_) | Line(_) | Ring(_) | Hypercube(_) | Moore(_) | Skewed(_));
    if !fits || copy.ranks.len() != ranks {
        return None;
    }
    let coordinates = copy.positions.iter().map(|&position| pattern.shape.coordinates(position)).collect();
    Some((pattern.shape.axes().iter().map(|axis| axis.size).collect(), coordinates))
}

/// Boxes of equal sides, one for each node: the cheapest sides that divide the lattice; `None` where there are none.
pub fn boxes(found: &Found, edges: &[WeightedEdge], sizes: &[u32], given: &[u32]) -> Option<Vec<u32>> {
    let (axes, coordinates) = lattice(found, given.len())?;
    let each = *sizes.first()?;
    if sizes.iter().any(|&size| size != each) {
        return None;
    }
    let mut sides: Vec<(u32, Vec<u32>)> = vec![(each, Vec::new())];
    for &axis in &axes {
        let longer = sides.iter().flat_map(|(left, sides)| {
            let fits = move |side: &u32| left.is_multiple_of(*side) && axis.is_multiple_of(*side);
            let of = move |side: u32| (left / side, [&sides[..], &[side]].concat());
            (1..=axis.min(*left)).filter(fits).map(of).collect::<Vec<_>>()
        });
        sides = longer.take(MOST_BOXES).collect();
    }
    let placed = |sides: &[u32]| -> Vec<u32> {
        let node = |place: &Vec<u32>| {
            let parts = place.iter().zip(sides).zip(&axes);
            parts.fold(0, |node, ((&at, &side), &axis)| node * (axis / side) + at / side)
        };
        coordinates.iter().map(node).collect()
    };
    let whole = sides.iter().filter(|(left, _)| *left == 1).map(|(_, sides)| placed(sides));
    let cost = |nodes: &Vec<u32>| {
        let crossing = crossing(edges, nodes);
        (crossing.bytes, crossing.messages)
    };
    let costed = whole.map(|nodes| (cost(&nodes), nodes));
    costed.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))).map(|(_, nodes)| nodes)
}

/// The lattice in halves along its longest side, and these in halves, down to the nodes.
pub fn halves(found: &Found, sizes: &[u32], ranks: usize) -> Option<Vec<u32>> {
    let (_, coordinates) = lattice(found, ranks)?;
    let mut nodes = vec![0; ranks];
    let mut open = vec![((0..ranks as u32).collect::<Vec<u32>>(), 0..sizes.len())];
    while let Some((mut members, span)) = open.pop() {
        if span.len() <= 1 {
            members.iter().for_each(|&rank| nodes[rank as usize] = span.start as u32);
            continue;
        }
        let middle = span.start + span.len() / 2;
        let first: u32 = sizes[span.start..middle].iter().sum();
        let extent = |axis: usize| {
            let along = members.iter().map(|&rank| coordinates[rank as usize][axis]);
            along.clone().max().unwrap_or(0) - along.min().unwrap_or(0)
        };
        let axes = coordinates.first().map_or(0, Vec::len);
        let longest = (0..axes).max_by_key(|&axis| (extent(axis), std::cmp::Reverse(axis)))?;
        members.sort_by_key(|&rank| {
            let place = &coordinates[rank as usize];
            (place[longest], place.clone())
        });
        let rest = members.split_off((first as usize).min(members.len()));
        open.push((members, span.start..middle));
        open.push((rest, middle..span.end));
    }
    Some(nodes)
}
