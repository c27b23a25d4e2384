//! Bits with probabilities, by constriction's range coder.

use constriction::Pos as _;
use constriction::stream::model::{DecoderModel, EncoderModel, EntropyModel};
use constriction::stream::queue::{DefaultRangeDecoder, DefaultRangeEncoder};

use super::mix::PRECISION;

/// Bytes of a word of the coder.
const WORD: usize = 4;

/// One bit as the range coder's model.
#[derive(Clone, Copy)]
pub struct Bit {
    /// How likely it is to be set, of 2 to the [`PRECISION`]; neither 0 nor all.
    pub set: u32,
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

/// What `encoder` wrote, in as few bytes as tell it: the reader sees zeros behind.
pub fn finished(encoder: DefaultRangeEncoder) -> Vec<u8> {
    let (whole, state) = encoder.pos();
    let words = encoder.into_compressed().expect("memory takes everything");
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    // Behind the whole words anything in the range will do: of numbers with so many bytes the first from there.
    let end = (0..=WORD).find_map(|kept| {
        let behind = u64::MAX >> (8 * kept);
        // Else the words before would be others.
        let first = state.lower().checked_add(behind)? & !behind;
        (first - state.lower() < state.range().get()).then(|| (first.to_be_bytes(), kept))
    });
    if let Some((end, kept)) = end {
        bytes.truncate(whole * WORD);
        bytes.extend_from_slice(&end[..kept]);
    }
    while bytes.pop_if(|last| *last == 0).is_some() {}
    bytes
}

/// Reads what [`finished`] returned.
pub fn decoder(body: &[u8]) -> DefaultRangeDecoder {
    let word = |bytes: &[u8]| {
        let mut word = [0; WORD];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_be_bytes(word)
    };
    let words: Vec<u32> = body.chunks(WORD).map(word).collect();
    DefaultRangeDecoder::from_compressed(words).expect("memory gives everything")
}

#[cfg(test)]
mod tests {
    use constriction::stream::{Decode as _, Encode as _};

    use super::*;

    #[test]
    fn the_end_of_a_stream_takes_only_the_bytes_that_tell_it() {
        // Whatever the range is at the end: streams of any bits; and such around a number with zeros at its end,
        // the words before which are not known until the last bit.
        let mut state = 1u64;
        for bits in 0..2000 {
            let mut encoder = DefaultRangeEncoder::new();
            let mut coded = Vec::new();
            let mut around = decoder(&[0x80]);
            for _ in 0..bits % 80 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let set = (state >> 40) as u32 % 0xffff + 1;
                let bit = if bits % 3 == 0 {
                    around.decode_symbol(Bit { set }).unwrap()
                } else {
                    state >> 60 & 1 != 0
                };
                encoder.encode_symbol(bit, Bit { set }).unwrap();
                coded.push((set, bit));
            }
            let sealed = encoder.clone().into_compressed().unwrap().len() * WORD;
            let bytes = finished(encoder);
            assert!(bytes.len() <= sealed);
            let mut decoder = decoder(&bytes);
            let same = |&(set, bit): &(u32, bool)| decoder.decode_symbol(Bit { set }).ok() == Some(bit);
            assert!(coded.iter().all(same), "{coded:?}");
        }
    }
}
