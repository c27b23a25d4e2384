//! Adaptive probabilities of bits and their mixture, in integers.

use super::bits::{Bits, PRECISION};

/// Units of log odds in one natural unit.
const NAT: usize = 256;
/// The largest log odds, in those units: a probability of 1 in 60,000.
const MOST: i32 = 11 * NAT as i32;
/// Probabilities that log odds are tabulated for.
const STEPS: usize = 1 << 12;
/// No bit is surer than this, in 65536ths, so that none is free and a stream of so many bytes has an end.
const LEAST: i32 = 16;
/// One as a weight.
const ONE: i32 = 1 << 16;
/// Counters mixed for a bit, what else may be mixed with them, and all of these.
pub const INPUTS: usize = 4;
pub const OTHERS: usize = 3;
const ALL: usize = INPUTS + OTHERS;

/// The adaptive probability that a bit is 1, and how often it was seen.
#[derive(Clone, Copy, Debug)]
pub struct Node(u32);

impl Node {
    /// Even chances, nothing seen.
    pub const NEW: Self = Self(1 << 31);
    /// Bits of the count; the others are the probability.
    const COUNT: u32 = 10;
    const PROBABILITY: u32 = u32::BITS - Self::COUNT;

    fn count(self) -> u32 {
        self.0 & ((1 << Self::COUNT) - 1)
    }

    /// Its log odds.
    pub fn stretched(self) -> i32 {
        i32::from(TABLES.stretch[(self.0 >> (u32::BITS - STEPS.ilog2())) as usize])
    }

    /// Codes a bit by this probability alone.
    pub fn code<B: Bits>(&mut self, bits: &mut B, limit: u32, bit: bool) -> bool {
        let one = (self.0 >> (u32::BITS - PRECISION as u32)) as i32;
        let bit = bits.bit(one.clamp(LEAST, (1 << PRECISION) - LEAST) as u32, bit);
        self.learn(bit, limit);
        bit
    }

    /// Moves towards what was seen: by Krichevsky and Trofimov's rule, until `limit` were seen, then as if
    /// so many always had been.
    #[inline]
    pub fn learn(&mut self, bit: bool, limit: u32) {
        let count = self.count();
        let probability = i64::from(self.0 >> Self::COUNT);
        let target = if bit { (1 << Self::PROBABILITY) - 1 } else { 0 };
        let step = (target - probability) * i64::from(TABLES.share[count as usize]);
        let moved = probability + (step >> 16);
        self.0 = (moved as u32) << Self::COUNT | (count + 1).min(limit);
    }
}

/// Weights of the inputs of a mixture, 65536ths.
#[derive(Clone, Copy, Debug)]
pub struct Weights([i32; ALL]);

/// How much the first of a mixture's inputs, the signature's own, has seen, as a number below [`AGES`].
pub const AGES: usize = 8;

/// The age of a node of so many seen: none, 1, 2, 3 to 4, to 8, to 16, to 64, more.
fn age(count: u32) -> usize {
    match count {
        0..=2 => count as usize,
        3..=4 => 3,
        5..=8 => 4,
        9..=16 => 5,
        17..=64 => 6,
        _ => 7,
    }
}

impl Weights {
    /// What each age begins with: the young rely on the others.
    pub fn by_age() -> [Self; AGES] {
        [0, 4, 6, 8, 10, 11, 12, 13].map(|own| {
            let rest = (14 - own) * ONE / 16 / 2;
            Self([own * ONE / 16, rest, rest, 0, 0, 0, 0])
        })
    }

    /// The same where there are others: about what is learnt of the calls of stencils and solvers.
    pub fn by_age_among_others() -> [Self; AGES] {
        const PARTS: [[i32; ALL]; AGES] = [
            [0, 4, 4, 4, 5, 6, 12],
            [4, 4, 4, 5, 5, 6, 10],
            [6, 4, 4, 5, 5, 6, 9],
            [8, 3, 4, 5, 5, 6, 9],
            [10, 3, 4, 5, 5, 6, 8],
            [13, 1, 4, 6, 5, 5, 7],
            [17, 0, 5, 7, 5, 5, 5],
            [26, 0, 3, 4, 2, 2, 2],
        ];
        PARTS.map(|parts| Self(parts.map(|part| part * ONE / 32)))
    }
}

