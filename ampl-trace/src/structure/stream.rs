//! Values with what they mean, as bytes: written once, compressed by whatever makes them shortest, read back.
//!
//! Byte 0 tells how: 0 as they are, 1 zstd, 2 mixed contexts; then, but for 0, the number of bytes there
//! were.

use std::cell::Cell;

use constriction::stream::model::{DecoderModel, EncoderModel, EntropyModel};
use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};
use constriction::stream::{Decode, Encode};

use super::mix::{Mark, PRECISION, Predictor};
use crate::varint;

/// Most bytes that contexts are mixed for: a microsecond each.
const MOST_MIXED: usize = 1 << 17;
/// Bytes that are decompressed whatever the ratio.
const MODEST: u64 = 1 << 23;
/// Highest ratio beyond that.
const MOST_RATIO: u64 = 1 << 8;
/// Largest that the strongest level of zstd is worth its time.
const STRONG: usize = 1 << 20;

/// How much time to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For one hop between two processes.
    Quick,
    /// For keeps.
    Best,
}

/// What a value means: values of one field resemble each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Field {
    /// Counts at the beginning, versions, checksums.
    Head,
    /// Lengths of lists.
    Length,
    /// Text.
    Text,
    /// Functions and their table.
    Function,
    /// Flags of a call.
    Flags,
    /// Call sites.
    Site,
    /// Offsets of call sites.
    Offset,
    /// How many words a signature has.
    Words,
    /// Symbols of a grammar.
    Symbol,
    /// How many runs of counts a position has.
    CountRuns,
    /// Counts.
    Count,
    /// What a column is made of.
    Fit,
    /// Numbers in that.
    FitNumber,
    /// Values of a column one by one.
    Value,
    /// Fields of words, one for each role: the last.
    Role = 16,
}

/// Collects values.
#[derive(Debug)]
pub struct Out {
    effort: Effort,
    bytes: Vec<u8>,
    /// Of every byte, unless they are too many to be mixed.
    marks: Vec<Mark>,
    /// Bytes that marks are kept for.
    most_marked: usize,
}

impl Out {
    /// Nothing yet.
    pub fn new(effort: Effort) -> Self {
        let most_marked = if effort == Effort::Best { MOST_MIXED } else { 0 };
        Self { effort, bytes: Vec::new(), marks: Vec::new(), most_marked }
    }

    /// Appends `value`, which means `field` in a context of its own.
    pub fn put(&mut self, field: Field, context: u32, value: u64) {
        self.put_as(field as u8, context, value);
    }

    /// As [`Out::put`], for a field by its number.
    #[inline]
    pub fn put_as(&mut self, field: u8, context: u32, value: u64) {
        let from = self.bytes.len();
        if value < 0x80 && from >= self.most_marked {
            self.bytes.push(value as u8);
            return;
        }
        varint::put(&mut self.bytes, value);
        if self.bytes.len() <= self.most_marked {
            self.marks.extend((0..self.bytes.len() - from).map(|place| Mark::new(field, context, place)));
        }
    }

    /// Appends a signed value.
    pub fn put_signed(&mut self, field: Field, context: u32, value: i64) {
        self.put(field, context, varint::zigzag(value));
    }

    /// Appends bytes without their length.
    pub fn put_bytes(&mut self, field: Field, context: u32, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > self.most_marked {
            return;
        }
        self.marks.extend(bytes.iter().map(|_| Mark::new(field as u8, context, 0)));
    }

