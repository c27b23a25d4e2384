//! Calls that take time which no imbalance explains.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use ampl_core::mpi::{FUNCTIONS, Function, Traffic};
use ampl_core::units::RankSet;
use ampl_trace::totals::SEVERAL;

use super::cost::{Costs, Purpose};
use super::finding::{Basis, Evidence, Finding, Kind, Next, Place};
use super::{Facts, LEAST, NOTABLE};
use crate::calls::{Late, Number, Parts, Places, recorded, recorded_calls, time_ns};

/// The mean time of a call over its shortest, from which on it waits.
const WAITS: f64 = 10.0;
/// Least mean time of a call that waits, nanoseconds.
const LONG_NS: f64 = 50e3;
/// Bytes a second of a rank from which on its messages may be what takes the time.
const MOVING: f64 = 20e6;
/// Compute time over the mean up to which a rank computes no more than others.
const ALIKE: f64 = 1.05;
/// Most bytes of a small message, the mean.
const SMALL: f64 = 2048.0;
/// Fewest of them that a rank sends in a second.
const MANY: f64 = 1000.0;
/// Ranks that compute at a time, the mean, where they do so one after another.
const ALONE: RangeInclusive<f64> = 0.5..=1.3;
/// Correlation of rank number and time in receives from which on each rank waits for the one before it.
const FOLLOWS: f64 = 0.9;

/// Sites and costs of a run.
struct Spent<'f, 't> {
    facts: &'f Facts<'t>,
    costs: Costs,
    places: Places<'t>,
    parts: BTreeMap<Number, Parts<'t>>,
    /// Time of all ranks and threads, without ampl's, nanoseconds.
    all_ns: f64,
}

impl<'f, 't> Spent<'f, 't> {
    fn of(facts: &'f Facts<'t>) -> Self {
        let mut places = Places::default();
        let parts = places.parts(facts.trace);
        let threads = facts.run.threads.max(1) as f64;
        let all_ns = facts.run.times.iter().map(|times| times.of_program()).sum::<f64>() * threads;
        Self { facts, costs: Costs::of(facts.trace), places, parts, all_ns: all_ns.max(1.0) }
    }

    fn share(&self, purpose: Purpose) -> f64 {
        self.costs.total(purpose) / self.all_ns
    }

    /// The places of a purpose, most time first.
    fn places_of(&self, purpose: Purpose) -> Vec<(usize, &Parts<'t>)> {
        let is_of = |parts: &Parts<'_>| {
            let own = parts
                .first()
                .filter(|part| part.function != SEVERAL)
                .and_then(|part| Purpose::of(part.function));
            own == Some(purpose)
        };
        let known = self.parts.iter().filter_map(|(&number, parts)| Some((number?, parts)));
        let mut places: Vec<(usize, &Parts<'t>)> = known.filter(|(_, parts)| is_of(parts)).collect();
        places.sort_by(|a, b| time_ns(b.1).total_cmp(&time_ns(a.1)));
        places
    }

    fn name(&mut self, number: usize) -> Option<Place> {
        let place = &self.places.places[number];
        let function = FUNCTIONS.get(usize::from(place.function))?.name;
        let (module, offset) = *place.addresses.first()?;
        let known = (module, offset) != crate::calls::NOWHERE;
        let site = known.then(|| self.places.symbols.name(module, offset));
        Some(Place { function, site })
    }

    /// Sum over a purpose's places of a number of each.
    fn sum(&self, purpose: Purpose, of: impl Fn(&ampl_trace::totals::Total, u16) -> u64) -> u64 {
        let places = self.places_of(purpose);
        let parts = places.iter().flat_map(|(_, parts)| parts.iter());
        parts.map(|part| of(part.total, part.function)).fold(0, u64::saturating_add)
    }

    /// Late ranks at a place.
    fn late(&self, parts: &Parts<'t>) -> Late {
        let Some(function) = parts.first().map(|part| part.function) else { return Late::Unknown };
        if !Function(function).synchronises() {
            return Late::Unknown;
        }
        let calls = recorded_calls(self.facts.trace, |other| other == function).unwrap_or_default();
        Late::of(parts, recorded(parts, &calls).comms, &self.facts.trace.totals)
    }
}

