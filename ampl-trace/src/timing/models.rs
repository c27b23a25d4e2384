//! Models of a signature's gaps and durations, and of all of the rank, while they are coded.
//!
//! Bins are logarithmic, so signatures differ in where their values are rather than in how they spread. A
//! magnitude is therefore coded by its **distance**: how many groups of bins it is from the signature's
//! anchor, an early value of its own; and what the rank's signatures have in common is known by distance.

use rustc_hash::FxHashMap;

use super::mixing::{AGES, LIMITS, Node, Weights, code};
use super::priors::{Histogram, Sums};
use super::scale::{Bin, GROUPS, Scale};
use super::trees::{Arena, HALF, Half, MIDDLE, NEAR, NODES, Side, TREES, Tree, walk};
use crate::bits::Bits;

/// Meaning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Gap, from the end of the call before.
    Gap,
    /// Duration of a call.
    Duration,
    /// Number of polls folded into an entry, less one.
    Polls,
    /// Mean that short values are decoded as.
    Short,
    /// Numbers of a window's header, exact.
    Window,
}

/// Flags that are seldom set.
#[derive(Clone, Copy, Debug)]
pub enum Seldom {
    /// A gap is negative.
    Negative,
    /// A window's first call began before it.
    Crosses,
    /// A duration is stored as less than its bin's value.
    Less,
}

/// Kinds there are.
const KINDS: usize = 5;

/// Distances of one context, and contexts there are.
const CONTEXT: u8 = 4;
const CONTEXTS: usize = GROUPS / CONTEXT as usize;
/// Low bits of a bin's number that are modelled; those below are even.
const LOW: u32 = HALF as u32;

/// Numbers of a signature's models, and of the models of all that are like it.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    own: u32,
    alike: u32,
}

impl Signature {
    /// Models that all signatures share; like those of number 0.
    pub const RANK: Self = Self { own: 0, alike: 0 };

    /// The number, by order of first appearance; 0 is the rank's.
    pub fn number(self) -> usize {
        self.own as usize
    }
}

/// Values of one signature and kind.
#[derive(Clone, Copy, Debug)]
struct Own {
    short: OwnFlag,
    /// Positive magnitudes, negative ones.
    sides: [Side; 2],
}

/// Models that all signatures share for a kind.
#[derive(Debug)]
struct Shared {
    short: Flag,
    sides: [SharedSide; 2],
}

/// Models that all signatures share for a flag.
#[derive(Debug)]
struct Flag {
    weights: [Weights<6>; AGES],
    all: Node,
    /// Models by the flag before.
    context: [Node; 2],
    /// Models by the latest flags.
    latest: [Node; LATEST],
    /// Models of signatures that are alike.
    alike: FxHashMap<u16, Node>,
}

/// Ways in which the latest flags may have been.
const LATEST: usize = 1 << 4;

/// Models of a signature's flag: its chances, and these by the flag before.
#[derive(Clone, Copy, Debug)]
struct OwnFlag {
    all: Node,
    context: [Node; 2],
    before: bool,
}

/// Weights of mixtures over distances.
#[derive(Debug)]
struct Way<const OF_NEAR: usize, const OF_HALF: usize> {
    near: [Weights<OF_NEAR>; AGES],
    halves: Halves<OF_HALF>,
}

/// Weights of mixtures over halves, by level.
type Levels<const ALL: usize> = [[Weights<ALL>; AGES]; HALF];
/// Weights of mixtures over first halves, and over second ones.
type Halves<const ALL: usize> = [Levels<ALL>; 2];

/// Models that all signatures share for a kind and sign.
#[derive(Debug)]
struct SharedSide {
    /// Weights for signatures that are not young; those in `young` are for young ones.
    old: Way<3, 2>,
    young: Way<4, 4>,
    /// Models of first values, which have no anchor: over groups.
    first: [Half; TREES],
    first_weights: Halves<3>,
    /// Groups of first values.
    groups: Histogram,
    /// Bit that a distance is near.
    near: Node,
    /// Models of distances, by that of the value before, of whatever signature. The first node, which trees do not
    /// use, is the bit that it is near. Empty until needed.
    flows: Vec<[Half; TREES]>,
    /// Models of low bits by group. Those in `low_near` are by near distance, the last for all others. Empty until
    /// needed.
    low_groups: Vec<Half>,
    low_near: [Half; NODES + 1],
    low_weights: Levels<3>,
}

/// All models of a rank; what they need is bounded by the signatures that occur.
#[derive(Debug)]
pub struct Models {
    numbers: FxHashMap<u64, u32>,
    owns: Vec<[Own; KINDS]>,
    arena: Arena,
    shared: Vec<Shared>,
    /// Numbers of signatures that are alike. The last one asked for is in `latest`; `groups` counts their values'
    /// groups.
    alike: FxHashMap<u16, u32>,
    latest: (u16, u32),
    groups: Vec<[[Option<Box<Histogram>>; 2]; KINDS]>,
    /// The distance of the value before.
    before: u8,
    /// Flags of the values before, whether they were short, a bit each.
    short: usize,
    /// Last value of each seldom flag, and its chances by that.
    seldom: [(bool, [Node; 2]); 3],
}

