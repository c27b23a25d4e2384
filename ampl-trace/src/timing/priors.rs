//! Priors of magnitudes beside trees of counters: masses of values, each of which adds to its neighbours, too.

use super::mixing::log;
use super::scale::GROUPS;
use super::trees::{HALF, NEAR, NODES};

/// Nodes and leaves of a tree.
const ALL: usize = 2 * NODES;

/// Mass below each node of a tree, and at each leaf.
#[derive(Clone, Copy, Debug)]
pub struct Masses([u16; ALL]);

/// Mass that each value adds: more to itself than to those beside it.
static KERNEL: [Masses; NODES] = {
    let mut kernel = [Masses::NEW; NODES];
    let mut value = 0;
    while value < NODES {
        let mut other = 0;
        while other < NODES {
            let mut at = NODES + other;
            while at > 0 {
                kernel[value].0[at] += match value.abs_diff(other) {
                    0 => 256,
                    1 => 128,
                    _ => 0,
                };
                at /= 2;
            }
            other += 1;
        }
        value += 1;
    }
    kernel
};

impl Masses {
    /// No mass.
    pub const NEW: Self = Self([0; ALL]);
    /// Values are forgotten at this rate: an 8th with every one.
    const FORGETS: u32 = 3;
    /// Mass that is there before any value.
    const LEAST: u32 = 64;

    /// Adds a value.
    #[inline]
    pub fn note(&mut self, value: u8) {
        for (mass, add) in self.0.iter_mut().zip(&KERNEL[usize::from(value) % NODES].0) {
            *mass = *mass - (*mass >> Self::FORGETS) + add;
        }
    }

    /// Log odds that something below a node is in its upper half.
    #[inline]
    pub fn upper(&self, at: usize) -> i16 {
        odds(self.0[(2 * at + 1) % ALL], self.0[2 * at % ALL], Self::LEAST)
    }
}

/// Sums below each node of a tree, and at each leaf, of a histogram.
#[derive(Debug)]
pub struct Sums([u16; ALL]);

impl Sums {
    /// Sums of the leaves.
    #[inline]
    fn of(leaves: &[u16; NODES]) -> Self {
        let mut sums = [0; ALL];
        sums[NODES..].copy_from_slice(leaves);
        for at in (1..NODES).rev() {
            sums[at] = sums[2 * at] + sums[2 * at + 1];
        }
        Self(sums)
    }

    /// Log odds that something below a node is in its upper half.
    #[inline]
    pub fn upper(&self, at: usize) -> i16 {
        odds(self.0[(2 * at + 1) % ALL], self.0[2 * at % ALL], Histogram::LEAST)
    }
}

/// Log odds of `one` against `zero`, with `least` more of each.
#[inline]
fn odds(one: u16, zero: u16, least: u32) -> i16 {
    log(u32::from(one) + least) - log(u32::from(zero) + least)
}

/// Counts of groups, each of which adds to its neighbours, too.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Counts of groups, between as many as distances may be below and above.
    counts: [u16; 2 * GROUPS],
    all: u16,
}

impl Histogram {
    /// No counts.
    pub const NEW: Self = Self { counts: [0; 2 * GROUPS], all: 0 };
    /// Parts of one value, for the group below, its own and the one above. They add up to `ONE`; a histogram has less
    /// than `MOST`.
    const PARTS: [u16; 3] = [4, 8, 4];
    const ONE: u16 = 16;
    const MOST: u16 = 1 << 15;
    /// Count that is there before any value.
    const LEAST: u32 = 1;
    /// Place of the first group: from an anchor on, its distances follow each other.
    const FIRST: usize = GROUPS / 2 + NODES / 2;

    /// Counts a value.
    #[inline]
    pub fn count(&mut self, group: u8) {
        let around = &mut self.counts[Self::FIRST - 1 + usize::from(group)..];
        for (count, part) in around.iter_mut().zip(Self::PARTS) {
            *count += part;
        }
        self.all += Self::ONE;
        if self.all >= Self::MOST {
            self.counts.iter_mut().for_each(|count| *count -= *count / 2);
            self.all /= 2;
        }
    }

    /// Log odds of a distance that is near; `near` are the sums of such.
    #[inline]
    pub fn near(&self, near: &Sums) -> i16 {
        odds(near.0[1], self.all.saturating_sub(near.0[1]), Self::LEAST)
    }

    /// Sums of distances with that first half.
    #[inline]
    pub fn second(&self, anchor: u8, first: u8) -> Sums {
        let from = usize::from(anchor) + (usize::from(first) << HALF);
        Sums::of(self.counts[from..].first_chunk().expect("there are as many"))
    }

    /// Sums of first halves of distances that are not near.
    pub fn first(&self, anchor: u8) -> Sums {
        let mut leaves = self.firsts(anchor);
        leaves[usize::from(NEAR)] = 0;
        Sums::of(&leaves)
    }

    fn firsts(&self, anchor: u8) -> [u16; NODES] {
        let mut firsts = [0; NODES];
        for (first, counts) in firsts.iter_mut().zip(self.counts[usize::from(anchor)..].chunks_exact(NODES)) {
            *first = counts.iter().sum();
        }
        firsts
    }

    /// Sums of first halves of groups.
    pub fn groups(&self) -> Sums {
        Sums::of(&self.firsts(Self::ORIGIN))
    }

    /// Sums of groups with that first half.
    pub fn group(&self, first: u8) -> Sums {
        self.second(Self::ORIGIN, first)
    }

    /// The anchor from which distances are groups.
    const ORIGIN: u8 = Self::FIRST as u8;
}
