//! Predictor of method 2, for reading only: it has more contexts than [`super::mix`], and each counter in a place of
//! its own.

use super::mix::{Mark, Matches, Recent, STRETCH, hash, shares, squash};
use crate::bits::{Bits, PRECISION};

/// Contexts of a byte.
const CONTEXTS: usize = 9;
/// Inputs of a decision: predictions of the contexts and of the longest match, and a constant.
const INPUTS: usize = CONTEXTS + 2;
/// Weights before anything is known, of 65536.
const FIRST_WEIGHT: i32 = 18_000;
/// Learning rate of weights.
const LEARNING: i32 = 10;
/// Observations after which a counter forgets.
const MEMORY: u32 = 250;
const SHARES: [u16; MEMORY as usize + 1] = shares();

/// A probability of 22 bits, and how often it was adapted in the low 10.
#[derive(Clone, Copy)]
struct Counter(u32);

impl Counter {
    const UNKNOWN: Self = Self(1 << 31);

    fn probability(self) -> usize {
        (self.0 >> 20) as usize
    }

    fn adapt(&mut self, bit: bool) {
        let (probability, seen) = (i64::from(self.0 >> 10), self.0 & 1023);
        let target = if bit { (1 << 22) - 1 } else { 0 };
        let probability = probability + (((target - probability) * i64::from(SHARES[seen as usize])) >> 16);
        self.0 = (probability as u32) << 10 | (seen + 1).min(MEMORY);
    }
}

/// Predicts bits from those before them.
pub struct Predictor {
    /// Counters of every context, hashed.
    counters: Vec<Counter>,
    /// Bits of a hash that do not select its slot.
    shift: u32,
    weights: [[i32; INPUTS]; Mark::FIELDS],
    recent: Recent,
    matches: Matches,
    match_counters: [Counter; Matches::LEVELS],
}

impl Predictor {
    /// A predictor of about `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let slots = (bytes * 32).next_power_of_two().clamp(1 << 16, 1 << 22);
        Self {
            counters: vec![Counter::UNKNOWN; slots],
            shift: 32 - slots.ilog2(),
            weights: [[FIRST_WEIGHT; INPUTS]; Mark::FIELDS],
            recent: Recent::new(),
            matches: Matches::new(1 << 16),
            match_counters: [Counter::UNKNOWN; Matches::LEVELS],
        }
    }

    /// The next byte, which stands at `mark`.
    pub fn byte(&mut self, mark: Mark, coder: &mut impl Bits) -> u8 {
        let bases = self.contexts(mark);
        let expected = self.matches.find();
        // The bits so far, behind a one.
        let mut so_far = 1;
        for place in (0..8).rev() {
            let expected = expected.filter(|_| self.matches.holds()).map(|byte| byte >> place & 1 != 0);
            let slots = bases.map(|base| {
                let mixed = base.wrapping_add(u32::wrapping_mul(so_far, 0x85eb_ca6b));
                // The high bits depend on all others.
                (mixed.wrapping_mul(0x9e37_79b1) >> self.shift) as usize
            });
            so_far = so_far << 1 | u32::from(self.bit(mark.field(), slots, expected, coder));
        }
        let byte = so_far as u8;
        let recent = self.recent.at(mark);
        *recent = *recent << 8 | u16::from(byte);
        self.matches.push(byte);
        byte
    }

    fn contexts(&mut self, mark: Mark) -> [u32; CONTEXTS] {
        let [one, two, three] = [1, 2, 3].map(|n| self.matches.back(n));
        let (field, recent) = (mark.field_and_place(), u32::from(*self.recent.at(mark)));
        let mark = mark.bits();
        let contexts = [
            [field, 0, 0],
            [mark, 0, 1],
            [field, one, 2],
            [mark, one, 3],
            [field, one | two << 8, 4],
            [mark, one | two << 8 | three << 16, 5],
            [mark, recent & 255, 6],
            [mark, recent, 7],
            [mark, recent & 255 | one << 8, 8],
        ];
        contexts.map(hash)
    }

    fn bit(
        &mut self,
        field: usize,
        slots: [usize; CONTEXTS],
        expected: Option<bool>,
        coder: &mut impl Bits,
    ) -> bool {
        let stretched = |counter: Counter| i32::from(STRETCH[counter.probability()]);
        let mut inputs = [0; INPUTS];
        for (input, &slot) in inputs.iter_mut().zip(&slots) {
            *input = stretched(self.counters[slot]);
        }
        let level = self.matches.level();
        inputs[CONTEXTS] = expected.map_or(0, |bit| {
            let sure = stretched(self.match_counters[level]);
            if bit { sure } else { -sure }
        });
        inputs[CONTEXTS + 1] = 64;
        let weights = &mut self.weights[field];
        let sum: i64 = inputs.iter().zip(&*weights).map(|(&x, &w)| i64::from(x) * i64::from(w)).sum();
        let mixed = squash((sum >> 16).clamp(-2047, 2047) as i32);
        let bit = coder.bit((mixed.clamp(1, 4095) as u32) << (PRECISION - 12), false);

        let error = ((i32::from(bit) << 12) - mixed) * LEARNING;
        for (weight, &input) in weights.iter_mut().zip(&inputs) {
            *weight = weight.saturating_add((input * error + 0x8000) >> 16);
        }
        for slot in slots {
            self.counters[slot].adapt(bit);
        }
        if let Some(expected) = expected {
            self.match_counters[level].adapt(expected == bit);
            if expected != bit {
                self.matches.fail();
            }
        }
        bit
    }
}
