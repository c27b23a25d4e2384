//! Late ranks of each communicator at a place: those of one row wait for each other, not for other rows.

use std::cell::OnceCell;

use ampl_trace::Trace;
use ampl_trace::args::index_of_predefined;
use ampl_trace::communicators::{Communicators, Members, Name};
use ampl_trace::totals::{Extreme, Known, SEVERAL, Share, Total};
use rustc_hash::FxHashMap;

use super::lateness::{self, Late};
use super::recorded::{Comms, Recorded};
use crate::scope::{Scope, Scopes};

/// Least difference of the times of ranks in a function, in its time elsewhere, from which it is the place's.
const MUCH_MORE: u64 = 8;

/// Calls of all ranks of a communicator at a place, in which all wait for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommWaits {
    /// The ranks.
    pub ranks: Members,
    /// The late ones among them.
    pub late: Late,
    /// Time of all of them beyond that of the one with the least, nanoseconds.
    pub beyond_least_ns: u64,
    /// The same of the one with the most.
    pub longest_ns: u64,
    /// Mean time of those that are not late beyond that of the first that is, nanoseconds; 0 where no rank is.
    pub wait_ns: u64,
}

/// Late ranks of a run's places.
#[derive(Debug)]
pub struct LateRanks<'t> {
    trace: &'t Trace,
    /// Made where calls are on communicators of a part of the ranks.
    comms: OnceCell<Communicators>,
}

/// Reason why the ranks at a place are not divided by communicators.
enum Undivided {
    /// Some communicator is not known.
    Unknown,
    /// Some rank of a communicator does not call there, or calls on several.
    Apart,
}

impl<'t> LateRanks<'t> {
    /// Late ranks at the places of `trace`.
    pub fn of(trace: &'t Trace) -> Self {
        Self { trace, comms: OnceCell::new() }
    }

