//! Ranks that others wait for, by the calls that they are in.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::Function;
use ampl_core::units::{Rank, RankSet};
use ampl_reader::Communicators;

use crate::in_call::{Named, Role, Row, Where};
use crate::matching::is_collective;

/// Time in a call from which on a rank waits, nanoseconds.
pub const WAITS_NS: i64 = 1_000_000_000;

/// Collectives whose ranks wait for the root alone, as long as it has not come.
const FROM_ROOT: [&str; 3] = ["MPI_Bcast", "MPI_Scatter", "MPI_Scatterv"];

/// Ranks in one place that others wait for, directly or by way of ranks that wait themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Awaited {
    /// The ranks.
    pub ranks: RankSet,
    /// Number of their row among the places; none of ranks that left nothing.
    pub row: Option<usize>,
    /// The ranks that wait for them.
    pub by: RankSet,
}

/// Waits of all ranks that have been in a call for a second or longer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    /// Ranks that wait.
    pub ranks: RankSet,
    /// Ranks that are waited for and do not wait, or for whom is not known; most waiting ranks first.
    pub awaited: Vec<Awaited>,
    /// Ranks that wait for others of this set alone.
    pub circle: RankSet,
    /// Ranks that wait for something of which the sender is not known.
    pub open: RankSet,
}

impl Waiting {
    /// Waits of ranks that are in `rows`; the job has `ranks`.
    pub fn of(rows: &[Row], comms: &Communicators, ranks: u32) -> Self {
        let mut of_rank: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            row.members.iter().for_each(|rank| of_rank.entry(rank.0).or_default().push(number));
        }
        // A thread that is not in a call may still do what others wait for.
        let waits =
            |rank: u32| of_rank.get(&rank).is_some_and(|all| all.iter().all(|&row| is_waiting(&rows[row])));
        let waiting: RankSet = of_rank.keys().copied().filter(|&rank| waits(rank)).collect();
        let targets: Vec<Option<RankSet>> = rows.iter().map(|row| targets(row, rows, comms, ranks)).collect();
        // Rows as nodes: ranks of one row wait for the same ranks.
        let next = |row: usize| {
            let of = targets[row].iter().flat_map(RankSet::iter).filter(|rank| waiting.contains(*rank));
            of.flat_map(|rank| of_rank[&rank.0].iter().copied()).collect::<BTreeSet<usize>>()
        };
        let edges: Vec<BTreeSet<usize>> = (0..rows.len()).map(next).collect();
        let mut awaited: BTreeMap<Option<usize>, (BTreeSet<u32>, BTreeSet<u32>)> = BTreeMap::new();
        let (mut circle, mut open) = (Vec::new(), Vec::new());
        for (number, row) in rows.iter().enumerate() {
            let members: Vec<u32> =
                row.members.iter().filter(|rank| waiting.contains(*rank)).map(|rank| rank.0).collect();
            if members.is_empty() {
                continue;
            }
            let reached = reached(number, &edges);
            let mut has_end = false;
            for &row in &reached {
                let Some(targets) = &targets[row] else {
                    has_end = true;
                    // Nothing more is known of the way from there.
                    if row != number {
                        let (ranks, by) = awaited.entry(Some(row)).or_default();
                        ranks.extend(rows[row].members.iter().map(|rank| rank.0));
                        by.extend(&members);
                    }
                    continue;
                };
                for target in targets.iter().filter(|rank| !waiting.contains(*rank)) {
                    has_end = true;
                    let place = of_rank.get(&target.0).and_then(|rows| rows.first().copied());
                    let (ranks, by) = awaited.entry(place).or_default();
                    ranks.insert(target.0);
                    by.extend(&members);
                }
            }
            if targets[number].is_none() {
                open.extend(&members);
            } else if !has_end {
                circle.extend(&members);
            }
        }
        let mut awaited: Vec<Awaited> = awaited
            .into_iter()
            .map(|(row, (ranks, by))| Awaited {
                ranks: RankSet::from_iter(ranks),
                row,
                by: RankSet::from_iter(by),
            })
            .collect();
        awaited.sort_by_key(|one| (std::cmp::Reverse(one.by.len()), one.row.is_none(), one.row));
        Self { ranks: waiting, awaited, circle: RankSet::from_iter(circle), open: RankSet::from_iter(open) }
    }
}

fn is_waiting(row: &Row) -> bool {
    row.place.function.is_some() && !row.at_most && row.for_ns >= WAITS_NS
}

/// The rows that `from` reaches, itself among them.
fn reached(from: usize, edges: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let (mut found, mut left) = (BTreeSet::from([from]), vec![from]);
    while let Some(row) = left.pop() {
        left.extend(edges[row].iter().copied().filter(|&next| found.insert(next)));
    }
    found
}

/// Ranks that the ranks of `row` wait for; `None` where that is not known.
fn targets(row: &Row, rows: &[Row], comms: &Communicators, ranks: u32) -> Option<RankSet> {
    let place = &row.place;
    let name = place.request_of.as_ref().or(place.function.as_ref())?;
    let rank = |named: &Option<Named>| match named {
        Some(Named::Number(rank)) => u32::try_from(*rank).ok().filter(|&rank| rank < ranks),
        _ => None,
    };
    if is_collective(Function::by_name(name)?) {
        // One that was only begun does not hold those back that have begun it, too: these may be anywhere.
        if place.request_of.is_some() {
            return None;
        }
        let members = members(place, row, comms, ranks)?;
        let here =
            |other: &&Row| (&other.place.function, &other.place.comm) == (&place.function, &place.comm);
        let there: RankSet =
            rows.iter().filter(here).flat_map(|row| row.members.iter().map(|rank| rank.0)).collect();
        let root = rank(&place.peer).filter(|_| place.role == Some(Role::Root));
        if let Some(root) =
            root.filter(|&root| !there.contains(Rank(root)) && FROM_ROOT.contains(&name.as_str()))
        {
            return Some(RankSet::from_iter([root]));
        }
        return Some(members.iter().map(|rank| rank.0).filter(|&rank| !there.contains(Rank(rank))).collect());
    }
    let peers: Vec<u32> = [rank(&place.peer), rank(&place.dest)].into_iter().flatten().collect();
    // A rank that waits for any sender, or for one of several requests, may wait for anybody.
    (!peers.is_empty() && (place.peer.is_none() || rank(&place.peer).is_some()))
        .then(|| RankSet::from_iter(peers))
}

