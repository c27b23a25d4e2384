//! Predictions of the next bit of a stream of small values: several contexts, each with its own counters,
//! mixed by weights that adapt. Integers throughout, so that every machine predicts alike.
//!
//! The method is that of context mixing (Mahoney, "Adaptive weighing of context models for lossless data
//! compression", 2005): on a few hundred bytes it is worth a third of what an LZ compressor leaves. It takes as long
//! as there are decisions, and as it waits for counters: most bytes are below 8, which is a decision of its own and
//! leaves three; and the counters of a context for three bits lie together.

use crate::bits::{Bits, PRECISION};

/// Contexts of a byte.
const CONTEXTS: usize = 6;
/// Inputs of a decision: predictions of the contexts and of the longest match, and a constant. They fit a vector
/// register.
const INPUTS: usize = CONTEXTS + 2;
/// Bits of a weight behind the point.
const WEIGHT_BITS: u32 = 14;
/// Weights before anything is known.
const FIRST_WEIGHT: i16 = 4500;
/// Learning rate of weights, in halves.
const LEARNING: i32 = 15;
/// Observations after which a counter forgets.
const MEMORY: u32 = 80;
/// Bits that the counters of a line predict.
const LINE_BITS: usize = 3;
/// Counters of a line: one for whether a byte has no more than [`LINE_BITS`] bits, one for each node of their tree.
const LINE: usize = 1 << LINE_BITS;

/// Context of a byte: meaning of its value, its own context, and its place in the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark(u32);

impl Mark {
    /// Number of fields.
    pub const FIELDS: usize = 32;

    /// The mark of byte `place` of a value that means `field`, in `context`.
    pub fn new(field: u8, context: u32, place: usize) -> Self {
        let context = context.wrapping_mul(0x9e37_79b1) >> 8 & 0x00ff_fff8;
        Self(u32::from(field) << 24 | context | place.min(7) as u32)
    }

    /// Field and place without the context.
    pub fn field_and_place(self) -> u32 {
        self.field() as u32 | (self.0 & 7) << 8
    }

    /// Number of its field.
    pub fn field(self) -> usize {
        (self.0 >> 24) as usize % Self::FIELDS
    }
}

