//! Bits with probabilities, by a range coder: bytes are those of constriction's, whose symbols would be far
//! more work than a bit.

/// Bits of a probability.
pub const PRECISION: usize = 16;
/// Bytes of a word of the coder, and their bits.
const WORD: usize = 4;
const WORD_BITS: u32 = 8 * WORD as u32;
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
#[derive(Debug)]
pub struct Writer {
    bytes: Vec<u8>,
    /// What is written further is from `lower` on, less than `range` above it, in units of the word after
    /// the next.
    lower: u64,
    range: u64,
}

impl Default for Writer {
    fn default() -> Self {
        Self { bytes: Vec::new(), lower: 0, range: u64::MAX }
    }
}

impl Writer {
    /// What was written; of the last word without the zeros at its end, but never all of it.
    pub fn into_bytes(mut self) -> Vec<u8> {
        if self.range < u64::MAX {
            // The least number of one word in the range, or of two.
            let last = self.lower.wrapping_add(self.range) >> WORD_BITS;
            self.raise((1 << WORD_BITS) - 1);
            self.word();
            if self.lower >> WORD_BITS == last {
                self.bytes.extend([0; WORD]);
            }
        }
        while self.bytes.len() % WORD != 1 && self.bytes.pop_if(|last| *last == 0).is_some() {}
        self.bytes
    }

    /// Narrows the range to these of its parts.
    #[inline]
    fn narrow(&mut self, above: u64, range: u64) {
        self.raise(above);
        self.range = range;
        if range >> WORD_BITS == 0 {
            self.word();
            self.lower <<= WORD_BITS;
            self.range <<= WORD_BITS;
        }
    }

    #[inline]
    fn raise(&mut self, above: u64) {
        let (lower, carries) = self.lower.overflowing_add(above);
        self.lower = lower;
        if carries {
            self.carry();
        }
    }

    /// Adds one to what was written.
    #[cold]
    fn carry(&mut self) {
        for byte in self.bytes.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte > 0 {
                break;
            }
        }
    }

    #[inline]
    fn word(&mut self) {
        self.bytes.extend(((self.lower >> WORD_BITS) as u32).to_be_bytes());
    }
}

impl Bits for Writer {
    #[inline(always)]
    fn bit(&mut self, one: u32, bit: bool) -> bool {
        let part = self.range >> PRECISION;
        let edge = part * u64::from(one);
        let (above, range) = if bit { (0, edge) } else { (edge, (part << PRECISION) - edge) };
        self.narrow(above, range);
        bit
    }

    fn plain(&mut self, width: u32, value: u64) -> u64 {
        for (width, at) in parts(width) {
            let part = self.range >> PRECISION << (PRECISION as u32 - width);
            self.narrow(part * (value >> at & ((1 << width) - 1)), part);
        }
        value
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug)]
pub struct Reader<'a> {
    words: Words<'a>,
    /// How far what is read further is above the range's lower end.
    above: u64,
    range: u64,
    sound: bool,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut reader = Self { words: Words { bytes, past: 0 }, above: 0, range: u64::MAX, sound: true };
        for _ in 0..AHEAD {
            reader.word();
        }
        reader
    }

    /// Whether all that was read may have been written: not past the end, nor something never written.
    pub fn is_sound(&self) -> bool {
        self.sound
    }

    #[inline]
    fn narrow(&mut self, below: u64, range: u64) {
        self.above -= below;
        self.range = range;
        if range >> WORD_BITS == 0 {
            self.word();
            self.range <<= WORD_BITS;
        }
    }

    #[inline]
    fn word(&mut self) {
        let word = self.words.read();
        self.sound &= word.is_some();
        self.above = self.above << WORD_BITS | u64::from(word.unwrap_or(0));
    }
}

