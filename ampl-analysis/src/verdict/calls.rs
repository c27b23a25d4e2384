//! Calls that take time which no imbalance explains.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use ampl_core::mpi::{FUNCTIONS, Function, Traffic};
use ampl_core::units::RankSet;
use ampl_trace::totals::{Known, SEVERAL};

use super::cost::{Costs, Purpose};
use super::finding::{Basis, Detail, Evidence, Finding, Kind, Next, Place};
use super::steps::{self, Steps};
use super::waited::waited;
use super::{Facts, LEAST, NOTABLE, overlap, senders};
use crate::calls::{Late, LateRanks, Number, Parts, Places, recorded, recorded_calls, time_ns};

/// The mean time of a call over its shortest, from which on it waits.
const WAITS: f64 = 10.0;
/// Least mean time of a call that waits, nanoseconds.
const LONG_NS: f64 = 50e3;
/// Mean time of a call that waits, however long the shortest is: no network takes as long for little data.
const VERY_LONG_NS: f64 = 1e6;
/// Bytes a second of a rank from which on its messages may be what takes the time.
const MOVING: f64 = 20e6;
/// Compute time over the mean up to which a rank computes no more than others.
pub(super) const ALIKE: f64 = 1.05;
/// Time of the rank that is longest in calls over the mean, from which on it is named.
const MORE: f64 = 1.25;
/// Most bytes of a small message, the mean.
const SMALL: f64 = 2048.0;
/// Fewest of them that a rank sends in a second.
const MANY: f64 = 1000.0;
/// The same in a second that a rank computes, where it shares its processor: each may take a turn of the system's.
const MANY_BETWEEN: f64 = 10_000.0;
/// Fewest small messages of a rank.
const FEWEST: f64 = 100.0;
/// Longest mean time between failed polls in a row that may be no work, nanoseconds.
const PAUSE_NS: f64 = 5e5;
/// Ranks that compute at a time, the mean, where they do so one after another.
const ALONE: RangeInclusive<f64> = 0.5..=1.3;
/// Pairs of ranks that compute at the same time over those that would by chance, up to which they compute one after another.
const APART: f64 = 0.5;
/// Correlation of rank number and time in receives from which on each rank waits for the one before it.
const FOLLOWS: f64 = 0.9;

/// Least share of the ranks' time for which waiting without a cause is a finding where ranks share processors: they wait
/// for these, too.
const CROWDED: f64 = 0.3;
/// The same for waiting in one-sided calls.
const CROWDED_WINDOW: f64 = 0.2;
/// Time in a function over that of the main threads in MPI, from which on other threads call it.
const BEYOND: f64 = 1.02;

/// Sites and costs of a run.
struct Spent<'f, 't> {
    facts: &'f Facts<'t>,
    costs: Costs,
    late: LateRanks<'t>,
    places: Places<'t>,
    parts: BTreeMap<Number, Parts<'t>>,
    /// Time of all ranks and threads, without ampl's, nanoseconds.
    all_ns: f64,
    /// Threads of a rank, the mean over the ranks' time.
    threads: f64,
}

/// Functions in which ranks are longer than their main threads are in MPI: helpers wait there. Empty where the time in MPI
/// is not the main threads'.
fn of_helpers(facts: &Facts<'_>) -> BTreeSet<u16> {
    if !facts.run.of_main {
        return BTreeSet::new();
    }
    let main: f64 = facts.run.times.iter().map(|times| times.mpi).sum();
    let mut functions: BTreeMap<u16, f64> = BTreeMap::new();
    for (function, _, share) in facts.trace.totals.shares() {
        *functions.entry(function).or_default() += share.time_ns as f64;
    }
    functions.into_iter().filter(|(_, ns)| *ns > BEYOND * main).map(|(function, _)| function).collect()
}

