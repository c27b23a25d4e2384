//! Calls in which the ranks of an unfinished run are: their start, and the peers that they wait for.

use std::collections::BTreeMap;

use ampl_core::units::RankSet;
use ampl_core::value::{Value, rank_value, tag_value};
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::args::index_of_predefined;
use ampl_trace::communicators::Communicators;
use ampl_trace::model::{End, EndBasis, Liveness, Peer, Process, ThreadPlace};
use serde::Serialize;

use crate::overhead::Clocks;

pub use ampl_trace::current::Role;

/// Longest time without a call at which a thread still counts as polling, nanoseconds.
const QUIET_NS: i64 = 1_000_000_000;

/// Distance up to which times are the same, nanoseconds: ranks of one collective call enter it within this.
const SAME_NS: i64 = 1_000_000;

/// Ranks that are in one place.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The ranks, `0-3,8`.
    pub ranks: String,
    /// Their thread, where it is not the one that called `MPI_Init`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// The call that they are in.
    #[serde(flatten)]
    pub place: Where,
    /// Start, nanoseconds since T0; of several ranks the first.
    pub since_ns: i64,
    /// Start of the last of several ranks, nanoseconds since T0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latest_ns: Option<i64>,
    /// Time until the end of the run, or until now, nanoseconds; of several ranks the longest.
    pub for_ns: i64,
    /// True where `for_ns` is an upper limit: calls were only counted, and it begins at the last check.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub at_most: bool,
    /// The ranks as a set.
    #[serde(skip)]
    pub members: RankSet,
}

/// A call with its peer and communicator; without a function, a place outside of MPI.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Where {
    /// The function; none outside of MPI.
    pub function: Option<String>,
    /// The call's site.
    pub site: Option<String>,
    /// The rank of the world, or the constant, that it names.
    pub peer: Option<Named>,
    /// Role of the peer in the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The rank that it names in the group of a window, whose ranks are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank_in_window: Option<i64>,
    /// The rank that it sends to, where it sends and receives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dest: Option<Named>,
    /// The tag of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<Named>,
    /// The communicator, as `ampl decode` calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comm: Option<String>,
    /// Number of requests that it names.
    #[serde(skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// Function that made the only request, whose peer, tag and communicator these are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_of: Option<String>,
    /// The requests that it names, where these are all that are pending.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<Pending>,
    /// True where it is not one call, but polls that have found nothing since then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub polling: bool,
    /// Outside of MPI, the function that was called last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<String>,
    /// State of the process by the system, where it no longer runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<Liveness>,
}

/// Pending requests that are alike, by the calls that made them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Pending {
    /// Number of them.
    pub count: u64,
    /// The function that made them.
    pub function: Option<String>,
    /// The rank of the world, or the constant, that it names.
    pub peer: Option<Named>,
    /// Role of the peer in the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<Role>,
    /// The tag of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<Named>,
    /// The communicator, as `ampl decode` calls it.
    pub comm: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A number, or the name of a constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum Named {
    /// A rank or a tag.
    Number(i64),
    /// A constant of MPI.
    Constant(String),
}

impl From<Value> for Named {
    fn from(value: Value) -> Self {
        match value {
            Value::Int(number) => Self::Number(number),
            other => Self::Constant(other.to_string()),
        }
    }
}

