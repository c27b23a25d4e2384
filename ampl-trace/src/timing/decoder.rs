//! Reads the times of a rank.

use super::stream::Stream;
use super::window_headers::Heads;
use super::{MILLION, Settings, Terminal, Time, Window};
use crate::bits::Reader;
use crate::varint;

/// Calls that a byte can hold at most: two bits, each costing `log2(65536 / 65520)` at the least.
const CALLS_PER_BYTE: u64 = 12_000;
/// Bytes that a stream may be cut short by, and more.
const SPARE: u64 = 16;
/// The bytes are not what an encoder writes, or terminals are not those that were encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("malformed times")
    }
}

impl std::error::Error for Malformed {}

/// Decodes what an [`Encoder`](super::Encoder) wrote, given the same terminals.
///
/// Whatever the bytes, it neither panics nor gives more calls than about 12,000 for each byte, and it holds
/// no more than an encoder does.
#[derive(Debug)]
pub struct Decoder<'a> {
    settings: Settings,
    /// Windows that are not read yet.
    windows: u64,
    heads: Heads<Reader<&'a [u8]>>,
    /// Entries of the window that are not read yet, and the calls of those that are.
    rest: u64,
    calls: u64,
    /// Entries that there may still be.
    most: u64,
    stream: Stream<Reader<&'a [u8]>>,
    sound: bool,
}

impl<'a> Decoder<'a> {
    /// A decoder of `bytes`.
    ///
    /// # Errors
    /// When they begin as no encoder's do.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = varint::Reader::new(bytes);
        let (settings, windows, heads) = read_header(&mut reader).ok_or(Malformed)?;
        let (heads, coded) = bytes[reader.position()..].split_at_checked(heads).ok_or(Malformed)?;
        Ok(Self {
            settings,
            windows,
            heads: Heads::new(Reader::new(heads)),
            rest: 0,
            calls: 0,
            most: (coded.len() as u64 + SPARE).saturating_mul(CALLS_PER_BYTE),
            stream: Stream::new(settings, Reader::new(coded)),
            sound: true,
        })
    }

    /// Settings that the times were kept with.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The next window and its number of entries; all entries of the one before must have been read. `None` when there
    /// are no more, or none that an encoder could have written.
    pub fn window(&mut self) -> Option<(Window, u64)> {
        self.sound &= self.rest == 0;
        self.windows = self.windows.checked_sub(1)?;
        self.heads.ends(self.calls);
        let head = self.heads.code(None).filter(|_| self.sound && self.heads.bits.is_sound());
        let head = head.filter(|head| head.entries <= self.most);
        let Some(mut head) = head else {
            (self.sound, self.windows) = (false, 0);
            return None;
        };
        (self.rest, self.calls) = (head.entries, 0);
        self.most -= head.entries;
        let start = (!head.follows).then_some(head.window.start_ns);
        head.window.start_ns = self.stream.window(head.window.thread, start);
        Some((head.window, head.entries))
    }

    /// The time of the window's next entry, whose terminal the caller knows.
    ///
    /// # Errors
    /// When the window has no more, or bytes or terminals are not those of an encoder; all that follows is
    /// lost then.
    #[inline]
    pub fn call(&mut self, terminal: Terminal) -> Result<Time, Malformed> {
        if self.rest == 0 || !self.sound {
            return Err(Malformed);
        }
        self.rest -= 1;
        let time = self.next(terminal).filter(|_| self.stream.bits.is_sound());
        self.sound = time.is_some();
        time.ok_or(Malformed)
    }

    fn next(&mut self, terminal: Terminal) -> Option<Time> {
        let (start_ns, duration_ns) = self.stream.call(terminal, None)?;
        let count = if terminal.folds { self.stream.polls(terminal, 1)? } else { 1 };
        self.calls = self.calls.wrapping_add(count);
        Some(Time { start_ns, duration_ns, count })
    }
}

/// Settings, number of windows, and bytes of their headers.
fn read_header(reader: &mut varint::Reader<'_>) -> Option<(Settings, u64, usize)> {
    let millionths = reader.get()?;
    let error = millionths as f64 / MILLION as f64;
    let settings = Settings { error, floor_ns: reader.get()? };
    if settings.millionths() != millionths {
        return None;
    }
    Some((settings, reader.get()?, reader.get()?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::Writer;
    use crate::varint::put;

    #[test]
    fn more_calls_than_bytes_can_hold_are_refused() {
        for entries in [100, 1 << 40, u64::MAX] {
            let mut heads = Heads::new(Writer::default());
            let window = Window { thread: 0, window: 0, first_seq: 0, start_ns: 0 };
            heads.code(Some((window, entries)));
            let heads = heads.bits.into_bytes();
            let mut bytes = Vec::new();
            [100_000, 0, 1, heads.len() as u64].into_iter().for_each(|value| put(&mut bytes, value));
            bytes.extend(heads);
            let mut decoder = Decoder::new(&bytes).expect("a header");
            assert_eq!(decoder.window(), (entries == 100).then_some((window, entries)));
            assert!(entries == 100 || decoder.call(0.into()).is_err());
        }
    }
}
