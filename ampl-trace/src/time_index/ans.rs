//! Entropy coder of symbols whose frequencies are known: a range variant of asymmetric numeral systems.
//!
//! # Source
//! J. Duda, *Asymmetric numeral systems*, arXiv:1311.2540 (2013), the range variant: 32 bits of state, 16 bits at a time.

/// Frequencies of a table add up to two to this power.
pub const BITS: u32 = 12;
/// Sum of the frequencies of a table.
pub const TOTAL: u32 = 1 << BITS;
/// The state is never below this.
const LOW: u32 = 1 << 16;

/// Stretch of the slots of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    /// The first slot.
    pub start: u16,
    /// Number of slots; 0 for a symbol that the table does not have.
    pub count: u16,
}

/// Stack of symbols: the last one put comes out first.
#[derive(Debug)]
pub struct Encoder {
    state: u32,
    words: Vec<u16>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { state: LOW, words: Vec::new() }
    }
}

impl Encoder {
    /// Puts a symbol with these slots, at least one.
    pub fn put(&mut self, Slots { start, count }: Slots) {
        let (start, count) = (u32::from(start), u32::from(count));
        if u64::from(self.state) >= u64::from(count) << (32 - BITS) {
            self.words.push(self.state as u16);
            self.state >>= 16;
        }
        self.state = ((self.state / count) << BITS) + self.state % count + start;
    }

    /// Puts the low `bits` of `value`, the highest of which come out last.
    pub fn put_raw(&mut self, value: u64, bits: u32) {
        let mut pieces: Vec<(u64, u32)> = Vec::new();
        let mut at = 0;
        while at < bits {
            let length = (bits - at).min(BITS);
            pieces.push((value >> at & ((1 << length) - 1), length));
            at += length;
        }
        for (piece, length) in pieces.into_iter().rev() {
            let rest = BITS - length;
            self.put(Slots { start: (piece << rest) as u16, count: 1 << rest });
        }
    }

    /// Appends the bytes of all symbols to `out`, and is empty then.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.extend(self.state.to_le_bytes());
        out.extend(self.words.drain(..).rev().flat_map(u16::to_le_bytes));
        self.state = LOW;
    }
}

/// Symbols from the bytes of an [`Encoder`]. Other bytes give other symbols.
#[derive(Debug)]
pub struct Decoder<'a> {
    state: u32,
    bytes: &'a [u8],
}

impl<'a> Decoder<'a> {
    /// A decoder of `bytes`; `None` where they are too few.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let (state, bytes) = bytes.split_first_chunk::<4>()?;
        Some(Self { state: u32::from_le_bytes(*state), bytes })
    }

    /// The slot of the next symbol.
    #[inline]
    pub fn slot(&self) -> u32 {
        self.state & (TOTAL - 1)
    }

    /// Takes the symbol with these slots, which is the next.
    #[inline]
    pub fn take(&mut self, Slots { start, count }: Slots) {
        let slot = self.slot();
        self.state = u32::from(count)
            .wrapping_mul(self.state >> BITS)
            .wrapping_add(slot.wrapping_sub(u32::from(start)));
        if self.state < LOW {
            let word = match self.bytes.split_first_chunk::<2>() {
                Some((word, rest)) => {
                    self.bytes = rest;
                    u16::from_le_bytes(*word)
                }
                None => 0,
            };
            self.state = self.state << 16 | u32::from(word);
        }
    }

    /// The next number of so many bits.
    #[inline]
    pub fn raw(&mut self, bits: u32) -> u64 {
        let (mut value, mut at) = (0, 0);
        while at < bits {
            let length = (bits - at).min(BITS);
            let rest = BITS - length;
            let piece = self.slot() >> rest;
            self.take(Slots { start: (piece << rest) as u16, count: 1 << rest });
            value |= u64::from(piece) << at;
            at += length;
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn symbols_come_back_in_reverse(puts in prop::collection::vec((0..4096u16, 1..4096u16, any::<u64>(), 0..65u32), 0..300)) {
            let slots = |start: u16, count: u16| Slots { start, count: count.min(4096 - start) };
            let mut encoder = Encoder::default();
            for &(start, count, value, bits) in &puts {
                encoder.put(slots(start, count));
                encoder.put_raw(value, bits);
            }
            let mut bytes = Vec::new();
            encoder.finish(&mut bytes);
            let mut decoder = Decoder::new(&bytes).unwrap();
            for &(start, count, value, bits) in puts.iter().rev() {
                let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
                prop_assert_eq!(decoder.raw(bits), value & mask);
                let own = slots(start, count);
                prop_assert!((u32::from(own.start)..u32::from(own.start) + u32::from(own.count)).contains(&decoder.slot()));
                decoder.take(own);
            }
            prop_assert!(decoder.bytes.is_empty());
        }
    }
}
