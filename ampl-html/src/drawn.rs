//! The communication topology as a drawing: places of ranks, and the messages between them.

use ampl_analysis::messages::Messages;
use ampl_analysis::topology::{Found, Options, Pattern, Placed, Shape, patterns, printed};

use ampl_report::human::percent;
use ampl_report::topology::describe;
use serde::Serialize;

/// Most patterns.
const PATTERNS: usize = 4;
/// Most ranks of a drawing.
const RANKS: usize = 256;
/// Most ranks and pairs of a job whose topology is searched: a report must not take minutes.
const SEARCHED: usize = 1 << 16;

/// One pattern of messages.
#[derive(Debug, Serialize)]
pub struct Drawing {
    /// The pattern in words.
    pub name: String,
    /// Its share of the bytes of all messages.
    pub about: String,
    /// Rank, and its place: from 0 to 1 to the right and downwards.
    pub places: Vec<(u32, f64, f64)>,
    /// Pairs: number of each place, share of the greatest volume of a pair.
    pub pairs: Vec<(usize, usize, f64)>,
}

/// Drawings of `messages` of a job of `ranks`, most bytes first.
pub fn drawings(messages: &Messages, ranks: u32) -> Vec<Drawing> {
    let few = Options { steps: 3_000_000, products: 3_000_000, ..Options::default() };
    if ranks as usize > SEARCHED || messages.matrix().len() > SEARCHED {
        return Vec::new();
    }
    let found = patterns(messages, &few).unwrap_or_default();
    let all: f64 = found.iter().map(volume).sum();
    let drawn = found.iter().flat_map(|found| {
        let share = format!("{} of the bytes of messages", percent(volume(found) / all.max(1.0)));
        let proved = found.topology.patterns.iter().filter_map({
            let share = share.clone();
            move |pattern| of_pattern(found, pattern, &share)
        });
        let unknown = found.topology.unknown.iter().filter_map(move |ranks| of_unknown(found, ranks, &share));
        proved.chain(unknown).collect::<Vec<_>>()
    });
    drawn.take(PATTERNS).collect()
}

fn volume(found: &Found) -> f64 {
    found.edges.iter().map(|edge| edge.2.bytes).sum()
}

/// The first copy of a pattern that was proved.
fn of_pattern(found: &Found, pattern: &Pattern, share: &str) -> Option<Drawing> {
    let copy = pattern.copies.first().filter(|copy| copy.ranks.len() <= RANKS)?;
    let copies = match pattern.copies.len() {
        1 => String::new(),
        many => format!("{many} copies of "),
    };
    let more = if pattern.copies.len() > 1 { "; the first copy is drawn" } else { "" };
    let places = places(&pattern.shape, copy);
    let name = format!("{copies}{}", describe(&printed(pattern).shape));
    let about = format!("{share}; proved: every rank's neighbours are those of the definition{more}");
    Some(drawing(name, about, places, found))
}

/// Ranks whose messages follow none of the shapes.
fn of_unknown(found: &Found, ranks: &[u32], share: &str) -> Option<Drawing> {
    let places = ranks.iter().enumerate().map(|(at, &rank)| on_circle(rank, at as f64 / ranks.len() as f64));
    let about = format!("{share}; none of the known topologies, ranks in their order on a circle");
    (ranks.len() <= RANKS).then(|| drawing("no known topology".into(), about, places.collect(), found))
}

fn drawing(name: String, about: String, places: Vec<(u32, f64, f64)>, found: &Found) -> Drawing {
    let place = |rank: u32| places.iter().position(|of| of.0 == rank);
    let own = |edge: &&(u32, u32, _)| place(edge.0).is_some() && place(edge.1).is_some();
    let weight = |edge: &(u32, u32, ampl_analysis::topology::Weight)| edge.2.bytes.max(edge.2.messages);
    let most = found.edges.iter().filter(own).map(weight).fold(0.0, f64::max).max(1e-300);
    let pair = |edge: &(u32, u32, _)| {
        let share = (1e3 * weight(edge) / most).round() / 1e3;
        Some((place(edge.0)?, place(edge.1)?, share))
    };
    let pairs = found.edges.iter().filter_map(pair).collect();
    Drawing { name, about, places, pairs }
}

fn on_circle(rank: u32, turn: f64) -> (u32, f64, f64) {
    let angle = std::f64::consts::TAU * turn;
    (rank, rounded(0.5 + 0.5 * angle.sin()), rounded(0.5 - 0.5 * angle.cos()))
}

fn rounded(place: f64) -> f64 {
    (place * 1e4).round() / 1e4
}

