//! Computation between the calls of a rank, as it was recorded.
//!
//! Where two calls in a row are stored with their times, the time between them is known. Other calls share what is left
//! of the rank's time outside of MPI, by its exact totals, in equal parts.

use std::time::{Duration, Instant};

use ampl_reader::Call;

/// Computation of a rank before each of its calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Computation {
    /// Before a call of which no time is stored, nanoseconds.
    other_ns: f64,
    scale: f64,
    /// Time outside MPI, nanoseconds.
    pub outside_ns: f64,
    /// Number of the call behind the last one, and the time at which that ended.
    last: Option<(u64, i64)>,
    /// Calls whose computation was measured, and all.
    pub measured: u64,
    /// Calls.
    pub calls: u64,
}

/// Time between the last call and `call`, where both are stored; notes the end of `call`.
fn between(last: &mut Option<(u64, i64)>, call: &Call) -> Option<f64> {
    let before = last.take().filter(|(seq, _)| *seq == call.seq);
    let timed = call.timed?;
    let duration = timed.duration_ns?;
    let end = timed.start_ns.saturating_add(i64::try_from(duration).unwrap_or(i64::MAX));
    *last = Some((call.seq + call.count, end));
    before.map(|(_, end)| timed.start_ns.saturating_sub(end).max(0) as f64)
}

impl Computation {
    /// The computation of `calls`, which took `elapsed_ns` with `mpi_ns` in MPI; computation is multiplied by `scale`.
    pub fn of(calls: impl Iterator<Item = Call>, elapsed_ns: u64, mpi_ns: f64, scale: f64) -> Self {
        let (mut last, mut known_ns, mut measured, mut number) = (None, 0.0, 0, 0);
        for call in calls {
            number += 1;
            if let Some(gap) = between(&mut last, &call) {
                (known_ns, measured) = (known_ns + gap, measured + 1);
            }
        }
        let outside_ns = (elapsed_ns as f64 - mpi_ns).max(0.0);
        let left_ns = (outside_ns - known_ns).max(0.0);
        let other_ns = left_ns / ((number - measured).max(1) as f64);
        Self { other_ns, scale, outside_ns, last: None, measured, calls: number }
    }

    /// Computation before `call`, which is the next.
    pub fn before(&mut self, call: &Call) -> Duration {
        let gap = between(&mut self.last, call).unwrap_or(self.other_ns);
        Duration::from_nanos((gap * self.scale) as u64)
    }
}

/// Pace of a replay: computation begins at the end of the call before, and what the replay itself does between calls is
/// part of it.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// End of what was computed and called so far.
    due: Instant,
}

impl Pace {
    /// A pace from `now` on.
    pub fn new(now: Instant) -> Self {
        Self { due: now }
    }

    /// Time that is left of a computation of `time`, `now`.
    pub fn compute(&mut self, time: Duration, now: Instant) -> Duration {
        self.due += time;
        self.due.saturating_duration_since(now)
    }

    /// Notes a call that took `time`.
    pub fn call(&mut self, time: Duration) {
        self.due += time;
    }
}

#[cfg(test)]
mod tests {
    use ampl_reader::Timed;

    use super::*;
    use crate::completions::tests::call;

    fn at(seq: u64, start_ns: Option<i64>) -> Call {
        let timed = start_ns.map(|start_ns| Timed { window: 0, start_ns, duration_ns: Some(10) });
        Call { seq, timed, ..call("MPI_Barrier", Vec::new(), Vec::new()) }
    }

    #[test]
    fn stored_gaps_are_kept_and_the_others_share_what_is_left() {
        let calls = [at(0, None), at(1, Some(100)), at(2, Some(140)), at(3, None), at(4, Some(300))];
        let mut computation = Computation::of(calls.iter().cloned(), 1000, 50.0, 2.0);
        assert_eq!((computation.measured, computation.calls), (1, 5));
        let found: Vec<u128> = calls.iter().map(|call| computation.before(call).as_nanos()).collect();
        // 1000 less 50 in MPI less 30 that are known, over four calls.
        assert_eq!(found, [460, 460, 60, 460, 460]);
        let left: u128 = found.iter().sum::<u128>() / 2;
        assert_eq!(left, 1000 - 50);
    }

    #[test]
    fn what_the_replay_does_itself_is_part_of_computation() {
        let begin = Instant::now();
        let us = Duration::from_micros;
        let mut pace = Pace::new(begin);
        assert_eq!(pace.compute(us(10), begin + us(3)), us(7));
        pace.call(us(20));
        // Late by more than is computed, and made good for at the next call.
        assert_eq!(pace.compute(us(5), begin + us(38)), us(0));
        pace.call(us(1));
        assert_eq!(pace.compute(us(10), begin + us(40)), us(6));
    }
}
