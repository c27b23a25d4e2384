//! Ranks that others wait for, by the calls that they are in.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::Function;
use ampl_core::units::{Rank, RankSet};
use ampl_reader::{Communicator, Communicators};

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
    /// Ranks that wait for each other.
    pub circle: RankSet,
    /// Ranks outside of the circle that wait for it, directly or by way of others, and for nobody else.
    pub circle_by: RankSet,
    /// Ranks that wait for something of which the sender is not known.
    pub open: RankSet,
}

impl Waiting {
    /// Waits of ranks that are in `rows`; the job has `ranks`.
    pub fn of(rows: &[Row], comms: &Communicators, ranks: u32) -> Self {
        let known = Known::new(rows, comms, ranks);
        let mut ends: BTreeMap<Option<usize>, End> = BTreeMap::new();
        let mut waited_by: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); rows.len()];
        for (number, targets) in known.waiting_rows() {
            for target in targets.iter().flat_map(RankSet::iter) {
                let places = known.places.get(&target.0).map_or(&[][..], Vec::as_slice);
                if known.waiting.contains(target) {
                    places.iter().for_each(|&place| _ = waited_by[place].insert(number));
                } else {
                    let end = ends.entry(places.first().copied()).or_default();
                    end.ranks.insert(target.0);
                    end.from.insert(number);
                }
            }
        }
        let mut open: BTreeSet<u32> = BTreeSet::new();
        let mut has_end: BTreeSet<usize> = BTreeSet::new();
        for (number, targets) in known.waiting_rows() {
            if targets.is_some() {
                continue;
            }
            // Nothing more is known of the way from there.
            has_end.insert(number);
            open.extend(known.members(number));
            let from: BTreeSet<usize> =
                waited_by[number].iter().copied().filter(|&row| row != number).collect();
            if !from.is_empty() {
                let end = ends.entry(Some(number)).or_default();
                end.ranks.extend(known.members(number));
                end.from.extend(from);
            }
        }
        let mut awaited = Vec::new();
        for (row, end) in ends {
            let reached = reached(end.from, &waited_by);
            has_end.extend(&reached);
            let by = reached.iter().filter(|&&by| Some(by) != row).flat_map(|&row| known.members(row));
            let by: RankSet = by.collect();
            awaited.push(Awaited { ranks: RankSet::from_iter(end.ranks), row, by });
        }
        let endless: Vec<usize> =
            known.waiting_rows().map(|(number, _)| number).filter(|row| !has_end.contains(row)).collect();
        let mut waits_for: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); rows.len()];
        for (target, by) in waited_by.iter().enumerate() {
            by.iter().for_each(|&row| _ = waits_for[row].insert(target));
        }
        // A way leads from a rank back to itself if a row on it waits for that very rank.
        let comes_back = |&row: &usize| {
            let ways = reached(BTreeSet::from([row]), &waits_for);
            let targets: Vec<&RankSet> = ways.iter().filter_map(|&row| known.targets[row].as_ref()).collect();
            // All have come to a collective: they wait for each other inside.
            let inside = known.targets[row].as_ref().is_some_and(RankSet::is_empty);
            let back =
                move |&rank: &u32| inside || targets.iter().any(|targets| targets.contains(Rank(rank)));
            known.members(row).filter(back).collect::<Vec<u32>>()
        };
        let circle: RankSet = endless.iter().flat_map(comes_back).collect();
        let others = endless.iter().flat_map(|&row| known.members(row));
        let circle_by = others.filter(|&rank| !circle.contains(Rank(rank))).collect();
        awaited.sort_by_key(|one| (std::cmp::Reverse(one.by.len()), one.row.is_none(), one.row));
        Self { awaited, circle, circle_by, open: RankSet::from_iter(open), ranks: known.waiting }
    }
}

/// A place where ways of waiting end.
#[derive(Default)]
struct End {
    ranks: BTreeSet<u32>,
    /// Rows that wait for it directly.
    from: BTreeSet<usize>,
}

/// Rows from which a way leads to one of `from`, these among them.
fn reached(from: BTreeSet<usize>, waited_by: &[BTreeSet<usize>]) -> BTreeSet<usize> {
    let (mut left, mut found): (Vec<usize>, _) = (from.iter().copied().collect(), from);
    while let Some(row) = left.pop() {
        left.extend(waited_by[row].iter().copied().filter(|&next| found.insert(next)));
    }
    found
}

