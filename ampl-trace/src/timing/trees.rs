//! Trees of probabilities over distances, of one signature, kind and sign.

use super::mixing::{LIMITS, Node};
use super::priors::Masses;

/// Bits of a half of a distance. The tree over such halves has [`NODES`] nodes, of which the first is unused.
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
/// Nodes of a tree over the halves of a distance.
pub type Half = [Node; NODES];

/// A signature's own tree.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    pub nodes: Half,
    /// Masses of its latest values and their neighbours.
    pub masses: Masses,
}

impl Tree {
    const NEW: Self = Self { nodes: [Node::NEW; NODES], masses: Masses::NEW };
}

/// Magnitudes of one signature, kind and sign.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// Bit that a distance is near.
    pub near: Node,
    /// Number of the tree over the second halves of near distances; 0 before there is one. Number `far` is that of the
    /// [`FarTrees`] of the others.
    pub near_tree: u32,
    pub far: u32,
    /// Number of the trees over low bits, by the distances that are near; 0 before there are.
    pub lows: u32,
    /// The first groups; `seen` is the number of all, at most [`u16::MAX`].
    early: [u8; EARLY],
    pub seen: u16,
    pub anchor: u8,
}

/// Trees over distances that are not near, where there are any.
#[derive(Clone, Copy, Debug)]
pub struct FarTrees {
    pub first: Tree,
    second: [u32; NODES],
}

/// Trees of all signatures.
#[derive(Debug)]
pub struct Arena {
    trees: Vec<Tree>,
    fars: Vec<FarTrees>,
    lows: Vec<[u32; NODES + 1]>,
}

impl Side {
    /// A side before its first value.
    pub const NEW: Self =
        Self { near: Node::NEW, near_tree: 0, far: 0, lows: 0, early: [0; EARLY], seen: 0, anchor: 0 };

    /// Distance of a group from the anchor; the inverse is [`group`](Self::group).
    pub fn distance(&self, group: u8) -> u8 {
        group.wrapping_sub(self.anchor).wrapping_add(MIDDLE)
    }

    /// The group at that distance.
    pub fn group(&self, distance: u8) -> u8 {
        distance.wrapping_sub(MIDDLE).wrapping_add(self.anchor)
    }

    /// Notes a value.
    #[inline]
    pub fn note(&mut self, arena: &mut Arena, group: u8) {
        if self.seen == 0 {
            self.anchor = group;
        }
        if let Some(early) = self.early.get_mut(usize::from(self.seen)) {
            *early = group;
        }
        self.seen = self.seen.saturating_add(1);
        if usize::from(self.seen) == EARLY {
            self.settle(arena);
        }
    }

    /// Moves the anchor to the median of the first values; what was learnt of distances from it is learnt
    /// anew.
    #[cold]
    fn settle(&mut self, arena: &mut Arena) {
        let early = self.early;
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
            let learn = |tree: &mut Tree, value: u8| {
                walk(value, |_, at, bit| {
                    tree.nodes[at].learn(bit, LIMITS[0]);
                    bit
                });
                tree.masses.note(value);
            };
            if first == NEAR {
                learn(arena.tree(&mut self.near_tree), distance);
            } else {
                learn(&mut arena.far(&mut self.far).first, first);
                learn(arena.second(self.far, first), distance);
            }
        }
    }
}

impl Arena {
    /// An arena without trees; number 0 of each is never used.
    pub fn new() -> Self {
        let far = FarTrees { first: Tree::NEW, second: [0; NODES] };
        Self { trees: vec![Tree::NEW], fars: vec![far], lows: vec![[0; NODES + 1]] }
    }

    /// A tree, made if there is none.
    #[inline]
    pub fn tree(&mut self, number: &mut u32) -> &mut Tree {
        if *number == 0 {
            *number = self.trees.len() as u32;
            self.trees.push(Tree::NEW);
        }
        &mut self.trees[*number as usize]
    }

    /// The trees of distances that are not near, made if there are none.
    pub fn far(&mut self, number: &mut u32) -> &mut FarTrees {
        if *number == 0 {
            *number = self.fars.len() as u32;
            self.fars.push(self.fars[0]);
        }
        &mut self.fars[*number as usize]
    }

    /// The tree over the second halves of distances with that first half.
    pub fn second(&mut self, far: u32, first: u8) -> &mut Tree {
        let mut number = self.fars[far as usize].second[usize::from(first)];
        self.tree(&mut number);
        self.fars[far as usize].second[usize::from(first)] = number;
        &mut self.trees[number as usize]
    }

    /// The tree over low bits at that near distance, made if there is none.
    pub fn low(&mut self, number: &mut u32, near: usize) -> &mut Half {
        if *number == 0 {
            *number = self.lows.len() as u32;
            self.lows.push([0; NODES + 1]);
        }
        let mut tree = self.lows[*number as usize][near];
        self.tree(&mut tree);
        self.lows[*number as usize][near] = tree;
        &mut self.trees[tree as usize].nodes
    }

    /// Makes all trees of a side new.
    fn forget(&mut self, side: &Side) {
        let far = &mut self.fars[side.far as usize];
        far.first = Tree::NEW;
        let lows = self.lows[side.lows as usize];
        for number in far.second.into_iter().chain([side.near_tree]).chain(lows) {
            self.trees[number as usize] = Tree::NEW;
        }
    }
}

/// Goes down a tree by the bits of the low half of `value`, or by what `step` returns for level, node and
/// bit; returns the value it came to.
#[inline(always)]
pub fn walk(value: u8, mut step: impl FnMut(usize, usize, bool) -> bool) -> u8 {
    let mut at = 1;
    for level in 0..HALF {
        let bit = value >> (HALF - 1 - level) & 1 == 1;
        at = at << 1 | usize::from(step(level, at & (NODES - 1), bit));
    }
    (at & (NODES - 1)) as u8
}