/// The call in which the ranks spend most time, of all that may wait, and its share of their time.
pub fn most_waited(facts: &Facts<'_>) -> Option<(Place, f64)> {
    let mut spent = Spent::of(facts);
    let waits = [Purpose::Messages, Purpose::Collectives, Purpose::Polls];
    let places = waits
        .map(|purpose| spent.places_of(purpose).first().map(|&(number, parts)| (number, time_ns(parts))));
    let most = places.into_iter().flatten().reduce(|a, b| if b.1 > a.1 { b } else { a })?;
    Some((spent.name(most.0)?, most.1 / spent.all_ns))
}

/// Findings about calls. Time that imbalance explains is not theirs: they divide the rest, named causes first.
pub fn of(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(lost) = facts.of_run().and_then(|row| row.lost) else { return Vec::new() };
    let mut left = (lost.mpi_ns / lost.run_ns).clamp(0.0, 1.0);
    let mut spent = Spent::of(facts);
    let mut found = Vec::new();
    let longest = facts.run.times.iter().map(|times| times.of_program()).fold(1.0, f64::max);
    for purpose in Purpose::ALL {
        let mean = spent.share(purpose);
        let worst = spent
            .costs
            .worst(purpose)
            .map(|(rank, ns)| (rank, ns / longest / facts.run.threads.max(1) as f64));
        // The others wait while a single rank is in a file.
        let share = match purpose {
            Purpose::Files => worst.map_or(mean, |(_, worst)| worst.max(mean)),
            _ => mean,
        };
        let cost = share.min(left);
        let Some(finding) = of_purpose(&mut spent, purpose, mean, worst) else { continue };
        let least = match finding.kind() {
            Kind::Files | Kind::Polling | Kind::SmallMessages | Kind::LateRank => LEAST,
            _ => NOTABLE,
        };
        if cost >= least {
            left -= cost;
            found.push(finding.costing(cost));
        }
    }
    found
}

fn of_purpose(
    spent: &mut Spent<'_, '_>,
    purpose: Purpose,
    share: f64,
    worst: Option<(u32, f64)>,
) -> Option<Finding> {
    let facts = spent.facts;
    let top = spent.places_of(purpose).first().map(|&(number, parts)| (number, parts.clone()))?;
    let (number, parts) = top;
    let calls = spent.sum(purpose, |total, _| total.calls);
    let total_ns = spent.costs.total(purpose);
    let [sent, received] =
        [spent.sum(purpose, |total, _| total.sent), spent.sum(purpose, |total, _| total.received)];
    let sends = spent.sum(purpose, |total, function| if is_send(function) { total.calls } else { 0 });
    let units = if purpose == Purpose::Messages { sends } else { calls };
    let moving = spent.sum(purpose, |total, _| if total.sent + total.received > 0 { total.calls } else { 0 });
    let moving = if purpose == Purpose::Messages { sends } else { moving };
    let bytes = sent.max(received);
    let mean_bytes = (moving > 0 && bytes > 0).then(|| bytes as f64 / moving as f64);
    let seconds = spent.all_ns / 1e9;
    let computing = facts.shares.map_or(0.0, |shares| shares.parallel) * f64::from(facts.trace.run.ranks);
    let per_second = units as f64 / seconds;
    let shortest =
        parts.iter().filter(|part| part.total.time_ns > 0).map(|part| part.total.shortest.ns).min();
    let at_site = parts.iter().map(|part| part.total.calls).sum::<u64>().max(1) as f64;
    let at_site_ns = shortest.map(|shortest| [shortest as f64, time_ns(&parts) / at_site]);
    let rate = bytes as f64 / (total_ns / 1e9).max(1e-9);
    let waits = at_site_ns.is_some_and(|[shortest, mean]| mean >= WAITS * shortest && mean >= LONG_NS)
        && rate < MOVING;
    let late = spent.late(&parts);
    let kind = match purpose {
        Purpose::Files => Kind::Files,
        Purpose::Polls => Kind::Polling,
        Purpose::OneSided => Kind::OneSided,
        Purpose::Messages if is_serial(facts, &spent.costs, computing) && rate < MOVING => Kind::Pipeline,
        Purpose::Messages => match mean_bytes {
            Some(mean) if mean <= SMALL && per_second >= MANY => Kind::SmallMessages,
            _ if waits => Kind::Waiting,
            _ => Kind::Transfer,
        },
        Purpose::Collectives if late.first().is_some_and(|rank| is_late_alone(facts, rank)) => Kind::LateRank,
        Purpose::Collectives if waits => Kind::Waiting,
        Purpose::Collectives => Kind::Collectives,
    };
    let evidence = Evidence::Calls {
        kind,
        calls: units,
        share,
        mean_ns: total_ns / calls.max(1) as f64,
        at_site_ns,
        bytes: mean_bytes,
        per_second,
        worst,
        computing,
    };
    let mut finding = Finding::new(evidence, Basis::Totals, Next::Calls);
    let named = match kind {
        Kind::LateRank => late.first(),
        Kind::Files => worst.map(|(rank, _)| rank),
        _ => None,
    };
    if let Some(rank) = named {
        let ranks = RankSet::range(rank, rank);
        finding.hosts = facts.hosts(&ranks);
        finding.ranks = Some(ranks);
    }
    finding.place = spent.name(number);
    Some(finding)
}

