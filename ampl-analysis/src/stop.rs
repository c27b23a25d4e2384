//! The ranks that an unfinished run stopped at.

use ampl_core::units::RankSet;
use ampl_reader::{Communicators, Trace};

use crate::in_call::{Row, Stopped, first_to_stop};
use crate::live::{WAITS_NS, Waiting};

/// Ranks that a run stopped at, and the reason.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// Ranks that called `MPI_Abort`.
    Aborted(RankSet),
    /// Ranks that are not in MPI while others are.
    Outside(Stopped),
    /// Ranks that others wait for, directly or by way of others.
    Awaited {
        /// The ranks.
        ranks: RankSet,
        /// The ranks that wait for them.
        by: RankSet,
    },
    /// Ranks that wait for each other.
    Circle {
        /// The ranks.
        ranks: RankSet,
        /// The ranks outside of the circle that wait for it.
        by: RankSet,
    },
    /// Ranks that entered or left a call last before all others did; for whom they wait is not known.
    First(Stopped),
}

impl Stop {
    /// The ranks that the run stopped at.
    pub fn ranks(&self) -> &RankSet {
        match self {
            Self::Aborted(ranks) | Self::Awaited { ranks, .. } | Self::Circle { ranks, .. } => ranks,
            Self::Outside(stopped) | Self::First(stopped) => &stopped.ranks,
        }
    }

    /// The ranks that `trace` stopped at, whose places are `rows`; `None` where nothing says so.
    pub fn of(trace: &Trace, rows: &[Row], comms: &Communicators) -> Option<Self> {
        let end_ns = trace.run.end?.at_ns;
        let in_abort = |row: &&Row| row.place.function.as_deref() == Some("MPI_Abort");
        let aborted: RankSet =
            rows.iter().filter(in_abort).flat_map(|row| row.members.iter().map(|rank| rank.0)).collect();
        if !aborted.is_empty() {
            return Some(Self::Aborted(aborted));
        }
        // Shorter silence is of any run.
        let first = first_to_stop(trace).filter(|first| end_ns - first.at_ns >= WAITS_NS);
        let (outside, inside) = match first {
            Some(first) if !first.in_mpi => (Some(first), None),
            first => (None, first),
        };
        if let Some(outside) = outside {
            return Some(Self::Outside(outside));
        }
        let waiting = Waiting::of(rows, comms, trace.run.ranks);
        let most = waiting.awaited.first();
        // Ranks that wait for each other do so for good; more may wait for a rank that still comes.
        let in_circle = waiting.circle.len() + waiting.circle_by.len();
        if in_circle > 0 && most.is_none_or(|most| most.by.len() <= in_circle) {
            return Some(Self::Circle { ranks: waiting.circle, by: waiting.circle_by });
        }
        if let Some(most) = most {
            return Some(Self::Awaited { ranks: most.ranks.clone(), by: most.by.clone() });
        }
        // Times that are limits cannot be compared.
        inside.filter(|_| rows.iter().all(|row| !row.at_most)).map(Self::First)
    }
}

#[cfg(test)]
mod tests {
    use ampl_trace::RankTrace;
    use ampl_trace::current::Role;
    use ampl_trace::model::{End, EndBasis, Peer, Process, ThreadPlace};

    use super::*;
    use crate::in_call::rows;

    const S: i64 = 1_000_000_000;

    /// A function, the rank that a message is to come from, seconds since it began; true where that is a limit.
    type Place = (&'static str, Option<i64>, i64, bool);

    /// A run that ended after 60 seconds, whose ranks were in these calls, or in none without a name.
    fn stop(places: &[Place]) -> Option<Stop> {
        let mut trace = Trace::default();
        trace.run.ranks = places.len() as u32;
        trace.run.end = Some(End { at_ns: 60 * S, basis: EndBasis::Launcher });
        for (rank, &(function, source, since, at_most)) in (0..).zip(places) {
            let peer = Peer {
                comm: Some(ampl_testkit::runs::world()),
                ranks: source.map(|source| (Role::Source, source)).into_iter().collect(),
                ..Peer::default()
            };
            let inside = !function.is_empty();
            let since_ns = 60 * S - since;
            let function = function.to_owned();
            let threads =
                vec![ThreadPlace { inside, function, since_ns, at_most, peer, ..ThreadPlace::default() }];
            let process = Process { rank, threads, ..Process::default() };
            trace.ranks.push(RankTrace { process, ..RankTrace::default() });
        }
        let comms = Communicators::of(&trace);
        let rows = rows(&trace, &comms, &mut ampl_reader::Symbols::default());
        Stop::of(&trace, &rows, &comms)
    }

    fn set(text: &str) -> RankSet {
        RankSet::parse(text).unwrap()
    }

    #[test]
    fn the_rank_that_aborts_is_named() {
        let barrier = ("MPI_Barrier", None, 2 * S, false);
        let found = stop(&[barrier, ("MPI_Abort", None, S / 10, false), barrier]);
        assert_eq!(found, Some(Stop::Aborted(set("1"))));
    }

    #[test]
    fn the_rank_that_all_wait_for_is_named_whoever_came_first() {
        let from = |rank, since| ("MPI_Recv", Some(rank), since, false);
        let found = stop(&[from(1, 9 * S), from(2, 8 * S), ("MPI_Send", None, S / 2, false)]);
        assert_eq!(found, Some(Stop::Awaited { ranks: set("2"), by: set("0-1") }));
        let circle = stop(&[from(1, 3 * S), from(2, 4 * S), from(0, 5 * S)]);
        assert_eq!(circle, Some(Stop::Circle { ranks: set("0-2"), by: RankSet::default() }));
        let behind = stop(&[from(1, 3 * S), from(0, 4 * S), from(0, 5 * S), from(2, 5 * S)]);
        assert_eq!(behind, Some(Stop::Circle { ranks: set("0-1"), by: set("2-3") }));
        // One rank waits for another, and two for each other.
        let apart =
            stop(&[from(1, 3 * S), ("MPI_Waitall", None, 4 * S, false), from(3, 5 * S), from(2, 5 * S)]);
        assert_eq!(apart, Some(Stop::Circle { ranks: set("2-3"), by: RankSet::default() }));
    }

    #[test]
    fn a_run_that_ended_in_the_midst_stopped_nowhere() {
        let barrier = ("MPI_Barrier", None, S / 4, false);
        assert_eq!(stop(&[barrier, ("", None, S / 3, false), barrier]), None);
        let Some(Stop::Outside(found)) = stop(&[barrier, ("", None, 3 * S, false), barrier]) else {
            panic!()
        };
        assert_eq!(found.ranks, set("1"));
    }

    #[test]
    fn times_that_are_limits_are_not_compared() {
        let test = |since, at_most| ("MPI_Test", None, since, at_most);
        assert_eq!(stop(&[test(2 * S, true), test(7 * S, false), test(2 * S, true)]), None);
    }
}