    /// Late ranks at a place with these `parts`, whose recorded calls are `recorded`.
    pub fn at(&self, parts: &[Known<'_>], recorded: &Recorded) -> Late {
        joined(self.of_comms(parts, recorded))
    }

    /// Waits at a place, one of each communicator; empty where they are not known.
    pub fn of_comms(&self, parts: &[Known<'_>], recorded: &Recorded) -> Vec<CommWaits> {
        let [known] = parts else { return Vec::new() };
        let &Known { total, spread: Some(spread), .. } = known else { return Vec::new() };
        if !lateness::is_compared(known) {
            return Vec::new();
        }
        let all = u64::from(spread.ranks);
        let world = all == u64::from(self.trace.run.ranks);
        let whole = recorded.comms == Comms::Of(all, all);
        let groups =
            if whole && world { Err(Undivided::Unknown) } else { self.groups(recorded, spread.ranks) };
        let ranks = match groups {
            Err(Undivided::Unknown) if whole && world => Members::first(spread.ranks),
            Err(Undivided::Unknown) if whole => Members::default(),
            Ok(mut groups) if whole && groups.len() == 1 => groups.remove(0),
            Ok(groups) => return self.of_each(known, groups).unwrap_or_default(),
            Err(_) => return Vec::new(),
        };
        // The place's own times are those of the one communicator.
        match Late::of(known, &self.trace.totals) {
            Late::Unknown => Vec::new(),
            late => {
                let least = spread.least().first().map_or(0, |least| least.ns);
                vec![of_comm(ranks, late, total, least, all)]
            }
        }
    }

    /// The waits of these `groups` of the callers; `None` where times of ranks are not known.
    fn of_each(&self, known: &Known<'_>, groups: Vec<Members>) -> Option<Vec<CommWaits>> {
        let shares: FxHashMap<u32, Share> = self.trace.totals.shares_of(known.function).collect();
        let elsewhere_ns = self.elsewhere_ns(known);
        let even = known.spread.filter(|spread| spread.is_even()).map(|spread| spread.most);
        let all = shares.values().fold(0u64, |sum, share| sum.saturating_add(share.calls));
        if all != known.total.calls && even.is_none() {
            return None;
        }
        let variance = variance(known.total);
        let mut found = Vec::new();
        for ranks in groups.into_iter().filter(|ranks| ranks.len() >= 2) {
            let own = |rank| shares.get(&rank).copied().filter(|share| share.time_ns > 0);
            let shares: Vec<_> = ranks.iter().map(own).collect::<Option<_>>()?;
            if shares.iter().any(|share| share.calls != shares[0].calls) {
                return None;
            }
            let mut times: Vec<Extreme> =
                ranks.iter().zip(&shares).map(|(rank, share)| Extreme { ns: share.time_ns, rank }).collect();
            times.sort_unstable_by_key(|one| (one.ns, one.rank));
            let number = u64::from(ranks.len());
            let calls = even.unwrap_or(shares[0].calls).saturating_mul(number);
            let time_ns = times.iter().fold(0u64, |sum, one| sum.saturating_add(one.ns));
            let mean = time_ns as f64 / calls.max(1) as f64;
            let (most, least) = (*times.last()?, times[0].ns);
            // Calls on each communicator vary at most as all of them do.
            let time_sq = (calls as f64 * (variance + mean * mean)) as u128;
            let total = Total { calls, time_ns, time_sq, most, ..*known.total };
            let known = elsewhere_ns.saturating_mul(MUCH_MORE) <= most.ns - least;
            let late =
                if known || elsewhere_ns == 0 { lateness::of_all(&times, &total) } else { Late::Unknown };
            let own = of_comm(ranks, late, &total, least, number);
            let beyond = |ns: u64, ranks: u64| ns.saturating_sub(elsewhere_ns.saturating_mul(ranks));
            found.push(CommWaits {
                beyond_least_ns: beyond(own.beyond_least_ns, number),
                longest_ns: beyond(own.longest_ns, 1),
                ..own
            });
        }
        Some(found)
    }

    /// Most time of a rank in calls of the place's function at its other places, nanoseconds.
    fn elsewhere_ns(&self, known: &Known<'_>) -> u64 {
        let others = self.trace.totals.known().filter(|other| {
            (other.function == known.function && other.path != known.path) || other.function == SEVERAL
        });
        others.fold(0u64, |sum, other| sum.saturating_add(other.total.most.ns))
    }

    /// The callers at a place, who are `ranks`, by communicator; all ranks of each call there, on it alone.
    fn groups(&self, recorded: &Recorded, ranks: u32) -> Result<Vec<Members>, Undivided> {
        let comms = self.comms.get_or_init(|| Communicators::of(self.trace));
        let scopes = Scopes::new(comms);
        let mut by_name: FxHashMap<Option<Name>, usize> = FxHashMap::default();
        let mut by_members: FxHashMap<Members, usize> = FxHashMap::default();
        let mut groups: Vec<(Members, u32)> = Vec::new();
        let mut callers = 0;
        for (words, of) in &recorded.callers {
            for &rank in of {
                let mut own = None;
                for word in words {
                    let word = word.ok_or(Undivided::Unknown)?;
                    let predefined = Scopes::predefined(rank, word);
                    let name = match predefined {
                        Some(Scope::Itself(_)) | None if index_of_predefined(word).is_some() => {
                            return Err(Undivided::Apart);
                        }
                        Some(_) => None,
                        None => Some(comms.only_name(rank, word).ok_or(Undivided::Unknown)?),
                    };
                    let number = match by_name.get(&name) {
                        Some(&number) => number,
                        None => {
                            let scope = predefined.or_else(|| scopes.named(rank, name?));
                            let scope = scope.ok_or(Undivided::Unknown)?;
                            if matches!(scope, Scope::Made(comm, _) if comm.remote.is_some()) {
                                return Err(Undivided::Apart);
                            }
                            let members = scope.members(self.trace.run.ranks);
                            let next = groups.len();
                            let number = *by_members.entry(members.clone()).or_insert(next);
                            if number == next {
                                groups.push((members, 0));
                            }
                            by_name.insert(name, number);
                            number
                        }
                    };
                    if own.is_some_and(|own| own != number) {
                        return Err(Undivided::Apart);
                    }
                    own = Some(number);
                }
                let own = own.ok_or(Undivided::Unknown)?;
                groups[own].1 += 1;
                callers += 1;
            }
        }
        let whole = callers == ranks && groups.iter().all(|(members, callers)| members.len() == *callers);
        if whole {
            Ok(groups.into_iter().map(|(members, _)| members).collect())
        } else {
            Err(Undivided::Apart)
        }
    }
}

/// Variance of the times of a place's calls, ns².
fn variance(total: &Total) -> f64 {
    let calls = total.calls.max(1) as f64;
    let mean = total.time_ns as f64 / calls;
    (total.time_sq as f64 / calls - mean * mean).max(0.0)
}

fn of_comm(ranks: Members, late: Late, total: &Total, least: u64, all: u64) -> CommWaits {
    let beyond_least_ns = total.time_ns.saturating_sub(least.saturating_mul(all));
    let longest_ns = total.most.ns.saturating_sub(least);
    let waiting = all.saturating_sub(late.ranks().len() as u64).max(1);
    let wait_ns = if late.first().is_some() { beyond_least_ns / waiting } else { 0 };
    CommWaits { ranks, late, beyond_least_ns, longest_ns, wait_ns }
}

/// The late ranks of all `of_comms` at a place; not known where all are even but some rank waits alone.
fn joined(mut of_comms: Vec<CommWaits>) -> Late {
    if of_comms.len() <= 1 {
        return of_comms.pop().map_or(Late::Unknown, |of_comm| of_comm.late);
    }
    of_comms.sort_by_key(|of_comm| std::cmp::Reverse(of_comm.wait_ns));
    let (mut named, mut more, mut waiting, mut others) = (Vec::new(), false, Vec::new(), Vec::new());
    let (mut even, mut unknown) = (0, false);
    for of_comm in of_comms {
        match of_comm.late {
            Late::Ranks { named: own, more: own_more } => {
                named.extend(own);
                more |= own_more;
            }
            Late::AllBut { waiting: own, others: own_others } => {
                waiting.extend(own);
                others.extend(own_others);
            }
            Late::Nobody => even += 1,
            Late::Unknown => unknown = true,
        }
    }
    match (named.is_empty(), waiting.is_empty()) {
        (false, _) => {
            // Those that a few wait for elsewhere are late as well.
            let unnamed = others.is_empty() && !waiting.is_empty();
            named.extend(others);
            Late::Ranks { named, more: more || unknown || unnamed }
        }
        (true, true) if !unknown => Late::Nobody,
        (true, false) if !unknown && even == 0 => Late::AllBut { waiting, others },
        _ => Late::Unknown,
    }
}
