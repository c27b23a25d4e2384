//! The formulas.

use crate::window_times::Times;

/// The three efficiencies, each in [0, 1], with MPI's share and the slowest rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    /// Mean compute time of the ranks over the elapsed time: the product of the next two.
    pub parallel: f64,
    /// Mean over greatest compute time; none where no rank computes.
    pub load_balance: Option<f64>,
    /// Greatest compute time over the elapsed time: the longest of the ranks, without what ampl took of it.
    pub communication: f64,
    /// Time in MPI over all time of the ranks.
    pub mpi: f64,
    /// The rank with the most compute time, of equals the first; none where no rank computes.
    pub slowest: Option<u32>,
}

impl Shares {
    /// Efficiencies of ranks with these times; `None` without times.
    ///
    /// # Source
    /// POP standard metrics for parallel performance analysis: load balance = mean/max of compute time over ranks,
    /// communication efficiency = max compute time / run time, parallel efficiency = their product. The run time is
    /// the program's: time that passed in ampl, its own and what other processes had of the processor meanwhile, is
    /// neither the program's computing nor its communication.
    pub fn of(times: &[Times]) -> Option<Self> {
        let most = times.iter().copied().reduce(|a, b| if b.compute > a.compute { b } else { a })?;
        let elapsed = times.iter().map(Times::of_program).fold(0.0, f64::max);
        let sum =
            |value: fn(&Times) -> f64| times.iter().map(|times| times.weight * value(times)).sum::<f64>();
        let ranks = sum(|_| 1.0);
        if elapsed <= 0.0 || ranks <= 0.0 {
            return None;
        }
        let computes = most.compute > 0.0;
        let load_balance = computes.then(|| (sum(|times| times.compute) / ranks / most.compute).min(1.0));
        let communication = most.compute / elapsed;
        Some(Self {
            parallel: load_balance.unwrap_or(1.0) * communication,
            load_balance,
            communication,
            mpi: sum(|times| times.mpi) / sum(Times::of_program),
            slowest: computes.then_some(most.rank),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(rank: u32, compute: f64) -> Times {
        Times { rank, wall: 10.0, mpi: 10.0 - compute, compute, weight: 1.0 }
    }

    #[test]
    fn efficiencies_follow_their_definitions() {
        let found = Shares::of(&[times(0, 4.0), times(1, 8.0), times(2, 6.0)]).unwrap();
        assert!((found.load_balance.unwrap() - 0.75).abs() < 1e-12);
        assert!((found.communication - 0.8).abs() < 1e-12);
        assert!((found.parallel - 0.6).abs() < 1e-12);
        assert!((found.mpi - 0.4).abs() < 1e-12);
        assert_eq!(found.slowest, Some(1));
        assert!(Shares::of(&[]).is_none() && Shares::of(&[Times::default()]).is_none());
        // All of the time is MPI's: that is known.
        let waits = Shares::of(&[times(0, 0.0), times(1, 0.0)]).unwrap();
        assert_eq!((waits.parallel, waits.mpi, waits.load_balance, waits.slowest), (0.0, 1.0, None, None));
    }

    #[test]
    fn what_ampl_took_is_nobody_s() {
        // Half of the time passed while other ranks had the processor.
        let slow = |rank, compute| Times { rank, wall: 20.0, mpi: 10.0 - compute, compute, weight: 1.0 };
        let (with, without) =
            (Shares::of(&[slow(0, 4.0), slow(1, 8.0)]), Shares::of(&[times(0, 4.0), times(1, 8.0)]));
        assert_eq!(with, without);
        // Two threads in MPI at once.
        let found = Shares::of(&[Times { mpi: 15.0, ..times(0, 5.0) }]).unwrap();
        assert_eq!(found.communication, 0.5);
    }

    #[test]
    fn a_rank_of_a_sample_stands_for_others() {
        let pinned = times(0, 8.0);
        let drawn = Times { weight: 3.0, ..times(1, 4.0) };
        let found = Shares::of(&[pinned, drawn]).unwrap();
        assert!((found.load_balance.unwrap() - 5.0 / 8.0).abs() < 1e-12);
    }

    #[test]
    fn one_rank_is_balanced() {
        let found = Shares::of(&[times(7, 4.0)]).unwrap();
        assert_eq!((found.load_balance, found.communication, found.slowest), (Some(1.0), 0.4, Some(7)));
    }
}
