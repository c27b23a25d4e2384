//! Ranks that keep the others waiting in a call that no rank can leave before all have entered it.
//!
//! The rank that enters last waits least. This holds at a place only if all ranks of one communicator call there
//! equally often.
//! Late ranks are compared with those that wait for them: the mean of all is low where many are late.

use ampl_core::mpi::Function;
use ampl_trace::totals::{Extreme, Known, LEAST, SEVERAL, Total, Totals};

/// Share of the waiting ranks' mean time at a place below which a rank is late, in (0, 1).
const LATE: f64 = 0.5;
/// The same where late and waiting ranks are two groups.
const LATE_GROUP: f64 = 0.75;
/// Least distance of two groups, as a part of the difference of their means.
const APART: f64 = 0.5;
/// Least difference of the groups' means, in standard deviations of what chance makes of calls like these.
const BY_CHANCE: f64 = 3.0;
/// Greatest share of late ranks, in (0, 1): where fewer wait, they are outliers that are left out.
const MOST_LATE: f64 = 0.75;
/// Least number of ranks that wait as long as the longest would take for all the time, as a share of all ranks.
const FEW: f64 = 0.25;
/// Least wait of the others per call, in shortest calls: the duration of a call without a wait differs between ranks,
/// too.
const BARE: f64 = 2.0;

/// The ranks that are late at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Late {
    /// Some are.
    Ranks {
        /// Late ranks that are known by name, the one that waits least first.
        named: Vec<u32>,
        /// True where there may be more.
        more: bool,
    },
    /// A few ranks wait for all others, among which none is later than the rest.
    AllBut {
        /// Ranks that wait.
        waiting: Vec<u32>,
        /// The others, the one that waits least first; empty where their names are not known.
        others: Vec<u32>,
    },
    /// No rank is late: all wait about equally.
    Nobody,
    /// Not known: the calls do not wait for all, or not all ranks of one communicator call there equally often.
    Unknown,
}

impl Late {
    /// Late ranks at a place that all ranks of one communicator [call equally often](is_compared) and others do not
    /// call; `totals` are the run's.
    pub(super) fn of(place: &Known<'_>, totals: &Totals) -> Self {
        let &Known { function, total, spread: Some(spread), .. } = place else { return Self::Unknown };
        if !spread.is_even() || spread.least().len() < LEAST.min(spread.ranks as usize) {
            return Self::Unknown;
        }
        let every = times(function, total, spread.ranks, totals);
        let known = every.as_deref().unwrap_or(spread.least());
        Waits { known, all: spread.ranks as usize, total }.late()
    }

    /// The rank that is late most; `None` where no rank is, all but a few are, or it is not known.
    pub fn first(&self) -> Option<u32> {
        match self {
            Self::Ranks { named, .. } => named.first().copied(),
            _ => None,
        }
    }

    /// All that are known to be late by name.
    pub fn ranks(&self) -> &[u32] {
        match self {
            Self::Ranks { named, .. } => named,
            Self::AllBut { others, .. } => others,
            _ => &[],
        }
    }

    /// True where more ranks may be late than are known by name.
    pub fn has_more(&self) -> bool {
        matches!(self, Self::Ranks { more: true, .. })
    }
}

/// True where several ranks call a function at that place in which all wait for all.
pub(super) fn is_compared(place: &Known<'_>) -> bool {
    let several = place.spread.is_some_and(|spread| spread.ranks >= 2);
    several && place.function != SEVERAL && Function(place.function).waits_for_all()
}

/// Late ranks among all that take part in calls of these `total` times, whose `times` are ascending.
pub(super) fn of_all(times: &[Extreme], total: &Total) -> Late {
    let waits = Waits { known: times, all: times.len(), total };
    let late = waits.late();
    let Late::Ranks { named, .. } = &late else { return late };
    // Of the few ranks of a row some wait less than half of the others' time by chance.
    let (late_ones, others): (Vec<&Extreme>, Vec<&Extreme>) =
        times.iter().partition(|one| named.contains(&one.rank));
    let mean = |of: &[&Extreme]| of.iter().map(|one| ns(one)).sum::<f64>() / of.len().max(1) as f64;
    if mean(&others) - mean(&late_ones) > waits.chance() { late } else { Late::Nobody }
}