impl Bits for Reader<'_> {
    #[inline(always)]
    fn bit(&mut self, one: u32, _: bool) -> bool {
        let part = self.range >> PRECISION;
        let edge = part * u64::from(one);
        let bit = self.above < edge;
        let (below, range) = if bit { (0, edge) } else { (edge, (part << PRECISION) - edge) };
        if self.above - below < range {
            self.narrow(below, range);
        } else {
            self.sound = false;
        }
        bit
    }

    fn plain(&mut self, width: u32, _: u64) -> u64 {
        parts(width).fold(0, |value, (width, at)| {
            let part = self.range >> PRECISION << (PRECISION as u32 - width);
            let number = self.above / part;
            if number >> width > 0 {
                self.sound = false;
                return value;
            }
            self.narrow(part * number, part);
            value | number << at
        })
    }
}

/// The parts of so many bits that are coded at once: width and lowest bit of each.
fn parts(width: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..width).step_by(PRECISION).map(move |at| ((width - at).min(PRECISION as u32), at))
}

/// Words, big-endian, then zeros.
#[derive(Debug)]
struct Words<'a> {
    bytes: &'a [u8],
    past: usize,
}

impl Words<'_> {
    /// The next; `None` when more zeros are asked for than any decoder needs.
    #[inline]
    fn read(&mut self) -> Option<u32> {
        if let Some((word, rest)) = self.bytes.split_first_chunk::<WORD>() {
            self.bytes = rest;
            return Some(u32::from_be_bytes(*word));
        }
        let mut word = [0; WORD];
        if self.bytes.is_empty() {
            self.past += 1;
        }
        word[..self.bytes.len()].copy_from_slice(self.bytes);
        self.bytes = &[];
        (self.past <= AHEAD).then(|| u32::from_be_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use constriction::stream::Encode;
    use constriction::stream::model::{EncoderModel, EntropyModel};
    use constriction::stream::queue::DefaultRangeEncoder;
    use proptest::prelude::*;

    use super::*;

    /// A symbol: its left edge and width.
    struct Part(u32, u32);

    impl EntropyModel<PRECISION> for Part {
        type Symbol = ();
        type Probability = u32;
    }

    impl EncoderModel<PRECISION> for Part {
        fn left_cumulative_and_probability(
            &self,
            _: impl std::borrow::Borrow<()>,
        ) -> Option<(u32, std::num::NonZeroU32)> {
            Some((self.0, self.1.try_into().ok()?))
        }
    }

    proptest! {
        #[test]
        fn bytes_are_those_of_constriction_and_are_read_back(
            symbols in prop::collection::vec((any::<bool>(), 1..65536u32, any::<bool>(), any::<u64>(), 0..=64u32), 0..400),
        ) {
            let (mut ours, mut theirs) = (Writer::default(), DefaultRangeEncoder::new());
            for &(plain, one, bit, value, width) in &symbols {
                if plain {
                    ours.plain(width, value);
                    for (width, at) in parts(width) {
                        let beyond = PRECISION as u32 - width;
                        let number = (value >> at) as u32 & ((1 << width) - 1);
                        theirs.encode_symbol((), Part(number << beyond, 1 << beyond)).expect("no probability is 0");
                    }
                } else {
                    ours.bit(one, bit);
                    let part = if bit { Part(0, one) } else { Part(one, 65536 - one) };
                    theirs.encode_symbol((), part).expect("no probability is 0");
                }
            }
            let bytes = ours.into_bytes();
            let mut words: Vec<u8> = bytes.clone();
            words.resize(bytes.len().next_multiple_of(WORD), 0);
            let theirs: Vec<u8> = theirs.into_compressed().expect("memory").into_iter().flat_map(u32::to_be_bytes).collect();
            prop_assert_eq!(words, theirs);
            let mut reader = Reader::new(&bytes);
            for (plain, one, bit, value, width) in symbols {
                if plain {
                    let all = if width == 64 { u64::MAX } else { (1 << width) - 1 };
                    prop_assert_eq!(reader.plain(width, 0), value & all);
                } else {
                    prop_assert_eq!(reader.bit(one, false), bit);
                }
            }
            prop_assert!(reader.is_sound());
        }
    }
}