impl<'f, 't> Spent<'f, 't> {
    fn of(facts: &'f Facts<'t>) -> Self {
        let mut places = Places::default();
        let helpers = of_helpers(facts);
        let mut parts = places.parts(facts.trace);
        parts.retain(|_, parts| parts.iter().all(|part| !helpers.contains(&part.function)));
        // Without the helpers the rest is the main threads'.
        let threads = if facts.run.of_main { 1.0 } else { facts.run.over_threads };
        let of_windows = facts.run.times.iter().map(|times| times.of_program()).sum::<f64>();
        // Totals of ranks that died have calls behind their last window.
        let died = facts.trace.ranks.iter().any(|rank| !rank.process.finalized);
        let elapsed = facts.trace.ranks.iter().map(|rank| rank.process.elapsed_ns as f64).sum::<f64>();
        let all_ns = threads * if died { of_windows.max(elapsed) } else { of_windows };
        Self {
            facts,
            costs: Costs::without(&helpers, facts.trace),
            late: LateRanks::of(facts.trace),
            places,
            parts,
            all_ns: all_ns.max(1.0),
            threads,
        }
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
        let symbols = &mut self.places.symbols;
        let site = known.then(|| symbols.name(module, offset));
        let within = match known && place.line.is_none() {
            true => symbols.function(module, offset).map(|function| function.name),
            false => None,
        };
        Some(Place { function, site, within })
    }

    /// Sum over a purpose's places of a number of each.
    fn sum(&self, purpose: Purpose, of: impl Fn(&ampl_trace::totals::Total, u16) -> u64) -> u64 {
        let places = self.places_of(purpose);
        let parts = places.iter().flat_map(|(_, parts)| parts.iter());
        parts.map(|part| of(part.total, part.function)).fold(0, u64::saturating_add)
    }

    /// The kind of a finding about calls at that place, by what totals do not show, and the evidence.
    fn examined(&self, kind: Kind, purpose: Purpose, number: usize) -> (Kind, Option<Detail>) {
        let trace = self.facts.trace;
        let place = &self.places.places[number];
        let steps = || Steps::of(trace, place);
        match kind {
            Kind::Waiting => {
                let in_turn = steps().in_turn(trace.run.ranks).filter(|_| self.facts.unranked().is_none());
                let senders = || {
                    let ranks: Vec<(u32, f64)> = self.costs.ranks(purpose).collect();
                    senders::of(trace, &ranks).filter(|_| purpose == Purpose::Messages)
                };
                // Calls that take longer and longer are no wait for whoever comes late.
                let growth = || steps().growth().filter(|_| purpose == Purpose::Collectives);
                if let Some(found) = in_turn {
                    (Kind::Turns, Some(Detail::InTurn(found)))
                } else if let Some(found) = senders() {
                    (Kind::LateSender, Some(Detail::Senders(found)))
                } else if let Some(found) = growth() {
                    (Kind::Collectives, Some(Detail::Growth(found)))
                } else {
                    (kind, None)
                }
            }
            Kind::Transfer | Kind::Collectives => (kind, steps().growth().map(Detail::Growth)),
            Kind::Polling => {
                let polls = self.sum(purpose, |total, _| total.calls) as f64;
                // A thread that only polls beside one that computes takes none of its time.
                let alone = self.facts.run.over_threads < BEYOND;
                let between = steps::between_polls(trace).filter(|&ns| alone && ns <= PAUSE_NS);
                let between = between.map(|ns| (ns * polls / self.all_ns).min(1.0));
                (kind, between.filter(|&share| share >= LEAST).map(Detail::BetweenPolls))
            }
            _ => (kind, None),
        }
    }

    /// Late ranks at a place.
    fn late(&self, parts: &Parts<'t>) -> Late {
        let Some(function) = parts.first().map(|part| part.function) else { return Late::Unknown };
        if !Function(function).waits_for_all() {
            return Late::Unknown;
        }
        let calls = recorded_calls(self.facts.trace, |other| other == function).unwrap_or_default();
        self.late.at(parts, &recorded(parts, &calls))
    }
}

/// The place of most time among the calls in which ranks wait longest for those that compute more, and the share of
/// all ranks' time that they wait in such calls: `imbalance` of it is waited.
pub fn most_waited(facts: &Facts<'_>, imbalance: f64) -> Option<(Place, f64)> {
    let mut spent = Spent::of(facts);
    let waits = waited(facts, &spent.costs, (spent.all_ns, spent.threads), imbalance);
    let (&purpose, &share) = waits.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let places = spent.places_of(purpose);
    let number = places.iter().max_by(|a, b| beyond_least(a.1).total_cmp(&beyond_least(b.1)))?.0;
    Some((spent.name(number)?, share))
}

/// Time at a place beyond that of the rank with the least there, where all call there equally often; else all of it.
fn beyond_least(parts: &Parts<'_>) -> f64 {
    let least = match parts[..] {
        [Known { spread: Some(spread), .. }] if spread.is_even() => {
            spread.least().first().map(|least| least.ns as f64 * f64::from(spread.ranks))
        }
        _ => None,
    };
    (time_ns(parts) - least.unwrap_or(0.0)).max(0.0)
}

