//! Bits with probabilities, by a range coder: bytes are those of constriction's, whose symbols would be far
//! more work than a bit.

/// Bits of a probability.
pub const PRECISION: usize = 16;
/// Bytes of a word of the coder, and their bits.
const WORD: usize = 4;
const WORD_BITS: u32 = 8 * WORD as u32;
/// Words past the end that a decoder reads: it is two words ahead.
const AHEAD: usize = 2;

/// Writes or reads bits; models are the same for both. A writer writes the value given, and a reader ignores it. Both
/// return the value written.
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
    /// Lower end of the range, `range` wide, in which further output lies; in units of the word after the next.
    lower: u64,
    range: u64,
}

impl Default for Writer {
    fn default() -> Self {
        Self { bytes: Vec::new(), lower: 0, range: u64::MAX }
    }
}

impl Writer {
    /// The bytes written. Zeros at the end are dropped, but one byte of the last word stays.
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

    /// The bytes written, as few as a reader needs that sees zeros behind.
    pub fn shortest(mut self) -> Vec<u8> {
        // Any number in the range will do: the first of those with so many bytes, from none on.
        for kept in 0..=WORD {
            let behind = u64::MAX >> (8 * kept);
            let first = self.lower.wrapping_add(behind) & !behind;
            let above = first.wrapping_sub(self.lower);
            if above < self.range {
                self.raise(above);
                self.bytes.extend_from_slice(&first.to_be_bytes()[..kept]);
                break;
            }
        }
        while self.bytes.pop_if(|last| *last == 0).is_some() {}
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

/// Counts the bits that a [`Writer`] would write.
#[derive(Debug)]
pub struct Length {
    words: u64,
    range: u64,
}

impl Default for Length {
    fn default() -> Self {
        Self { words: 0, range: u64::MAX }
    }
}

impl Length {
    /// Bits so far, rounded down.
    pub fn bits(&self) -> u64 {
        u64::from(WORD_BITS) * self.words + u64::from(self.range.leading_zeros())
    }

    #[inline]
    fn narrow(&mut self, range: u64) {
        self.range = range;
        if range >> WORD_BITS == 0 {
            self.words += 1;
            self.range <<= WORD_BITS;
        }
    }
}

impl Bits for Length {
    #[inline(always)]
    fn bit(&mut self, one: u32, bit: bool) -> bool {
        let part = self.range >> PRECISION;
        let edge = part * u64::from(one);
        self.narrow(if bit { edge } else { (part << PRECISION) - edge });
        bit
    }

    fn plain(&mut self, width: u32, value: u64) -> u64 {
        for (width, _) in parts(width) {
            self.narrow(self.range >> PRECISION << (PRECISION as u32 - width));
        }
        value
    }
}

/// Reads what a [`Writer`] wrote.
#[derive(Debug)]
pub struct Reader<B> {
    words: Words<B>,
    /// Distance of the bits read ahead from the range's lower end.
    above: u64,
    range: u64,
    sound: bool,
}

impl<B: AsRef<[u8]>> Reader<B> {
    /// A reader of `bytes`.
    pub fn new(bytes: B) -> Self {
        let mut reader =
            Self { words: Words { bytes, at: 0, past: 0 }, above: 0, range: u64::MAX, sound: true };
        for _ in 0..AHEAD {
            reader.word();
        }
        reader
    }

    /// True where all that was read may have been written: nothing past the end, nothing that no writer writes.
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

impl<B: AsRef<[u8]>> Bits for Reader<B> {
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
struct Words<B> {
    bytes: B,
    at: usize,
    past: usize,
}

impl<B: AsRef<[u8]>> Words<B> {
    /// The next word; `None` when more zeros are asked for than any decoder needs.
    #[inline]
    fn read(&mut self) -> Option<u32> {
        let left = self.bytes.as_ref().get(self.at..).unwrap_or_default();
        self.at += WORD;
        if let Some(word) = left.first_chunk::<WORD>() {
            return Some(u32::from_be_bytes(*word));
        }
        let mut word = [0; WORD];
        if left.is_empty() {
            self.past += 1;
        }
        word[..left.len()].copy_from_slice(left);
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
            let mut length = Length::default();
            for &(plain, one, bit, value, width) in &symbols {
                if plain {
                    length.plain(width, value);
                } else {
                    length.bit(one, bit);
                }
            }
            let bytes = ours.into_bytes();
            prop_assert!((8 * bytes.len() as u64).abs_diff(length.bits()) <= 2 * u64::from(WORD_BITS));
            let mut words: Vec<u8> = bytes.clone();
            words.resize(bytes.len().next_multiple_of(WORD), 0);
            let theirs: Vec<u8> = theirs.into_compressed().expect("memory").into_iter().flat_map(u32::to_be_bytes).collect();
            prop_assert_eq!(words, theirs);
            let mut reader = Reader::new(&bytes[..]);
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

    #[test]
    fn the_end_of_a_stream_takes_only_the_bytes_that_tell_it() {
        // Whatever the range is at the end: streams of any bits; and such around a number with zeros at its end,
        // the words before which are not known until the last bit.
        let mut state = 1u64;
        for bits in 0..2000 {
            let (mut writer, mut sealed, mut coded) = (Writer::default(), Writer::default(), Vec::new());
            let mut around = Reader::new([0x80]);
            for _ in 0..bits % 80 {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                let one = (state >> 40) as u32 % 0xffff + 1;
                let bit = if bits % 3 == 0 { around.bit(one, false) } else { state >> 60 & 1 != 0 };
                writer.bit(one, bit);
                sealed.bit(one, bit);
                coded.push((one, bit));
            }
            let bytes = writer.shortest();
            assert!(bytes.len() <= sealed.into_bytes().len());
            let mut reader = Reader::new(bytes);
            assert!(coded.iter().all(|&(one, bit)| reader.bit(one, false) == bit), "{coded:?}");
        }
    }
}
