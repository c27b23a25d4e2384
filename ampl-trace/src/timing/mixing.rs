//! Adaptive probabilities of bits and their mixture, in integers.

use crate::bits::{Bits, PRECISION};

/// Units of log odds in one natural unit.
const NAT: usize = 256;
/// The largest log odds, in those units: a probability of 1 in 60,000.
const MOST: i32 = 11 * NAT as i32;
/// Probabilities that log odds are tabulated for.
const STEPS: usize = 1 << 12;
/// No bit is surer than this, in 65536ths, so that none is free and a stream of so many bytes has an end.
const LEAST: u32 = 16;
const LIKELY: u32 = (1 << PRECISION) - LEAST;
/// One as a weight.
const ONE: i32 = 1 << 13;
/// Counters mixed for a bit, at most.
pub const INPUTS: usize = 3;
/// Counts after which probabilities follow new bits: of a signature's own, of a context's, of the rank's.
pub const LIMITS: [u32; INPUTS] = [255, 255, 1023];

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
    pub fn stretched(self) -> i16 {
        TABLES.stretch[(self.0 >> (u32::BITS - STEPS.ilog2())) as usize]
    }

    /// Codes a bit by this probability alone.
    pub fn code<B: Bits>(&mut self, bits: &mut B, limit: u32, bit: bool) -> bool {
        let one = self.0 >> (u32::BITS - PRECISION as u32);
        let bit = bits.bit(one.clamp(LEAST, LIKELY), bit);
        self.learn(bit, limit);
        bit
    }

    /// Moves towards the bit: by Krichevsky and Trofimov's rule, until `limit` were seen, then as if so many always
    /// had been.
    #[inline]
    pub fn learn(&mut self, bit: bool, limit: u32) {
        let count = self.count();
        let probability = i64::from(self.0 >> Self::COUNT);
        let target = i64::from(bit).wrapping_neg() & ((1 << Self::PROBABILITY) - 1);
        let step = ((target - probability) * i64::from(TABLES.share[count as usize])) >> 16;
        let more = u32::from(count < limit);
        self.0 = self.0.wrapping_add((step << Self::COUNT) as u32).wrapping_add(more);
    }
}

/// Weights of the inputs of a mixture, 8192ths: of its counters, then of what else is mixed with them. No more
/// than there are, so that all are in one register.
#[derive(Clone, Copy, Debug)]
pub struct Weights<const ALL: usize>([i16; ALL]);

/// Number of ages: ranges of the count of a mixture's first input, the signature's own.
pub const AGES: usize = 8;

/// The age of a node of so many seen: none, 1, 2 to 3, to 7, to 15, to 31, to 63, more.
#[inline]
fn age(count: u32) -> usize {
    TABLES.age[(count as usize).min(OLD)].into()
}

/// Count from which a node is of the oldest age.
const OLD: usize = 1 << (AGES - 2);

impl<const ALL: usize> Weights<ALL> {
    /// First weights of each age: the young rely on the others.
    pub fn by_age() -> [Self; AGES] {
        [0, 4, 6, 8, 10, 11, 12, 13].map(|own| {
            let rest = (14 - own) * ONE / 16 / 2;
            Self(std::array::from_fn(|at| if at == 0 { own * ONE / 16 } else { rest } as i16))
        })
    }

    /// First weights of each age where there are other inputs: of counters and others at these places, about as learnt
    /// from the calls of stencils and solvers.
    pub fn by_age_among_others(places: [usize; ALL]) -> [Self; AGES] {
        const PARTS: [[i32; 2 * INPUTS]; AGES] = [
            [0, 10, 6, 12, 12, 6],
            [5, 10, 6, 12, 10, 6],
            [7, 9, 6, 12, 9, 6],
            [9, 9, 5, 11, 9, 6],
            [12, 8, 5, 10, 9, 6],
            [16, 9, 3, 9, 8, 6],
            [22, 10, 2, 8, 5, 6],
            [28, 7, 1, 3, 2, 6],
        ];
        PARTS.map(|parts| Self(places.map(|at| (parts[at] * ONE / 32) as i16)))
    }

    /// The weighted sum of log odds.
    #[inline(always)]
    fn sum(&self, odds: &[i16; ALL]) -> i32 {
        odds.iter().zip(&self.0).map(|(&odds, &weight)| i32::from(odds) * i32::from(weight)).sum()
    }

    /// Descends the code length, faster for more of the mixed probability's error.
    #[inline(always)]
    fn learn(&mut self, odds: &[i16; ALL], error: i16) {
        // All steps before any weight: a compiler has them in a vector then.
        let steps = odds.map(|odds| ((i32::from(odds) * i32::from(error) + (1 << 14)) >> 15) as i16);
        for (weight, step) in self.0.iter_mut().zip(steps) {
            *weight = weight.saturating_add(step);
        }
    }
}

/// The logarithm of a number from 1 to 2^20.
#[inline]
pub fn log(number: u32) -> i16 {
    // As a float it is exact, on every machine, and begins with exponent and highest bits. Asked for the highest
    // one, some processors take longer than for all the rest.
    let float = (number as i32 as f32).to_bits();
    TABLES.log[(float >> (f32::MANTISSA_DIGITS - 1 - LOGS.ilog2())) as usize % ALL_LOGS]
}