/// Ranks of the call's communicator.
fn members(place: &Where, row: &Row, comms: &Communicators, ranks: u32) -> Option<RankSet> {
    match place.comm.as_deref()? {
        "world" => Some(RankSet::range(0, ranks.checked_sub(1)?)),
        "self" => Some(row.members.clone()),
        name => {
            let comm = comms.iter().find(|comm| comm.is_agreed() && comm.name.to_string() == name)?;
            let groups = [Some(comm.ranks.as_ref()?), comm.remote.as_ref()];
            Some(groups.into_iter().flatten().flat_map(|group| group.iter()).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn set(text: &str) -> RankSet {
        RankSet::parse(text).unwrap()
    }

    /// A place: its ranks, function, peer, and seconds in it.
    fn row(ranks: &str, function: Option<&str>, peer: Option<Named>, seconds: i64) -> Row {
        let place = Where {
            function: function.map(str::to_owned),
            site: None,
            role: peer
                .as_ref()
                .map(|_| if function == Some("MPI_Bcast") { Role::Root } else { Role::Source }),
            peer,
            dest: None,
            tag: None,
            comm: Some("world".into()),
            requests: 0,
            request_of: None,
            polling: false,
            last: None,
            process: None,
        };
        Row {
            ranks: ranks.into(),
            thread: None,
            place,
            since_ns: 0,
            latest_ns: None,
            for_ns: seconds * S,
            at_most: false,
            members: set(ranks),
        }
    }

    fn from(rank: i64) -> Option<Named> {
        Some(Named::Number(rank))
    }

    fn waits(rows: &[Row], ranks: u32) -> Waiting {
        Waiting::of(rows, &Communicators::default(), ranks)
    }

    fn awaited(rows: &[Row], ranks: u32) -> Vec<(String, String)> {
        waits(rows, ranks).awaited.iter().map(|one| (one.ranks.to_string(), one.by.to_string())).collect()
    }

    fn pairs(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter().map(|&(ranks, by)| (ranks.into(), by.into())).collect()
    }

    #[test]
    fn a_collective_waits_for_those_who_have_not_come() {
        let rows = [row("0-2,4-7", Some("MPI_Allreduce"), None, 9), row("3", None, None, 10)];
        assert_eq!(awaited(&rows, 8), pairs(&[("3", "0-2,4-7")]));
        // Ranks that left nothing have not come, as far as is known.
        assert_eq!(awaited(&rows, 9), pairs(&[("3", "0-2,4-7"), ("8", "0-2,4-7")]));
        assert_eq!(waits(&rows, 9).awaited[1].row, None);
        // All have come.
        assert_eq!(awaited(&[row("0-3", Some("MPI_Barrier"), None, 9)], 4), []);
        assert_eq!(waits(&[row("0-3", Some("MPI_Barrier"), None, 9)], 4).circle, set("0-3"));
    }

    #[test]
    fn a_broadcast_waits_for_its_root() {
        let bcast = row("1-3", Some("MPI_Bcast"), from(0), 5);
        let rows = [bcast.clone(), row("0", None, None, 6), row("4-5", None, None, 6)];
        assert_eq!(awaited(&rows, 6), pairs(&[("0", "1-3")]));
        // The root has come: the tree may lead by way of others.
        let rows = [row("0-3", Some("MPI_Bcast"), from(0), 5), row("4-5", None, None, 6)];
        assert_eq!(awaited(&rows, 6), pairs(&[("4-5", "0-3")]));
    }

    #[test]
    fn chains_end_at_the_rank_that_does_not_wait() {
        let rows = [
            row("0", Some("MPI_Recv"), from(1), 4),
            row("1", Some("MPI_Recv"), from(2), 4),
            row("2", None, None, 4),
            row("3", Some("MPI_Send"), from(0), 0),
        ];
        assert_eq!(awaited(&rows, 4), pairs(&[("2", "0-1")]));
        assert_eq!(waits(&rows, 4).ranks, set("0-1"));
    }

    #[test]
    fn circles_and_unknown_senders_are_told_apart() {
        let any = Some(Named::Constant("MPI_ANY_SOURCE".into()));
        let rows = [
            row("0", Some("MPI_Recv"), from(1), 4),
            row("1", Some("MPI_Recv"), from(0), 4),
            row("2", Some("MPI_Recv"), any, 4),
            row("3", Some("MPI_Recv"), from(2), 4),
            row("4", Some("MPI_Recv"), from(0), 4),
        ];
        let found = waits(&rows, 5);
        assert_eq!((found.circle, found.open), (set("0-1,4"), set("2")));
        assert_eq!(awaited(&rows, 5), pairs(&[("2", "3")]));
    }

    #[test]
    fn other_communicators_wait_for_nobody_that_is_not_known() {
        let mut inside = row("0-1", Some("MPI_Barrier"), None, 9);
        inside.place.comm = Some("comm:1".into());
        let found = waits(&[inside, row("2", None, None, 9)], 3);
        assert_eq!((found.open, found.awaited.len()), (set("0-1"), 0));
    }
}