/// Times of all ranks at the only place of `function`, the least first; `None` where it has others.
fn times(function: u16, total: &Total, ranks: u32, totals: &Totals) -> Option<Vec<Extreme>> {
    let (mut calls, mut times) = (0u64, Vec::new());
    for (rank, share) in totals.shares_of(function) {
        calls = calls.saturating_add(share.calls);
        times.push(Extreme { ns: share.time_ns, rank });
    }
    times.sort_unstable_by_key(|one| (one.ns, one.rank));
    (calls == total.calls && times.len() == ranks as usize).then_some(times)
}

/// Times of the ranks at a place.
struct Waits<'a> {
    /// The least times, ascending: of all ranks, or of the first few.
    known: &'a [Extreme],
    all: usize,
    total: &'a Total,
}

impl Waits<'_> {
    fn late(&self) -> Late {
        let Total { time_ns, most, .. } = *self.total;
        let (mut known, mut all, mut sum) = (self.known, self.all, time_ns as f64);
        let names = |of: &[Extreme]| of.iter().map(|one| one.rank).collect::<Vec<u32>>();
        // Some wait for all others, of whom no rank keeps the rest waiting.
        let nobody = |known: &[Extreme]| match self.known.get(known.len()..) {
            Some(waiting) if !waiting.is_empty() => {
                Late::AllBut { waiting: names(waiting), others: names(known) }
            }
            _ => Late::Nobody,
        };
        loop {
            let whole = known.len() == all;
            let late = self.split(known, all, sum);
            // Where few ranks wait for all others, these are not late: they have more to do than a few.
            let waiting = match whole {
                true => (all - late) as f64,
                // As many ranks as waited that long if the others had waited no longer than the least.
                false => (sum - all as f64 * ns(&known[0])) / (most.ns as f64 - ns(&known[0])),
            };
            let few = match whole {
                true => late as f64 > MOST_LATE * all as f64,
                false => waiting < FEW * all as f64,
            };
            if late > 0 && !few {
                return Late::Ranks { named: names(&known[..late]), more: !whole && late == known.len() };
            }
            if !whole && late == 0 && self.one_waits() {
                return Late::AllBut { waiting: vec![most.rank], others: Vec::new() };
            }
            if late == 0 || all <= 2 {
                return nobody(known);
            }
            if !whole {
                // The longest is known, the next is not.
                return match self.split(known, all - 1, sum - most.ns as f64) {
                    0 => Late::AllBut { waiting: vec![most.rank], others: Vec::new() },
                    late if late == known.len() => Late::Nobody,
                    late => Late::Ranks { named: names(&known[..late]), more: false },
                };
            }
            sum -= known[late..].iter().map(ns).sum::<f64>();
            (known, all) = (&known[..late], late);
            if all < 2 {
                return nobody(known);
            }
        }
    }

    /// True where the rank with most time waits for all others, though it is the only one.
    fn one_waits(&self) -> bool {
        let Total { calls, time_ns, most, shortest, .. } = *self.total;
        let calls_of_rank = calls as f64 / self.all as f64;
        let others = (time_ns.saturating_sub(most.ns)) as f64 / (self.all - 1) as f64;
        let difference = most.ns as f64 - others;
        others < LATE * most.ns as f64
            && difference > self.chance()
            && difference / calls_of_rank > BARE * shortest.ns as f64
    }

    /// Most that chance makes of the difference of two ranks, one of which waits while the other does not, nanoseconds.
    fn chance(&self) -> f64 {
        let Total { calls, time_ns, time_sq, .. } = *self.total;
        let calls_of_rank = calls as f64 / self.all as f64;
        let mean = time_ns as f64 / calls.max(1) as f64;
        let variance = (time_sq as f64 / calls.max(1) as f64 - mean * mean).max(0.0);
        BY_CHANCE * 2.0 * (calls_of_rank * variance).sqrt()
    }

    /// Number of late ranks among `all`, whose times have this `sum`, and of which the least are `known`.
    fn split(&self, known: &[Extreme], all: usize, sum: f64) -> usize {
        let Total { calls, shortest, .. } = *self.total;
        let calls_of_rank = calls as f64 / self.all as f64;
        let chance = self.chance();
        let (mut late, mut early_sum) = (0, 0.0);
        for count in 1..all.min(known.len() + 1) {
            let time = ns(&known[count - 1]);
            early_sum += time;
            let others = (sum - early_sum) / (all - count) as f64;
            if (others - time) / calls_of_rank <= BARE * shortest.ns as f64 {
                continue;
            }
            let apart = |next: &Extreme| {
                let difference = others - early_sum / count as f64;
                time < LATE_GROUP * others && ns(next) - time >= APART * difference && difference > chance
            };
            if time < LATE * others || known.get(count).is_some_and(apart) {
                late = count;
            }
        }
        late
    }
}

