//! Bounds of efficiencies where not all of the ranks' time was measured.

use serde::Serialize;

use crate::window_times::Times;

/// Bounds of the run's numbers, the lower first, whatever happened where nothing was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Bounds of the parallel efficiency.
    pub parallel: [f64; 2],
    /// Bounds of the load balance.
    pub load_balance: [f64; 2],
    /// Bounds of the communication efficiency.
    pub communication: [f64; 2],
    /// Bounds of the share of MPI in the ranks' time.
    pub mpi: [f64; 2],
}

/// Measured times of one rank, and how long it was not measured.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// Times while the rank was measured.
    pub times: Times,
    /// Time that was not measured, nanoseconds.
    pub unknown_ns: f64,
    /// Time that ampl took of all the rank's time, nanoseconds.
    pub own_ns: f64,
}

impl Bounds {
    /// Bounds for a job of `ranks`, and of `absent` ranks that left nothing; `None` without any time.
    ///
    /// Each rank's compute time lies between its measured compute time, and that plus all its unmeasured time. The
    /// ratio of mean to greatest compute time is greatest where every rank is as near as it can be to the least
    /// possible maximum. It is least where one rank computes all of its unmeasured time and the others none of
    /// theirs.
    pub fn of(ranks: &[Rest], absent: u64) -> Option<Self> {
        let run_ns = |rank: &Rest| rank.times.wall.max(rank.times.of_program()) + rank.unknown_ns;
        let longest = ranks.iter().map(run_ns).fold(0.0, f64::max);
        let shortest = ranks.iter().map(|rank| (run_ns(rank) - rank.own_ns).max(0.0)).fold(0.0, f64::max);
        let known = ranks.iter().map(|rank| [rank.times.compute, rank.times.compute + rank.unknown_ns]);
        let all: Vec<[f64; 2]> = known.chain((0..absent).map(|_| [0.0, longest])).collect();
        let count = all.len() as f64;
        let sum = |end: usize| all.iter().map(|of| of[end]).sum::<f64>();
        let most = |end: usize| all.iter().map(|of| of[end]).fold(0.0, f64::max);
        if longest <= 0.0 || shortest <= 0.0 || most(1) <= 0.0 {
            return None;
        }
        let share = |part: f64, of: f64| (part / of).clamp(0.0, 1.0);
        let parallel = [share(sum(0) / count, longest), share(sum(1) / count, shortest)];
        let (least_most, most_most) = (most(0), most(1));
        let highest = match least_most > 0.0 {
            true => all.iter().map(|of| of[1].min(least_most)).sum::<f64>() / (count * least_most),
            false => 1.0,
        };
        let lowest = all.iter().filter(|of| of[1] >= least_most && of[1] > 0.0);
        let lowest = lowest.map(|of| (of[1] + sum(0) - of[0]) / (count * of[1])).fold(1.0, f64::min);
        let mpi: f64 = ranks.iter().map(|rank| rank.times.mpi).sum();
        let unknown = ranks.iter().map(|rank| rank.unknown_ns).sum::<f64>() + absent as f64 * longest;
        let program = ranks.iter().map(|rank| rank.times.of_program()).sum::<f64>() + unknown;
        Some(Self {
            parallel,
            load_balance: [lowest.clamp(0.0, 1.0), highest.clamp(0.0, 1.0)],
            communication: [share(least_most, longest), share(most_most, shortest)],
            mpi: [share(mpi, program), share(mpi + unknown, program)],
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::efficiency::Shares;

    proptest! {
        /// Whatever the ranks did where nothing was measured, what is true of all of it lies between the bounds.
        #[test]
        fn the_truth_lies_between_them(
            ranks in prop::collection::vec(
                // Measured compute, MPI and ampl's time, not measured: how long, how much of it computes, ampl's.
                (0.0..1e6, 0.0..1e6, 0.0..1e4, 0.0..1e6, 0.0..=1.0, 0.0..0.01), 1..9),
            absent in 0usize..3,
        ) {
            let measured = ranks.len().saturating_sub(absent).max(1);
            let (mut rests, mut truth) = (Vec::new(), Vec::new());
            for (rank, &(compute, mpi, own, unknown, part, own_part)) in ranks.iter().enumerate() {
                let times = Times { rank: rank as u32, wall: compute + mpi + own, mpi, compute, weight: 1.0 };
                let program = unknown * (1.0 - own_part);
                truth.push(Times {
                    wall: times.wall + unknown,
                    mpi: mpi + program * (1.0 - part),
                    compute: compute + program * part,
                    ..times
                });
                let own_ns = own + unknown * own_part;
                rests.push(Rest { times, unknown_ns: unknown, own_ns });
            }
            let left = rests[..measured].to_vec();
            // A rank that left nothing ran no longer than the longest of the others.
            let longest = left.iter().map(|rest| rest.times.wall + rest.unknown_ns).fold(0.0, f64::max);
            for one in &mut truth[measured..] {
                let scale = (longest / one.wall).min(1.0);
                (one.wall, one.mpi, one.compute) = (one.wall * scale, one.mpi * scale, one.compute * scale);
            }
            let (Some(bounds), Some(shares)) = (Bounds::of(&left, (truth.len() - measured) as u64), Shares::of(&truth))
            else { return Ok(()) };
            for (name, [low, high], value) in [
                ("parallel", bounds.parallel, shares.parallel),
                ("load balance", bounds.load_balance, shares.load_balance.unwrap_or(bounds.load_balance[0])),
                ("communication", bounds.communication, shares.communication),
            ] {
                prop_assert!(low - 1e-9 <= value && value <= high + 1e-9, "{name}: {low} {value} {high}");
            }
            if truth.len() == measured {
                let [low, high] = bounds.mpi;
                prop_assert!(low - 1e-9 <= shares.mpi && shares.mpi <= high + 1e-9, "{low} {} {high}", shares.mpi);
            }
        }
    }

    #[test]
    fn what_is_measured_is_exact() {
        let times = |rank, compute| Times { rank, wall: 10.0, mpi: 10.0 - compute, compute, weight: 1.0 };
        let rest = |rank, compute| Rest { times: times(rank, compute), unknown_ns: 0.0, own_ns: 0.0 };
        let bounds = Bounds::of(&[rest(0, 4.0), rest(1, 8.0)], 0).unwrap();
        let near = |[low, high]: [f64; 2], value: f64| (low - value).abs() + (high - value).abs() < 1e-12;
        assert!(near(bounds.parallel, 0.6) && near(bounds.load_balance, 0.75), "{bounds:?}");
        assert!(near(bounds.communication, 0.8) && near(bounds.mpi, 0.4), "{bounds:?}");
        assert_eq!(Bounds::of(&[], 2), None);
    }
}