    /// Appends values that are bytes already, if there is too much to be mixed; else they are to be put one by one.
    pub fn put_unmarked(&mut self, values: &[u8]) -> bool {
        let is_much = self.bytes.len() + values.len() > self.most_marked;
        if is_much {
            self.bytes.extend_from_slice(values);
        }
        is_much
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends `value`, less than 128, so many times.
    pub fn put_times(&mut self, field: Field, context: u32, value: u8, times: usize) {
        debug_assert!(value < 0x80);
        self.bytes.resize(self.bytes.len() + times, value);
        if self.bytes.len() <= self.most_marked {
            self.marks.resize(self.bytes.len(), Mark::new(field as u8, context, 0));
        }
    }

    /// The shortest of the ways to store it that are worth their time.
    pub fn pack(&self) -> Vec<u8> {
        let mut best = vec![0];
        best.extend_from_slice(&self.bytes);
        if self.effort == Effort::Quick {
            // Networks, and memory all the more, are quicker than any compression.
            return best;
        }
        let mut consider = |way: u8, packed: Vec<u8>| {
            let mut whole = vec![way];
            varint::put(&mut whole, self.bytes.len() as u64);
            whole.extend_from_slice(&packed);
            if whole.len() < best.len() && admissible(self.bytes.len() as u64, packed.len()) {
                best = whole;
            }
        };
        if self.bytes.len() <= MOST_MIXED {
            // Nothing that zstd finds is left by mixed contexts.
            consider(2, self.mix());
            return best;
        }
        let zstd = |level| zstd::bulk::compress(&self.bytes, level).ok();
        let packed = if self.bytes.len() <= STRONG {
            zstd(19)
        } else {
            // What is no quarter at once repeats too little for a stronger level to find more than a few percent.
            match zstd(1) {
                Some(quick) if quick.len() <= self.bytes.len() / 4 => zstd(6),
                quick => quick,
            }
        };
        if let Some(packed) = packed {
            consider(1, packed);
        }
        best
    }

    fn mix(&self) -> Vec<u8> {
        let mut predictor = Predictor::new(self.bytes.len());
        let mut encoder = DefaultRangeEncoder::new();
        for (&byte, &mark) in self.bytes.iter().zip(&self.marks) {
            predictor.begin(mark);
            for bit in (0..8).rev().map(|place| byte >> place & 1 != 0) {
                let set = predictor.probability();
                encoder.encode_symbol(bit, Bit { set }).expect("both bits are possible");
                predictor.learn(bit);
            }
        }
        let words = encoder.into_compressed().expect("memory takes everything");
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        // The last word only has to lie in a range, which its first bytes do; the reader sees zeros behind.
        let exact = |bytes: &[u8]| {
            let mut stream = In::mixed(bytes, self.bytes.len());
            self.bytes.iter().zip(&self.marks).all(|(&byte, &mark)| stream.byte(mark) == Some(byte))
        };
        for _ in 0..if self.bytes.len() <= 1 << 12 { 4 } else { 0 } {
            let mut shorter = bytes[..bytes.len().saturating_sub(1)].to_vec();
            let same = exact(&shorter);
            if !same && let Some(last) = shorter.last_mut() {
                *last = last.wrapping_add(1);
            }
            if !same && !exact(&shorter) {
                break;
            }
            bytes = shorter;
        }
        bytes
    }
}

/// Whether so many bytes may come out of so many.
fn admissible(raw: u64, packed: usize) -> bool {
    raw <= MODEST.max(MOST_RATIO.saturating_mul(packed as u64))
}

/// One bit as the range coder's model.
#[derive(Clone, Copy)]
struct Bit {
    set: u32,
}

impl EntropyModel<PRECISION> for Bit {
    type Symbol = bool;
    type Probability = u32;
}

impl Bit {
    fn interval(self, bit: bool) -> (u32, std::num::NonZeroU32) {
        let (from, width) = if bit { (0, self.set) } else { (self.set, (1 << PRECISION) - self.set) };
        (from, std::num::NonZeroU32::new(width).expect("both bits are possible"))
    }
}

impl EncoderModel<PRECISION> for Bit {
    fn left_cumulative_and_probability(
        &self,
        symbol: impl std::borrow::Borrow<bool>,
    ) -> Option<(u32, std::num::NonZeroU32)> {
        Some(self.interval(*symbol.borrow()))
    }
}

impl DecoderModel<PRECISION> for Bit {
    fn quantile_function(&self, quantile: u32) -> (bool, u32, std::num::NonZeroU32) {
        let bit = quantile < self.set;
        let (from, width) = self.interval(bit);
        (bit, from, width)
    }
}

/// Why a structure cannot be read: what was being read, and how many bytes of it had been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// What.
    pub what: &'static str,
    /// Where, in bytes once decompressed.
    pub at: usize,
}

enum Source {
    Bytes(Vec<u8>),
    Mixed { predictor: Box<Predictor>, decoder: DefaultRangeDecoder },
}

/// Reads values back; the fields and contexts must be those they were written with.
pub struct In {
    source: Source,
    length: usize,
    at: usize,
    /// What is being read, for errors.
    what: Cell<&'static str>,
}