/// Rows with what they wait for.
pub(super) struct Known<'a> {
    rows: &'a [Row],
    /// Rows of each rank: it has one for each thread.
    places: BTreeMap<u32, Vec<usize>>,
    waiting: RankSet,
    named: BTreeMap<String, &'a Communicator>,
    ranks: u32,
    /// Ranks that each row waits for; `None` where that is not known.
    targets: Vec<Option<RankSet>>,
}

impl<'a> Known<'a> {
    pub fn new(rows: &'a [Row], comms: &'a Communicators, ranks: u32) -> Self {
        let mut places: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut together: BTreeMap<Gathering<'_>, BTreeSet<u32>> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            row.members.iter().for_each(|rank| places.entry(rank.0).or_default().push(number));
            together.entry(gathering(row)).or_default().extend(row.members.iter().map(|rank| rank.0));
        }
        // A thread that is not in a call may still do what others wait for.
        let waits = |of: &Vec<usize>| of.iter().all(|&row| is_waiting(&rows[row]));
        let waiting = places.iter().filter(|(_, of)| waits(of)).map(|(&rank, _)| rank).collect();
        let agreed = comms.iter().filter(|comm| comm.is_agreed());
        let named = agreed.map(|comm| (comm.name.to_string(), comm)).collect();
        let targets = rows.iter().map(|row| targets(row, &together, &named, ranks)).collect();
        Self { rows, places, waiting, named, ranks, targets }
    }

    /// Rows of ranks that wait, with their targets.
    pub fn waiting_rows(&self) -> impl Iterator<Item = (usize, &Option<RankSet>)> {
        let waits = move |number: &usize| self.members(*number).next().is_some();
        (0..self.rows.len()).filter(waits).map(move |number| (number, &self.targets[number]))
    }

    /// Ranks of a row that wait.
    pub fn members(&self, row: usize) -> impl Iterator<Item = u32> {
        let all = self.rows[row].members.iter();
        all.filter(move |rank| self.waiting.contains(*rank)).map(|rank| rank.0)
    }
}

impl Known<'_> {
    /// The row of that number.
    pub fn row(&self, number: usize) -> &Row {
        &self.rows[number]
    }

    /// Ranks of the job.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Ranks of the communicator of `place`, as the ranks of a row use it.
    pub fn members_of(&self, place: &Where, row: usize) -> Option<RankSet> {
        members(place, &self.rows[row], &self.named, self.ranks)
    }
}

/// A function and a communicator: ranks in one collective.
type Gathering<'a> = (Option<&'a str>, Option<&'a str>);

fn gathering(row: &Row) -> Gathering<'_> {
    (row.place.function.as_deref(), row.place.comm.as_deref())
}

fn is_waiting(row: &Row) -> bool {
    row.place.function.is_some() && !row.at_most && row.for_ns >= WAITS_NS
}

/// Ranks that the ranks of `row` wait for; `None` where that is not known.
fn targets(
    row: &Row,
    together: &BTreeMap<Gathering<'_>, BTreeSet<u32>>,
    named: &BTreeMap<String, &Communicator>,
    ranks: u32,
) -> Option<RankSet> {
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
        let members = members(place, row, named, ranks)?;
        let there = together.get(&gathering(row))?;
        let root = rank(&place.peer).filter(|_| place.role == Some(Role::Root));
        let late = root.filter(|root| !there.contains(root) && FROM_ROOT.contains(&name.as_str()));
        return Some(match late {
            Some(root) => RankSet::from_iter([root]),
            None => members.iter().map(|rank| rank.0).filter(|rank| !there.contains(rank)).collect(),
        });
    }
    let peers: Vec<u32> = [rank(&place.peer), rank(&place.dest)].into_iter().flatten().collect();
    // A rank that waits for any sender, or for one of several requests, may wait for anybody.
    (!peers.is_empty() && (place.peer.is_none() || rank(&place.peer).is_some()))
        .then(|| RankSet::from_iter(peers))
}

