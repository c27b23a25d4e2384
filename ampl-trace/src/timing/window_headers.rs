//! Headers of windows, with their numbers of entries: beside the entries, in a stream of their own.

use super::Window;
use super::models::{Kind, Models};
use super::scale::Scale;
use crate::bits::Bits;
use crate::varint::{unzigzag, zigzag};

/// Codes windows: a writer passes them, and both sides return them.
#[derive(Debug)]
pub struct Heads<B> {
    /// Destination or source of bits.
    pub bits: B,
    models: Models,
    /// The window before; `next_seq` is the call behind its last.
    before: Window,
    next_seq: u64,
    /// True where there is a window before.
    begun: bool,
}

/// A window, as it is coded.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The window; without its start where it follows.
    pub window: Window,
    /// Its entries.
    pub entries: u64,
    /// True where it is of the thread of the window before, and begins with the call behind that one's last.
    pub follows: bool,
}

/// Coded fields of a window.
#[derive(Clone, Copy, Debug)]
enum Field {
    Thread,
    FirstSeq,
    Number,
    Start,
    Entries,
}

impl<B: Bits> Heads<B> {
    /// A coder before the first window.
    pub fn new(bits: B) -> Self {
        let before = Window { thread: u32::MAX, window: 0, first_seq: 0, start_ns: 0 };
        Self { bits, models: Models::new(), before, next_seq: 0, begun: false }
    }

    /// Notes the number of calls of the window that was coded last.
    pub fn ends(&mut self, calls: u64) {
        self.next_seq = self.before.first_seq.wrapping_add(calls);
    }

    /// Codes the next window; `None` when the bits are those of none.
    pub fn code(&mut self, head: Option<(Window, u64)>) -> Option<Head> {
        let (is, entries) = head.unwrap_or((self.before, 0));
        let Window { thread, window, start_ns, .. } = self.before;
        let new = self.number(Field::Thread, is.thread.wrapping_sub(thread).into())?;
        let thread = thread.wrapping_add(new as u32);
        let (next_seq, next) = if new == 0 { (self.next_seq, window.wrapping_add(1)) } else { (0, 0) };
        let more = self.number(Field::FirstSeq, is.first_seq.wrapping_sub(next_seq))?;
        let follows = std::mem::replace(&mut self.begun, true) && new == 0 && more == 0;
        let window = next.wrapping_add(self.number(Field::Number, is.window.wrapping_sub(next))?);
        let start = is.start_ns.wrapping_sub(start_ns);
        let later = if follows { 0 } else { self.number(Field::Start, zigzag(start))? };
        let start_ns = start_ns.wrapping_add(unzigzag(later));
        let entries = self.number(Field::Entries, entries)?;
        self.before = Window { thread, window, first_seq: next_seq.wrapping_add(more), start_ns };
        Some(Head { window: self.before, entries, follows })
    }

    fn number(&mut self, field: Field, number: u64) -> Option<u64> {
        let of = self.models.signature(field as u64, field as u16);
        let bin = Scale::Exact.bin(number);
        let which = (of, Kind::Window, false);
        Scale::Exact.value(self.models.magnitude(&mut self.bits, which, &Scale::Exact, bin))
    }
}