impl Own {
    /// Models before the first value.
    const NEW: Self = Self {
        short: OwnFlag { all: Node::NEW, context: [Node::NEW; 2], before: false },
        sides: [Side::NEW; 2],
    };
}

impl Flag {
    fn new() -> Self {
        Self {
            weights: Weights::by_age_among_others([0, 1, 2, 3, 4, 5]),
            all: Node::NEW,
            context: [Node::NEW; 2],
            latest: [Node::NEW; LATEST],
            alike: FxHashMap::default(),
        }
    }

    /// Codes a flag.
    #[inline]
    fn code<B: Bits>(
        &mut self,
        bits: &mut B,
        own: &mut OwnFlag,
        like: u16,
        latest: &mut usize,
        flag: bool,
    ) -> bool {
        let nodes = [&mut own.all, &mut self.context[*latest & 1], &mut self.all];
        let mut others = [
            &mut own.context[usize::from(own.before)],
            self.alike.entry(like).or_insert(Node::NEW),
            &mut self.latest[*latest],
        ];
        let known = others.each_ref().map(|node| node.stretched());
        let flag = code(bits, nodes, known, &mut self.weights, flag);
        others.iter_mut().for_each(|node| node.learn(flag, LIMITS[0]));
        own.before = flag;
        *latest = (*latest << 1 | usize::from(flag)) % LATEST;
        flag
    }
}

impl Shared {
    fn new() -> Self {
        let side = || SharedSide {
            old: Way { near: Weights::by_age(), halves: [[Weights::by_age(); HALF]; 2] },
            young: Way {
                near: Weights::by_age_among_others([0, 1, 2, 4]),
                halves: [[Weights::by_age_among_others([0, 1, 3, 4]); HALF]; 2],
            },
            first: [[Node::NEW; NODES]; TREES],
            first_weights: [[Weights::by_age_among_others([0, 3, 4]); HALF]; 2],
            groups: Histogram::NEW,
            near: Node::NEW,
            flows: Vec::new(),
            low_groups: Vec::new(),
            low_near: [[Node::NEW; NODES]; NODES + 1],
            low_weights: [Weights::by_age(); HALF],
        };
        Self { short: Flag::new(), sides: [side(), side()] }
    }
}

impl Models {
    /// Models before the first value.
    pub fn new() -> Self {
        Self {
            numbers: FxHashMap::default(),
            owns: vec![[Own::NEW; KINDS]],
            arena: Arena::new(),
            shared: (0..KINDS).map(|_| Shared::new()).collect(),
            alike: FxHashMap::from_iter([(0, 0)]),
            latest: (0, 0),
            groups: vec![Default::default()],
            before: MIDDLE,
            short: 0,
            seldom: [(false, [Node::NEW; 2]); 3],
        }
    }

    /// The models of the signature with this key, which is like others with that number.
    #[inline]
    pub fn signature(&mut self, key: u64, like: u16) -> Signature {
        let own = *self.numbers.entry(key).or_insert_with(|| {
            self.owns.push([Own::NEW; KINDS]);
            self.owns.len() as u32 - 1
        });
        if self.latest.0 != like {
            let number = *self.alike.entry(like).or_insert_with(|| {
                self.groups.push(Default::default());
                self.groups.len() as u32 - 1
            });
            self.latest = (like, number);
        }
        Signature { own, alike: self.latest.1 }
    }

    /// Codes whether a value is short.
    #[inline]
    pub fn short<B: Bits>(
        &mut self,
        bits: &mut B,
        of: Signature,
        like: u16,
        kind: Kind,
        short: bool,
    ) -> bool {
        let own = &mut self.owns[of.number()][kind as usize];
        self.shared[kind as usize].short.code(bits, &mut own.short, like, &mut self.short, short)
    }

    /// Codes a flag that is set seldom, and for several values in a row where it is.
    #[inline]
    pub fn seldom<B: Bits>(&mut self, bits: &mut B, which: Seldom, flag: bool) -> bool {
        let (before, nodes) = &mut self.seldom[which as usize];
        *before = nodes[usize::from(*before)].code(bits, LIMITS[0], flag);
        *before
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
        let group = if side.seen < YOUNG {
            let like = &mut self.groups[of.alike as usize][kind as usize][usize::from(negative)];
            let like = &mut **like.get_or_insert_with(|| Box::new(Histogram::NEW));
            let group = if side.seen == 0 {
                let group = shared.first(bits, like, bin.group);
                shared.groups.count(group);
                group
            } else {
                shared.group(bits, side, &mut self.arena, Some(like), &mut self.before, bin.group)
            };
            like.count(group);
            side.note(&mut self.arena, group);
            group
        } else {
            shared.group(bits, side, &mut self.arena, None, &mut self.before, bin.group)
        };
        let width = scale.low_width(group);
        let low =
            if width == 0 { 0 } else { shared.low(bits, side, &mut self.arena, group, (width, bin.low)) };
        Bin { group, low }
    }
}

