//! Share of the ranks' time that a number rests on, and the words that go with it.

use serde::{Serialize, Serializer};

use crate::human::{percent, plural};

/// Least share of the ranks' time at which a number stands for the run.
const WHOLE: f64 = 0.999;
/// Least share at which a number is shown as one of the run.
const LEAST: f64 = 0.9;

/// Extent to which a number stands for time that was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The number stands for the run.
    Whole,
    /// The number is shown with its share, and without an interval.
    Part,
    /// The number is not shown: the unmeasured part may have any value.
    Little,
}

/// Part of the run that a number rests on; only the share is serialised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Share of the ranks' time, in [0, 1].
    pub share: f64,
    /// Windows that were measured by all ranks that had them.
    pub windows: u64,
    /// Windows of the run.
    pub of_windows: u64,
    /// Ranks that left something.
    pub ranks: u64,
    /// Ranks of the job.
    pub of_ranks: u64,
}

impl Coverage {
    /// Extent of a number that rests on `share` of the ranks' time, in [0, 1].
    pub fn extent_of(share: f64) -> Extent {
        match share {
            share if share >= WHOLE => Extent::Whole,
            share if share >= LEAST => Extent::Part,
            _ => Extent::Little,
        }
    }

    /// Extent to which the number stands for the run.
    pub fn extent(&self) -> Extent {
        Self::extent_of(self.share)
    }

    /// `19 of 51 windows`; where ranks left nothing at all, `7 of 8 ranks`.
    pub fn part(&self) -> String {
        match self.ranks < self.of_ranks {
            true => format!("{} of {}", self.ranks, plural(self.of_ranks, "rank")),
            false => format!("{} of {}", self.windows, plural(self.of_windows, "window")),
        }
    }

    /// `19 of 51 windows, 37.2 % of the run's time`.
    pub fn words(&self) -> String {
        format!("{}, {} of the run's time", self.part(), percent(self.share))
    }

    /// Text in place of a number: `not known (19 of 51 windows)`.
    pub fn unknown(&self) -> String {
        format!("not known ({})", self.part())
    }
}

impl Serialize for Coverage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_by_the_share() {
        let of = |share| Coverage { share, windows: 19, of_windows: 51, ranks: 4, of_ranks: 4 };
        assert_eq!(of(0.372).unknown(), "not known (19 of 51 windows)");
        assert_eq!(of(0.372).words(), "19 of 51 windows, 37.2 % of the run's time");
        let absent = Coverage { ranks: 7, of_ranks: 8, ..of(0.875) };
        assert_eq!(absent.unknown(), "not known (7 of 8 ranks)");
        let extents = [1.0, 0.999, 0.9985, 0.9, 0.89, 0.0].map(Coverage::extent_of);
        let (whole, part, little) = (Extent::Whole, Extent::Part, Extent::Little);
        assert_eq!(extents, [whole, whole, part, part, little, little]);
    }
}
