//! Offset of this process's clock from rank 0's.
//!
//! Processes under one kernel read one monotonic clock. Where any reads another, each rank asks the one before it in
//! a binomial tree for the time, in `MPI_Init` and in `MPI_Finalize`, where the application waits for all ranks
//! anyway; differences add up on the way down. The wall clock would not do: nodes keep it in step to some
//! milliseconds, and messages take microseconds.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

use ampl_agent::transport::TransportError;
use ampl_core::units::Rank;
use ampl_trace::model::ClockFit;

use crate::clock::monotonic_ns;
use crate::environment;
use crate::transport::Channel;

/// Questions to a rank: the one that was answered quickest counts.
const QUESTIONS: usize = 16;

/// Nanoseconds in which a clock gains or loses less than one, corrected or not.
const MOST_DRIFT: u64 = 10_000;

/// Hash that is equal in processes that read one monotonic clock.
pub fn identity() -> u64 {
    static IDENTITY: OnceLock<u64> = OnceLock::new();
    *IDENTITY.get_or_init(read_identity)
}

fn read_identity() -> u64 {
    let mut hasher = DefaultHasher::new();
    // Machines that were copied while they ran have the number of one boot.
    environment::host().hash(&mut hasher);
    fs::read_to_string("/proc/sys/kernel/random/boot_id").ok().hash(&mut hasher);
    // A container may have the kernel's clock with an offset of its own.
    fs::read_link("/proc/self/ns/time").ok().hash(&mut hasher);
    hasher.finish()
}

/// A clock against rank 0's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Time of the reading, on this process's monotonic clock, nanoseconds.
    at: i64,
    /// Offset of rank 0's clock from that clock, nanoseconds.
    pub offset: i64,
    /// Error bound of the offset, nanoseconds; 0 where it is the same clock.
    error: u64,
}

impl Reading {
    /// Reading of this rank; every rank takes it at the same time.
    ///
    /// # Errors
    /// [`TransportError`] when MPI fails, or another rank is silent.
    pub fn take(channel: &Channel, ranks: u32, rank: u32) -> Result<Self, TransportError> {
        let mine = identity();
        let mut reading = Self { at: monotonic_ns(), ..Self::default() };
        if rank > 0 {
            reading.ask(channel, Rank(rank & (rank - 1)), mine)?;
        }
        let below = if rank == 0 { u32::MAX } else { 1 << rank.trailing_zeros() };
        let distances = (0..31).map(|bit| 1 << bit).take_while(|&distance| distance < below);
        for child in distances.filter_map(|distance| rank.checked_add(distance)).take_while(|&c| c < ranks) {
            reading.answer(channel, Rank(child), mine)?;
        }
        Ok(reading)
    }

    fn ask(&mut self, channel: &Channel, parent: Rank, mine: u64) -> Result<(), TransportError> {
        channel.send(parent, &mine.to_le_bytes())?;
        let told = channel.receive(parent, 32)?;
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| told[8 * at + byte]));
        (self.offset, self.error) = (word(1) as i64, word(2));
        if word(0) == mine {
            // It may have waited for the answer, and the clock drifts.
            self.at = word(3) as i64;
            return Ok(());
        }
        let mut best = (i64::MAX, 0, 0);
        for _ in 0..QUESTIONS {
            let before = monotonic_ns();
            channel.send(parent, &[0])?;
            let now = channel.receive_soon(parent, 8)?;
            let after = monotonic_ns();
            let now = i64::from_le_bytes(now.try_into().expect("eight bytes were asked for"));
            let middle = before + (after - before) / 2;
            best = best.min((after - before, middle, now - middle));
        }
        let (took, at, apart) = best;
        // The parent's own difference is as of a moment before.
        let since = (at + apart).abs_diff(word(3) as i64);
        self.at = at;
        self.offset += apart;
        self.error += took as u64 / 2 + 1 + if parent.0 > 0 { since / MOST_DRIFT } else { 0 };
        Ok(())
    }

    fn answer(&self, channel: &Channel, child: Rank, mine: u64) -> Result<(), TransportError> {
        let theirs = channel.receive(child, 8)?;
        let words = [mine, self.offset as u64, self.error, self.at as u64];
        channel.send(child, &words.map(u64::to_le_bytes).concat())?;
        if theirs != mine.to_le_bytes() {
            for _ in 0..QUESTIONS {
                channel.receive_soon(child, 1)?;
                channel.send(child, &monotonic_ns().to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Clock fit after this, the first reading; `None` where it is rank 0's clock.
    pub fn fit(self) -> Option<ClockFit> {
        (self.error > 0).then_some(ClockFit { offset_ns: self.offset, error_ns: self.error, drift_ppm: None })
    }

    /// Clock fit after this, the first reading, and the `last`. A drift that the errors of both explain counts as 0.
    pub fn fit_to(self, last: Self) -> Option<ClockFit> {
        let first = self.fit()?;
        let (moved, time) = (last.offset - self.offset, last.at - self.at);
        let errors = self.error + last.error;
        Some(if moved.unsigned_abs() > errors && time > 0 {
            let drift = moved as f64 / time as f64 * 1e6;
            ClockFit { drift_ppm: Some(drift), error_ns: self.error.max(last.error), ..first }
        } else {
            ClockFit {
                drift_ppm: Some(0.0),
                error_ns: self.error.max(last.error + moved.unsigned_abs()),
                ..first
            }
        })
    }

    /// Nanoseconds that a clock of that drift has been left behind by rank 0's from this reading until `now`; less
    /// than 0 before it.
    pub fn behind(self, now: i64, drift_ppm: f64) -> i64 {
        ((now - self.at) as f64 * drift_ppm * 1e-6).round() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_kernel_has_one_clock() {
        assert_eq!(read_identity(), read_identity());
        assert_eq!(Reading::default().fit(), None);
        assert_eq!(Reading::default().fit_to(Reading::default()), None);
    }

    #[test]
    fn a_drift_is_what_errors_do_not_explain() {
        let second = 1_000_000_000;
        let first = Reading { at: 5 * second, offset: -7_000, error: 3_000 };
        let after = |moved, error| Reading { at: 15 * second, offset: first.offset + moved, error };
        let fit = first.fit_to(after(100_000, 4_000)).unwrap();
        assert_eq!(fit, ClockFit { offset_ns: -7_000, error_ns: 4_000, drift_ppm: Some(10.0) });
        assert_eq!(first.behind(15 * second, 10.0), 100_000);
        let fit = first.fit_to(after(-6_900, 4_000)).unwrap();
        assert_eq!(fit, ClockFit { offset_ns: -7_000, error_ns: 10_900, drift_ppm: Some(0.0) });
    }
}
