//! Ranks that keep the others waiting in a call that no rank can leave before all have entered it.
//!
//! The rank that enters last waits least. This holds at a place only if all ranks of one communicator call there
//! equally often.
//! A rank is late only if the others wait much longer.

use ampl_core::mpi::Function;
use ampl_trace::totals::{Known, LEAST, SEVERAL, Total};

use super::recorded::Comms;

/// Share of the ranks' mean time at a place below which a rank is late, in (0, 1).
const LATE: f64 = 0.5;
/// Least wait of the others per call, in shortest calls: the duration of a call without a wait differs between ranks,
/// too.
const BARE: f64 = 2.0;

/// The ranks that are late at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// These ranks, the one that waits least first; there may be more if there are as many as are known by name.
    Ranks(Vec<u32>),
    /// No rank is late: all wait about equally.
    Nobody,
    /// Not known: the calls do not wait for all, or not all ranks of one communicator call there equally often.
    Unknown,
}

impl Late {
    /// Late ranks at a place with these `parts`, whose calls are made on communicators of these sizes.
    pub fn of(parts: &[Known<'_>], comms: Comms) -> Self {
        let &[Known { function, total, spread: Some(spread), .. }] = parts else { return Self::Unknown };
        if function == SEVERAL || !Function(function).synchronises() || !spread.is_even() || spread.ranks < 2
        {
            return Self::Unknown;
        }
        let all = u64::from(spread.ranks);
        if comms != Comms::Of(all, all) || spread.least().len() < LEAST.min(spread.ranks as usize) {
            return Self::Unknown;
        }
        let Total { time_ns, calls, shortest, .. } = *total;
        let mean = time_ns as f64 / all as f64;
        let longer =
            |ns: u64| (mean - ns as f64) * all as f64 / calls.max(1) as f64 > BARE * shortest.ns as f64;
        let late = spread.least().iter().filter(|one| (one.ns as f64) < LATE * mean && longer(one.ns));
        match late.map(|one| one.rank).collect::<Vec<u32>>() {
            ranks if ranks.is_empty() => Self::Nobody,
            ranks => Self::Ranks(ranks),
        }
    }

    /// The rank that is late most; `None` where no rank is, or it is not known.
    pub fn first(&self) -> Option<u32> {
        self.ranks().first().copied()
    }

    /// All that are known to be late by name.
    pub fn ranks(&self) -> &[u32] {
        match self {
            Self::Ranks(ranks) => ranks,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use ampl_core::mpi::ids;
    use ampl_trace::model::{Aggregate, Site};
    use ampl_trace::totals::Totals;

    use super::*;

    /// Late ranks of a place: `ranks` has nanoseconds and number of each rank's calls of `function`.
    fn late_of(function: Function, ranks: &[(f64, u64)], comms: Comms) -> Late {
        let mut totals = Totals::default();
        for (rank, &(time_ns, calls)) in (0..).zip(ranks) {
            let (min_ns, max_ns) = (100.0, time_ns);
            let entry = Aggregate {
                site: Some(0),
                function: function.0,
                calls,
                time_ns,
                min_ns,
                max_ns,
                ..Aggregate::default()
            };
            totals.join(Totals::of(rank, &["/bin/app".into()], &[Site::default()], &[entry]));
        }
        let parts: Vec<_> = totals.known().collect();
        Late::of(&parts, comms)
    }

    #[test]
    fn whom_the_others_wait_for_is_late() {
        let four = Comms::Of(4, 4);
        let barrier = ids::MPI_BARRIER;
        let slow = [(9e6, 10), (2e4, 10), (8e6, 10), (9e6, 10)];
        assert_eq!(late_of(barrier, &slow, four), Late::Ranks(vec![1]));
        let two = [(9e6, 10), (2e5, 10), (1e5, 10), (9e6, 10)];
        assert_eq!(late_of(barrier, &two, four), Late::Ranks(vec![2, 1]));
        // All wait about equally, or hardly at all.
        let even = [(9e6, 10), (8e6, 10), (7e6, 10), (9e6, 10)];
        assert_eq!(late_of(barrier, &even, four), Late::Nobody);
        let short = [(2e3, 10), (2e3, 10), (8e2, 10), (2e3, 10)];
        assert_eq!(late_of(barrier, &short, four), Late::Nobody);
        // One fast rank of many slow ones: no rank keeps the others waiting.
        assert_eq!(late_of(barrier, &[(2e4, 10), (2e4, 10), (2e4, 10), (9e6, 10)], four).ranks(), [0, 1, 2]);
    }

    #[test]
    fn nobody_is_blamed_where_least_time_means_nothing() {
        let slow = [(9e6, 10), (2e4, 10), (8e6, 10), (9e6, 10)];
        let four = Comms::Of(4, 4);
        // A root need not wait, a receive may be for anybody, and what only begins waits elsewhere.
        for other in [ids::MPI_BCAST, ids::MPI_RECV, ids::MPI_IBARRIER, ids::MPI_WAITALL, ids::MPI_SCAN] {
            assert_eq!(late_of(other, &slow, four), Late::Unknown, "{}", other.name());
        }
        // Times on rows and columns cannot be compared; nor where the communicator is not known.
        for comms in [Comms::Of(2, 2), Comms::Of(2, 4), Comms::Unknown, Comms::None] {
            assert_eq!(late_of(ids::MPI_ALLREDUCE, &slow, comms), Late::Unknown, "{comms:?}");
        }
        // One rank calls from elsewhere, too; or some were not timed.
        let fewer = [(9e6, 10), (2e4, 9), (8e6, 10), (9e6, 10)];
        assert_eq!(late_of(ids::MPI_ALLREDUCE, &fewer, four), Late::Unknown);
        let untimed = [(9e6, 10), (0.0, 10), (8e6, 10), (9e6, 10)];
        assert_eq!(late_of(ids::MPI_ALLREDUCE, &untimed, four), Late::Unknown);
        assert_eq!(late_of(ids::MPI_ALLREDUCE, &slow[..1], Comms::Of(1, 1)), Late::Unknown);
    }

    #[test]
    fn ranks_beyond_those_known_by_name_are_left_out() {
        let half: Vec<(f64, u64)> = (0..10).map(|rank| (if rank < 5 { 1e5 } else { 9e6 }, 10)).collect();
        let late = late_of(ids::MPI_ALLTOALL, &half, Comms::Of(10, 10));
        assert_eq!(late.ranks(), [0, 1, 2, 3]);
    }
}