impl In {
    /// The values in `packed`.
    pub fn new(packed: &[u8]) -> Result<Self, Broken> {
        let broken = |what| Broken { what, at: 0 };
        let (&way, rest) = packed.split_first().ok_or(broken("structure of no bytes"))?;
        if way == 0 {
            return Ok(Self::of(Source::Bytes(rest.to_vec()), rest.len()));
        }
        let mut reader = varint::Reader::new(rest);
        let raw = reader.get().ok_or(broken("length of the structure"))?;
        let body = &rest[reader.position()..];
        if !admissible(raw, body.len()) {
            return Err(broken("structure longer than its bytes allow"));
        }
        let length = usize::try_from(raw).map_err(|_| broken("length of the structure"))?;
        match way {
            1 => {
                let bytes = zstd::bulk::decompress(body, length).ok().filter(|bytes| bytes.len() == length);
                Ok(Self::of(Source::Bytes(bytes.ok_or(broken("compressed structure"))?), length))
            }
            2 if length <= MOST_MIXED => Ok(Self::mixed(body, length)),
            _ => Err(broken("way the structure is compressed")),
        }
    }

    fn of(source: Source, length: usize) -> Self {
        Self { source, length, at: 0, what: Cell::new("structure") }
    }

    fn mixed(body: &[u8], length: usize) -> Self {
        let word = |bytes: &[u8]| {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            u32::from_be_bytes(word)
        };
        let words: Vec<u32> = body.chunks(4).map(word).collect();
        let decoder = DefaultRangeDecoder::from_compressed(words).expect("memory gives everything");
        Self::of(Source::Mixed { predictor: Box::new(Predictor::new(length)), decoder }, length)
    }

    fn byte(&mut self, mark: Mark) -> Option<u8> {
        if self.at == self.length {
            return None;
        }
        let byte = match &mut self.source {
            Source::Bytes(bytes) => bytes[self.at],
            Source::Mixed { predictor, decoder } => {
                predictor.begin(mark);
                let mut byte = 0;
                for _ in 0..8 {
                    let set = predictor.probability();
                    let bit = decoder.decode_symbol(Bit { set }).ok()?;
                    predictor.learn(bit);
                    byte = byte << 1 | u8::from(bit);
                }
                byte
            }
        };
        self.at += 1;
        Some(byte)
    }

    /// From now on errors say that `what` was being read.
    pub fn reading(&self, what: &'static str) {
        self.what.set(what);
    }

    /// The error that something does not make sense here.
    pub fn broken(&self) -> Broken {
        Broken { what: self.what.get(), at: self.at }
    }

    /// The next value.
    pub fn get(&mut self, field: Field, context: u32) -> Result<u64, Broken> {
        self.get_as(field as u8, context)
    }

    /// As [`In::get`], for a field by its number.
    #[inline]
    pub fn get_as(&mut self, field: u8, context: u32) -> Result<u64, Broken> {
        if let Source::Bytes(bytes) = &self.source
            && let Some(&byte) = bytes.get(self.at)
            && byte < 0x80
        {
            self.at += 1;
            return Ok(byte.into());
        }
        self.get_long(field, context)
    }

    fn get_long(&mut self, field: u8, context: u32) -> Result<u64, Broken> {
        let mut value = 0;
        for place in 0..10 {
            let byte = self.byte(Mark::new(field, context, place)).ok_or_else(|| self.broken())?;
            if place == 9 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(self.broken())
    }

    /// The next signed value.
    pub fn get_signed(&mut self, field: Field, context: u32) -> Result<i64, Broken> {
        self.get(field, context).map(unzigzag)
    }

    /// The next value, at most `most`.
    pub fn get_most(&mut self, field: Field, context: u32, most: u64) -> Result<u64, Broken> {
        self.get(field, context).and_then(|value| if value <= most { Ok(value) } else { Err(self.broken()) })
    }

    /// The next length: not more than there are bytes left, each element taking one at least.
    pub fn get_length(&mut self, field: Field, context: u32) -> Result<usize, Broken> {
        let length = self.get(field, context)?;
        let left = self.left();
        usize::try_from(length).ok().filter(|&length| length <= left).ok_or_else(|| self.broken())
    }

    /// The next `length` bytes.
    pub fn get_bytes(&mut self, field: Field, context: u32, length: usize) -> Result<Vec<u8>, Broken> {
        let mark = Mark::new(field as u8, context, 0);
        (0..length).map(|_| self.byte(mark).ok_or_else(|| self.broken())).collect()
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.length - self.at
    }

    /// Whether everything has been read.
    pub fn is_empty(&self) -> bool {
        self.at == self.length
    }
}

/// The signed integer that `value` stands for.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}
