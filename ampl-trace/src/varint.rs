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
    put(out, ((value << 1) ^ (value >> 63)) as u64);
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

    /// Whether everything has been read.
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
        let raw = self.get()?;
        Some((raw >> 1) as i64 ^ -((raw & 1) as i64))
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
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let mut reader = Reader::new(&bytes);
            while reader.get().is_some() {}
            prop_assert!(reader.position() <= bytes.len());
        }
    }
}
