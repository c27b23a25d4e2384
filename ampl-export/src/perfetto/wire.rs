//! Messages of Protocol Buffers, field by field.

/// A message that is put together.
#[derive(Clone, Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, wire: u32) {
        self.varint(u64::from(field << 3 | wire));
    }

    /// A whole number.
    pub fn int(mut self, field: u32, value: u64) -> Self {
        self.key(field, 0);
        self.varint(value);
        self
    }

    /// A floating-point number.
    pub fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A number of eight bytes.
    pub fn fixed(mut self, field: u32, value: u64) -> Self {
        self.key(field, 1);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// A text.
    pub fn text(mut self, field: u32, value: &str) -> Self {
        self.key(field, 2);
        self.varint(value.len() as u64);
        self.0.extend(value.as_bytes());
        self
    }

    /// A message within this one.
    pub fn message(mut self, field: u32, value: &Self) -> Self {
        self.key(field, 2);
        self.varint(value.0.len() as u64);
        self.0.extend(&value.0);
        self
    }

    /// True where it has no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_bytes_of_the_encoding_s_documentation() {
        assert_eq!(Message::default().int(1, 150).bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(Message::default().text(2, "testing").bytes(), b"\x12\x07testing");
        let inner = Message::default().int(1, 150);
        assert_eq!(Message::default().message(3, &inner).bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        assert_eq!(Message::default().double(1, 1.0).bytes(), [9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }
}