/// Findings about calls. Time that imbalance explains is not theirs: they divide the rest, named causes first.
pub fn of(facts: &Facts<'_>) -> Vec<Finding> {
    let Some(lost) = facts.of_run().and_then(|row| row.lost) else { return Vec::new() };
    let of_run = |ns: f64| (ns / lost.run_ns).clamp(0.0, 1.0);
    let mut left = of_run(lost.mpi_ns);
    let mut spent = Spent::of(facts);
    let waited = waited(facts, &spent.costs, (spent.all_ns, spent.threads), of_run(lost.imbalance_ns));
    let mut found = Vec::new();
    let longest = facts.run.times.iter().map(|times| times.of_program()).fold(1.0, f64::max);
    for purpose in Purpose::ALL {
        let mean = spent.share(purpose);
        let worst = spent.costs.worst(purpose).map(|(rank, ns)| (rank, ns / longest / spent.threads));
        // The others wait while a single rank is in a file.
        let share = match purpose {
            Purpose::Files => worst.map_or(mean, |(_, worst)| worst.max(mean)),
            _ => mean,
        };
        // Others compute more than ranks that poll all the time: the polls are what imbalance there is.
        let cost = match purpose == Purpose::Polls && few_poll(&spent).is_some() {
            true => share,
            false => (share - waited.get(&purpose).copied().unwrap_or(0.0)).clamp(0.0, left),
        };
        let Some(finding) = of_purpose(&mut spent, purpose, mean, worst) else { continue };
        let least = match finding.kind() {
            Kind::Files | Kind::Polling | Kind::SmallMessages | Kind::LateRank => LEAST,
            Kind::Waiting if facts.sharing.is_some() => CROWDED,
            Kind::OneSided if facts.sharing.is_some() && is_waiting(&finding) => CROWDED_WINDOW,
            _ => NOTABLE,
        };
        let is_fact =
            matches!(finding.evidence, Evidence::Calls { detail: Some(Detail::BetweenPolls(_)), .. });
        if cost >= least {
            left = (left - cost).max(0.0);
            found.push(finding.costing(cost));
        } else if is_fact {
            found.push(finding);
        }
    }
    join_turns(&mut found);
    found
}

/// True where calls at the place of a finding take far longer than the shortest.
fn is_waiting(finding: &Finding) -> bool {
    let Evidence::Calls { at_site_ns, .. } = finding.evidence else { return false };
    at_site_ns.is_some_and(is_long)
}

fn is_long([shortest, mean]: [f64; 2]) -> bool {
    mean >= WAITS * shortest && mean >= LONG_NS
}

/// Ranks that poll for half of their time, if they are at most a third of all.
fn few_poll(spent: &Spent<'_, '_>) -> Option<RankSet> {
    let ranks = u64::from(spent.facts.trace.run.ranks);
    let least = 0.5 * spent.all_ns / ranks.max(1) as f64;
    let of = spent.costs.ranks(Purpose::Polls).filter(|(_, ns)| *ns >= least).map(|(rank, _)| rank);
    let few = RankSet::from_iter(of);
    (!few.is_empty() && 3 * few.len() <= ranks).then_some(few)
}

/// Joins findings that ranks compute longest in turn: they wait for it in messages and in collectives.
fn join_turns(found: &mut Vec<Finding>) {
    let is_turn = |finding: &Finding| finding.kind() == Kind::Turns;
    let share = |finding: &Finding| match finding.evidence {
        Evidence::Calls { share, .. } => share,
        _ => 0.0,
    };
    let turns: Vec<Finding> = found.extract_if(.., |finding| is_turn(finding)).collect();
    let sum = |of: &dyn Fn(&Finding) -> f64| turns.iter().map(of).sum::<f64>();
    let (cost, all) = (sum(&|finding| finding.cost_share.unwrap_or(0.0)), sum(&share));
    let most = turns.iter().max_by(|a, b| share(a).total_cmp(&share(b))).cloned();
    found.extend(most.map(|mut most| {
        if let Evidence::Calls { share, .. } = &mut most.evidence {
            *share = all.min(1.0);
        }
        most.costing(cost)
    }));
}

