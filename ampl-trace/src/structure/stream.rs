//! Values with their meanings, as bytes: written once, compressed by the method that makes them shortest, read back.
//!
//! Byte 0 is the method: 0 none, 1 zstd, 2 mixed contexts of an old kind, 3 mixed contexts, 4 two lanes, each by zstd.
//! Except behind 0, the number of uncompressed bytes follows.

use std::cell::Cell;

use super::mix::{Mark, Predictor};
use super::split_streams;
use crate::bits::{Reader, Writer};
use crate::varint;

/// Most bytes that contexts are mixed for: a fifth of a microsecond each.
const MOST_MIXED: usize = 1 << 20;
/// Bytes that are decompressed whatever the ratio.
const MODEST: u64 = 1 << 23;
/// Highest compression ratio beyond [`MODEST`].
const MOST_RATIO: u64 = 1 << 8;
/// Largest number of bytes for which the strongest level of zstd is worth its time.
const STRONG: usize = 1 << 20;

/// Time to spend on compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// For one hop between two processes.
    Quick,
    /// For a file.
    Best,
}

/// Meaning of a value: values of one field resemble each other.
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
    /// Number of words of a signature.
    Words,
    /// Symbols of a grammar.
    Symbol,
    /// Number of runs of counts of a position.
    CountRuns,
    /// Counts.
    Count,
    /// Kind of a column's formula.
    Fit,
    /// Numbers of a column's formula.
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
    /// Marks of all bytes, unless these are too many to be mixed.
    marks: Vec<Mark>,
    /// Bytes that marks are kept for.
    most_marked: usize,
}

impl Out {
    /// An empty stream.
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

    /// Appends values that are bytes already, and returns true, if there is too much to be mixed; else they are to be
    /// put one by one.
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

    /// The bytes, stored by the shortest method that is worth its time.
    pub fn encode_fast(&self) -> Vec<u8> {
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
            // Mixed contexts leave nothing for zstd.
            consider(3, self.mix());
            return best;
        }
        let (level, promising) = if self.bytes.len() <= STRONG { (19, 2) } else { (6, 4) };
        let lanes = self.lanes();
        // If they do not shrink to half, or a quarter, at once, a stronger level finds no more than a few percent.
        let repeats = lanes.as_ref().is_none_or(|lanes| lanes.len() <= self.bytes.len() / promising);
        if let Some(lanes) = lanes {
            consider(4, lanes);
        }
        if repeats && let Some(packed) = squeezed(&self.bytes, level) {
            consider(1, packed);
        }
        best
    }

    /// Bytes of the first lane, before and after compression; then both lanes.
    fn lanes(&self) -> Option<Vec<u8>> {
        let lanes = split_streams::split(&self.bytes);
        let packed = [squeezed(&lanes[0], 1)?, squeezed(&lanes[1], 1)?];
        let mut whole = Vec::with_capacity(20 + packed[0].len() + packed[1].len());
        varint::put(&mut whole, lanes[0].len() as u64);
        varint::put(&mut whole, packed[0].len() as u64);
        packed.iter().for_each(|lane| whole.extend_from_slice(lane));
        Some(whole)
    }

    fn mix(&self) -> Vec<u8> {
        let mut predictor = Predictor::new(self.bytes.len());
        let mut bits = Writer::default();
        for (&byte, &mark) in self.bytes.iter().zip(&self.marks) {
            predictor.byte(mark, byte, &mut bits);
        }
        bits.shortest()
    }
}

/// Bytes as zstd stores them at a level.
fn squeezed(bytes: &[u8], level: i32) -> Option<Vec<u8>> {
    zstd::bulk::compress(bytes, level).ok()
}

/// The bytes that [`squeezed`] took, if there were so many.
fn unsqueezed(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    zstd::bulk::decompress(packed, length).ok().filter(|bytes| bytes.len() == length)
}

/// The bytes that [`Out::lanes`] took, if there were so many.
fn unlaned(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut reader = varint::Reader::new(packed);
    let first = usize::try_from(reader.get()?).ok().filter(|&first| first <= length)?;
    let cut = usize::try_from(reader.get()?).ok()?;
    let (one, other) = packed[reader.position()..].split_at_checked(cut)?;
    split_streams::woven([&unsqueezed(one, first)?, &unsqueezed(other, length - first)?])
}

/// True where `packed` bytes may hold `raw` ones.
fn admissible(raw: u64, packed: usize) -> bool {
    raw <= MODEST.max(MOST_RATIO.saturating_mul(packed as u64))
}

/// Error of a structure that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Part that was being read.
    pub what: &'static str,
    /// Position, in bytes once decompressed.
    pub at: usize,
}