/// Number of values after which a signature's own counters predict best.
const YOUNG: u16 = 4096;

impl SharedSide {
    /// Codes the first group of a signature.
    fn first<B: Bits>(&mut self, bits: &mut B, like: &Histogram, group: u8) -> u8 {
        let [first_weights, second_weights] = &mut self.first_weights;
        let tree = &mut self.first[0];
        let (like_first, all_first) = (like.groups(), self.groups.groups());
        let first = walk(group >> HALF, |level, at, bit| {
            let others = [all_first.upper(at), like_first.upper(at)];
            code(bits, [&mut tree[at]], others, &mut first_weights[level], bit)
        });
        let tree = &mut self.first[1 + usize::from(first)];
        let (like, all) = (like.group(first), self.groups.group(first));
        let second = walk(group, |level, at, bit| {
            let others = [all.upper(at), like.upper(at)];
            code(bits, [&mut tree[at]], others, &mut second_weights[level], bit)
        });
        first << HALF | second
    }

    /// Codes a group by its distance; `like` counts the groups of signatures that are alike, where this one is young.
    #[inline(always)]
    fn group<B: Bits>(
        &mut self,
        bits: &mut B,
        side: &mut Side,
        arena: &mut Arena,
        like: Option<&Histogram>,
        before: &mut u8,
        group: u8,
    ) -> u8 {
        if self.flows.is_empty() {
            self.flows = vec![[[Node::NEW; NODES]; TREES]; CONTEXTS];
        }
        let distance = side.distance(group);
        let flow = &mut self.flows[usize::from(*before / CONTEXT) % CONTEXTS];
        let nodes = [&mut side.near, &mut flow[0][0], &mut self.near];
        let is_near = distance >> HALF == NEAR;
        let like_near = like.map(|like| like.second(side.anchor, NEAR));
        let near = match (like, &like_near) {
            (Some(like), Some(sums)) => code(bits, nodes, [like.near(sums)], &mut self.young.near, is_near),
            _ => code(bits, nodes, [], &mut self.old.near, is_near),
        };
        let ([old_first, old_second], [young_first, young_second]) =
            (&mut self.old.halves, &mut self.young.halves);
        let (first, own, like) = if near {
            (NEAR, arena.tree(&mut side.near_tree), like_near)
        } else {
            let far = arena.far(&mut side.far);
            let (own, flow, firsts) = (&mut far.first, &mut flow[0], distance >> HALF);
            let first = match like.map(|like| like.first(side.anchor)) {
                Some(like) => young_half(bits, own, flow, &like, young_first, firsts),
                None => old_half(bits, own, flow, old_first, firsts),
            };
            (first, arena.second(side.far, first), like.map(|like| like.second(side.anchor, first)))
        };
        let flow = &mut flow[1 + usize::from(first)];
        let second = match like {
            Some(like) => young_half(bits, own, flow, &like, young_second, distance),
            None => old_half(bits, own, flow, old_second, distance),
        };
        *before = first << HALF | second;
        side.group(*before)
    }

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
            let nodes = [&mut own[at], &mut by_distance[at], &mut all[at]];
            let bit = code(bits, nodes, [], weights, low >> level & 1 == 1);
            at = at << 1 | usize::from(bit);
        }
        let top = (at - (1 << (width - even))) as u64;
        top << even | bits.plain(even, low & ((1 << even) - 1))
    }
}

/// Codes the low half of `value`.
fn old_half<B: Bits>(
    bits: &mut B,
    own: &mut Tree,
    flow: &mut Half,
    weights: &mut Levels<2>,
    value: u8,
) -> u8 {
    walk(value, |level, at, bit| {
        code(bits, [&mut own.nodes[at], &mut flow[at]], [], &mut weights[level], bit)
    })
}

/// As [`old_half`], of a signature that is young; `like` are sums of values that are alike.
fn young_half<B: Bits>(
    bits: &mut B,
    own: &mut Tree,
    flow: &mut Half,
    like: &Sums,
    weights: &mut Levels<4>,
    value: u8,
) -> u8 {
    let value = walk(value, |level, at, bit| {
        let others = [own.masses.upper(at), like.upper(at)];
        code(bits, [&mut own.nodes[at], &mut flow[at]], others, &mut weights[level], bit)
    });
    own.masses.note(value);
    value
}
