//! Writes the times of a rank.

use super::stream::Stream;
use super::window_headers::Heads;
use super::{Settings, Terminal, Time, Window};
use crate::bits::{Bits, Length, Writer};
use crate::varint::put;

/// Encodes the times of one rank's kept windows; what it holds is bounded by signatures, beside what it
/// writes.
#[derive(Debug)]
pub struct Encoder<B = Writer> {
    settings: Settings,
    windows: u64,
    heads: Heads<B>,
    stream: Stream<B>,
    /// The window that calls are added to, if there is one, its entries and their calls.
    open: Option<(Window, u64, u64)>,
    /// Thread and number of the call behind the last, where there is one.
    next: Option<(u32, u64)>,
}

impl Encoder {
    /// An encoder of nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            windows: 0,
            heads: Heads::new(Writer::default()),
            stream: Stream::new(settings, Writer::default()),
            open: None,
            next: None,
        }
    }

    /// The bytes for a [decoder](super::Decoder).
    pub fn finish(mut self) -> Vec<u8> {
        self.end_window();
        let heads = self.heads.bits.into_bytes();
        let mut out = Vec::new();
        put(&mut out, self.settings.millionths());
        put(&mut out, self.settings.floor_ns);
        put(&mut out, self.windows);
        put(&mut out, heads.len() as u64);
        out.extend(heads);
        out.extend(self.stream.bits.into_bytes());
        out
    }
}

impl Encoder<Length> {
    /// An encoder that writes nothing, and [counts](Self::bits) what it would write.
    pub fn measuring(settings: Settings) -> Self {
        Self {
            settings,
            windows: 0,
            heads: Heads::new(Length::default()),
            stream: Stream::new(settings, Length::default()),
            open: None,
            next: None,
        }
    }

    /// Bits of the windows and calls so far; of the window that is open, its calls only.
    pub fn bits(&self) -> u64 {
        self.heads.bits.bits() + self.stream.bits.bits()
    }
}

impl<B: Bits> Encoder<B> {
    /// True where no window was begun.
    pub fn is_empty(&self) -> bool {
        self.windows == 0 && self.open.is_none()
    }

    /// Begins a window: the calls that follow are its calls. Small where windows come by thread and number.
    pub fn window(&mut self, window: Window) {
        self.end_window();
        let follows = self.next == Some((window.thread, window.first_seq));
        self.stream.window(window.thread, (!follows).then_some(window.start_ns));
        self.open = Some((window, 0, 0));
    }

    /// Ends the window, if there is one.
    pub fn end_window(&mut self) {
        let Some((window, entries, calls)) = self.open.take() else { return };
        self.windows += 1;
        self.heads.code(Some((window, entries)));
        self.heads.ends(calls);
        self.next = Some((window.thread, window.first_seq.wrapping_add(calls)));
    }

    /// Adds the next call of the window. When `terminal` does not fold, the entry is taken to be 1 call. Without a
    /// window, nothing happens.
    #[inline]
    pub fn call(&mut self, terminal: Terminal, time: Time) {
        let Some((_, entries, calls)) = &mut self.open else { return };
        *entries += 1;
        let count = if terminal.folds { time.count.max(1) } else { 1 };
        *calls = calls.wrapping_add(count);
        self.stream.call(terminal, Some((time.start_ns, time.duration_ns)));
        if terminal.folds {
            self.stream.polls(terminal, count);
        }
    }
}