/// Log odds of so much against so much, both of them less than 2^31.
#[inline]
pub fn odds(one: u32, zero: u32) -> i32 {
    let step = (2 * u64::from(one) + 1) * STEPS as u64 / (2 * (u64::from(one) + u64::from(zero)) + 2);
    i32::from(TABLES.stretch[step as usize])
}

/// Codes a bit by the mixture of `nodes`, the signature's own first, and of what `others` say, log odds; lets
/// the nodes and the weights of the first one's age learn.
#[inline]
pub fn code<B: Bits, const N: usize>(
    bits: &mut B,
    nodes: [&mut Node; N],
    others: Option<[i32; OTHERS]>,
    weights: &mut [Weights; AGES],
    limits: [u32; INPUTS],
    bit: bool,
) -> bool {
    if others.is_none() && nodes[0].count() >= SURE {
        // What others know adds little, and asking them is most of the work.
        let own = nodes.into_iter().next().expect("a node of its own");
        return own.code(bits, limits[0], bit);
    }
    let age = age(nodes[0].count());
    let rate = if age < OLD { RATE } else { RATE + 2 };
    let weights = &mut weights[age].0;
    let mut odds = [0; ALL];
    for (odds, node) in odds.iter_mut().zip(&nodes) {
        *odds = node.stretched();
    }
    if let Some(others) = others {
        odds[INPUTS..].copy_from_slice(&others);
    }
    let sum: i64 =
        odds.iter().zip(&*weights).map(|(&odds, &weight)| i64::from(odds) * i64::from(weight)).sum();
    let mixed = (sum >> 16).clamp(-i64::from(MOST), i64::from(MOST)) as i32;
    let one = i32::from(TABLES.squash[(mixed + MOST) as usize]).clamp(LEAST, (1 << PRECISION) - LEAST);
    let bit = bits.bit(one as u32, bit);
    let error = if bit { (1 << PRECISION) - one } else { -one };
    for (weight, odds) in weights.iter_mut().zip(odds) {
        // Descends the code length; the bounds are far from what useful weights are.
        *weight = (*weight + ((odds * (error >> 2)) >> rate)).clamp(-4 * ONE, 4 * ONE);
    }
    for (node, limit) in nodes.into_iter().zip(limits) {
        node.learn(bit, limit);
    }
    bit
}

/// From so many seen on a signature's own model is asked alone.
const SURE: u32 = 255;

/// How slowly weights learn.
const RATE: u32 = 11;
/// From this age on they do so four times as slowly.
const OLD: usize = 7;

struct Tables {
    /// The probability, in 65536ths, of log odds from `-MOST` to `MOST`.
    squash: [u16; 2 * MOST as usize + 1],
    /// The inverse.
    stretch: [i16; STEPS],
    /// The share of the way to go after so many were seen: `1 / (seen + 2)`, in 65536ths.
    share: [u16; 1 << Node::COUNT],
}

static TABLES: Tables = Tables::new();

impl Tables {
    const fn new() -> Self {
        let mut tables =
            Self { squash: [0; 2 * MOST as usize + 1], stretch: [0; STEPS], share: [0; 1 << Node::COUNT] };
        // exp(-1 / NAT) by its series, in fixed point.
        const UNIT: u128 = 1 << 60;
        let (mut term, mut factor, mut order) = (UNIT, UNIT, 1);
        while term > 0 {
            term = term / (NAT as u128) / order;
            factor = if order % 2 == 1 { factor - term } else { factor + term };
            order += 1;
        }
        let (mut power, mut at) = (UNIT, 0);
        while at <= MOST as usize {
            let one = (UNIT << PRECISION) / (UNIT + power);
            tables.squash[MOST as usize + at] = one as u16;
            tables.squash[MOST as usize - at] = (1u32 << PRECISION).wrapping_sub(one as u32) as u16;
            power = power * factor / UNIT;
            at += 1;
        }
        let (mut step, mut at) = (0, 0);
        while step < STEPS {
            let middle = (2 * step + 1) << (PRECISION - 1) >> STEPS.ilog2();
            while (tables.squash[at] as usize) < middle && at < 2 * MOST as usize {
                at += 1;
            }
            tables.stretch[step] = (at as i32 - MOST) as i16;
            step += 1;
        }
        let mut seen = 0;
        while seen < 1 << Node::COUNT {
            tables.share[seen] = (65536 / (seen + 2)) as u16;
            seen += 1;
        }
        tables
    }
}