/// Codes a bit by the mixture of `nodes`, the signature's own first, and of `others`, log odds; trains the nodes, and
/// the weights of the first one's age.
#[inline(always)]
pub fn code<B: Bits, const NODES: usize, const OTHERS: usize, const ALL: usize>(
    bits: &mut B,
    nodes: [&mut Node; NODES],
    others: [i16; OTHERS],
    weights: &mut [Weights<ALL>; AGES],
    bit: bool,
) -> bool {
    const { assert!(NODES + OTHERS == ALL) };
    let own = *nodes[0];
    if OTHERS == 0 && own.count() >= SURE {
        // Other inputs add little, and reading them is most of the work.
        return nodes.into_iter().next().expect("a node of its own").code(bits, LIMITS[0], bit);
    }
    let age = age(own.count());
    let weights = &mut weights[age];
    let odds: [i16; ALL] =
        std::array::from_fn(|at| if at < NODES { nodes[at].stretched() } else { others[at - NODES] });
    let mixed = (weights.sum(&odds) >> ONE.ilog2()).clamp(-MOST, MOST);
    let one = u32::from(TABLES.squash[(mixed + MOST) as usize]);
    let bit = bits.bit(one, bit);
    // No branches: a bit is hard to predict.
    let set = u32::from(bit).wrapping_neg();
    let error = (one ^ set).wrapping_sub(set).wrapping_add(set & (1 << PRECISION));
    let step = ((error * TABLES.part[age]) >> 17) as i32;
    let down = !set as i32;
    weights.learn(&odds, ((step ^ down) - down) as i16);
    for (node, limit) in nodes.into_iter().zip(LIMITS) {
        node.learn(bit, limit);
    }
    bit
}

/// Count from which a signature's own model is used alone.
const SURE: u32 = 255;

/// Logarithms between a power of two and the next, all that are tabulated, and that of 2 in 256ths of their unit.
const LOGS: usize = 1 << 7;
const ALL_LOGS: usize = 32 * LOGS;
const LOG_2: u32 = 45426;

struct Tables {
    /// The probability, in 65536ths, of log odds from `-MOST` to `MOST`.
    squash: [u16; 2 * MOST as usize + 1],
    /// Log odds of a probability, in [`STEPS`] of it.
    stretch: [i16; STEPS],
    /// The share of the way to go after so many were seen: `1 / (seen + 2)`, in 65536ths.
    share: [u16; 1 << Node::COUNT],
    /// Age of a node of that count.
    age: [u8; OLD + 1],
    /// The part of an error that weights learn by, by age, 131072ths that are rounded down: half of it, or a
    /// third, as those of the oldest are about right.
    part: [u32; AGES],
    /// The logarithms of 1 and what follows it in steps of `1 / LOGS`, then of these times 2, and so on; by the
    /// first bits of such a number as a float, without the highest.
    log: [i16; ALL_LOGS],
}

static TABLES: Tables = Tables::new();

impl Tables {
    const fn new() -> Self {
        let mut tables = Self {
            squash: [0; 2 * MOST as usize + 1],
            stretch: [0; STEPS],
            share: [0; 1 << Node::COUNT],
            age: [0; OLD + 1],
            part: [1 << 16; AGES],
            log: [0; ALL_LOGS],
        };
        tables.part[AGES - 1] = (1 << 17) / 3 + 1;
        // exp(-1 / NAT) by its series, in fixed point.
        const UNIT: u128 = 1 << 60;
        let (mut term, mut factor, mut order) = (UNIT, UNIT, 1);
        while term > 0 {
            term = term / (NAT as u128) / order;
            factor = if order % 2 == 1 { factor - term } else { factor + term };
            order += 1;
        }
        let (mut power, mut at, mut logs) = (UNIT, 0, 0);
        while at <= MOST as usize {
            while logs < LOGS && ((LOGS + logs) as u128) * power <= UNIT * LOGS as u128 {
                let mut octave = 0;
                while octave <= 20 {
                    let float = ((f32::MAX_EXP - 1) as usize + octave) * LOGS + logs;
                    tables.log[float % ALL_LOGS] = at as i16 + ((octave as u32 * LOG_2) >> 8) as i16;
                    octave += 1;
                }
                logs += 1;
            }
            let one = ((UNIT << PRECISION) / (UNIT + power)) as u32;
            let one = if one > LIKELY { LIKELY } else { one };
            tables.squash[MOST as usize + at] = one as u16;
            tables.squash[MOST as usize - at] = ((1 << PRECISION) - one) as u16;
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
        let mut count = 1;
        while count <= OLD {
            tables.age[count] = 1 + count.ilog2() as u8;
            count += 1;
        }
        let mut seen = 0;
        while seen < 1 << Node::COUNT {
            tables.share[seen] = (65536 / (seen + 2)) as u16;
            seen += 1;
        }
        tables
    }
}
