//! Stencils whose neighbours differ by at most 1 in every coordinate: strong products of lines and rings.
//!
//! # Source
//! R. Hammack, W. Imrich, *On Cartesian skeletons of graphs*, Ars Math. Contemp. 2 (2009): without the edges that are
//! dispensable, a strong product whose vertices have different closed neighbourhoods is a Cartesian one.

use rustc_hash::FxHashMap;

use super::Match;
use super::cartesian::factorise;
use super::graph::Graph;
use super::lattice::{Part, after_first, axis, flat, ring_of_four, sort};
use super::shape::Shape;
use super::simple::simple;

/// Most neighbours in three dimensions.
const MOST_NEIGHBOURS: u32 = 26;

/// The stencil that the connected `graph` is; a guess that the caller proves.
pub(super) fn moore(graph: &Graph, most: u64) -> Option<Match> {
    if (0..graph.vertices()).any(|vertex| graph.degree(vertex) > MOST_NEIGHBOURS) {
        return None;
    }
    let twins = Twins::of(graph)?;
    // Lines of 2 and rings of 3 are complete: their vertices are twins.
    let complete: &[u32] = match twins.each {
        1 => &[],
        2 => &[2],
        3 => &[3],
        4 => &[2, 2],
        6 => &[3, 2],
        9 => &[3, 3],
        _ => return None,
    };
    let thin = twins.quotient.as_ref().unwrap_or(graph);
    let mut parts = lines(thin, most)?;
    for part in &mut parts {
        if twins.quotient.is_some() {
            part.places = twins.group.iter().map(|&group| part.places[group as usize]).collect();
        }
        part.next = after_first(graph, &part.places);
    }
    let mut stride = 1;
    for &size in complete {
        let places: Vec<u32> = twins.within.iter().map(|&place| place / stride % size).collect();
        let shape = if size == 2 { Shape::Line(2) } else { Shape::Ring(3) };
        let next = after_first(graph, &places);
        parts.push(Part { shape, places, next });
        stride *= size;
    }
    if !(2..=3).contains(&parts.len()) {
        return None;
    }
    sort(&mut parts);
    Some(flat(parts, |parts| Shape::Moore(parts.iter().map(axis).collect())))
}

/// Vertices that have one closed neighbourhood, in groups of equal size.
struct Twins {
    each: u32,
    /// For each vertex its group, and its number within.
    group: Vec<u32>,
    within: Vec<u32>,
    /// The graph of the groups, where there are any of more than one.
    quotient: Option<Graph>,
}

impl Twins {
    /// Groups of `graph`; `None` where they are not of one size.
    fn of(graph: &Graph) -> Option<Self> {
        let vertices = graph.vertices();
        let mut groups: FxHashMap<u64, u32> = FxHashMap::default();
        let mut sizes: Vec<u32> = Vec::new();
        let mut group = Vec::with_capacity(vertices as usize);
        let mut within = Vec::with_capacity(vertices as usize);
        for vertex in 0..vertices {
            let sum = |sum: u64, &next: &u32| sum.wrapping_add(scattered(next));
            let hash = graph.neighbours(vertex).iter().fold(scattered(vertex), sum);
            let own = *groups.entry(hash).or_insert(sizes.len() as u32);
            if own as usize == sizes.len() {
                sizes.push(0);
            }
            group.push(own);
            within.push(sizes[own as usize]);
            sizes[own as usize] += 1;
        }
        let each = *sizes.first()?;
        if sizes.iter().any(|&size| size != each) {
            return None;
        }
        let quotient = (each > 1).then(|| {
            let edges: Vec<(u32, u32)> =
                graph.each_edge().map(|(u, v)| (group[u as usize], group[v as usize])).collect();
            Graph::from_edges(sizes.len() as u32, &edges).expect("a part of a graph is no larger")
        });
        Some(Self { each, group, within, quotient })
    }
}