/// Places of the ranks of `copy`: on a circle, in the cells of a grid of up to three axes, or level by level.
fn places(shape: &Shape, copy: &Placed) -> Vec<(u32, f64, f64)> {
    let ranks = || copy.ranks.iter().copied().zip(copy.positions.iter().copied());
    let count = copy.ranks.len().max(1) as f64;
    let circle = || ranks().map(|(rank, at)| on_circle(rank, f64::from(at) / count)).collect();
    match shape {
        Shape::Ring(_) | Shape::Complete(_) => circle(),
        Shape::Star(_) => {
            let place = |(rank, at): (u32, u32)| match at {
                0 => (rank, 0.5, 0.5),
                _ => on_circle(rank, f64::from(at - 1) / (count - 1.0)),
            };
            ranks().map(place).collect()
        }
        Shape::Tree { arity, .. } => {
            let parent = |at: u32| (at - 1) / arity.max(&1);
            levels(ranks().collect(), &parent)
        }
        Shape::BinomialTree { .. } => levels(ranks().collect(), &|at| at & (at - 1)),
        _ => {
            let places: Vec<(u32, Vec<u32>)> =
                ranks().map(|(rank, at)| (rank, shape.coordinates(at))).collect();
            match places.first().map_or(0, |of| of.1.len()) {
                1..=3 => cells(&places),
                _ => circle(),
            }
        }
    }
}

/// Cells of a grid: the last axis to the right, the one before it downwards, a third one slanting.
fn cells(places: &[(u32, Vec<u32>)]) -> Vec<(u32, f64, f64)> {
    let flat = |of: &[u32]| match of {
        [x] => (f64::from(*x), 0.0),
        [y, x] => (f64::from(*x), f64::from(*y)),
        [z, y, x] => (f64::from(*x) + 0.34 * f64::from(*z), f64::from(*y) - 0.38 * f64::from(*z)),
        _ => (0.0, 0.0),
    };
    let all: Vec<(u32, (f64, f64))> = places.iter().map(|(rank, of)| (*rank, flat(of))).collect();
    let limits = |of: fn(&(f64, f64)) -> f64| {
        let values = || all.iter().map(|place| of(&place.1));
        (values().fold(f64::MAX, f64::min), values().fold(f64::MIN, f64::max))
    };
    let (x, y) = (limits(|of| of.0), limits(|of| of.1));
    let within = |value: f64, (least, most): (f64, f64)| match most > least {
        true => rounded((value - least) / (most - least)),
        false => 0.5,
    };
    all.iter().map(|(rank, of)| (*rank, within(of.0, x), within(of.1, y))).collect()
}

/// Vertices below their parents; vertex 0 is the root, and parents have lesser numbers.
fn levels(mut ranks: Vec<(u32, u32)>, parent: &dyn Fn(u32) -> u32) -> Vec<(u32, f64, f64)> {
    let depth = |mut at: u32| {
        let mut depth = 0u32;
        while at > 0 {
            at = parent(at);
            depth += 1;
        }
        depth
    };
    ranks.sort_by_key(|&(_, at)| (depth(at), at));
    let deepest = ranks.iter().map(|&(_, at)| depth(at)).max().unwrap_or(0).max(1);
    let of_level = |level: u32| ranks.iter().filter(|&&(_, at)| depth(at) == level).count().max(1);
    let mut seen = vec![0usize; deepest as usize + 1];
    let place = |&(rank, at): &(u32, u32)| {
        let level = depth(at);
        let number = &mut seen[level as usize];
        *number += 1;
        let x = (*number as f64 - 0.5) / of_level(level) as f64;
        (rank, rounded(x), rounded(f64::from(level) / f64::from(deepest)))
    };
    ranks.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use ampl_analysis::topology::Axis;

    use super::*;

    fn of(shape: &Shape, ranks: u32) -> Vec<(u32, f64, f64)> {
        places(shape, &Placed { ranks: (0..ranks).collect(), positions: (0..ranks).collect() })
    }

    #[test]
    fn every_rank_has_a_place_of_its_own_inside() {
        let axes =
            |sizes: &[u32]| sizes.iter().map(|&size| Axis { size, periodic: true }).collect::<Vec<_>>();
        for (shape, ranks) in [
            (Shape::Line(7), 7),
            (Shape::Ring(7), 7),
            (Shape::Star(6), 6),
            (Shape::Lattice(axes(&[3, 4])), 12),
            (Shape::Lattice(axes(&[3, 2, 4])), 24),
            (Shape::Hypercube(4), 16),
            (Shape::Tree { vertices: 12, arity: 3 }, 12),
            (
                Shape::BinomialTree {
                    vertices: 16,
                    parent: ampl_analysis::topology::Parent::WithoutLowestBit,
                },
                16,
            ),
        ] {
            let found = of(&shape, ranks);
            assert_eq!(found.len(), ranks as usize, "{shape:?}");
            let mut places: Vec<[u64; 2]> = found.iter().map(|of| [of.1.to_bits(), of.2.to_bits()]).collect();
            places.sort_unstable();
            places.dedup();
            assert_eq!(places.len(), ranks as usize, "{shape:?}: {found:?}");
            assert!(
                found.iter().all(|of| (0.0..=1.0).contains(&of.1) && (0.0..=1.0).contains(&of.2)),
                "{found:?}"
            );
        }
        // A row to the right, then the next below it.
        assert_eq!(
            of(&Shape::Lattice(axes(&[2, 2])), 4),
            [(0, 0.0, 0.0), (1, 1.0, 0.0), (2, 0.0, 1.0), (3, 1.0, 1.0)]
        );
    }
}
