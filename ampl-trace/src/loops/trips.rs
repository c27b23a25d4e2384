//! Iterations of the executions of a loop.

/// Iterations of the executions of a loop, in their order.
#[derive(Clone, Debug)]
pub(super) struct Trips {
    /// Iterations, number of executions in a row with so many, and the index of the first of these.
    pub(super) trips: Vec<(u64, u64, u64)>,
}

impl Trips {
    /// Executions with no whole iteration are left out.
    pub(super) fn of(executions: &[(u64, u64)]) -> Self {
        let mut index = 0;
        let mut trips: Vec<(u64, u64, u64)> = Vec::new();
        for &(iterations, times) in executions {
            if iterations > 0 {
                trips.push((iterations, times, index));
            }
            index += times;
        }
        Self { trips }
    }

    pub(super) fn number(&self) -> u64 {
        self.trips.iter().map(|&(_, times, _)| times).sum()
    }

    pub(super) fn number_of(&self, iterations: u64) -> u64 {
        self.trips.iter().filter(|of| of.0 == iterations).map(|&(_, times, _)| times).sum()
    }

    pub(super) fn sum(&self) -> u64 {
        self.trips.iter().fold(0, |sum, &(trips, times, _)| sum.saturating_add(trips.saturating_mul(times)))
    }

    /// The run with the most iterations, the first of several; and its iterations.
    pub(super) fn longest(&self) -> (usize, u64) {
        let longest = (0..self.trips.len()).max_by_key(|&at| (self.trips[at].0, std::cmp::Reverse(at)));
        longest.map_or((0, 0), |at| (at, self.trips[at].0))
    }

    /// True where most executions have one iteration.
    pub(super) fn is_mostly_once(&self) -> bool {
        self.number_of(1).saturating_mul(2) > self.number()
    }

    /// True where all executions have as many iterations, several each.
    pub(super) fn is_even(&self) -> bool {
        self.number() > 2 && self.trips.iter().all(|of| of.0 > 1 && of.0 == self.trips[0].0)
    }

    pub(super) fn index(&self, run: usize) -> u64 {
        self.trips.get(run).map_or(0, |&(_, _, index)| index)
    }

    /// Iterations of each execution but the first and the last, which have no more; `None` where they differ.
    pub(super) fn regular(&self) -> Option<u64> {
        let mut inner = self.trips.clone();
        if self.number() < 3 {
            return None;
        }
        let (first, last) = (inner.first()?.0, inner.last()?.0);
        inner.first_mut()?.1 -= 1;
        inner.last_mut()?.1 -= 1;
        let mut values: Vec<u64> = inner.iter().filter(|of| of.1 > 0).map(|of| of.0).collect();
        values.dedup();
        let &[value] = &values[..] else { return None };
        (value == 1 || first.max(last) <= value).then_some(value)
    }
}