/// A number with as good as random bits, as that of SplitMix64.
fn scattered(number: u32) -> u64 {
    let mut bits = (u64::from(number) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}

/// The lines and rings that `graph`, without twins, is a strong product of.
fn lines(graph: &Graph, most: u64) -> Option<Vec<Part>> {
    if graph.vertices() == 1 {
        return Some(Vec::new());
    }
    let skeleton = skeleton(graph);
    if skeleton.distances(&[0]).contains(&u32::MAX) {
        return None;
    }
    if let Some(found) = simple(&skeleton) {
        let linear = matches!(found.shape, Shape::Line(_) | Shape::Ring(_));
        return linear.then(|| vec![Part { shape: found.shape, places: found.positions, next: 0 }]);
    }
    let product = factorise(&skeleton, most)?;
    let count = product.factors.len();
    let mut parts = Vec::new();
    let mut pairs = Vec::new();
    for (index, factor) in product.factors.iter().enumerate() {
        let found = simple(factor)?;
        let places: Vec<u32> =
            product.places.chunks(count).map(|row| found.positions[row[index] as usize]).collect();
        match found.shape {
            Shape::Line(2) => pairs.push(places),
            Shape::Line(_) | Shape::Ring(_) => parts.push(Part { shape: found.shape, places, next: 0 }),
            _ => return None,
        }
    }
    // A pair on its own has twins: two are a ring of 4, whose opposite corners are no neighbours.
    while let Some(a) = pairs.pop() {
        let neighbour = |places: &[u32]| {
            skeleton.neighbours(0).iter().copied().find(|&next| places[next as usize] != places[0])
        };
        let from = neighbour(&a)?;
        let other = pairs.iter().position(|b| {
            let apart = |&&end: &&u32| b[end as usize] != b[0];
            skeleton.neighbours(from).iter().find(apart).is_some_and(|&corner| !graph.adjacent(0, corner))
        })?;
        let b = pairs.swap_remove(other);
        let places = a.iter().zip(&b).map(|(&a, &b)| ring_of_four(a, b)).collect();
        parts.push(Part { shape: Shape::Ring(4), places, next: 0 });
    }
    Some(parts)
}

/// `graph` without its dispensable edges; no vertex has more than [`MOST_NEIGHBOURS`].
///
/// An edge x-y is dispensable if there is a z so that, from both ends, z has more of the closed neighbourhood in
/// common than the other end has, or lies between the two by inclusion.
fn skeleton(graph: &Graph) -> Graph {
    // For each end of an edge the z that are so from there: bit 0 the vertex itself, then its neighbours.
    let mut beyond = vec![0_u32; 2 * graph.edges() as usize];
    let mut places = vec![(u32::MAX, 0_u32); graph.vertices() as usize];
    let mut common: Vec<u32> = Vec::new();
    let mark = |places: &mut [(u32, u32)], x: u32| {
        places[x as usize] = (x, 0);
        for (place, &next) in graph.neighbours(x).iter().enumerate() {
            places[next as usize] = (x, place as u32 + 1);
        }
    };
    for x in 0..graph.vertices() {
        mark(&mut places, x);
        let row = graph.neighbours(x);
        let all = u32::MAX >> (31 - row.len());
        common.clear();
        common.push(all);
        common.extend(row.iter().enumerate().map(|(place, &y)| {
            let own = 2 << place;
            graph.neighbours(y).iter().fold(own, |bits, &w| {
                let (from, place) = places[w as usize];
                if from == x { bits | 1 << place } else { bits }
            })
        }));
        let first = graph.row(x).start;
        for (y, &with_y) in common.iter().enumerate().skip(1) {
            let mut bits = 0;
            for (z, &with_z) in common.iter().enumerate().skip(1) {
                let more = with_y != with_z && with_y & with_z == with_y;
                let between = || {
                    let degree = |place: usize| graph.degree(row[place - 1]) as usize;
                    with_y == all && with_z == all && row.len() < degree(z) && degree(z) < degree(y)
                };
                if more || between() {
                    bits |= 1 << z;
                }
            }
            beyond[first + y - 1] = bits;
        }
    }
    let mut kept = Vec::new();
    for x in 0..graph.vertices() {
        mark(&mut places, x);
        for (at, &y) in graph.row(x).zip(graph.neighbours(x)).filter(|&(_, &y)| x < y) {
            let back = graph.neighbours(y).binary_search(&x).expect("an edge has two ends");
            let from_y = beyond[graph.row(y).start + back];
            let both = graph.neighbours(y).iter().enumerate().any(|(place, &z)| {
                let (from, own) = places[z as usize];
                from_y >> (place + 1) & 1 == 1 && from == x && beyond[at] >> own & 1 == 1
            });
            if !both {
                kept.push((x, y));
            }
        }
    }
    Graph::from_edges(graph.vertices(), &kept).expect("a part of a graph is no larger")
}