enum Source {
    Bytes(Vec<u8>),
    Mixed { predictor: Box<Predictor>, bits: Reader<Vec<u8>> },
}

/// Reads values back; the fields and contexts must be those they were written with.
pub struct In {
    source: Source,
    length: usize,
    at: usize,
    /// Part that is being read, for errors.
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
                let bytes = unsqueezed(body, length);
                Ok(Self::of(Source::Bytes(bytes.ok_or(broken("compressed structure"))?), length))
            }
            4 => {
                let bytes = unlaned(body, length);
                Ok(Self::of(Source::Bytes(bytes.ok_or(broken("lanes of the structure"))?), length))
            }
            3 if length <= MOST_MIXED => {
                let predictor = Box::new(Predictor::new(length));
                Ok(Self::of(Source::Mixed { predictor, bits: Reader::new(body.to_vec()) }, length))
            }
            _ => Err(broken("way the structure is compressed")),
        }
    }

    fn of(source: Source, length: usize) -> Self {
        Self { source, length, at: 0, what: Cell::new("structure") }
    }

    fn byte(&mut self, mark: Mark) -> Option<u8> {
        if self.at == self.length {
            return None;
        }
        let byte = match &mut self.source {
            Source::Bytes(bytes) => bytes[self.at],
            Source::Mixed { predictor, bits } => predictor.byte(mark, 0, bits),
        };
        self.at += 1;
        Some(byte)
    }

    /// Sets the part that is being read, for errors.
    pub fn reading(&self, what: &'static str) {
        self.what.set(what);
    }

    /// The error of a value that does not make sense here.
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

    /// True where everything has been read.
    pub fn is_empty(&self) -> bool {
        self.at == self.length
    }
}

/// The signed integer that `value` stands for.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of [`values`] by mixed contexts.
    const STORED: &str = "03f0017a727aad2efd7b6df34f853800af67206c17a9ab15a98954b4fbab040b05d7e7e406dedd23a3c3\
                          a537fc8979e218949d9c5973aba76f60bbd2d8897bb0d5c898c24239b66c378ca3";

    /// Values small and large of some fields and contexts, which repeat themselves now and then.
    fn values() -> Vec<(u8, u32, u64)> {
        let value = |n: u64| match n % 7 {
            0 => n / 7,
            1 => 3,
            2 => 300,
            3 => n * n % 11,
            4 => 1 << (n / 35 % 60),
            5 => 7 + n / 100,
            _ => 0,
        };
        (0..210).map(|n| ((n % 7) as u8, (n % 14 / 3) as u32, value(n))).collect()
    }

    fn packed(values: &[(u8, u32, u64)]) -> Vec<u8> {
        let mut out = Out::new(Effort::Best);
        values.iter().for_each(|&(field, context, value)| out.put_as(field, context, value));
        out.encode_fast()
    }

    fn unpacked(packed: &[u8], marks: &[(u8, u32, u64)]) -> Vec<(u8, u32, u64)> {
        let mut stream = In::new(packed).unwrap();
        let mut value = |field, context| stream.get_as(field, context).unwrap();
        marks.iter().map(|&(field, context, _)| (field, context, value(field, context))).collect()
    }

    fn from_hex(hex: &str) -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    }

    #[test]
    fn a_stream_is_read_for_ever() {
        let stored = from_hex(STORED);
        assert_eq!(unpacked(&stored, &values()), values());
        assert_eq!(packed(&values()), stored, "no machine codes otherwise");
    }

    /// More than is mixed, of even numbers below 200 in no order.
    fn much() -> Vec<(u8, u32, u64)> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 100 * 2
        };
        (0..2 * MOST_MIXED).map(|_| (Field::Symbol as u8, 9, next())).collect()
    }

    #[test]
    fn much_without_order_goes_in_lanes() {
        let values = much();
        let packed = packed(&values);
        assert_eq!(packed[0], 4);
        assert_eq!(unpacked(&packed, &values), values);
        // log2 of 100 is 6.64.
        assert!(packed.len() * 8 < values.len() * 68 / 10, "{} bytes", packed.len());
    }

    #[test]
    fn lanes_that_do_not_fit_are_refused() {
        let packed = packed(&much());
        for length in (0..200).chain(packed.len() - 200..packed.len()) {
            assert!(In::new(&packed[..length]).is_err(), "{length}");
        }
        // Lengths: of all, of the first lane, of what it takes.
        for at in 1..10 {
            let mut other = packed.clone();
            other[at] ^= 1;
            assert!(In::new(&other).is_err(), "byte {at}");
        }
    }

    #[test]
    fn every_beginning_of_a_stream_comes_back() {
        let values = values();
        for length in 0..values.len() {
            let beginning = &values[..length];
            assert_eq!(unpacked(&packed(beginning), beginning), beginning);
        }
    }
}
