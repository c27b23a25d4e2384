//! Writes the times of a rank.

use super::bits::Writer;
use super::reference::Reference;
use super::stream::Stream;
use super::{Settings, Time, Window};
use crate::varint::{put, put_signed};

/// Encodes the times of one rank's kept windows; what it holds is bounded by windows and signatures, beside
/// what it writes.
#[derive(Debug)]
pub struct Encoder {
    settings: Settings,
    windows: Vec<(Window, u64)>,
    stream: Stream<Writer>,
}

impl Encoder {
    /// An encoder of nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self { settings, windows: Vec::new(), stream: Stream::new(settings, Writer::default(), None) }
    }

    /// One that also [counts](Self::kt_bits) what it encodes.
    pub fn counting(settings: Settings) -> Self {
        let stream = Stream::new(settings, Writer::default(), Some(Reference::default()));
        Self { stream, ..Self::new(settings) }
    }

    /// Begins a window: the calls that follow are its calls. Small where windows come by thread and number.
    pub fn window(&mut self, window: Window) {
        self.windows.push((window, 0));
        self.stream.window(window.thread, window.start_ns);
    }

    /// The next call of the window. `terminal` is its signature's number in the thread; when it `folds`, the
    /// entry may stand for any number of calls, which otherwise is taken to be 1. Without a window, nothing
    /// happens.
    #[inline]
    pub fn call(&mut self, terminal: u32, folds: bool, time: Time) {
        let Some((_, entries)) = self.windows.last_mut() else { return };
        *entries += 1;
        self.stream.call(terminal, Some((time.start_ns, time.duration_ns)));
        if folds {
            self.stream.polls(terminal, time.count);
        }
    }

    /// What a [decoder](super::Decoder) reads.
    pub fn finish(self) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, self.settings.millionths());
        put(&mut out, self.settings.floor_ns);
        put(&mut out, self.windows.len() as u64);
        let mut before = Before::default();
        for (window, entries) in self.windows {
            put_signed(&mut out, i64::from(window.thread) - i64::from(before.window.thread));
            let next = before.next(window.thread);
            put_signed(&mut out, window.window.wrapping_sub(next.window) as i64);
            put_signed(&mut out, window.first_seq.wrapping_sub(next.first_seq) as i64);
            put_signed(&mut out, window.start_ns.wrapping_sub(next.start_ns));
            put_signed(&mut out, entries.wrapping_sub(before.entries) as i64);
            before = Before { window, entries };
        }
        out.extend(self.stream.bits.into_bytes());
        out
    }

    /// The adaptive code length, in bits, of what was encoded, with which the size is compared: that of
    /// Krichevsky and Trofimov for the binned gaps and durations given kind and signature, over the bins
    /// that occur for each. `None` unless it [counts](Self::counting).
    pub fn kt_bits(&self) -> Option<f64> {
        self.stream.reference.as_ref().map(Reference::bits)
    }
}

/// The window before, which the next one is told from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub window: Window,
    pub entries: u64,
}

impl Default for Before {
    fn default() -> Self {
        let window = Window { thread: 0, window: u64::MAX, first_seq: 0, start_ns: 0 };
        Self { window, entries: 0 }
    }
}

impl Before {
    /// What the next window is expected to be if it is of this thread.
    pub fn next(&self, thread: u32) -> Window {
        let Window { window, first_seq, start_ns, .. } = self.window;
        if thread == self.window.thread {
            let first_seq = first_seq.wrapping_add(self.entries);
            return Window { thread, window: window.wrapping_add(1), first_seq, start_ns };
        }
        Window { thread, window: 0, first_seq: 0, start_ns }
    }
}
