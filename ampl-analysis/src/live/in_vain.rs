//! Ranks that wait for what never comes: all that could let them go on has ended, or waits in vain itself.
//!
//! # Source
//! E. Knapp, *Deadlock detection in distributed databases* (1987), §3.3: waits for all of some, and for one of some.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::{Class, Function};
use ampl_core::units::{Rank, RankSet};
use ampl_reader::Communicators;

use super::waiting::Known;
use crate::in_call::{Named, Row, Where};
use crate::matching::is_collective;

/// A rank that waits in vain.
#[derive(Clone, Debug, PartialEq)]
pub struct InVain {
    /// The rank.
    pub rank: u32,
    /// Number of its row among the places.
    pub row: usize,
    /// Ranks that it waits for, and that never come.
    pub on: RankSet,
}

/// Ranks of which one rank waits for all, or for one.
#[derive(Clone, Debug)]
enum Wait {
    All(RankSet),
    Any(RankSet),
}

impl Wait {
    /// Ranks that never come, where these keep it from its end.
    fn in_vain(&self, is_over: impl Fn(u32) -> bool) -> Option<RankSet> {
        let (Self::All(ranks) | Self::Any(ranks)) = self;
        let over: RankSet = ranks.iter().map(|rank| rank.0).filter(|&rank| is_over(rank)).collect();
        let needed = if matches!(self, Self::All(_)) { 1 } else { ranks.len() };
        (!over.is_empty() && over.len() >= needed).then_some(over)
    }
}

/// Ranks that make no more calls, and the calls that each rank has made.
pub struct Ended<'a> {
    /// The ranks.
    pub ranks: &'a RankSet,
    /// Number of calls of a rank.
    pub calls: &'a dyn Fn(u32, Function) -> u64,
}

/// Ranks in `rows` that wait in vain; the job has `ranks`, of which some have ended.
pub fn in_vain(rows: &[Row], comms: &Communicators, ranks: u32, over: &Ended<'_>) -> Vec<InVain> {
    let ended = over.ranks;
    let known = Known::new(rows, comms, ranks);
    let mut waits: BTreeMap<u32, Vec<(usize, Wait)>> = BTreeMap::new();
    let mut unknown: BTreeSet<u32> = BTreeSet::new();
    for (row, targets) in known.waiting_rows() {
        for rank in known.members(row) {
            // Ranks that are elsewhere may have passed, unless nobody passes before all have come.
            let is_passed =
                function(&known, row).is_some_and(|own| is_collective(own) && !own.synchronises());
            let all = |targets| if is_passed { Wait::Any(targets) } else { Wait::All(targets) };
            let wait = targets.clone().map(all).or_else(|| any(&known, row, rank, over));
            match wait {
                Some(wait) => waits.entry(rank).or_default().push((row, wait)),
                None => _ = unknown.insert(rank),
            }
        }
    }
    let mut stuck: BTreeSet<u32> = waits.keys().copied().collect();
    stuck.retain(|rank| !ended.contains(Rank(*rank)) && !unknown.contains(rank));
    loop {
        let is_over = |rank: u32| stuck.contains(&rank) || ended.contains(Rank(rank));
        let stays = |rank: &u32| waits[rank].iter().all(|(_, wait)| wait.in_vain(is_over).is_some());
        let left: BTreeSet<u32> = stuck.iter().copied().filter(stays).collect();
        if left.len() == stuck.len() {
            break;
        }
        stuck = left;
    }
    let is_over = |rank: u32| stuck.contains(&rank) || ended.contains(Rank(rank));
    let own = |&rank: &u32| {
        let (row, wait) = waits[&rank].first()?;
        Some(InVain { rank, row: *row, on: wait.in_vain(is_over)? })
    };
    stuck.iter().filter_map(own).collect()
}

/// Function that the ranks of the row are in.
fn function(known: &Known<'_>, row: usize) -> Option<Function> {
    Function::by_name(known.row(row).place.function.as_deref()?)
}

