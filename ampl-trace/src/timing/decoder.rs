//! Reads the times of a rank.

use super::bits::Reader;
use super::encoder::Before;
use super::reference::Reference;
use super::stream::Stream;
use super::{MILLION, Settings, Time, Window};
use crate::varint;

/// Calls that a byte can hold at most: two bits, each costing `log2(65536 / 65520)` at the least.
const CALLS_PER_BYTE: u64 = 12_000;
/// Bytes that a stream may be cut short by, and more.
const SPARE: u64 = 16;
/// Bytes of a window at the least.
const WINDOW: usize = 5;

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
    windows: std::vec::IntoIter<(Window, u64)>,
    /// Entries of the window that are not read yet.
    rest: u64,
    stream: Stream<Reader<'a>>,
    sound: bool,
}

impl<'a> Decoder<'a> {
    /// A decoder of `bytes`.
    ///
    /// # Errors
    /// When they begin as no encoder's do.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = varint::Reader::new(bytes);
        let (settings, windows) = read_header(&mut reader, bytes.len()).ok_or(Malformed)?;
        let coded = &bytes[reader.position()..];
        let calls = windows.iter().try_fold(0u64, |all, &(_, entries)| all.checked_add(entries));
        if calls.is_none_or(|calls| calls / CALLS_PER_BYTE > coded.len() as u64 + SPARE) {
            return Err(Malformed);
        }
        let stream = Stream::new(settings, Reader::new(coded), None);
        Ok(Self { settings, windows: windows.into_iter(), rest: 0, stream, sound: true })
    }

    /// One that also [counts](Self::kt_bits) what it decodes.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn counting(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut decoder = Self::new(bytes)?;
        decoder.stream.reference = Some(Reference::default());
        Ok(decoder)
    }

    /// How exactly the times were kept.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The next window and how many entries it has; all those of the one before must have been read.
    pub fn window(&mut self) -> Option<(Window, u64)> {
        self.sound &= self.rest == 0;
        let (window, entries) = self.windows.next()?;
        self.rest = entries;
        self.stream.window(window.thread, window.start_ns);
        Some((window, entries))
    }

    /// The time of the window's next entry, whose terminal the caller knows, and whether it folds.
    ///
    /// # Errors
    /// When the window has no more, or bytes or terminals are not those of an encoder; all that follows is
    /// lost then.
    #[inline]
    pub fn call(&mut self, terminal: u32, folds: bool) -> Result<Time, Malformed> {
        if self.rest == 0 || !self.sound {
            return Err(Malformed);
        }
        self.rest -= 1;
        let time = self.next(terminal, folds).filter(|_| self.stream.bits.is_sound());
        self.sound = time.is_some();
        time.ok_or(Malformed)
    }

    fn next(&mut self, terminal: u32, folds: bool) -> Option<Time> {
        let (start_ns, duration_ns) = self.stream.call(terminal, None)?;
        let count = if folds { self.stream.polls(terminal, 1)? } else { 1 };
        Some(Time { start_ns, duration_ns, count })
    }

    /// As [`Encoder::kt_bits`](super::Encoder::kt_bits), of what was decoded so far.
    pub fn kt_bits(&self) -> Option<f64> {
        self.stream.reference.as_ref().map(Reference::bits)
    }
}

/// Settings and windows.
fn read_header(reader: &mut varint::Reader<'_>, len: usize) -> Option<(Settings, Vec<(Window, u64)>)> {
    let millionths = reader.get()?;
    let error = millionths as f64 / MILLION as f64;
    let settings = Settings { error, floor_ns: reader.get()? };
    if settings.millionths() != millionths {
        return None;
    }
    let count = usize::try_from(reader.get()?).ok().filter(|&count| count <= len / WINDOW)?;
    let mut windows = Vec::with_capacity(count);
    let mut before = Before::default();
    for _ in 0..count {
        let thread = i64::from(before.window.thread).checked_add(reader.get_signed()?)?.try_into().ok()?;
        let next = before.next(thread);
        let window = Window {
            thread,
            window: next.window.wrapping_add_signed(reader.get_signed()?),
            first_seq: next.first_seq.wrapping_add_signed(reader.get_signed()?),
            start_ns: next.start_ns.wrapping_add(reader.get_signed()?),
        };
        let entries = before.entries.wrapping_add_signed(reader.get_signed()?);
        before = Before { window, entries };
        windows.push((window, entries));
    }
    Some((settings, windows))
}
