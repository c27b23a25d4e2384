//! Predictions of the next bit of a stream of small values: several contexts, each with its own counters,
//! mixed by weights that adapt. Integers throughout, so that every machine predicts alike.
//!
//! The method is that of context mixing (Mahoney, "Adaptive weighing of context models for lossless data
//! compression", 2005): on a few hundred bytes it is worth a third of what an LZ compressor leaves.

/// Contexts of a byte.
const CONTEXTS: usize = 9;
/// Their predictions, the one of the longest match, and a constant.
const INPUTS: usize = CONTEXTS + 2;
/// Weights before anything is known, of 65536.
const FIRST_WEIGHT: i32 = 18_000;
/// How quickly weights adapt.
const LEARNING: i32 = 10;
/// Observations after which a counter forgets.
const MEMORY: u32 = 250;
/// Bits of a prediction.
pub const PRECISION: usize = 16;

/// Where a byte stands: what its value means, its own context, and its place in the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u32);

impl Mark {
    /// Number of fields that are told apart.
    pub const FIELDS: usize = 32;

    /// The mark of byte `place` of a value that means `field`, in `context`.
    pub fn new(field: u8, context: u32, place: usize) -> Self {
        let context = context.wrapping_mul(0x9e37_79b1) >> 8 & 0x00ff_fff8;
        Self(u32::from(field) << 24 | context | place.min(7) as u32)
    }

    fn field(self) -> usize {
        (self.0 >> 24) as usize % Self::FIELDS
    }
}

fn hash(words: [u32; 3]) -> u32 {
    let mix = |all: u64, word| (all ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    (words.into_iter().fold(0x243f_6a88_85a3_08d3, mix) >> 16) as u32
}

/// The logistic function of `x`/256, of 4096.
fn squash(x: i32) -> i32 {
    const KNOTS: [i32; 33] = [
        1, 2, 3, 6, 10, 16, 27, 45, 73, 120, 194, 310, 488, 747, 1101, 1546, 2047, 2549, 2994, 3348, 3607,
        3785, 3901, 3975, 4022, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094,
    ];
    if x > 2047 {
        return 4095;
    }
    if x < -2047 {
        return 0;
    }
    let (part, knot) = (x & 127, ((x >> 7) + 16) as usize);
    (KNOTS[knot] * (128 - part) + KNOTS[knot + 1] * part + 64) >> 7
}

/// The inverse of [`squash`].
fn stretches() -> Box<[i16; 4096]> {
    let mut table = Box::new([2047; 4096]);
    let mut from = 0;
    for x in -2047..=2047 {
        let to = squash(x);
        for entry in &mut table[from..=to as usize] {
            *entry = x as i16;
        }
        from = from.max(to as usize + 1);
    }
    table
}

/// What the next observation is worth after so many, of 65536.
const SHARES: [u16; MEMORY as usize + 1] = {
    let mut shares = [0; MEMORY as usize + 1];
    let mut seen = 0;
    while seen < shares.len() {
        shares[seen] = ((2 << 16) / (2 * seen + 3)) as u16;
        seen += 1;
    }
    shares
};

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
    stretch: Box<[i16; 4096]>,
    /// Counters of every context, hashed.
    counters: Vec<Counter>,
    /// Bits of a hash that do not tell its slot.
    shift: u32,
    weights: Vec<[i32; INPUTS]>,
    history: Vec<u8>,
    /// The last two values' bytes in a field and context.
    recent: Vec<u16>,
    /// Where bytes like the last three were seen last.
    places: Vec<u32>,
    matched: usize,
    match_length: u32,
    match_counters: [Counter; 32],
    mark: Mark,
    bases: [u32; CONTEXTS],
    /// The bits of this byte so far, behind a one.
    partial: usize,
    slots: [usize; CONTEXTS],
    inputs: [i32; INPUTS],
    expected: Option<bool>,
    mixed: i32,
}

const RECENT: usize = 1 << 12;
const PLACES: usize = 1 << 16;

