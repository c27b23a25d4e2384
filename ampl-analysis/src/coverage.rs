//! Share of the ranks' time that a number rests on.

use serde::{Serialize, Serializer};

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

/// Part of the run that a number rests on; only the share of the whole run is serialised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Share of the ranks' time without the program's pauses, in [0, 1].
    pub share: f64,
    /// Share of the ranks' time that is in none of the program's pauses, in [0, 1].
    pub observed: f64,
    /// Windows that were measured by all ranks that had them.
    pub windows: u64,
    /// Windows of the run.
    pub of_windows: u64,
    /// Ranks that left something.
    pub ranks: u64,
    /// Ranks of the job.
    pub of_ranks: u64,
    /// True where ampl does not see all MPI functions: time outside of those it sees is not known.
    pub unseen: bool,
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

    /// Share of the ranks' time, the program's pauses included, in [0, 1].
    pub fn of_run(&self) -> f64 {
        self.share * self.observed
    }

    /// Extent to which the number stands for what the program lets ampl observe.
    pub fn extent(&self) -> Extent {
        Self::extent_of(self.share)
    }
}

impl Serialize for Coverage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.of_run())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_go_by_the_share() {
        let extents = [1.0, 0.999, 0.9985, 0.9, 0.89, 0.0].map(Coverage::extent_of);
        let (whole, part, little) = (Extent::Whole, Extent::Part, Extent::Little);
        assert_eq!(extents, [whole, whole, part, part, little, little]);
    }
}