fn of_purpose(
    spent: &mut Spent<'_, '_>,
    purpose: Purpose,
    share: f64,
    worst: Option<(u32, f64)>,
) -> Option<Finding> {
    let facts = spent.facts;
    // Where all are there as long, none is named.
    let worst = worst.filter(|&(_, most)| most >= MORE * share);
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
    let ranks = f64::from(facts.trace.run.ranks.max(1));
    let computed = facts.run.times.iter().map(|times| times.compute).sum::<f64>() / 1e9;
    let is_many = per_second >= MANY
        || facts.sharing.is_some() && units as f64 >= (MANY_BETWEEN * computed).max(FEWEST * ranks);
    let waits = at_site_ns.is_some_and(|at| is_long(at) || at[1] >= VERY_LONG_NS) && rate < MOVING;
    let late = spent.late(&parts);
    let receives = parts.iter().all(|part| traffic(part.function) == Some(Traffic::Recv));
    let kind = match purpose {
        Purpose::Files => Kind::Files,
        Purpose::Polls => Kind::Polling,
        Purpose::OneSided => Kind::OneSided,
        Purpose::Messages if waits && is_serial(facts, &spent.costs, computing, receives) => Kind::Pipeline,
        Purpose::Messages => match mean_bytes {
            Some(mean) if mean <= SMALL && is_many => Kind::SmallMessages,
            _ if waits => Kind::Waiting,
            _ => Kind::Transfer,
        },
        Purpose::Collectives if late.first().is_some_and(|rank| is_late_alone(facts, &parts, rank)) => {
            Kind::LateRank
        }
        Purpose::Collectives if waits => Kind::Waiting,
        Purpose::Collectives => Kind::Collectives,
    };
    let (kind, detail) = spent.examined(kind, purpose, number);
    let senders = match &detail {
        Some(Detail::Senders(found)) => Some(found.senders.clone()),
        _ => None,
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
        detail,
    };
    let mut finding = Finding::new(evidence, Basis::Totals, Next::Calls);
    let named = match kind {
        Kind::LateRank => late.first().map(|rank| RankSet::range(rank, rank)),
        Kind::Files => worst.map(|(rank, _)| RankSet::range(rank, rank)),
        Kind::Polling => few_poll(spent),
        _ => senders,
    };
    if let Some(ranks) = named {
        finding.hosts = facts.hosts(&ranks);
        finding.ranks = Some(ranks);
    }
    finding.place = spent.name(number);
    Some(finding)
}

/// True where `rank`, which waits least of all in calls at a place, comes late though it computes no more than others:
/// imbalance is a finding of its own.
fn is_late_alone(facts: &Facts<'_>, parts: &Parts<'_>, rank: u32) -> bool {
    let least = |part: &Known<'_>| part.spread?.least().first().map(|least| least.rank);
    if parts.iter().any(|part| least(part).is_some_and(|least| least != rank)) {
        return false;
    }
    let times = &facts.run.times;
    let mean = times.iter().map(|times| times.compute).sum::<f64>() / times.len().max(1) as f64;
    let own = times.iter().find(|times| times.rank == rank);
    facts.unranked().is_none() && own.is_some_and(|own| own.compute <= ALIKE * mean)
}

fn traffic(function: u16) -> Option<Traffic> {
    FUNCTIONS.get(usize::from(function)).map(|spec| spec.traffic)
}

fn is_send(function: u16) -> bool {
    let sends = [Traffic::Send, Traffic::SendInit, Traffic::Sendrecv, Traffic::SendrecvReplace];
    traffic(function).is_some_and(|traffic| sends.contains(&traffic))
}

/// True where balanced ranks compute one after another: about one at a time while the others wait for messages, or each
/// longer in receives than the one before it.
fn is_serial(facts: &Facts<'_>, costs: &Costs, computing: f64, receives: bool) -> bool {
    let balanced = facts.shares.and_then(|shares| shares.load_balance).is_some_and(|balance| balance >= 0.8);
    if !balanced || facts.unranked().is_some() {
        return false;
    }
    let ranks: Vec<(f64, f64)> =
        costs.ranks(Purpose::Messages).map(|(rank, ns)| (f64::from(rank), ns)).collect();
    let of = |purpose| costs.total(purpose);
    let most = Purpose::ALL.iter().all(|&other| of(other) <= of(Purpose::Messages));
    // Where ranks lose their processors, they may wait for these rather than for each other.
    let one_by_one = ALONE.contains(&computing)
        && most
        && (receives || !facts.is_disturbed())
        // Ranks that wait for their processors compute as few at a time, but not one after another.
        && overlap::overlap(facts.trace).is_none_or(|pairs| pairs <= APART);
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