impl Predictor {
    /// A predictor of about `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        let slots = (bytes * 32).next_power_of_two().clamp(1 << 16, 1 << 22);
        Self {
            stretch: stretches(),
            counters: vec![Counter::UNKNOWN; slots],
            shift: 32 - slots.ilog2(),
            weights: vec![[FIRST_WEIGHT; INPUTS]; Mark::FIELDS],
            history: Vec::new(),
            recent: vec![0; RECENT],
            places: vec![0; PLACES],
            matched: 0,
            match_length: 0,
            match_counters: [Counter::UNKNOWN; 32],
            mark: Mark(0),
            bases: [0; CONTEXTS],
            partial: 1,
            slots: [0; CONTEXTS],
            inputs: [0; INPUTS],
            expected: None,
            mixed: 0,
        }
    }

    /// The next byte stands at `mark`.
    pub fn begin(&mut self, mark: Mark) {
        let back = |n: usize| self.history.len().checked_sub(n).map_or(0, |at| u32::from(self.history[at]));
        let (one, two, three) = (back(1), back(2), back(3));
        let field = mark.field() as u32 | (mark.0 & 7) << 8;
        let recent = u32::from(self.recent[hash([mark.0, 0, 0]) as usize % RECENT]);
        let contexts = [
            [field, 0, 0],
            [mark.0, 0, 1],
            [field, one, 2],
            [mark.0, one, 3],
            [field, one | two << 8, 4],
            [mark.0, one | two << 8 | three << 16, 5],
            [mark.0, recent & 255, 6],
            [mark.0, recent, 7],
            [mark.0, recent & 255 | one << 8, 8],
        ];
        self.bases = contexts.map(hash);
        self.mark = mark;
        self.partial = 1;
        self.expect();
    }

    /// The probability that the next bit is set, of 2 to the [`PRECISION`]: neither none nor all.
    pub fn probability(&mut self) -> u32 {
        self.expect_bit();
        for (index, &base) in self.bases.iter().enumerate() {
            let mixed = base.wrapping_add((self.partial as u32).wrapping_mul(0x85eb_ca6b));
            // The high bits depend on all others.
            let slot = (mixed.wrapping_mul(0x9e37_79b1) >> self.shift) as usize;
            self.slots[index] = slot;
            self.inputs[index] = i32::from(self.stretch[self.counters[slot].probability()]);
        }
        self.inputs[CONTEXTS] = self.expected.map_or(0, |bit| {
            let sure = i32::from(self.stretch[self.match_counters[self.match_level()].probability()]);
            if bit { sure } else { -sure }
        });
        self.inputs[CONTEXTS + 1] = 64;
        let weights = &self.weights[self.mark.field()];
        let sum: i64 = self.inputs.iter().zip(weights).map(|(&x, &w)| i64::from(x) * i64::from(w)).sum();
        self.mixed = squash((sum >> 16).clamp(-2047, 2047) as i32);
        (self.mixed.clamp(1, 4095) as u32) << (PRECISION - 12)
    }

    /// Learns what the bit was; at the end of a byte, the byte.
    pub fn learn(&mut self, bit: bool) {
        let error = ((i32::from(bit) << 12) - self.mixed) * LEARNING;
        for (weight, &input) in self.weights[self.mark.field()].iter_mut().zip(&self.inputs) {
            *weight = weight.saturating_add((input * error + 0x8000) >> 16);
        }
        for &slot in &self.slots {
            self.counters[slot].adapt(bit);
        }
        if let Some(expected) = self.expected {
            let level = self.match_level();
            self.match_counters[level].adapt(expected == bit);
            if expected != bit {
                self.match_length = 0;
            }
        }
        self.partial = self.partial << 1 | usize::from(bit);
        if self.partial > 255 {
            self.end(self.partial as u8);
        }
    }

    fn end(&mut self, byte: u8) {
        let slot = &mut self.recent[hash([self.mark.0, 0, 0]) as usize % RECENT];
        *slot = *slot << 8 | u16::from(byte);
        self.history.push(byte);
        if self.match_length > 0 {
            (self.match_length, self.matched) = (self.match_length + 1, self.matched + 1);
        }
    }

    fn expect(&mut self) {
        let Some(&[a, b, c, d]) = self.history.last_chunk() else { return };
        let key = hash([u32::from_le_bytes([a, b, c, d]), 0, 9]) as usize % PLACES;
        if self.match_length == 0 {
            self.matched = self.places[key] as usize;
            let before = self.history[..self.matched].iter().rev().zip(self.history.iter().rev());
            self.match_length = before.take(32).take_while(|(one, other)| one == other).count() as u32;
        }
        self.places[key] = self.history.len() as u32;
    }

    fn match_level(&self) -> usize {
        self.match_length.min(31) as usize
    }

    fn expect_bit(&mut self) {
        let byte = self.history.get(self.matched).filter(|_| self.match_length > 0);
        let bits = self.partial.ilog2();
        self.expected = byte.map(|&byte| byte >> (7 - bits) & 1 != 0);
    }
}
