//! Bits with probabilities, by constriction's range coder.

use std::borrow::Borrow;
use std::num::NonZeroU32;

use constriction::backends::ReadWords;
use constriction::stream::model::{DecoderModel, EncoderModel, EntropyModel};
use constriction::stream::queue::{RangeDecoder, RangeEncoder};
use constriction::stream::{Decode, Encode};
use constriction::{Queue, UnwrapInfallible};

/// Bits of a probability.
pub const PRECISION: usize = 16;
/// Bytes of a word of the coder.
const WORD: usize = 4;
/// Words past the end that a decoder looks at: it is two words ahead.
const AHEAD: usize = 2;

/// Writes or reads bits; models are the same for both. What is given is what a writer writes and a reader
/// does not look at; what comes back is what was written.
pub trait Bits {
    /// A bit that is 1 with the probability `one`, in 65536ths, neither 0 nor 65536.
    fn bit(&mut self, one: u32, bit: bool) -> bool;
    /// The `width` (at most 64) low bits of `value`, of which nothing is known.
    fn plain(&mut self, width: u32, value: u64) -> u64;
}

/// Writes bits.
#[derive(Debug, Default)]
pub struct Writer(RangeEncoder<u32, u64>);

impl Writer {
    /// What was written; of the last word without the zeros at its end, but never all of it.
    pub fn into_bytes(self) -> Vec<u8> {
        let words = self.0.into_compressed().unwrap_infallible();
        let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        while bytes.len() % WORD != 1 && bytes.pop_if(|last| *last == 0).is_some() {}
        bytes
    }
}

impl Bits for Writer {
    #[inline]
    fn bit(&mut self, one: u32, bit: bool) -> bool {
        self.0.encode_symbol(bit, Chance(one)).expect("no probability is 0");
        bit
    }

    fn plain(&mut self, width: u32, value: u64) -> u64 {
        for (width, at) in parts(width) {
            let part = (value >> at) as u32 & ((1 << width) - 1);
            self.0.encode_symbol(part, Uniform(width)).expect("no probability is 0");
        }
        value
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug)]
pub struct Reader<'a> {
    decoder: RangeDecoder<u32, u64, Words<'a>>,
    sound: bool,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        let decoder =
            RangeDecoder::with_backend(Words { bytes, past: 0 }).expect("looks as far ahead at once");
        Self { decoder, sound: true }
    }

    /// Whether all that was read may have been written: not past the end, nor something never written.
    pub fn is_sound(&self) -> bool {
        self.sound
    }

    fn read<S: Default, M>(&mut self, model: M) -> S
    where
        M: DecoderModel<PRECISION, Symbol = S, Probability = u32>,
    {
        match self.decoder.decode_symbol(model) {
            Ok(symbol) => symbol,
            Err(_) => {
                self.sound = false;
                S::default()
            }
        }
    }
}

impl Bits for Reader<'_> {
    #[inline]
    fn bit(&mut self, one: u32, _: bool) -> bool {
        self.read(Chance(one))
    }

    fn plain(&mut self, width: u32, _: u64) -> u64 {
        parts(width).fold(0, |value, (width, at)| value | u64::from(self.read(Uniform(width))) << at)
    }
}

/// The parts of so many bits that one symbol can have: width and lowest bit of each.
fn parts(width: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..width).step_by(PRECISION).map(move |at| ((width - at).min(PRECISION as u32), at))
}

/// Words, big-endian, then zeros; an error when more of those are asked for than any decoder needs.
#[derive(Debug)]
struct Words<'a> {
    bytes: &'a [u8],
    past: usize,
}

/// There are no more words.
#[derive(Debug)]
struct AtEnd;

impl ReadWords<u32, Queue> for Words<'_> {
    type ReadError = AtEnd;

    #[inline]
    fn read(&mut self) -> Result<Option<u32>, AtEnd> {
        if let Some((word, rest)) = self.bytes.split_first_chunk::<WORD>() {
            self.bytes = rest;
            return Ok(Some(u32::from_be_bytes(*word)));
        }
        let mut word = [0; WORD];
        if self.bytes.is_empty() {
            self.past += 1;
        }
        word[..self.bytes.len()].copy_from_slice(self.bytes);
        self.bytes = &[];
        if self.past > AHEAD { Err(AtEnd) } else { Ok(Some(u32::from_be_bytes(word))) }
    }
}

/// A bit by its probability of being 1.
struct Chance(u32);

impl EntropyModel<PRECISION> for Chance {
    type Symbol = bool;
    type Probability = u32;
}

impl EncoderModel<PRECISION> for Chance {
    #[inline]
    fn left_cumulative_and_probability(&self, bit: impl Borrow<bool>) -> Option<(u32, NonZeroU32)> {
        let (left, wide) = if *bit.borrow() { (0, self.0) } else { (self.0, (1 << PRECISION) - self.0) };
        Some((left, NonZeroU32::new(wide)?))
    }
}

impl DecoderModel<PRECISION> for Chance {
    #[inline]
    fn quantile_function(&self, quantile: u32) -> (bool, u32, NonZeroU32) {
        let bit = quantile < self.0;
        let (left, wide) = self.left_cumulative_and_probability(bit).expect("no probability is 0");
        (bit, left, wide)
    }
}

/// Any of the numbers of so many bits.
struct Uniform(u32);

impl EntropyModel<PRECISION> for Uniform {
    type Symbol = u32;
    type Probability = u32;
}

impl EncoderModel<PRECISION> for Uniform {
    fn left_cumulative_and_probability(&self, number: impl Borrow<u32>) -> Option<(u32, NonZeroU32)> {
        let beyond = PRECISION as u32 - self.0;
        Some((*number.borrow() << beyond, NonZeroU32::new(1 << beyond)?))
    }
}

impl DecoderModel<PRECISION> for Uniform {
    fn quantile_function(&self, quantile: u32) -> (u32, u32, NonZeroU32) {
        let number = quantile >> (PRECISION as u32 - self.0);
        let (left, wide) = self.left_cumulative_and_probability(number).expect("never 0");
        (number, left, wide)
    }
}
