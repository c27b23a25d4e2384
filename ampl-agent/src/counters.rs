//! Counts of the machine's counters per window.
//!
//! Counters are read when a window ends, never per call. A hook that comes late may end several windows at
//! once: what was counted since the last reading is then theirs in proportion to their length.

use ampl_core::config::Quantity;
use ampl_core::plan::Plan;
use ampl_trace::cells::Cell;

/// A source of counts; it alone knows how to read them.
pub trait Counters: std::fmt::Debug + Send {
    /// Count of each counter since the last call, or since its start, in its unit; `None` where it did not count.
    fn take(&mut self, into: &mut [Option<f64>]);
}

/// Places in a summary that counters fill, in the order in which their source is given the metrics.
pub fn counted(plan: &Plan) -> Vec<usize> {
    let counts = |quantity: &Quantity| matches!(quantity, Quantity::Perf(_) | Quantity::Papi(_));
    let metrics = plan.metrics.iter().enumerate();
    metrics.filter(|(_, metric)| counts(&metric.quantity)).map(|(slot, _)| slot).collect()
}

/// A source, and its counts for windows that are not closed yet.
#[derive(Debug)]
pub(crate) struct Counting {
    source: Box<dyn Counters>,
    slots: Vec<usize>,
    /// Counted between `since` and `until`, ticks.
    pending: Vec<Option<f64>>,
    latest: Vec<Option<f64>>,
    since: u64,
    until: u64,
}

impl Counting {
    /// `source` fills `slots`.
    pub fn new(source: Box<dyn Counters>, slots: Vec<usize>) -> Self {
        let none = vec![None; slots.len()];
        Self { source, slots, pending: none.clone(), latest: none, since: 0, until: 0 }
    }

    /// Drops counts from before `now`, ticks.
    pub fn restart(&mut self, now: u64) {
        self.source.take(&mut self.latest);
        self.pending.fill(None);
        (self.since, self.until) = (now, now);
    }

    /// Reads the counters at `now`, ticks, unless they have been.
    pub fn read(&mut self, now: u64) {
        if now == self.until {
            return;
        }
        self.source.take(&mut self.latest);
        let nothing_left = self.since >= self.until;
        for (pending, &latest) in self.pending.iter_mut().zip(&self.latest) {
            *pending = match (*pending, latest) {
                _ if nothing_left => latest,
                (Some(before), Some(more)) => Some(before + more),
                _ => None,
            };
        }
        self.until = now.max(self.until);
    }

    /// Puts into `cells` what was counted up to `end`, ticks: one observation each, none where a counter did
    /// not count.
    pub fn close(&mut self, end: u64, cells: &mut [Cell]) {
        let (all, part) = (self.until.saturating_sub(self.since), end.saturating_sub(self.since));
        let share = if part >= all { 1.0 } else { part as f64 / all as f64 };
        for (&slot, pending) in self.slots.iter().zip(&mut self.pending) {
            let Some(counted) = pending else { continue };
            let value = *counted * share;
            *counted -= value;
            cells[slot] = Cell { n: 1.0, sum: value, sum_sq: value * value, min: value, max: value };
        }
        self.since = end.clamp(self.since, self.until.max(self.since));
    }

    /// As [`close`](Self::close) for `windows` windows that end by `end`, each with its part in `cells`.
    pub fn close_several(&mut self, end: u64, windows: u64, cells: &mut [Cell]) {
        self.close(end, cells);
        for &slot in &self.slots {
            let cell = &mut cells[slot];
            if cell.n > 0.0 {
                let value = cell.sum / windows as f64;
                *cell = Cell { n: 1.0, sum: value, sum_sq: value * value, min: value, max: value };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the counts it was given, then none.
    #[derive(Debug)]
    struct Given(Vec<[Option<f64>; 2]>);

    impl Counters for Given {
        fn take(&mut self, into: &mut [Option<f64>]) {
            into.copy_from_slice(&if self.0.is_empty() { [None; 2] } else { self.0.remove(0) });
        }
    }

    fn sums(counting: &mut Counting, end: u64) -> [Option<f64>; 2] {
        let mut cells = [Cell::default(); 3];
        counting.close(end, &mut cells);
        assert_eq!(cells[1], Cell::default());
        [cells[0], cells[2]].map(|cell| (cell.n == 1.0).then_some(cell.sum))
    }

    #[test]
    fn windows_that_end_at_once_share_by_length() {
        let given = [[Some(99.0), None], [Some(30.0), Some(3.0)], [Some(8.0), None], [Some(5.0), Some(7.0)]];
        let mut counting = Counting::new(Box::new(Given(given.into())), vec![0, 2]);
        counting.restart(100);
        counting.read(400);
        assert_eq!(sums(&mut counting, 200), [Some(10.0), Some(1.0)]);
        assert_eq!(sums(&mut counting, 350), [Some(15.0), Some(1.5)]);
        // The rest belongs to the window that is open; in it the second counter stands still.
        counting.read(450);
        assert_eq!(sums(&mut counting, 450), [Some(13.0), None]);
        counting.read(500);
        assert_eq!(sums(&mut counting, 500), [Some(5.0), Some(7.0)]);
        counting.read(600);
        assert_eq!(sums(&mut counting, 600), [None, None]);
    }
}