/// True where `rank` comes late though it computes no more than others: imbalance is a finding of its own.
fn is_late_alone(facts: &Facts<'_>, rank: u32) -> bool {
    let times = &facts.run.times;
    let mean = times.iter().map(|times| times.compute).sum::<f64>() / times.len().max(1) as f64;
    let own = times.iter().find(|times| times.rank == rank);
    facts.unranked().is_none() && own.is_some_and(|own| own.compute <= ALIKE * mean)
}

fn is_send(function: u16) -> bool {
    let traffic = FUNCTIONS.get(usize::from(function)).map(|spec| spec.traffic);
    let sends = [Traffic::Send, Traffic::SendInit, Traffic::Sendrecv, Traffic::SendrecvReplace];
    traffic.is_some_and(|traffic| sends.contains(&traffic))
}

/// True where balanced ranks compute one after another: about one at a time while the others wait for messages, or each
/// longer in receives than the one before it.
fn is_serial(facts: &Facts<'_>, costs: &Costs, computing: f64) -> bool {
    let balanced = facts.shares.and_then(|shares| shares.load_balance).is_some_and(|balance| balance >= 0.8);
    if !balanced || facts.unranked().is_some() {
        return false;
    }
    let ranks: Vec<(f64, f64)> =
        costs.ranks(Purpose::Messages).map(|(rank, ns)| (f64::from(rank), ns)).collect();
    let of = |purpose| costs.total(purpose);
    let most = Purpose::ALL.iter().all(|&other| of(other) <= of(Purpose::Messages));
    let one_by_one = ALONE.contains(&computing) && most && !facts.is_disturbed();
    if ranks.len() as u32 != facts.trace.run.ranks {
        return one_by_one && !ranks.is_empty();
    }
    let longest = facts.run.times.iter().map(|times| times.of_program()).fold(1.0, f64::max);
    let (most, least) = ranks
        .iter()
        .fold((0.0, f64::MAX), |(most, least): (f64, f64), &(_, ns)| (most.max(ns), least.min(ns)));
    let grows = (most - least) / longest >= NOTABLE && correlation(&ranks).abs() >= FOLLOWS;
    one_by_one || grows
}

fn correlation(pairs: &[(f64, f64)]) -> f64 {
    let count = pairs.len() as f64;
    let (x, y) = pairs.iter().fold((0.0, 0.0), |(x, y), pair| (x + pair.0 / count, y + pair.1 / count));
    let (mut both, mut first, mut second) = (0.0, 0.0, 0.0);
    for pair in pairs {
        let (a, b) = (pair.0 - x, pair.1 - y);
        (both, first, second) = (both + a * b, first + a * a, second + b * b);
    }
    if first > 0.0 && second > 0.0 { both / (first * second).sqrt() } else { 0.0 }
}