/// Ranks of which one could let `rank`, a member of the row, go on; `None` where they are not known.
fn any(known: &Known<'_>, row: usize, rank: u32, over: &Ended<'_>) -> Option<Wait> {
    let place = &known.row(row).place;
    let begun = place.request_of.as_deref().and_then(Function::by_name).filter(|&own| is_collective(own));
    if let Some(begun) = begun {
        // One that has ended, and has begun fewer of them, is not in this one.
        let lacks = |other: &Rank| {
            over.ranks.contains(*other) && (over.calls)(other.0, begun) < (over.calls)(rank, begun)
        };
        let members = known.members_of(place, row)?;
        return Some(Wait::All(members.iter().filter(lacks).map(|other| other.0).collect()));
    }
    if place.requests > 0 && place.pending.is_empty() && place.request_of.is_none() {
        let function = Function::by_name(place.function.as_deref()?)?;
        let others = (0..known.ranks()).filter(|&other| other != rank);
        return (function.spec().class == Class::Completion).then(|| Wait::Any(others.collect()));
    }
    let mut all: BTreeSet<u32> = BTreeSet::new();
    let mut add = |function: Option<&str>, peer: &Option<Named>, comm: Option<&str>| {
        if is_collective(Function::by_name(function?)?) {
            return None;
        }
        match peer {
            Some(Named::Number(peer)) => all.extend(u32::try_from(*peer).ok()),
            Some(Named::Constant(name)) if name == "MPI_ANY_SOURCE" => {
                let of = Where { comm: comm.map(str::to_owned), ..Where::default() };
                let members = known.members_of(&of, row)?;
                all.extend(members.iter().map(|member| member.0).filter(|&member| member != rank));
            }
            _ => return None,
        }
        Some(())
    };
    match &place.pending[..] {
        [] if place.dest.is_none() => {
            let name = place.request_of.as_deref().or(place.function.as_deref());
            add(name, &place.peer, place.comm.as_deref())?;
        }
        [] => return None,
        pending => {
            for one in pending {
                add(one.function.as_deref(), &one.peer, one.comm.as_deref())?;
            }
        }
    }
    (!all.is_empty()).then(|| Wait::Any(RankSet::from_iter(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn row(ranks: &str, place: Where) -> Row {
        Row {
            ranks: ranks.into(),
            thread: None,
            place: Where { comm: Some("world".into()), ..place },
            since_ns: 0,
            latest_ns: None,
            for_ns: 5 * S,
            at_most: false,
            members: RankSet::parse(ranks).expect("ranks"),
        }
    }

    fn receive(ranks: &str, peer: Named) -> Row {
        row(ranks, Where { function: Some("MPI_Recv".into()), peer: Some(peer), ..Where::default() })
    }

    fn anybody() -> Named {
        Named::Constant("MPI_ANY_SOURCE".into())
    }

    fn found(rows: &[Row], ended: &str) -> Vec<(u32, String)> {
        let ended = if ended.is_empty() { RankSet::default() } else { RankSet::parse(ended).expect("ranks") };
        // The ranks of a row have begun one collective more than others.
        let calls = |rank: u32, _: Function| rows.iter().any(|row| row.members.contains(Rank(rank))).into();
        let over = Ended { ranks: &ended, calls: &calls };
        let all = in_vain(rows, &Communicators::default(), 4, &over);
        all.into_iter().map(|own| (own.rank, own.on.to_string())).collect()
    }

    #[test]
    fn who_waits_for_ranks_that_have_ended_waits_in_vain() {
        let barrier = row("0-2", Where { function: Some("MPI_Barrier".into()), ..Where::default() });
        let of = |rank: u32| (rank, "3".to_owned());
        assert_eq!(found(std::slice::from_ref(&barrier), "3"), [of(0), of(1), of(2)]);
        // Rank 3 may still come.
        assert_eq!(found(&[barrier], ""), []);
        assert_eq!(found(&[receive("1", Named::Number(0))], "0,2-3"), [(1, "0".to_owned())]);
        assert_eq!(found(&[receive("1", Named::Number(0))], "2-3"), []);
    }

    #[test]
    fn a_receive_from_anybody_needs_one_that_goes_on() {
        assert_eq!(found(&[receive("1", anybody())], "0,2-3"), [(1, "0,2-3".to_owned())]);
        assert_eq!(found(&[receive("1", anybody())], "0,2"), []);
        let all = [receive("0-3", anybody())];
        assert_eq!(found(&all, "").len(), 4);
        // One that waits for a rank that waits in vain does, too.
        let chain = [receive("1", anybody()), receive("0", Named::Number(1))];
        assert_eq!(found(&chain, "2-3"), [(0, "1".to_owned()), (1, "0,2-3".to_owned())]);
    }

    #[test]
    fn requests_are_in_vain_where_nobody_can_complete_them() {
        let wait = |function: &str, requests, of: Option<&str>| {
            let request_of = of.map(str::to_owned);
            row("0-2", Where { function: Some(function.into()), requests, request_of, ..Where::default() })
        };
        let barrier = wait("MPI_Wait", 1, Some("MPI_Ibarrier"));
        assert_eq!(found(std::slice::from_ref(&barrier), "3").len(), 3);
        assert_eq!(found(&[barrier], ""), []);
        // Of which ranks these are is not known.
        let some = wait("MPI_Waitany", 2, None);
        assert_eq!(found(std::slice::from_ref(&some), "3").len(), 3);
        assert_eq!(found(&[some], ""), []);
    }

    #[test]
    fn a_circle_is_in_vain() {
        let two = [receive("0", Named::Number(1)), receive("1", Named::Number(0))];
        assert_eq!(found(&two, ""), [(0, "1".to_owned()), (1, "0".to_owned())]);
        // All have come: they may be about to leave.
        let all = row("0-3", Where { function: Some("MPI_Barrier".into()), ..Where::default() });
        assert_eq!(found(&[all], ""), []);
    }
}