/// Places of all ranks, most ranks first; empty for a run that is complete.
pub fn rows(trace: &Trace, comms: &Communicators, symbols: &mut Symbols) -> Vec<Row> {
    if trace.complete {
        return Vec::new();
    }
    let end = trace.run.end.unwrap_or(End { at_ns: 0, basis: EndBasis::LastCall });
    let mut groups: BTreeMap<(u32, Where, bool), Vec<(u32, i64)>> = BTreeMap::new();
    for process in trace.ranks.iter().map(|rank| &rank.process) {
        for thread in &process.threads {
            let (place, since) = place(process, thread, end, comms, symbols);
            let key = (thread.thread, place, thread.at_most);
            groups.entry(key).or_default().push((process.rank, since));
        }
    }
    let row = |((thread, place, at_most), ranks): ((u32, Where, bool), Vec<(u32, i64)>)| {
        let members = RankSet::from_iter(ranks.iter().map(|&(rank, _)| rank));
        let since = ranks.iter().map(|&(_, since)| since);
        let (first, last) = (since.clone().min().unwrap_or(0), since.max().unwrap_or(0));
        Row {
            ranks: members.to_string(),
            thread: (thread > 0).then_some(thread),
            place,
            since_ns: first,
            latest_ns: (last != first).then_some(last),
            for_ns: (end.at_ns - first).max(0),
            at_most,
            members,
        }
    };
    let mut rows: Vec<Row> = groups.into_iter().map(row).collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.members.len()), row.since_ns));
    rows
}

/// The ranks that stopped before all others did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// The ranks.
    pub ranks: RankSet,
    /// Time at which the first of them entered or left a call last, nanoseconds since T0.
    pub at_ns: i64,
    /// False where they are in no call while others are.
    pub in_mpi: bool,
}

/// The ranks that entered or left a call last before all others did; `None` of less than two, or where all did so at
/// the same time.
///
/// Where some ranks are in MPI, those that are not stopped first: the others may wait for them.
pub fn first_to_stop(trace: &Trace) -> Option<Stopped> {
    let is_inside =
        |process: &Process| process.threads.iter().any(|thread| thread.inside || thread.polling_ns.is_some());
    let last = |process: &Process| process.threads.iter().map(|thread| thread.since_ns).max();
    let left = trace.ranks.iter().map(|rank| &rank.process).filter(|process| !process.finalized);
    let all: Vec<(u32, i64, bool)> =
        left.filter_map(|process| Some((process.rank, last(process)?, is_inside(process)))).collect();
    let mixed = all.iter().any(|rank| rank.2) && all.iter().any(|rank| !rank.2);
    let candidates = all.iter().filter(|rank| !mixed || !rank.2);
    let at_ns = candidates.clone().map(|rank| rank.1).min()?;
    let error = Clocks::of(trace).map_or(0, |clocks| i64::try_from(clocks.error_ns).unwrap_or(i64::MAX));
    let until = at_ns.saturating_add(SAME_NS).saturating_add(error);
    let tied = || candidates.clone().filter(|rank| rank.1 <= until).map(|rank| rank.0);
    let in_mpi = !mixed;
    (all.len() > 1 && tied().count() < all.len()).then(|| Stopped {
        ranks: RankSet::from_iter(tied()),
        at_ns,
        in_mpi,
    })
}

/// Time in calls that have not returned, of all ranks' threads, nanoseconds; without calls that were only counted.
pub fn unfinished_ns(trace: &Trace) -> i64 {
    let Some(end) = trace.run.end else { return 0 };
    trace.ranks.iter().flat_map(|rank| &rank.process.threads).map(|thread| thread.inside_ns(end)).sum()
}

/// Threads whose calls are known, or ranks where none of a rank's is.
pub fn threads(trace: &Trace) -> usize {
    trace.ranks.iter().map(|rank| rank.process.threads.len().max(1)).sum()
}

/// [Unfinished time](unfinished_ns) over that of all [threads]; `None` where the end of the run is not known.
pub fn unfinished_share(trace: &Trace) -> Option<f64> {
    let end = trace.run.end.filter(|end| end.basis != EndBasis::LastCall)?;
    let all = end.at_ns as f64 * threads(trace) as f64;
    (all > 0.0).then(|| unfinished_ns(trace) as f64 / all)
}

