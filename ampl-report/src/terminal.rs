//! Output that steers no terminal.
//!
//! Names of programs, symbols, regions and hosts are the program's, or another user's: an escape sequence in one would
//! move the cursor, change the window's title or rewrite what was printed before.

use std::io::{self, Write};

/// First byte of the UTF-8 encoding of U+0080 to U+00BF; the first half of these are controls.
const LEAD: u8 = 0xc2;

/// A writer of text without control characters other than newline and tab.
#[derive(Debug)]
pub struct Plain<W> {
    to: W,
    /// True where controls become `\u001b`, as in strings of JSON, and not U+FFFD.
    escapes: bool,
    /// True where a [`LEAD`] has come whose second byte decides.
    is_held: bool,
}

impl<W: Write> Plain<W> {
    /// Writes to `to`. With `escapes` controls become the escapes of JSON strings: a reader gets the same names.
    pub fn new(to: W, escapes: bool) -> Self {
        Self { to, escapes, is_held: false }
    }

    fn replace(&mut self, control: u8) -> io::Result<()> {
        match self.escapes {
            true => write!(self.to, "\\u{control:04x}"),
            false => self.to.write_all("\u{fffd}".as_bytes()),
        }
    }

    fn release(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_held) { self.to.write_all(&[LEAD]) } else { Ok(()) }
    }
}

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Bytes from here on have not been written.
        let mut from = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            let is_control = match byte {
                b'\n' | b'\t' => false,
                0..0x20 | 0x7f => true,
                0x80..0xa0 if self.is_held => true,
                LEAD => false,
                _ if self.is_held => false,
                _ => continue,
            };
            self.to.write_all(&bytes[from..at])?;
            from = at;
            if is_control {
                if byte < 0x80 {
                    self.release()?;
                }
                self.is_held = false;
                self.replace(byte)?;
                from = at + 1;
                continue;
            }
            self.release()?;
            if byte == LEAD {
                self.is_held = true;
                from = at + 1;
            }
        }
        self.to.write_all(&bytes[from..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.release()?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `bytes` written in pieces of `length`.
    fn written(bytes: &[u8], length: usize, escapes: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut plain = Plain::new(&mut out, escapes);
        bytes.chunks(length).for_each(|piece| plain.write_all(piece).unwrap());
        plain.flush().unwrap();
        out
    }

    #[test]
    fn controls_are_replaced_however_they_are_cut() {
        let text = "a\tb\n\u{1b}[2J\u{9b}31m\u{7f}é\u{a0}\u{bf}\r\u{80}\u{85}ü語\u{0}";
        let clean = text.replace(|c: char| c.is_control() && !matches!(c, '\n' | '\t'), "\u{fffd}");
        for length in 1..text.len() + 1 {
            assert_eq!(String::from_utf8(written(text.as_bytes(), length, false)).unwrap(), clean);
        }
        // Bytes that are no text stay what they are.
        for bytes in [&b"\xc2"[..], b"\xc2\xc2\xc2a", b"\xc2\n", b"\xe2\x9b\x84\xff"] {
            for length in 1..3 {
                assert_eq!(written(bytes, length, false), bytes);
            }
        }
    }

    #[test]
    fn names_in_json_stay_the_same() {
        // JSON escapes the others itself.
        let json = "{\"name\": \"\u{9b}31m\u{7f}é\"}\n".as_bytes();
        let safe = written(json, 1, true);
        assert_eq!(String::from_utf8(safe).unwrap(), "{\"name\": \"\\u009b31m\\u007fé\"}\n");
    }
}
