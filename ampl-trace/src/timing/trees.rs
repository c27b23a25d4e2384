//! Trees of probabilities over distances, of one signature, kind and sign.

use super::masses::RECENT;
use super::mixing::{INPUTS, Node};

/// Bits of a half of a distance, and nodes of the tree over those halves, of which the first is unused.
pub const HALF: usize = 4;
pub const NODES: usize = 1 << HALF;
/// The trees over all distances: one over first halves, one over the second halves of each.
pub const TREES: usize = 1 + NODES;
/// The first half of distances that are near, which have a bit of their own.
pub const NEAR: u8 = 8;
/// The distance of the anchor itself: in the middle of those near.
pub const MIDDLE: u8 = NEAR << HALF | NEAR;
/// Values until the anchor is their median; it is the first until then.
pub const EARLY: usize = 8;
/// Counts after which probabilities follow what is new: of a signature's own, of the rank's, of the
/// context's.
pub const LIMITS: [u32; INPUTS] = [255, 1023, 127, 127];

/// Nodes of a tree over the halves of a distance.
pub type Half = [Node; NODES];

/// Magnitudes of one signature, kind and sign.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Whether a distance is near.
    pub near: Node,
    /// Number of the tree over the second halves of those near; of the [`Far`] of the others; 0 before
    /// there is one.
    pub near_tree: u32,
    pub far: u32,
    /// Number of the trees over low bits, by the distances that are near; 0 before there are.
    pub lows: u32,
    /// The latest groups, and how many there were, at most [`u16::MAX`].
    recent: [u8; RECENT],
    pub seen: u16,
    pub anchor: u8,
    pub last: u8,
}

/// Trees over distances that are not near, where there are any.
#[derive(Clone, Copy, Debug)]
pub struct Far {
    pub first: Half,
    second: [u32; NODES],
}

/// Trees of all signatures.
#[derive(Debug)]
pub struct Arena {
    halves: Vec<Half>,
    fars: Vec<Far>,
    lows: Vec<[u32; NODES + 1]>,
}

impl Side {
    /// Nothing known.
    pub const NEW: Self = Self {
        near: Node::NEW,
        near_tree: 0,
        far: 0,
        lows: 0,
        recent: [0; RECENT],
        seen: 0,
        anchor: 0,
        last: MIDDLE,
    };

    /// How far a group is from the anchor; the inverse is [`group`](Self::group).
    pub fn distance(&self, group: u8) -> u8 {
        group.wrapping_sub(self.anchor).wrapping_add(MIDDLE)
    }

    /// The group at that distance.
    pub fn group(&self, distance: u8) -> u8 {
        distance.wrapping_sub(MIDDLE).wrapping_add(self.anchor)
    }

    /// Groups of the latest values.
    pub fn recent(&self) -> &[u8] {
        &self.recent[..RECENT.min(self.seen.into())]
    }

    /// Takes note of a value.
    #[inline]
    pub fn note(&mut self, arena: &mut Arena, group: u8) {
        if self.seen == 0 {
            self.anchor = group;
        }
        self.recent[usize::from(self.seen) % RECENT] = group;
        self.seen = self.seen.saturating_add(1);
        if usize::from(self.seen) == EARLY {
            self.settle(arena);
        }
    }

    /// Moves the anchor to the median of the first values; what was learnt of distances from it is learnt
    /// anew.
    #[cold]
    fn settle(&mut self, arena: &mut Arena) {
        let early: [u8; EARLY] = *self.recent.first_chunk().expect("more are remembered");
        let mut sorted = early;
        sorted.sort_unstable();
        if self.anchor == sorted[EARLY / 2] {
            return;
        }
        self.anchor = sorted[EARLY / 2];
        self.near = Node::NEW;
        arena.forget(self);
        for group in early {
            let distance = self.distance(group);
            let first = distance >> HALF;
            self.near.learn(first == NEAR, LIMITS[0]);
            let learn = |half: &mut Half, value: u8| {
                walk(value, |_, at, bit| {
                    half[at].learn(bit, LIMITS[0]);
                    bit
                });
            };
            if first == NEAR {
                learn(arena.half(&mut self.near_tree), distance);
            } else {
                learn(&mut arena.far(&mut self.far).first, first);
                learn(arena.second(self.far, first), distance);
            }
            self.last = distance;
        }
    }
}

impl Arena {
    /// One without trees; number 0 of each is never used.
    pub fn new() -> Self {
        let far = Far { first: [Node::NEW; NODES], second: [0; NODES] };
        Self { halves: vec![[Node::NEW; NODES]], fars: vec![far], lows: vec![[0; NODES + 1]] }
    }

    /// A tree, made if there is none.
    #[inline]
    pub fn half(&mut self, number: &mut u32) -> &mut Half {
        if *number == 0 {
            *number = self.halves.len() as u32;
            self.halves.push([Node::NEW; NODES]);
        }
        &mut self.halves[*number as usize]
    }

    /// The trees of distances that are not near, made if there are none.
    pub fn far(&mut self, number: &mut u32) -> &mut Far {
        if *number == 0 {
            *number = self.fars.len() as u32;
            self.fars.push(self.fars[0]);
        }
        &mut self.fars[*number as usize]
    }

    /// The tree over the second halves of distances with that first half.
    pub fn second(&mut self, far: u32, first: u8) -> &mut Half {
        let mut number = self.fars[far as usize].second[usize::from(first)];
        self.half(&mut number);
        self.fars[far as usize].second[usize::from(first)] = number;
        &mut self.halves[number as usize]
    }

    /// The tree over low bits at that near distance, made if there is none.
    pub fn low(&mut self, number: &mut u32, near: usize) -> &mut Half {
        if *number == 0 {
            *number = self.lows.len() as u32;
            self.lows.push([0; NODES + 1]);
        }
        let mut tree = self.lows[*number as usize][near];
        self.half(&mut tree);
        self.lows[*number as usize][near] = tree;
        &mut self.halves[tree as usize]
    }

    /// Makes all trees of a side new.
    fn forget(&mut self, side: &Side) {
        let far = &mut self.fars[side.far as usize];
        far.first = [Node::NEW; NODES];
        let lows = self.lows[side.lows as usize];
        for number in far.second.into_iter().chain([side.near_tree]).chain(lows) {
            self.halves[number as usize] = [Node::NEW; NODES];
        }
    }
}

/// Goes down a tree by the bits of the low half of `value`, or by what `step` returns for level, node and
/// bit; returns the value it came to.
#[inline]
pub fn walk(value: u8, mut step: impl FnMut(usize, usize, bool) -> bool) -> u8 {
    let mut at = 1;
    for level in 0..HALF {
        let bit = value >> (HALF - 1 - level) & 1 == 1;
        at = at << 1 | usize::from(step(level, at & (NODES - 1), bit));
    }
    (at & (NODES - 1)) as u8
}
