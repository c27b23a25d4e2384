//! Times of the calls of kept windows: in bins of a bounded relative error, entropy-coded by signature.
//!
//! A window's start is exact. Every call in it has two values: its **gap**, from the end of the call before
//! *as the decoder has it* (of the window's start at first) to its own start, and its **duration**. Because
//! gaps are measured from what the decoder has, errors never add up, however long a window is.
//!
//! With error `e` and floor `f` (nanoseconds) of the [`Settings`], what is [decoded](Decoder::call) keeps
//!
//! - `|stored start - start| <= max(f, e * |start - stored end of the call before|)`, and
//! - `|stored duration - duration| <= max(f, e * duration)`,
//!
//! where the stored end is the stored start plus the stored duration, saturating. With `e = 0` and `f = 0`
//! all is exact; small integers always are (those below `1 / e`), unless they are below the floor. Durations
//! up to the floor share one bin, and so do gaps that are within the floor of what these are decoded as: 0
//! at first, then the mean of such values of the signature, which is told at the 4th, the 256th, the
//! 16384th, … of them.
//!
//! The bins of a call are coded by an adaptive model of its signature (its *terminal*), which is mixed with
//! models of the whole rank, so that a young signature costs little. All of it is integer arithmetic: bytes
//! and what they decode to are the same on every machine.

mod bits;
mod decoder;
mod encoder;
mod mixing;
mod models;
mod reference;
mod scale;
mod stream;
mod trees;

pub use decoder::{Decoder, Malformed};
pub use encoder::Encoder;

/// Millionths in one: the unit of the stored relative error.
const MILLION: u64 = 1_000_000;
/// The finest relative error that has bins, in millionths; what is asked to be finer is kept exactly.
const FINEST: u64 = 1000;
/// The coarsest, in millionths; what may be coarser is kept as fine as this.
const COARSEST: u64 = 500_000;

/// How exactly times are kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Bound of the relative error of each stored gap and duration; 0 is exact. Kept in millionths, rounded
    /// down; below a thousandth everything is exact, and above one half it is one half.
    pub error: f64,
    /// Bound, in nanoseconds, below which no relative error is asked for; 0 is none.
    pub floor_ns: u64,
}

impl Settings {
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
    /// When the window began, in nanoseconds; stored exactly.
    pub start_ns: i64,
}

/// When a call was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// When it began, in nanoseconds.
    pub start_ns: i64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
    /// Calls that the entry stands for: 1, or the failed polls folded into one.
    pub count: u64,
}