fn place(
    process: &Process,
    thread: &ThreadPlace,
    end: End,
    comms: &Communicators,
    symbols: &mut Symbols,
) -> (Where, i64) {
    let polling = thread.polling_ns.filter(|_| thread.inside || end.at_ns - thread.since_ns < QUIET_NS);
    let mut place = Where {
        polling: polling.is_some(),
        process: match process.liveness {
            Liveness::Stopped => Some(Liveness::Stopped),
            // After the end of the job all processes are gone.
            Liveness::Gone if end.basis == EndBasis::Now => Some(Liveness::Gone),
            _ => None,
        },
        ..Where::default()
    };
    if !thread.inside && polling.is_none() {
        place.last = Some(thread.function.clone());
        return (place, thread.since_ns);
    }
    place.function = Some(thread.function.clone());
    place.site = thread
        .site
        .first()
        .filter(|site| !site.module.is_empty())
        .map(|site| symbols.name(&site.module, site.offset));
    about(&mut place, process.rank, &thread.peer, comms);
    (place, polling.unwrap_or(thread.since_ns))
}

fn about(place: &mut Where, rank: u32, peer: &Peer, comms: &Communicators) {
    let predefined = peer.comm.and_then(index_of_predefined);
    let predefined =
        predefined.and_then(|index| ampl_core::mpi::PREDEFINED.get(index)).map(|&(_, name)| name);
    let made = peer.comm.filter(|_| predefined.is_none()).and_then(|word| comms.only(rank, word));
    place.comm = match predefined {
        Some("MPI_COMM_WORLD") => Some("world".into()),
        Some("MPI_COMM_SELF") => Some("self".into()),
        Some(other) => Some(other.into()),
        None => made.map(|comm| comm.name.to_string()),
    };
    // Ranks are printed as the world's: in an unknown communicator they mean nothing.
    let world = |number: i64| -> Option<Named> {
        let inside = u32::try_from(number).ok();
        match (inside, predefined, made) {
            (None, ..) | (_, Some("MPI_COMM_WORLD"), _) => Some(rank_value(number).into()),
            (Some(_), Some("MPI_COMM_SELF"), _) => Some(Named::Number(rank.into())),
            (Some(inside), _, Some(made)) => {
                let own = made.ranks.as_ref()?;
                // In an intercommunicator a rank is one of the other group.
                let others = match &made.remote {
                    Some(remote) if own.place(rank).is_some() => remote,
                    _ => own,
                };
                others.get(inside).map(|rank| Named::Number(rank.into()))
            }
            _ => None,
        }
    };
    let mut ranks = peer.ranks.iter();
    if let Some(&(role, number)) = ranks.next() {
        place.peer = world(number);
        place.role = Some(role);
        let in_window = role == Role::Target && place.peer.is_none() && place.comm.is_none();
        place.rank_in_window = Some(number).filter(|_| in_window);
    }
    place.dest = ranks.next().and_then(|&(_, number)| world(number));
    place.tag = peer.tag.map(|tag| tag_value(tag).into());
    place.requests = peer.requests;
    place.request_of.clone_from(&peer.made_by);
    place.pending = peer.pending.iter().map(|one| pending(one, rank, comms)).collect();
}

fn pending(one: &ampl_trace::model::Pending, rank: u32, comms: &Communicators) -> Pending {
    let mut made = Where::default();
    about(&mut made, rank, &one.made, comms);
    let Where { request_of: function, peer, role, tag, comm, .. } = made;
    Pending { count: one.count, function, peer, role, tag, comm }
}

#[cfg(test)]
mod tests {
    use ampl_trace::RankTrace;

    use super::*;

    /// A run whose ranks are in a call since these times, or are not in MPI since then.
    fn stopped(places: &[(i64, bool)]) -> Option<Stopped> {
        let mut trace = Trace::default();
        trace.run.end = Some(End { at_ns: 60_000_000_000, basis: EndBasis::Now });
        for (rank, &(since_ns, inside)) in (0..).zip(places) {
            let threads = vec![ThreadPlace { inside, since_ns, ..ThreadPlace::default() }];
            trace.ranks.push(RankTrace {
                process: Process { rank, threads, ..Process::default() },
                ..RankTrace::default()
            });
        }
        first_to_stop(&trace)
    }

