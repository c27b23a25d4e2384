//! What is known of a signature's gaps and durations, and of all of the rank, while they are coded.
//!
//! Bins are logarithmic, so signatures differ in where their values are rather than in how they spread. A
//! magnitude is therefore coded by its **distance**: how many groups of bins it is from the signature's
//! anchor, an early value of its own; and what the rank's signatures have in common is known by distance.

use rustc_hash::FxHashMap;

use super::bits::Bits;
use super::mixing::{AGES, INPUTS, Node, Weights, code};
use super::scale::{Bin, GROUPS, Scale};
use super::trees::{Arena, EARLY, HALF, Half, LIMITS, NEAR, NODES, Side, TREES, walk};

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// From the end of the call before.
    Gap,
    /// Of a call.
    Duration,
    /// Polls folded into an entry, but one.
    Polls,
    /// What short values are decoded as.
    Short,
}

/// Kinds there are.
const KINDS: usize = 4;

/// A value as it is coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// Whether it is one of those the floor makes equal; then all else is 0.
    pub short: bool,
    /// Whether it is below 0.
    pub negative: bool,
    /// Where its magnitude is.
    pub bin: Bin,
}

/// Distances of one context, and contexts there are.
const CONTEXT: u8 = 4;
const CONTEXTS: usize = GROUPS / CONTEXT as usize;
/// Low bits of a bin's number that are modelled; those below are even.
const LOW: u32 = HALF as u32;

/// Number of a signature's models.
#[derive(Clone, Copy, Debug)]
pub struct Signature(u32);

impl Signature {
    /// Not one, but what they share.
    pub const RANK: Self = Self(0);

    /// The number, by order of first appearance; 0 is the rank's.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// Values of one signature and kind.
#[derive(Clone, Copy, Debug)]
struct Own {
    short: Node,
    negative: Node,
    /// Positive magnitudes, negative ones.
    sides: [Side; 2],
}

/// What all signatures share for a kind.
#[derive(Debug)]
struct Shared {
    short: Flag,
    negative: Flag,
    sides: [SharedSide; 2],
}

/// What all signatures share for a flag.
#[derive(Debug)]
struct Flag {
    weights: [Weights; AGES],
    all: Node,
    /// By the flag before.
    context: [Node; 2],
}

/// What all signatures share for a kind and sign.
#[derive(Debug)]
struct SharedSide {
    near_weights: [Weights; AGES],
    /// By level.
    weights: [[Weights; AGES]; 2 * HALF],
    /// Of first values, which have no anchor: over groups.
    first: [Half; TREES],
    /// Over distances. The first node, which trees do not use, is whether it is near.
    all: [Half; TREES],
    /// The same by the distance before. None until needed.
    contexts: Vec<[Half; TREES]>,
    /// Over low bits: by group and by near distance, the last for all others. None until needed.
    low_groups: Vec<Half>,
    low_near: [Half; NODES + 1],
    low_weights: [[Weights; AGES]; HALF],
}

/// All models of a rank; what they need is bounded by the signatures that occur.
#[derive(Debug)]
pub struct Models {
    numbers: FxHashMap<u64, u32>,
    owns: Vec<[Own; KINDS]>,
    arena: Arena,
    shared: Vec<Shared>,
    /// Whether the value before was short; whether that before with a sign was negative.
    short: bool,
    negative: bool,
}

impl Own {
    /// Nothing known.
    const NEW: Self = Self { short: Node::NEW, negative: Node::NEW, sides: [Side::NEW; 2] };
}

impl Flag {
    fn new() -> Self {
        Self { weights: Weights::by_age(), all: Node::NEW, context: [Node::NEW; 2] }
    }

    /// Codes a flag.
    #[inline]
    fn code<B: Bits>(&mut self, bits: &mut B, own: &mut Node, before: &mut bool, flag: bool) -> bool {
        let nodes = [own, &mut self.all, &mut self.context[usize::from(*before)]];
        *before = code(bits, nodes, &mut self.weights, LIMITS, flag);
        *before
    }
}

impl Shared {
    fn new() -> Self {
        let side = || SharedSide {
            near_weights: Weights::by_age(),
            weights: [Weights::by_age(); 2 * HALF],
            first: [[Node::NEW; NODES]; TREES],
            all: [[Node::NEW; NODES]; TREES],
            contexts: Vec::new(),
            low_groups: Vec::new(),
            low_near: [[Node::NEW; NODES]; NODES + 1],
            low_weights: [Weights::by_age(); HALF],
        };
        Self { short: Flag::new(), negative: Flag::new(), sides: [side(), side()] }
    }
}

impl Models {
    /// Models that know nothing.
    pub fn new() -> Self {
        Self {
            numbers: FxHashMap::default(),
            owns: vec![[Own::NEW; KINDS]],
            arena: Arena::new(),
            shared: (0..KINDS).map(|_| Shared::new()).collect(),
            short: false,
            negative: false,
        }
    }

