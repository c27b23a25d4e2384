//! LEB128 variable-length integers, and their zigzag form for signed values.

/// Appends `value` in 1 to 10 bytes.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` so that small magnitudes of either sign are short.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, zigzag(value));
}

/// The unsigned integer that stands for `value`: small where its magnitude is.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Most bytes of one integer.
const MOST: usize = 10;
/// Bytes of an [`Encoder`]'s window, a power of two: what is behind the middle goes to the rest.
const WINDOW: usize = 1 << 12;
/// Most integers between two checks of how full the window is.
const GROUP: usize = WINDOW / 2 / MOST;
/// The bits of bytes that mean that more follow.
const MORE: u64 = 0x8080_8080_8080_8080;

/// Writes `value` at the beginning of `slot`, as [`put`] does, and returns the bytes it takes; those behind
/// may have changed. Without a loop over the bytes: the lengths that are common have a way of their own.
#[inline]
fn encode(value: u64, slot: &mut [u8; MOST]) -> usize {
    let [first, second, third, ..] = slot;
    if value < 1 << 7 {
        *first = value as u8;
        return 1;
    }
    if value < 1 << 14 {
        (*first, *second) = (value as u8 | 0x80, (value >> 7) as u8);
        return 2;
    }
    if value < 1 << 21 {
        (*first, *second, *third) = (value as u8 | 0x80, (value >> 7) as u8 | 0x80, (value >> 14) as u8);
        return 3;
    }
    let (low_bytes, high_bytes) = slot.split_at_mut(8);
    // Eight groups of 7 bits spread to eight bytes by halves, quarters and eighths.
    let low = value & 0x0000_0000_0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let low = low & 0x0000_3fff_0000_3fff | (low & 0x0fff_c000_0fff_c000) << 2;
    let low = low & 0x007f_007f_007f_007f | (low & 0x3f80_3f80_3f80_3f80) << 1;
    let high = (value >> 56) as u8;
    if high == 0 {
        let last = (low | 1).ilog2() & !7; // place of the last byte that is not 0
        low_bytes.copy_from_slice(&(low | MORE & !(u64::MAX << last)).to_le_bytes());
        return last as usize / 8 + 1;
    }
    low_bytes.copy_from_slice(&(low | MORE).to_le_bytes());
    high_bytes.copy_from_slice(&[high, high >> 7]);
    MOST - 1 + usize::from(high >> 7)
}

/// Encodes integers by the million: into a window of fixed size, without a check for each byte.
#[derive(Debug)]
pub struct Encoder {
    full: Vec<u8>,
    window: Box<[u8; WINDOW + MOST]>,
    /// Bytes written in the window: at most half when a group begins, less than all when one ends.
    written: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { full: Vec::new(), window: Box::new([0; WINDOW + MOST]), written: 0 }
    }
}

impl Encoder {
    /// Appends `values`, each as [`put`] does.
    #[inline]
    pub fn extend(&mut self, values: impl ExactSizeIterator<Item = u64>) {
        if values.len() > GROUP {
            return self.extend_long(values);
        }
        let mut at = self.written;
        for value in values {
            at += self.place(at, value);
        }
        self.written = at;
        self.make_room();
    }

    #[cold]
    fn extend_long(&mut self, values: impl Iterator<Item = u64>) {
        for value in values {
            self.written += self.place(self.written, value);
            self.make_room();
        }
    }

    #[inline]
    fn place(&mut self, at: usize, value: u64) -> usize {
        encode(value, self.slot(at))
    }

    #[inline]
    fn slot(&mut self, at: usize) -> &mut [u8; MOST] {
        // Never cut short: a group ends within the window.
        let at = at % WINDOW;
        (&mut self.window[at..at + MOST]).try_into().expect("of that length")
    }

    #[inline]
    fn make_room(&mut self) {
        if self.written > WINDOW / 2 {
            self.empty();
        }
    }

    #[cold]
    fn empty(&mut self) {
        self.full.extend_from_slice(&self.window[..self.written]);
        self.written = 0;
    }

    /// The bytes that were written.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.empty();
        self.full
    }
}

/// Reads integers from a byte slice; never past its end.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    /// True where everything has been read.
    pub fn is_empty(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// The next unsigned integer; `None` at the end or where an integer is cut off or too long.
    pub fn get(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            if shift == 63 && byte > 1 {
                return None;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// The next signed integer.
    pub fn get_signed(&mut self) -> Option<i64> {
        self.get().map(unzigzag)
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_come_back(values: Vec<u64>, signed: Vec<i64>) {
            let mut bytes = Vec::new();
            values.iter().for_each(|&value| put(&mut bytes, value));
            signed.iter().for_each(|&value| put_signed(&mut bytes, value));
            let mut reader = Reader::new(&bytes);
            for value in values {
                prop_assert_eq!(reader.get(), Some(value));
            }
            for value in signed {
                prop_assert_eq!(reader.get_signed(), Some(value));
            }
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn an_encoder_writes_what_single_puts_write(
            groups in prop::collection::vec(prop::collection::vec((any::<u64>(), 0..64u32), 0..20), 0..20),
        ) {
            let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
            for group in groups {
                encoder.extend(group.iter().map(|&(value, shift)| value >> shift));
                group.iter().for_each(|&(value, shift)| put(&mut bytes, value >> shift));
            }
            prop_assert_eq!(encoder.into_bytes(), bytes);
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.get().is_some() {}
            prop_assert!(reader.position() <= bytes.len());
        }
    }
    #[test]
    fn an_encoder_writes_every_length_and_grows() {
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        let edges = edges.flat_map(|value| [value, !value]);
        let values: Vec<u64> = edges.cycle().take(4 * WINDOW).collect();
        let (mut encoder, mut bytes) = (Encoder::default(), Vec::new());
        values.iter().for_each(|&value| put(&mut bytes, value));
        encoder.extend([].into_iter());
        let mut rest = &values[..];
        for length in (0..2 * GROUP).cycle() {
            let (group, others) = rest.split_at(length.min(rest.len()));
            encoder.extend(group.iter().copied());
            rest = others;
            if rest.is_empty() {
                break;
            }
        }
        assert!(encoder.into_bytes() == bytes);
    }
}