    #[test]
    fn targets_in_windows_are_named_by_their_rank_there() {
        let of = |function: &str, comm, role| {
            let mut trace = Trace::default();
            trace.run.end = Some(End { at_ns: 9_000_000_000, basis: EndBasis::Now });
            let peer = Peer { comm, ranks: vec![(role, 3)], ..Peer::default() };
            let thread =
                ThreadPlace { inside: true, function: function.into(), peer, ..ThreadPlace::default() };
            let process = Process { threads: vec![thread], ..Process::default() };
            trace.ranks.push(RankTrace { process, ..RankTrace::default() });
            let row = rows(&trace, &Communicators::of(&trace), &mut Symbols::default()).remove(0);
            (row.place.peer, row.place.rank_in_window)
        };
        assert_eq!(of("MPI_Win_lock", None, Role::Target), (None, Some(3)));
        let world = Some(ampl_testkit::runs::world());
        assert_eq!(of("MPI_Recv", world, Role::Source), (Some(Named::Number(3)), None));
        assert_eq!(of("MPI_Recv", None, Role::Source), (None, None));
    }

    #[test]
    fn ranks_in_the_same_call_are_one_row() {
        let mut trace = Trace::default();
        trace.run.end = Some(End { at_ns: 9_000, basis: EndBasis::Now });
        for rank in 0..64 {
            let function = if rank == 9 { "MPI_Recv" } else { "MPI_Barrier" };
            let (inside, since_ns) = (true, i64::from(rank) * 10);
            let threads =
                vec![ThreadPlace { inside, since_ns, function: function.into(), ..ThreadPlace::default() }];
            let process = Process { rank, threads, ..Process::default() };
            trace.ranks.push(RankTrace { process, ..RankTrace::default() });
        }
        let rows = rows(&trace, &Communicators::of(&trace), &mut Symbols::default());
        let told = rows.iter().map(|row| (row.ranks.as_str(), row.since_ns, row.latest_ns, row.for_ns));
        assert_eq!(told.collect::<Vec<_>>(), [("0-8,10-63", 0, Some(630), 9_000), ("9", 90, None, 8_910)]);
    }

    #[test]
    fn ties_name_all_or_nobody() {
        const S: i64 = 1_000_000_000;
        let of = |ranks: &str, at_ns, in_mpi| {
            Some(Stopped { ranks: RankSet::parse(ranks).unwrap(), at_ns, in_mpi })
        };
        assert_eq!(stopped(&[(5 * S, true), (3 * S, true), (5 * S, true)]), of("1", 3 * S, true));
        // All entered one barrier.
        assert_eq!(stopped(&[(5 * S, true), (5 * S + 900, true), (5 * S + 40_000, true)]), None);
        assert_eq!(stopped(&[(5 * S, true), (3 * S + 70, true), (3 * S, true)]), of("1-2", 3 * S, true));
        assert_eq!(stopped(&[(5 * S, true)]), None);
    }

    #[test]
    fn ranks_that_are_not_in_mpi_come_first() {
        const S: i64 = 1_000_000_000;
        let found = stopped(&[(5 * S, true), (9 * S, false), (3 * S, true), (8 * S, false)]).unwrap();
        assert_eq!((found.ranks.to_string().as_str(), found.at_ns, found.in_mpi), ("3", 8 * S, false));
        let found = stopped(&[(5 * S, true), (9 * S, false), (3 * S, true), (9 * S, false)]).unwrap();
        assert_eq!((found.ranks.to_string().as_str(), found.in_mpi), ("1,3", false));
        // None is in MPI: the one that called last before the others.
        let found = stopped(&[(5 * S, false), (9 * S, false)]).unwrap();
        assert_eq!((found.ranks.to_string().as_str(), found.in_mpi), ("0", true));
    }
}
