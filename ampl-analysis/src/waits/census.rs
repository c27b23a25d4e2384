//! Waits by the totals of all ranks: no times need be kept.
//!
//! In a collective that synchronises, each rank waits at least as much longer as it is in its calls than the rank that
//! is there least: the last to arrive in an instance is there no longer than that rank. A cause is named where it also
//! computes most.

use std::collections::BTreeSet;

use ampl_core::mpi::{Class, Function, Traffic};
use ampl_core::units::Rank;
use ampl_reader::selection::Selection;
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::totals::Known;
use rustc_hash::FxHashMap;

use super::causes::{Hosts, elapsed};
use super::compute::Compute;
use super::kept::Observed;
use super::places::{Place, name};
use super::{Basis, Bound, Kind, Needed, Party, Row, WORTH};
use crate::calls::{CommWaits, LateRanks, Recorded, recorded_calls};

/// Share of the mean time of the others below which a root does not wait, in (0, 1).
const ROOT: f64 = 0.5;
/// Time of a call without a wait, in shortest calls of messages.
const BARE: u64 = 2;

/// All that rows are made of.
struct Census<'a> {
    part: &'a Selection,
    hosts: Hosts<'a>,
    compute: Compute,
    elapsed: f64,
    ranks: u32,
    /// Time and calls of each rank in a function.
    shares: FxHashMap<(u16, u32), (u64, u64)>,
    /// Number of places of each function.
    places: FxHashMap<u16, usize>,
    /// The shortest call that moves messages or waits for them, nanoseconds.
    shortest_ns: u64,
    late: LateRanks<'a>,
}

/// The shortest call of the run that moves messages or waits for them, nanoseconds.
fn shortest(trace: &Trace) -> u64 {
    let moves = |known: &Known<'_>| {
        let spec = ampl_core::mpi::FUNCTIONS.get(usize::from(known.function));
        spec.is_some_and(|spec| spec.traffic.is_message() || spec.class == Class::Completion)
    };
    let all = trace.totals.known().filter(moves).map(|known| known.total.shortest.ns);
    all.filter(|&ns| ns > 0).min().unwrap_or(0)
}

/// Rows of the totals of `trace`; roots and senders are those `observed`.
pub fn rows(trace: &Trace, part: &Selection, observed: &Observed, symbols: &mut Symbols) -> Vec<Row> {
    let mut places: FxHashMap<u16, usize> = FxHashMap::default();
    trace.totals.known().for_each(|known| *places.entry(known.function).or_default() += 1);
    let shares = trace.totals.shares().map(|(function, rank, share)| {
        let both = (share.time_ns, share.calls);
        ((function, rank), both)
    });
    let census = Census {
        part,
        hosts: Hosts::of(trace),
        compute: Compute::of(trace),
        elapsed: elapsed(trace),
        ranks: trace.run.ranks,
        shares: shares.collect(),
        places,
        shortest_ns: shortest(trace),
        late: LateRanks::of(trace),
    };
    let recorded = recorded_calls(trace, |_| true).unwrap_or_default();
    let mut rows = Vec::new();
    for known in trace.totals.known() {
        if usize::from(known.function) >= ampl_core::mpi::FUNCTION_COUNT || known.total.time_ns == 0 {
            continue;
        }
        let path: Vec<(String, u64)> =
            known.path.iter().map(|&(module, offset)| (module.to_owned(), offset)).collect();
        let (module, offset) = known.path.first().copied().unwrap_or(("", 0));
        let place: Place = (Function(known.function), module.to_owned(), offset);
        let number = observed.places.iter().position(|own| *own == place);
        let none = Recorded::default();
        let of_place = recorded.get(&(known.function, path)).unwrap_or(&none);
        let function = Function(known.function);
        let spec = function.spec();
        let found = match spec.traffic {
            _ if function.waits_for_all() => census.synchronising(&known, of_place),
            Traffic::Bcast | Traffic::Scatter | Traffic::Scatterv if spec.class == Class::Ordinary => {
                let roots = number.and_then(|number| observed.roots.get(&number));
                let root = roots.filter(|roots| roots.len() == 1).and_then(|roots| roots.iter().next());
                root.and_then(|&root| census.rooted(&known, root))
            }
            _ => number.and_then(|number| census.receiving(&known, number, observed)),
        };
        if let Some(row) = found {
            rows.push(Row { site: name(&place, symbols), ..row });
        }
    }
    rows
}

