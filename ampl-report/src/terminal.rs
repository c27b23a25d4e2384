//! Output that steers no terminal.
//!
//! Names of programs, symbols, regions and hosts are the program's, or another user's: an escape sequence in one would
//! move the cursor, change the window's title or rewrite what was printed before.

use std::io::{self, Write};

use ampl_core::plain::steers;

/// Bytes of the longest encoding of a character that steers, without its last one.
const HELD: usize = 2;

/// A writer of text without characters that steer a terminal.
#[derive(Debug)]
pub struct Plain<W> {
    to: W,
    /// True where they become `\u001b`, as in strings of JSON, and not U+FFFD.
    escapes: bool,
    /// Bytes that may begin such a character.
    held: [u8; HELD],
    /// Number of them.
    length: usize,
}

/// The part that bytes have in a character that steers.
enum Part {
    None,
    Begin,
    Whole(char),
}

impl Part {
    fn of(bytes: &[u8]) -> Self {
        match bytes {
            [0xc2 | 0xd8 | 0xe2] | [0xe2, 0x80 | 0x81] => return Self::Begin,
            _ => {}
        }
        let letter = std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
        letter.filter(|&letter| steers(letter)).map_or(Self::None, Self::Whole)
    }
}

impl<W: Write> Plain<W> {
    /// Writes to `to`. With `escapes` such characters become the escapes of JSON strings: a reader gets the same names.
    pub fn new(to: W, escapes: bool) -> Self {
        Self { to, escapes, held: [0; HELD], length: 0 }
    }

    fn replace(&mut self, letter: char) -> io::Result<()> {
        match self.escapes {
            true => write!(self.to, "\\u{:04x}", u32::from(letter)),
            false => self.to.write_all("\u{fffd}".as_bytes()),
        }
    }

    fn release(&mut self) -> io::Result<()> {
        let length = std::mem::take(&mut self.length);
        self.to.write_all(&self.held[..length])
    }

    /// Takes `byte` behind those that are held; false where it has to be taken on its own.
    fn take(&mut self, byte: u8) -> io::Result<bool> {
        let mut bytes = [0; HELD + 1];
        bytes[..self.length].copy_from_slice(&self.held[..self.length]);
        bytes[self.length] = byte;
        match Part::of(&bytes[..self.length + 1]) {
            Part::None if self.length == 0 => return Ok(false),
            Part::None => {
                self.release()?;
                return self.take(byte);
            }
            Part::Begin => {
                self.held[self.length] = byte;
                self.length += 1;
            }
            Part::Whole(letter) => {
                self.length = 0;
                self.replace(letter)?;
            }
        }
        Ok(true)
    }
}

impl<W: Write> Write for Plain<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Bytes from here on have not been written.
        let mut from = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            // Most bytes are of no such character.
            if self.length == 0 && matches!(byte, b' '..0x7f) {
                continue;
            }
            if self.length == 0 {
                self.to.write_all(&bytes[from..at])?;
                from = at;
            }
            if self.take(byte)? {
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
        let text = "a\tb\n\u{1b}[2J\u{9b}31m\u{7f}é\u{a0}\u{bf}\r\u{80}\u{85}ü語\u{202e}–\u{61c}…\u{2066}\u{600}\u{0}";
        let clean = text.replace(steers, "\u{fffd}");
        for length in 1..text.len() + 1 {
            assert_eq!(String::from_utf8(written(text.as_bytes(), length, false)).unwrap(), clean);
        }
        // Bytes that are no text stay what they are.
        for bytes in
            [&b"\xc2"[..], b"\xc2\xc2\xc2a", b"\xc2\n", b"\xe2\x9b\x84\xff", b"\xe2\x80", b"\xe2\xe2\x81a"]
        {
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
