//! Choice of the gap that a writer stores a call with.
//!
//! Stored as it is, every gap is within its bound, and so is the time since the window began; but errors add up, to
//! far more than one gap's. Corrected at once, the error of a long call would hide the short gaps behind it, and cost
//! bits. So a gap corrects up to its own bound, where that is the whole error, or where errors have become large for
//! the latest gaps and calls of the window. Then durations are also stored as far to the correcting side as their
//! bound lets them.

use super::{MILLION, Settings};

/// The reader's time beside the true one.
#[derive(Debug)]
pub struct Aim {
    /// The relative error, millionths.
    error: i128,
    floor: i128,
    /// Beginning of the window.
    begin: i128,
    /// The true end of the call before.
    end: i128,
    /// About the longest gap or call of late.
    long: i128,
}

/// The longest is forgotten at this rate: a 256th with every call.
const FORGETS: u32 = 8;

/// A gap that can make up for less than one part in so many of an error does not: it would be off for nothing.
const WORTH: i128 = 16;

impl Aim {
    /// The state before the first window.
    pub fn new(settings: Settings) -> Self {
        let error = settings.millionths().into();
        Self { error, floor: settings.floor_ns.into(), begin: 0, end: 0, long: 0 }
    }

    /// Begins a window at `start`, or one that follows the window before.
    pub fn window(&mut self, start: Option<i64>) {
        if let Some(start) = start.map(i128::from) {
            (self.begin, self.end, self.long) = (start, start, 0);
        }
    }

    /// True where `off` is within the error of the longest gap or call of late: a reader's time may stay so.
    #[inline]
    fn is_patient(&self, off: i128) -> bool {
        at_most(off, self.long.min(self.end - self.begin) * self.error)
    }

    /// True where `off` is within the error of the time since the window began; beyond, the next gap must correct it.
    #[inline]
    fn may_stand(&self, off: i128) -> bool {
        at_most(off, (self.end - self.begin) * self.error)
    }

    /// The gap to aim at for a call that starts at `start`, where the reader has `end` as the end of the call before,
    /// and the true gap. The aim is off by no more than its own bound, unless a floor has let short gaps add up to
    /// more than is allowed. Where it is below 0 and the true gap is not, the reader is late: the nearest is 0.
    #[inline]
    pub fn gap(&mut self, start: i64, end: i64) -> (i128, i128) {
        let (start, end) = (i128::from(start), i128::from(end));
        let (true_gap, whole) = (start - self.end, start - end);
        self.long = (self.long - (self.long >> FORGETS)).max(true_gap);
        if true_gap < 0 {
            // Calls that overlap do so for readers too.
            return (whole, true_gap);
        }
        let off = (whole - true_gap).abs();
        let within = off * i128::from(MILLION) <= true_gap * self.error;
        let aim = if within || !self.may_stand(off) {
            whole
        } else if self.is_patient(off) {
            true_gap
        } else {
            let own = true_gap * self.error / i128::from(MILLION);
            true_gap + if own * WORTH < off { 0 } else { (whole - true_gap).clamp(-own, own) }
        };
        (aim, true_gap)
    }

    /// Notes the time of the call.
    pub fn call(&mut self, start: i64, duration: u64) {
        self.end = i128::from(start) + i128::from(duration);
        self.long = self.long.max(duration.into());
    }

    /// Notes a window's first call, which began before it.
    pub fn crosses(&mut self, time: Option<(i64, u64)>) {
        if let Some((start, duration)) = time {
            self.end = i128::from(start) + i128::from(duration);
        }
    }

    /// True where a reader may have `end` as the end of the call.
    pub fn allows(&self, end: i128) -> bool {
        end - self.end <= self.floor + (self.end - self.begin) * self.error / i128::from(MILLION)
    }

    /// True where a duration had better be stored as less, if a reader had `end` as the end of the call.
    pub fn is_late(&self, end: i128) -> bool {
        !self.is_patient(end - self.end)
    }

    /// True where a duration had better be stored as more. Gaps correct first: they do it for fewer bits.
    pub fn is_early(&self, end: i128) -> bool {
        !self.is_patient((self.end - end) / 2)
    }
}

/// True where `number` is at most so many millionths, rounded towards 0, without a long division.
#[inline]
fn at_most(number: i128, millionths: i128) -> bool {
    let million = i128::from(MILLION);
    let edge = if millionths < 0 { millionths + (million - 1) } else { millionths };
    number * million <= edge
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_division_is_needed(number in -9..9i128, near in -2_000_000..2_000_000i128, any: i64) {
            let millionths = number * i128::from(MILLION) + near;
            prop_assert_eq!(at_most(number, millionths), number <= millionths / i128::from(MILLION));
            let (number, millionths) = (number * i128::from(any), millionths * i128::from(any));
            prop_assert_eq!(at_most(number, millionths), number <= millionths / i128::from(MILLION));
        }
    }
}
