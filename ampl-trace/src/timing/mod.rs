//! Times of the calls of kept windows: in bins of a bounded relative error, entropy-coded by signature.
//!
//! Every call has two values: its **gap**, from the end of the call before to its own start, and its
//! **duration**. The first gap of a window is from the window's start, which is exact, unless the window
//! follows the one before without a call between: then time just goes on. A window's first call that began
//! before it is stored by how long after the window's start it ended.
//!
//! With error `e` and floor `f` (nanoseconds) of the [`Settings`], what is [decoded](Decoder::call) of
//! calls that do not overlap keeps
//!
//! - `|stored duration - duration| <= max(f, e * duration)`;
//! - `stored start >= stored end of the call before`, where an end is start and duration;
//! - `|stored start - start| <= f + e * (start - start of the windows)`: of the first of those that follow
//!   each other; of a call that began before it, `f + e * (duration + |end - start of the windows|)`.
//!
//! Errors do not add up beyond the last bound: a gap begins at the stored end of the call before. Its stored length
//! aims off the true one, by no more than `e` times that, where this corrects the reader's time. So without a floor
//!
//! - `|stored gap - gap| <= (2 e + e^2) * gap`, both from where the call before ends, stored and true.
//!
//! Where the reader's time is off by more than `e` times the longest gap or call of late, durations correct it as
//! well, within their bound (`gap_choice.rs`). Calls that do overlap start within
//! `max(f, e * |start - stored end of the call before|)`.
//!
//! With `e = 0` and `f = 0` all is exact; small integers always are (those below `1 / e`), unless they are below the
//! floor. Durations up to the floor share one bin, and so do gaps that are within the floor of the value that these
//! are decoded as: 0 at first, then the mean of such values of signatures that are alike, which is coded at the 4th,
//! the 256th, the 16384th, … of them.
//!
//! The bins of a call are coded by an adaptive model of its signature (its *terminal*), which is mixed with
//! one by the value before, whatever that was of, and with what is known of its function and of its latest
//! values, so that a young signature costs little. All of it is integer arithmetic: bytes and what they
//! decode to are the same on every machine.

mod decoder;
mod encoder;
mod gap_choice;
mod mixing;
mod models;
mod priors;
mod scale;
mod stream;
mod trees;
mod window_headers;

pub use crate::bits::Length;
pub use decoder::{Decoder, Malformed};
pub use encoder::Encoder;
pub(crate) use mixing::Node;

/// Millionths in one: the unit of the stored relative error.
const MILLION: u64 = 1_000_000;
/// The finest relative error that has bins, in millionths; with a finer one times are exact.
const FINEST: u64 = 1000;
/// The coarsest relative error, in millionths; a coarser one is taken as this.
const COARSEST: u64 = 500_000;

/// Precision of the times that are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Bound of the relative error of each stored gap and duration; 0 is exact. Kept in millionths, rounded
    /// down; below a thousandth everything is exact, and above one half it is one half.
    pub error: f64,
    /// Bound, in nanoseconds, below which no relative error is asked for; 0 is none.
    pub floor_ns: u64,
}

impl Settings {
    /// Largest error of a stored duration of so many nanoseconds, or of a part of one.
    pub fn error_ns(self, duration_ns: f64) -> f64 {
        duration_ns.min((self.error * duration_ns).max(self.floor_ns as f64))
    }

    /// The relative error in millionths, rounded down to one that is kept.
    fn millionths(self) -> u64 {
        // So that 0.29, which is a little less than 29 hundredths, is 290,000 millionths.
        let millionths = (self.error * MILLION as f64 * (1.0 + 4.0 * f64::EPSILON)) as u64;
        if millionths < FINEST { 0 } else { millionths.min(COARSEST) }
    }
}

/// A kept window of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The thread's number in its rank.
    pub thread: u32,
    /// The window's number.
    pub window: u64,
    /// Calls of the thread before the window.
    pub first_seq: u64,
    /// Start of the window, nanoseconds, exact. Read back of a window that begins with the call behind the last of the
    /// window before, of the same thread: that call's end as it is stored.
    pub start_ns: i64,
}

/// A call's signature, as models know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Its number in the thread.
    pub number: u32,
    /// A number that signatures share whose times are alike: their function's.
    pub like: u16,
    /// True where an entry may stand for any number of calls: failed polls.
    pub folds: bool,
}

impl From<u32> for Terminal {
    /// A terminal that is like all others, and does not fold.
    fn from(number: u32) -> Self {
        Self { number, like: 0, folds: false }
    }
}

/// Time of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Start, nanoseconds.
    pub start_ns: i64,
    /// Duration, nanoseconds.
    pub duration_ns: u64,
    /// Calls that the entry stands for: 1, or the failed polls folded into one.
    pub count: u64,
}