/// Ranks of the call's communicator.
fn members(place: &Where, row: &Row, named: &BTreeMap<String, &Communicator>, ranks: u32) -> Option<RankSet> {
    match place.comm.as_deref()? {
        "world" => Some(RankSet::range(0, ranks.checked_sub(1)?)),
        "self" => Some(row.members.clone()),
        name => {
            let comm = named.get(name)?;
            let groups = [Some(comm.ranks.as_ref()?), comm.remote.as_ref()];
            Some(groups.into_iter().flatten().flat_map(|group| group.iter()).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: i64 = 1_000_000_000;

    fn set(text: &str) -> RankSet {
        RankSet::parse(text).unwrap()
    }

    /// A place: its ranks, function, peer, and seconds in it.
    fn row(ranks: &str, function: Option<&str>, peer: Option<Named>, seconds: i64) -> Row {
        let place = Where {
            function: function.map(str::to_owned),
            role: peer
                .as_ref()
                .map(|_| if function == Some("MPI_Bcast") { Role::Root } else { Role::Source }),
            peer,
            comm: Some("world".into()),
            ..Where::default()
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
        assert_eq!((found.circle, found.circle_by, found.open), (set("0-1"), set("4"), set("2")));
        assert_eq!(awaited(&rows, 5), pairs(&[("2", "3")]));
    }

    #[test]
    fn other_communicators_wait_for_nobody_that_is_not_known() {
        let mut inside = row("0-1", Some("MPI_Barrier"), None, 9);
        inside.place.comm = Some("comm:1".into());
        let found = waits(&[inside, row("2", None, None, 9)], 3);
        assert_eq!((found.open, found.awaited.len()), (set("0-1"), 0));
    }

    /// The ranks that each rank reaches by direct waits, one after the other; `None` among them where it is not known.
    fn naive(rows: &[Row], ranks: u32) -> Vec<BTreeSet<Option<u32>>> {
        let comms = Communicators::default();
        let known = Known::new(rows, &comms, ranks);
        let direct = |rank: u32| -> BTreeSet<Option<u32>> {
            let of = known.places.get(&rank).into_iter().flatten();
            let of = of.filter(|_| known.waiting.contains(Rank(rank)));
            of.flat_map(|&row| match &known.targets[row] {
                Some(targets) => targets.iter().map(|rank| Some(rank.0)).collect::<Vec<_>>(),
                None => vec![None],
            })
            .collect()
        };
        let mut reach: Vec<BTreeSet<Option<u32>>> = (0..ranks).map(direct).collect();
        loop {
            let longer = |of: &BTreeSet<Option<u32>>| -> BTreeSet<Option<u32>> {
                let next = of.iter().flatten().flat_map(|&rank| reach[rank as usize].iter().copied());
                of.iter().copied().chain(next).collect()
            };
            let next: Vec<_> = reach.iter().map(longer).collect();
            if next == reach {
                return reach;
            }
            reach = next;
        }
    }

    proptest! {
        /// Rows and ways through them give what single ranks and all their ways give.
        #[test]
        fn rows_say_what_ranks_would(
            of in prop::collection::vec((0usize..7, 0u32..9, prop::bool::ANY), 2..9)
        ) {
            let ranks = of.len() as u32;
            let place = |(rank, &(kind, peer, long)): (u32, &(usize, u32, bool))| {
                let peer = (peer % ranks).into();
                let (function, peer) = match kind {
                    0 => (None, None),
                    1 => (Some("MPI_Barrier"), None),
                    2 => (Some("MPI_Bcast"), from(0)),
                    3 => (Some("MPI_Recv"), Some(Named::Constant("MPI_ANY_SOURCE".into()))),
                    _ => (Some("MPI_Recv"), from(peer)),
                };
                row(&rank.to_string(), function, peer, if long || kind == 1 { 5 } else { 0 })
            };
            let mut rows: Vec<Row> = Vec::new();
            for one in (0..).zip(&of).map(place) {
                // As they are found: ranks in one place are one row.
                match rows.iter_mut().find(|row| (&row.place, row.for_ns) == (&one.place, one.for_ns)) {
                    Some(row) => {
                        row.members = row.members.iter().chain(one.members.iter()).map(|rank| rank.0).collect();
                    }
                    None => rows.push(one),
                }
            }
            let (found, reach) = (waits(&rows, ranks), naive(&rows, ranks));
            let is_free = |rank: &u32| !found.ranks.contains(Rank(*rank));
            for rank in (0..ranks).filter(|rank| !is_free(rank)) {
                let own = &reach[rank as usize];
                for other in (0..ranks).filter(is_free) {
                    let says = found.awaited.iter().any(|one| {
                        one.ranks.contains(Rank(other)) && one.by.contains(Rank(rank))
                    });
                    // Ranks in one place stand for each other.
                    prop_assert!(!own.contains(&Some(other)) || says, "{} waits for {}: {:?}", rank, other, found);
                }
                let ends = own.iter().any(|end| end.is_none_or(|rank| is_free(&rank)));
                let circles = own.is_empty() || own.contains(&Some(rank));
                let says = [&found.circle, &found.circle_by].map(|ranks| ranks.contains(Rank(rank)));
                prop_assert_eq!(says, [!ends && circles, !ends && !circles], "{}: {:?} {:?}", rank, own, found);
            }
        }
    }
}