fn ns(one: &Extreme) -> f64 {
    one.ns as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ampl_core::mpi::ids;
    use ampl_trace::Trace;
    use ampl_trace::model::{Aggregate, Site};
    use proptest::prelude::*;

    use super::*;
    use crate::calls::late_ranks::LateRanks;
    use crate::calls::recorded::{Comms, Recorded};

    fn ranks(named: &[u32]) -> Late {
        Late::Ranks { named: named.to_vec(), more: false }
    }

    /// Late ranks of a place: `ranks` has nanoseconds and number of each rank's calls of `function`.
    fn late_of(function: Function, ranks: &[(f64, u64)], comms: Comms) -> Late {
        let ranks: Vec<_> = ranks.iter().map(|&(time_ns, calls)| (time_ns, calls, 0.0)).collect();
        late_at(function, &ranks, comms, false)
    }

    /// The same with the sum of squares of each rank's times; `also` makes all call it elsewhere, too.
    fn late_at(function: Function, ranks: &[(f64, u64, f64)], comms: Comms, also: bool) -> Late {
        let mut totals = Totals::default();
        for (rank, &(time_ns, calls, time_sq)) in (0..).zip(ranks) {
            let (min_ns, max_ns) = (100.0, time_ns);
            let entry = Aggregate {
                site: Some(0),
                function: function.0,
                calls,
                time_ns,
                time_sq,
                min_ns,
                max_ns,
                ..Aggregate::default()
            };
            let other = Aggregate { site: Some(1), time_ns: 3e6, calls: 3, ..entry };
            let sites = [Site::default(), Site { offset: 64, ..Site::default() }];
            let entries = [entry, other];
            let entries = if also { &entries[..] } else { &entries[..1] };
            totals.join(Totals::of(rank, &["/bin/app".into()], &sites, entries));
        }
        let mut trace = Trace { totals, ..Trace::default() };
        trace.run.ranks = ranks.len() as u32;
        let parts: Vec<_> = trace.totals.known().take(1).collect();
        LateRanks::of(&trace).at(&parts, &Recorded { comms, ..Recorded::default() })
    }

    #[test]
    fn whom_the_others_wait_for_is_late() {
        let four = Comms::Of(4, 4);
        let barrier = ids::MPI_BARRIER;
        let slow = [(9e6, 10), (2e4, 10), (8e6, 10), (9e6, 10)];
        assert_eq!(late_of(barrier, &slow, four), ranks(&[1]));
        let two = [(9e6, 10), (2e5, 10), (1e5, 10), (9e6, 10)];
        assert_eq!(late_of(barrier, &two, four), ranks(&[2, 1]));
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
        let half: Vec<_> = (0..10).map(|rank| (if rank < 5 { 1e5 } else { 9e6 }, 10, 0.0)).collect();
        let late = late_at(ids::MPI_ALLTOALL, &half, Comms::Of(10, 10), true);
        assert_eq!((late.ranks(), late.has_more()), (&[0, 1, 2, 3][..], true));
        // Where it is the function's only place, all are known.
        let late = late_at(ids::MPI_ALLTOALL, &half, Comms::Of(10, 10), false);
        assert_eq!((late.ranks(), late.has_more()), (&[0, 1, 2, 3, 4][..], false));
    }

    #[test]
    fn a_rank_that_waits_for_all_others_makes_all_of_them_late() {
        let one_waits = |also| {
            let ranks: Vec<_> = (0..16).map(|rank| (if rank == 5 { 9e7 } else { 7e6 }, 10, 0.0)).collect();
            late_at(ids::MPI_BARRIER, &ranks, Comms::Of(16, 16), also)
        };
        let others: Vec<u32> = (0..16).filter(|&rank| rank != 5).collect();
        let but_five = |others| Late::AllBut { waiting: vec![5], others };
        assert_eq!([false, true].map(one_waits), [but_five(others), but_five(Vec::new())]);
        assert_eq!(one_waits(false).first(), None);
        let and_one_is_late = |also| {
            let time = |rank| [7e6, 1e5, 9e7][usize::from(rank == 3) + 2 * usize::from(rank == 5)];
            let ranks: Vec<_> = (0..16).map(|rank| (time(rank), 10, 0.0)).collect();
            late_at(ids::MPI_BARRIER, &ranks, Comms::Of(16, 16), also)
        };
        assert_eq!([false, true].map(and_one_is_late), [ranks(&[3]), ranks(&[3])]);
    }

    /// Number, time and sum of squares of each rank's calls, if rank r works `work(r)` before each call, with chance
    /// on top of `noise`, and a call takes `bare` beside the wait.
    fn barrier(
        count: u32,
        calls: u64,
        seed: u64,
        noise: f64,
        bare: f64,
        work: impl Fn(u32) -> f64,
    ) -> Vec<(f64, u64, f64)> {
        let mut random = seed;
        let mut chance = || {
            random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (random >> 40) as f64 / f64::from(1 << 24)
        };
        let mut times = vec![(0.0, calls, 0.0); count as usize];
        for _ in 0..calls {
            let work: Vec<f64> = (0..count).map(|rank| work(rank) + noise * chance()).collect();
            let last = work.iter().copied().fold(0.0, f64::max);
            for (time, work) in times.iter_mut().zip(work) {
                let call = last - work + bare;
                (time.0, time.2) = (time.0 + call, time.2 + call * call);
            }
        }
        times
    }

    proptest! {
        /// Any set of slow ranks up to a half of all is found, and in a balanced program nobody.
        #[test]
        fn up_to_half_of_the_ranks_are_found_late(
            count in 2u32..40,
            slow in prop::collection::btree_set(0u32..40, 1..20),
            calls in 60u64..200,
            seed: u64,
            noise in 0.0..4e5,
            bare in 0.0..1e6,
            factor in 1.6..4.0,
        ) {
            let slow: BTreeSet<u32> = slow.into_iter().filter(|&rank| rank < count).take(count as usize / 2).collect();
            let comms = Comms::Of(count.into(), count.into());
            let even = barrier(count, calls, seed, noise, bare, |_| 1e6);
            for also in [false, true] {
                prop_assert_eq!(late_at(ids::MPI_BARRIER, &even, comms, also), Late::Nobody);
            }
            let work = |rank| if slow.contains(&rank) { factor * 1e6 } else { 1e6 };
            let times = barrier(count, calls, seed, noise, bare, work);
            let late = late_at(ids::MPI_BARRIER, &times, comms, false);
            if slow.is_empty() {
                prop_assert_eq!(late, Late::Nobody);
            } else {
                let found: BTreeSet<u32> = late.ranks().iter().copied().collect();
                prop_assert_eq!(&found, &slow, "{:?}", times);
                // With several places only a few are known by name, and all that are named are slow.
                let late = late_at(ids::MPI_BARRIER, &times, comms, true);
                prop_assert!(late.ranks().iter().all(|rank| slow.contains(rank)), "{late:?}");
                if slow.len() < LEAST {
                    prop_assert_eq!((late.ranks().len(), late.has_more()), (slow.len(), false));
                }
            }
        }
    }
}