    /// The models of the signature with this key.
    pub fn signature(&mut self, key: u64) -> Signature {
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.owns.push([Own::NEW; KINDS]);
            self.owns.len() as u32 - 1
        });
        Signature(number)
    }

    /// Codes whether a value is short.
    #[inline]
    pub fn short<B: Bits>(&mut self, bits: &mut B, of: Signature, kind: Kind, short: bool) -> bool {
        let own = &mut self.owns[of.number()][kind as usize];
        self.shared[kind as usize].short.code(bits, &mut own.short, &mut self.short, short)
    }

    /// Codes a value's sign.
    #[inline]
    pub fn sign<B: Bits>(&mut self, bits: &mut B, of: Signature, kind: Kind, negative: bool) -> bool {
        let own = &mut self.owns[of.number()][kind as usize];
        self.shared[kind as usize].negative.code(bits, &mut own.negative, &mut self.negative, negative)
    }

    /// Codes a magnitude.
    #[inline]
    pub fn magnitude<B: Bits>(
        &mut self,
        bits: &mut B,
        (of, kind, negative): (Signature, Kind, bool),
        scale: &Scale,
        bin: Bin,
    ) -> Bin {
        let side = &mut self.owns[of.number()][kind as usize].sides[usize::from(negative)];
        let shared = &mut self.shared[kind as usize].sides[usize::from(negative)];
        let group = if side.seen == 0 {
            shared.first(bits, bin.group)
        } else {
            let distance = side.distance(bin.group);
            let distance = shared.distance(bits, side, &mut self.arena, distance);
            side.last = distance;
            side.group(distance)
        };
        if usize::from(side.seen) < EARLY {
            side.early(&mut self.arena, group);
        }
        let width = scale.low_width(group);
        let low =
            if width == 0 { 0 } else { shared.low(bits, side, &mut self.arena, group, (width, bin.low)) };
        Bin { group, low }
    }
}

impl SharedSide {
    /// Codes a group of which nothing is known.
    fn first<B: Bits>(&mut self, bits: &mut B, group: u8) -> u8 {
        let mut code =
            |half: &mut Half, value: u8| walk(value, |_, at, bit| half[at].code(bits, LIMITS[0], bit));
        let first = code(&mut self.first[0], group >> HALF);
        first << HALF | code(&mut self.first[1 + usize::from(first)], group)
    }

    /// Codes a distance.
    #[inline]
    fn distance<B: Bits>(&mut self, bits: &mut B, side: &mut Side, arena: &mut Arena, distance: u8) -> u8 {
        if self.contexts.is_empty() {
            self.contexts = vec![[[Node::NEW; NODES]; TREES]; CONTEXTS];
        }
        let (all, context) = (&mut self.all, &mut self.contexts[usize::from(side.last / CONTEXT)]);
        let nodes = [&mut side.near, &mut all[0][0], &mut context[0][0]];
        let near = code(bits, nodes, &mut self.near_weights, LIMITS, distance >> HALF == NEAR);
        let (first_weights, second_weights) = self.weights.split_at_mut(HALF);
        let (first, own) = if near {
            (NEAR, arena.half(&mut side.near_tree))
        } else {
            let far = arena.far(&mut side.far);
            let nodes = [&mut far.first, &mut all[0], &mut context[0]];
            let first = half(bits, nodes, first_weights, distance >> HALF);
            (first, arena.second(side.far, first))
        };
        let at = 1 + usize::from(first);
        first << HALF | half(bits, [own, &mut all[at], &mut context[at]], second_weights, distance)
    }
}

impl SharedSide {
    /// Codes the low bits of a bin's number, of that width.
    fn low<B: Bits>(
        &mut self,
        bits: &mut B,
        side: &mut Side,
        arena: &mut Arena,
        group: u8,
        (width, low): (u32, u64),
    ) -> u64 {
        if self.low_groups.is_empty() {
            self.low_groups = vec![[Node::NEW; NODES]; GROUPS];
        }
        let even = width.saturating_sub(LOW);
        let distance = side.distance(group);
        let near = if distance >> HALF == NEAR { usize::from(distance) % NODES } else { NODES };
        let (all, by_distance) = (&mut self.low_groups[usize::from(group)], &mut self.low_near[near]);
        let own = arena.low(&mut side.lows, near);
        let mut at = 1;
        for (level, weights) in (even..width).rev().zip(&mut self.low_weights) {
            let nodes = [&mut own[at], &mut all[at], &mut by_distance[at]];
            let bit = code(bits, nodes, weights, LIMITS, low >> level & 1 == 1);
            at = at << 1 | usize::from(bit);
        }
        let top = (at - (1 << (width - even))) as u64;
        top << even | bits.plain(even, low & ((1 << even) - 1))
    }
}

/// Codes the low half of `value`.
#[inline]
fn half<B: Bits>(bits: &mut B, nodes: [&mut Half; INPUTS], weights: &mut [[Weights; AGES]], value: u8) -> u8 {
    let [own, all, context] = nodes;
    walk(value, |level, at, bit| {
        code(bits, [&mut own[at], &mut all[at], &mut context[at]], &mut weights[level], LIMITS, bit)
    })
}
