//! Little-endian fields in a byte buffer.

use super::MessageError;

/// Appends fields.
pub(super) struct Writer<'a>(pub &'a mut Vec<u8>);

impl Writer<'_> {
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn f64(&mut self, value: f64) {
        self.bytes(&value.to_le_bytes());
    }
}

/// Takes fields from bytes whose number was checked before.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    taken: usize,
}

impl<'a> Reader<'a> {
    /// A reader of at least `header` bytes.
    pub fn new(bytes: &'a [u8], header: usize) -> Result<Self, MessageError> {
        if bytes.len() < header {
            return Err(MessageError::Length { expected: header, found: bytes.len() });
        }
        Ok(Self { rest: bytes, taken: 0 })
    }

    /// Makes sure that exactly `payload` bytes follow.
    pub fn expect(&self, payload: usize) -> Result<(), MessageError> {
        if self.rest.len() == payload {
            return Ok(());
        }
        let found = self.taken + self.rest.len();
        Err(MessageError::Length { expected: self.taken + payload, found })
    }

    /// Makes sure that at least `payload` bytes follow.
    pub fn expect_some(&self, payload: usize) -> Result<(), MessageError> {
        if self.rest.len() < payload { self.expect(payload) } else { Ok(()) }
    }

    /// Makes sure that at least `payload` bytes follow, and nothing but zeros behind them.
    pub fn expect_padded(&self, payload: usize) -> Result<(), MessageError> {
        match self.rest.get(payload..) {
            Some(padding) if padding.iter().all(|&byte| byte == 0) => Ok(()),
            _ => self.expect(payload),
        }
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.rest.split_first_chunk().expect("the length was checked");
        self.rest = rest;
        self.taken += N;
        *head
    }

    pub fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    pub fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.take())
    }

    pub fn f64(&mut self) -> f64 {
        f64::from_le_bytes(self.take())
    }
}
