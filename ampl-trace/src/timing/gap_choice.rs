//! Which of the gaps that a call may be stored with a writer chooses.
//!
//! Stored as it is, every gap is within its bound, and so is the time since the window began; but errors
//! add up, to far more than one gap's. Made up for at once, the error of a long call would be all there is to
//! see of the short gaps behind it, and cost bits. So a gap makes up for as much as its own bound where that is
//! all there is, or where errors have become large for what the window has seen of late; and then durations are
//! stored as far to the side that makes up for it as their bound lets them.

use super::{MILLION, Settings};

/// How the reader's time stands to the true one.
#[derive(Debug)]
pub struct Aim {
    /// The relative error, millionths.
    error: i128,
    floor: i128,
    /// When the window began.
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
    /// At the beginning.
    pub fn new(settings: Settings) -> Self {
        let error = settings.millionths().into();
        Self { error, floor: settings.floor_ns.into(), begin: 0, end: 0, long: 0 }
    }

    /// A window begins then, or follows the one before.
    pub fn window(&mut self, start: Option<i64>) {
        if let Some(start) = start.map(i128::from) {
            (self.begin, self.end, self.long) = (start, start, 0);
        }
    }

    /// Whether a reader's time may stay off that far.
    #[inline]
    fn is_patient(&self, off: i128) -> bool {
        at_most(off, self.long.min(self.end - self.begin) * self.error)
    }

    /// Whether a reader's time may stay off that far without being off too far with the next gap.
    #[inline]
    fn may_stand(&self, off: i128) -> bool {
        at_most(off, (self.end - self.begin) * self.error)
    }

    /// The gap to aim at for a call that starts then, where the reader has `end` as the end of the call
    /// before, and what it truly is: off by no more than its own bound, unless a floor has let short ones add up to
    /// more than may be. Below 0, where this is not, the reader is late, and as near as can be is 0.
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

    /// Takes note of when the call is.
    pub fn call(&mut self, start: i64, duration: u64) {
        self.end = i128::from(start) + i128::from(duration);
        self.long = self.long.max(duration.into());
    }

    /// Takes note of a window's first call, which began before it.
    pub fn crosses(&mut self, time: Option<(i64, u64)>) {
        if let Some((start, duration)) = time {
            self.end = i128::from(start) + i128::from(duration);
        }
    }

    /// Whether a reader may have that as the end of the call.
    pub fn allows(&self, end: i128) -> bool {
        end - self.end <= self.floor + (self.end - self.begin) * self.error / i128::from(MILLION)
    }

    /// Whether a duration had better be stored as less, if a reader had that as the end of the call.
    pub fn is_late(&self, end: i128) -> bool {
        !self.is_patient(end - self.end)
    }

    /// Whether it had better be stored as more: gaps have the first say, since they tell it for less.
    pub fn is_early(&self, end: i128) -> bool {
        !self.is_patient((self.end - end) / 2)
    }
}

/// Whether a number is at most so many millionths, rounded towards 0, which would be a long division.
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