impl Census<'_> {
    fn row(
        &self,
        known: &Known<'_>,
        kind: Kind,
        (waiting, causing): (Party, Party),
        ns: u64,
        longest: u64,
    ) -> Option<Row> {
        let share = longest as f64 / self.elapsed;
        let asked = waiting
            .ranks
            .as_ref()
            .is_none_or(|ranks| ranks.iter().any(|Rank(rank)| self.part.takes_rank(rank)));
        (share >= WORTH && asked).then(|| Row {
            site: None,
            kind,
            waiting,
            causing,
            instances: known.total.calls,
            ns,
            bound: Bound::AtLeast,
            basis: Basis::Census,
            function: Function(known.function).name(),
            share,
            clock_error_ns: None,
            needed: None,
        })
    }

    fn all_but(&self, ranks: &[u32]) -> Party {
        self.hosts.party((0..self.ranks).filter(|rank| !ranks.contains(rank)))
    }

    /// Waits for the last, in the calls on communicators with a late rank that computes most; those on all of them where
    /// there is no such rank.
    fn synchronising(&self, known: &Known<'_>, recorded: &Recorded) -> Option<Row> {
        let of_comms = self.late.of_comms(std::slice::from_ref(known), recorded);
        let is_late = |waits: &&CommWaits| !waits.late.ranks().is_empty();
        let is_slow = |rank: &u32| self.compute.is_slow(*rank);
        let of_slow = |waits: &&CommWaits| waits.late.ranks().iter().any(is_slow);
        let late: Vec<&CommWaits> = of_comms.iter().filter(is_late).collect();
        let for_slow: Vec<&CommWaits> = late.iter().copied().filter(of_slow).collect();
        let slow: BTreeSet<u32> =
            for_slow.iter().flat_map(|waits| waits.late.ranks()).copied().filter(is_slow).collect();
        let meant = if slow.is_empty() { late } else { for_slow };
        let ns = meant.iter().fold(0u64, |sum, waits| sum.saturating_add(waits.beyond_least_ns));
        let longest = meant.iter().map(|waits| waits.longest_ns).max()?;
        let members = meant.iter().flat_map(|waits| waits.ranks.iter()).filter(|rank| !slow.contains(rank));
        let waiting = if slow.is_empty() { Party::default() } else { self.hosts.party(members) };
        let row = self.row(known, Kind::LastToArrive, (waiting, self.hosts.party(slow)), ns, longest)?;
        let needed = row.causing.ranks.is_none().then_some(Needed::Times);
        Some(Row { needed, ..row })
    }

    /// Wait for the root, which alone does not wait, and computes most.
    fn rooted(&self, known: &Known<'_>, root: u32) -> Option<Row> {
        let spread = known.spread.filter(|spread| spread.is_even() && spread.ranks >= 2)?;
        let others = f64::from(spread.ranks - 1);
        let own = spread.least().first().filter(|least| least.rank == root)?.ns;
        let rest = known.total.time_ns.saturating_sub(own);
        // A rank between the root and others would wait less than these if it were late.
        let next = spread.least().get(1)?.ns as f64;
        let mean = rest as f64 / others;
        if (own as f64) >= ROOT * mean || next < ROOT * mean || !self.compute.is_slow(root) {
            return None;
        }
        let bare = self.shortest_ns.saturating_mul(BARE).saturating_mul(known.total.calls);
        let ns = rest.saturating_sub(bare);
        let waiting = if spread.ranks == self.ranks { self.all_but(&[root]) } else { Party::default() };
        let longest = known.total.most.ns.min(ns);
        self.row(known, Kind::LateRoot, (waiting, self.hosts.party([root])), ns, longest)
    }

    /// Wait of the rank that receives longest here, for the only slow rank of those that send to it.
    fn receiving(&self, known: &Known<'_>, place: usize, observed: &Observed) -> Option<Row> {
        let most = known.total.most;
        let senders = observed.senders.get(&(place, most.rank))?;
        let bare = |calls: u64| self.shortest_ns.saturating_mul(BARE).saturating_mul(calls);
        let each = known.spread.map_or(known.total.calls, |spread| spread.most);
        let slow: Vec<u32> = senders.iter().copied().filter(|&rank| self.compute.is_slow(rank)).collect();
        let longest = most.ns.saturating_sub(bare(each));
        let &[sender] = &slow[..] else {
            let row = self.row(known, Kind::LateSender, Default::default(), longest, longest)?;
            let waiting = self.hosts.party([most.rank]);
            return Some(Row { waiting, needed: Some(Needed::Partners), ..row });
        };
        // Other ranks wait here for the same sender, where each rank's time here is known.
        let alone = self.places.get(&known.function) == Some(&1);
        let of = |rank: u32| self.shares.get(&(known.function, rank)).copied().unwrap_or_default();
        let also = |rank: &u32| {
            let for_it = observed.senders.get(&(place, *rank)).is_some_and(|own| own.contains(&sender));
            alone && for_it && *rank != sender && of(*rank).0 * 2 >= most.ns
        };
        let waiting: BTreeSet<u32> = (0..self.ranks).filter(also).chain([most.rank]).collect();
        let time =
            |rank: u32| if rank == most.rank { longest } else { of(rank).0.saturating_sub(bare(of(rank).1)) };
        let ns = waiting.iter().map(|&rank| time(rank)).sum();
        let parties = (self.hosts.party(waiting), self.hosts.party([sender]));
        self.row(known, Kind::LateSender, parties, ns, longest)
    }
}