/// A hash of `words`, of which the low bits are the better.
pub fn hash(words: [u32; 3]) -> u32 {
    let mix = |all: u64, word| (all ^ u64::from(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    (words.into_iter().fold(0x243f_6a88_85a3_08d3, mix) >> 16) as u32
}

/// The logistic function of `x`/256, of 4096.
pub const fn squash(x: i32) -> i32 {
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
pub static STRETCH: [i16; 4096] = {
    let mut table = [2047; 4096];
    let (mut from, mut x) = (0, -2047);
    while x <= 2047 {
        let to = squash(x) as usize;
        while from <= to {
            table[from] = x as i16;
            from += 1;
        }
        x += 1;
    }
    table
};

/// Weight of the next observation after so many, of 65536.
pub const fn shares<const SEEN: usize>() -> [u16; SEEN] {
    let mut shares = [0; SEEN];
    let mut seen = 0;
    while seen < shares.len() {
        shares[seen] = ((2 << 16) / (2 * seen + 3)) as u16;
        seen += 1;
    }
    shares
}

/// Shares, a power of two of them, so that no index is beyond.
const SHARES: [u16; 128] = shares();

/// A probability of 22 bits, and how often it was adapted in the low 10. The probability is stored with its highest
/// bit turned, so that nothing is known of zeros: memory fresh from the system is not touched before it is needed.
#[derive(Clone, Copy, Default)]
struct Counter(u32);

impl Counter {
    const HALF: u32 = 1 << 31;
    const SEEN: u32 = (1 << 10) - 1;

    fn stretched(self) -> i16 {
        STRETCH[((self.0 ^ Self::HALF) >> 20) as usize]
    }

    fn share(self) -> u16 {
        SHARES[(self.0 & Self::SEEN) as usize % SHARES.len()]
    }

    /// After another observation, worth `share`.
    fn adapted(self, bit: bool, share: u16) -> Self {
        let turned = (Self::HALF ^ u32::from(bit).wrapping_neg()) & !Self::SEEN;
        // The probability of what did not come.
        let other = (self.0 ^ turned) >> 10;
        // Factors of 16 bits, which vectors multiply in one instruction.
        let other = other - ((u32::from((other >> 6) as u16) * u32::from(share)) >> 10);
        let seen = self.0 & Self::SEEN;
        Self((other << 10 ^ turned) | (seen + u32::from(seen < MEMORY)))
    }
}

/// The bytes so far, and a match of the last ones before.
pub struct Matches {
    history: Vec<u8>,
    /// Position behind the last four bytes' last occurrence, by their hash.
    places: Vec<u32>,
    at: usize,
    length: u32,
}

impl Matches {
    /// Number of match lengths with counters of their own.
    pub const LEVELS: usize = 32;

    /// No bytes, and that many places for them, a power of two.
    pub fn new(places: usize) -> Self {
        Self { history: Vec::new(), places: vec![0; places], at: 0, length: 0 }
    }

    /// The `n`th last byte, 0 before the first.
    pub fn back(&self, n: usize) -> u32 {
        self.history.len().checked_sub(n).map_or(0, |at| u32::from(self.history[at]))
    }

    /// Finds a match, unless there is one; returns the byte that came after it.
    pub fn find(&mut self) -> Option<u8> {
        let &[a, b, c, d] = self.history.last_chunk()?;
        let key = hash([u32::from_le_bytes([a, b, c, d]), 0, 9]) as usize % self.places.len();
        if self.length == 0 {
            self.at = self.places[key] as usize;
            let before = self.history[..self.at].iter().rev().zip(self.history.iter().rev());
            self.length = before.take(Self::LEVELS).take_while(|(one, other)| one == other).count() as u32;
        }
        self.places[key] = self.history.len() as u32;
        self.history.get(self.at).copied().filter(|_| self.length > 0)
    }

    /// True where the match has predicted all of the byte so far.
    pub fn holds(&self) -> bool {
        self.length > 0
    }

    /// Ends a match that has predicted wrongly.
    pub fn fail(&mut self) {
        self.length = 0;
    }

    /// Length of the match, below [`Matches::LEVELS`].
    pub fn level(&self) -> usize {
        (self.length as usize).min(Self::LEVELS - 1)
    }

    /// Appends a byte.
    pub fn push(&mut self, byte: u8) {
        self.history.push(byte);
        if self.length > 0 {
            (self.length, self.at) = (self.length + 1, self.at + 1);
        }
    }
}

/// The last two bytes in each field and context.
pub struct Recent(Vec<u16>);

impl Recent {
    const PLACES: usize = 1 << 12;

    /// No bytes.
    pub fn new() -> Self {
        Self(vec![0; Self::PLACES])
    }

    /// Last two bytes at `mark`, the last in the low bits.
    pub fn at(&mut self, mark: Mark) -> &mut u16 {
        &mut self.0[hash([mark.0, 0, 0]) as usize % Self::PLACES]
    }
}

/// A decision: its counters in their lines, its weights, and the prediction of the match.
struct Asked {
    lines: [u32; CONTEXTS],
    node: usize,
    weights: usize,
    expected: Option<bool>,
}

/// Predicts bits from those before them.
pub struct Predictor {
    /// Counters of every context, hashed.
    lines: Vec<[Counter; LINE]>,
    /// Bits of a hash that do not select its line.
    shift: u32,
    /// Weights by field, for whether a byte is small and for its bits.
    weights: [[i16; INPUTS]; 2 * Mark::FIELDS],
    recent: Recent,
    matches: Matches,
    match_counters: [Counter; Matches::LEVELS],
}

impl Predictor {
    /// A predictor of about `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        // More collide less, but every page of them takes as long as a dozen bytes.
        let lines = (bytes * 16).next_power_of_two().clamp(1 << 16, 1 << 20) / LINE;
        Self {
            lines: vec![[Counter::default(); LINE]; lines],
            shift: 32 - lines.ilog2(),
            weights: [[FIRST_WEIGHT; INPUTS]; 2 * Mark::FIELDS],
            recent: Recent::new(),
            matches: Matches::new(bytes.next_power_of_two().clamp(1 << 10, 1 << 16)),
            match_counters: [Counter::default(); Matches::LEVELS],
        }
    }

    /// Codes the next byte, which stands at `mark`, and returns it: a writer passes it, a reader any.
    pub fn byte(&mut self, mark: Mark, byte: u8, coder: &mut impl Bits) -> u8 {
        let contexts = self.contexts(mark);
        let expected = self.matches.find();
        let weights = 2 * mark.field();
        let is_small = |byte: u8| usize::from(byte) < LINE;
        let lines = self.lines(contexts, 0);
        let asked = Asked { lines, node: 0, weights, expected: expected.map(is_small) };
        // The bits so far, behind a one.
        let (mut lines, mut so_far, bits) = if self.decide(&asked, is_small(byte), coder) {
            (lines, 1 << (8 - LINE_BITS), LINE_BITS)
        } else {
            (self.lines(contexts, 1), 1, 8)
        };
        let mut node = 1;
        for place in (0..bits).rev() {
            if node >= LINE {
                (lines, node) = (self.lines(contexts, so_far), 1);
            }
            let bit_of = |byte: u8| byte >> place & 1 != 0;
            let expected = expected.filter(|_| self.matches.holds()).map(bit_of);
            let asked = Asked { lines, node, weights: weights + 1, expected };
            let bit = self.decide(&asked, bit_of(byte), coder);
            so_far = so_far << 1 | u32::from(bit);
            node = node << 1 | usize::from(bit);
        }
        let byte = so_far as u8;
        let recent = self.recent.at(mark);
        *recent = *recent << 8 | u16::from(byte);
        self.matches.push(byte);
        byte
    }

    fn contexts(&mut self, mark: Mark) -> [u32; CONTEXTS] {
        let (one, two) = (self.matches.back(1), self.matches.back(2));
        let field = mark.field_and_place();
        let recent = u32::from(*self.recent.at(mark));
        let contexts = [
            [field, 0, 0],
            [mark.0, 0, 1],
            [field, one, 2],
            [field, one | two << 8, 4],
            [mark.0, recent & 255, 6],
            [mark.0, recent, 7],
        ];
        contexts.map(hash)
    }

    /// Lines of contexts where that much of a byte is known.
    fn lines(&self, contexts: [u32; CONTEXTS], so_far: u32) -> [u32; CONTEXTS] {
        let so_far = so_far.wrapping_mul(0x85eb_ca6b);
        // The high bits depend on all others.
        contexts.map(|context| context.wrapping_add(so_far).wrapping_mul(0x9e37_79b1) >> self.shift)
    }

    /// Codes a bit and learns from it.
    #[inline]
    fn decide(&mut self, asked: &Asked, bit: bool, coder: &mut impl Bits) -> bool {
        let node = asked.node % LINE;
        let level = self.matches.level();
        let mut counters = [Counter::default(); INPUTS];
        for (counter, &line) in counters.iter_mut().zip(&asked.lines) {
            *counter = self.lines[line as usize][node];
        }
        counters[CONTEXTS] = self.match_counters[level];
        let mut inputs = counters.map(Counter::stretched);
        inputs[CONTEXTS] = match asked.expected {
            Some(true) => inputs[CONTEXTS],
            Some(false) => -inputs[CONTEXTS],
            None => 0,
        };
        inputs[CONTEXTS + 1] = 64;
        let weights = &mut self.weights[asked.weights];
        // At most 8 * 2^11 * 2^15.
        let sum: i32 = inputs.iter().zip(&*weights).map(|(&x, &w)| i32::from(x) * i32::from(w)).sum();
        let mixed = squash((sum >> WEIGHT_BITS).clamp(-2047, 2047));
        let bit = coder.bit((mixed.clamp(1, 4095) as u32) << (PRECISION - 12), bit);

        let error = (((i32::from(bit) << 12) - mixed) * LEARNING) >> 1;
        for (weight, &input) in weights.iter_mut().zip(&inputs) {
            *weight = weight.saturating_add(((i32::from(input) * error + 0x8000) >> 16) as i16);
        }
        let shares = counters.map(Counter::share);
        for (counter, share) in counters[..CONTEXTS].iter_mut().zip(shares) {
            *counter = counter.adapted(bit, share);
        }
        for (&counter, &line) in counters.iter().zip(&asked.lines) {
            self.lines[line as usize][node] = counter;
        }
        if let Some(expected) = asked.expected {
            self.match_counters[level] = counters[CONTEXTS].adapted(expected == bit, shares[CONTEXTS]);
            if expected != bit {
                self.matches.fail();
            }
        }
        bit
    }
}
