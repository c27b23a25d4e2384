//! Quantities of one run that are compared with another's.

use std::collections::BTreeMap;

use ampl_core::config::Quantity as BuiltIn;
use ampl_core::mpi::{FUNCTION_COUNT, FUNCTIONS};
use ampl_core::units::{Rank, RankSet};
use ampl_reader::gaps::Recorded;
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;
use ampl_trace::record::GAP;

use super::facts::{Facts, facts};
use super::identity::Identity;
use super::quantity::{Key, RunQuantity, Scope};
use super::sequence::{depends_on_load, fingerprint};
use crate::calls::{NOWHERE, Places};
use crate::counted::is_only_counted;
use crate::coverage::Extent;
use crate::efficiency::{Shares, run_times};
use crate::messages::Messages;
use crate::pauses;
use crate::timesteps::timesteps;

/// Part of a run that is not compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LeftOut {
    /// Calls whose number depends on load.
    Polls(u64),
    /// Receives from any source, whose order may vary.
    Wildcards,
    /// Calls that were counted and not recorded: messages, steps and sequences are not known.
    NotRecorded(u64),
    /// Calls were counted by function only for a while: bytes and call sites are not known.
    OnlyCounted,
    /// Times of this share of the ranks' time only are known.
    Times(f64),
    /// Sequences that are too irregular to be compared, on so many ranks.
    Irregular(u64),
}

/// Times of a rank, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankTimes {
    /// The rank.
    pub rank: u32,
    /// Time in MPI.
    pub mpi: f64,
    /// Time outside of it.
    pub compute: f64,
}

/// Quantities of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Facts that must be equal.
    pub identity: Identity,
    /// Facts that may differ.
    pub facts: Facts,
    /// Exact quantities.
    pub counts: BTreeMap<Key, u64>,
    /// Times and what is computed from them.
    pub times: BTreeMap<Key, f64>,
    /// Fingerprints of the ranks' sequences, as far as they are known.
    pub sequences: BTreeMap<u32, u64>,
    /// Times by rank.
    pub ranks: Vec<RankTimes>,
    /// Groups of the job file, if there are several: name and ranks.
    pub groups: Vec<(String, String)>,
    /// Function around each call site; by function and place.
    pub sites: BTreeMap<Scope, Option<String>>,
    /// Parts that are not compared.
    pub left_out: Vec<LeftOut>,
}

impl Profile {
    /// The quantities of `trace`.
    pub fn of(trace: &Trace) -> Self {
        let mut groups: Vec<(String, String)> = Vec::new();
        if trace.run.groups.len() > 1 {
            let named = trace.run.groups.iter().map(|group| (group.name.clone(), group.members.clone()));
            groups.extend(named);
        }
        let mut profile =
            Self { identity: Identity::of(trace), facts: facts(trace), groups, ..Self::default() };
        profile.count_functions(trace);
        profile.count_sites(trace);
        profile.count_messages(trace);
        profile.time(trace);
        profile
    }

    /// Mean times of the ranks of `set`, nanoseconds: in MPI and outside; `None` where it has no rank here.
    pub fn times_of(&self, set: &RankSet) -> Option<(f64, f64)> {
        let own: Vec<&RankTimes> = self.ranks.iter().filter(|rank| set.contains(Rank(rank.rank))).collect();
        let mean =
            |of: fn(&RankTimes) -> f64| own.iter().map(|&rank| of(rank)).sum::<f64>() / own.len() as f64;
        (!own.is_empty()).then(|| (mean(|rank| rank.mpi), mean(|rank| rank.compute)))
    }

    fn add(&mut self, scope: Scope, what: RunQuantity, number: u64) {
        let sum = self.counts.entry(Key { scope, what }).or_default();
        *sum = sum.saturating_add(number);
    }

    /// Calls by function: these are exact in any state of a run.
    fn count_functions(&mut self, trace: &Trace) {
        let (mut polls, mut all) = (0u64, 0u64);
        for (function, calls) in trace.function_calls() {
            if depends_on_load(function) {
                polls = polls.saturating_add(calls);
            } else if let Some(spec) = FUNCTIONS.get(usize::from(function)).filter(|_| calls > 0) {
                all = all.saturating_add(calls);
                self.add(Scope::Function(spec.name.to_owned()), RunQuantity::Calls, calls);
            }
        }
        self.add(Scope::Run, RunQuantity::Calls, all);
        if polls > 0 {
            self.left_out.push(LeftOut::Polls(polls));
        }
    }

    /// Calls, bytes and times by call site, and bytes by function.
    fn count_sites(&mut self, trace: &Trace) {
        if is_only_counted(trace) || !pauses::of(trace).is_empty() {
            self.left_out.push(LeftOut::OnlyCounted);
            return;
        }
        let ranks = trace.ranks.len().max(1) as f64;
        let mut places = Places::default();
        let parts = places.parts(trace);
        for (number, parts) in &parts {
            let Some(number) = *number else { continue };
            let place = &places.places[number];
            let Some(spec) = FUNCTIONS.get(usize::from(place.function)) else { continue };
            let sum = |of: fn(&ampl_trace::totals::Total) -> u64| {
                parts.iter().fold(0u64, |sum, part| sum.saturating_add(of(part.total)))
            };
            let (calls, ns) = (sum(|total| total.calls), sum(|total| total.time_ns));
            let (sent, received) = (sum(|total| total.sent), sum(|total| total.received));
            let known = place.addresses != [NOWHERE];
            let inner = place.addresses.first().copied().unwrap_or(NOWHERE);
            let frames: Vec<(&str, u64)> =
                std::iter::once(inner).chain(place.callers.iter().copied()).collect();
            let symbols = &mut places.symbols;
            let names: Vec<String> =
                frames.iter().map(|&(module, offset)| symbols.name(module, offset)).collect();
            let site = Scope::Site { function: spec.name.to_owned(), place: names.join(" < ") };
            if known {
                let around = symbols.function(inner.0, inner.1).map(|function| function.name);
                self.sites.insert(site.clone(), around);
            }
            let counted = !depends_on_load(place.function);
            let function = Scope::Function(spec.name.to_owned());
            let scopes = [Some(Scope::Run), Some(function), known.then_some(site)];
            for scope in scopes.into_iter().flatten() {
                if counted && matches!(scope, Scope::Site { .. }) {
                    self.add(scope.clone(), RunQuantity::Calls, calls);
                }
                if counted && (sent > 0 || scope == Scope::Run) {
                    self.add(scope.clone(), RunQuantity::BytesSent, sent);
                }
                if counted && (received > 0 || scope == Scope::Run) {
                    self.add(scope.clone(), RunQuantity::BytesReceived, received);
                }
                if ns > 0 && scope != Scope::Run {
                    let key = Key { scope, what: RunQuantity::MpiTime };
                    *self.times.entry(key).or_default() += ns as f64 / ranks;
                }
            }
        }
    }

    /// Messages, communicators, steps and sequences, where every call is recorded.
    fn count_messages(&mut self, trace: &Trace) {
        let recorded = Recorded::of(trace, None);
        let missing: u64 = recorded.gaps.iter().map(|gap| gap.calls).sum();
        let absent = u64::from(trace.run.ranks).saturating_sub(trace.structure.ranks().count() as u64);
        if missing > 0 || absent > 0 {
            self.left_out.push(LeftOut::NotRecorded(missing));
            return;
        }
        let comms = Communicators::of(trace);
        let messages = Messages::of(&trace.structure, &comms, trace.run.ranks);
        if messages.is_complete() {
            let total = messages.total();
            self.add(Scope::Run, RunQuantity::Messages, total.messages);
            if messages.unsized_messages == 0 {
                self.add(Scope::Run, RunQuantity::MessageBytes, total.bytes);
            }
            self.add(Scope::Run, RunQuantity::Partners, messages.matrix().len() as u64);
        }
        if comms.is_complete() {
            self.add(Scope::Run, RunQuantity::Communicators, comms.iter().count() as u64);
        }
        let mut symbols = Symbols::default();
        let found = timesteps(&trace.structure, &mut |module, offset| {
            let function = symbols.function(module, offset)?;
            offset.checked_sub(function.offset?)
        });
        if let Ok(of_loop) = found.outcome {
            self.add(Scope::Run, RunQuantity::Steps, of_loop.steps);
        }
        let (mut irregular, mut wildcards) = (0, false);
        for selected in trace.structure.select(|function| function != GAP) {
            let Some(rank) = selected.structure() else { continue };
            match fingerprint(&rank) {
                Some(print) => drop(self.sequences.insert(rank.rank, print)),
                None => irregular += 1,
            }
            wildcards |= has_wildcards(&rank);
        }
        if irregular > 0 {
            self.left_out.push(LeftOut::Irregular(irregular));
        }
        if wildcards {
            self.left_out.push(LeftOut::Wildcards);
        }
    }

    /// Times of the run, of its ranks and of configured metrics.
    fn time(&mut self, trace: &Trace) {
        let mut put = |scope: Scope, what: RunQuantity, value: f64| {
            if value.is_finite() {
                self.times.insert(Key { scope, what }, value);
            }
        };
        let elapsed = trace.elapsed_ns();
        if elapsed > 0 {
            put(Scope::Run, RunQuantity::Elapsed, elapsed as f64);
        }
        let run = run_times(trace);
        if run.run_ns <= 0.0 || run.times.is_empty() {
            return;
        }
        if run.extent() != Extent::Whole {
            self.left_out.push(LeftOut::Times(run.coverage.share));
        }
        if run.extent() == Extent::Little {
            self.times.retain(|key, _| key.what == RunQuantity::Elapsed);
            return;
        }
        let mut put = |scope: Scope, what: RunQuantity, value: f64| {
            if value.is_finite() {
                self.times.insert(Key { scope, what }, value);
            }
        };
        let mean = |of: fn(&crate::window_times::Times) -> f64| {
            let weights: f64 = run.times.iter().map(|times| times.weight).sum();
            run.times.iter().map(|times| times.weight * of(times)).sum::<f64>() / weights
        };
        put(Scope::Run, RunQuantity::MpiTime, mean(|times| times.mpi));
        put(Scope::Run, RunQuantity::ComputeTime, mean(|times| times.compute));
        if let Some(shares) = Shares::of(&run.times) {
            put(Scope::Run, RunQuantity::Parallel, shares.parallel);
            put(Scope::Run, RunQuantity::Communication, shares.communication);
            shares
                .load_balance
                .into_iter()
                .for_each(|value| put(Scope::Run, RunQuantity::LoadBalance, value));
        }
        let times = run.times.iter();
        self.ranks = times
            .map(|times| RankTimes { rank: times.rank, mpi: times.mpi, compute: times.compute })
            .collect();
        self.metrics(trace);
    }

    /// Configured metrics beyond the run's own times, mean over ranks.
    fn metrics(&mut self, trace: &Trace) {
        let ranks = trace.ranks.len().max(1) as f64;
        for (at, metric) in trace.run.metrics.iter().enumerate() {
            let what = RunQuantity::by_name(&metric.name);
            let is_own = BuiltIn::ALL.iter().any(|built_in| built_in.name() == metric.name);
            let scope = match metric.event.as_str() {
                "*" if is_own || !matches!(what, RunQuantity::Metric(_)) => continue,
                "*" => Scope::Run,
                event if event.starts_with("MPI_") => match event.split_once('@') {
                    Some((function, place)) => Scope::Site { function: function.into(), place: place.into() },
                    None => Scope::Function(event.to_owned()),
                },
                event => Scope::Region(event.to_owned()),
            };
            if what.kind() == super::quantity::Kind::Structure {
                continue;
            }
            let windows = trace.ranks.iter().flat_map(|rank| &rank.windows);
            let cells = windows.filter_map(|window| window.cells.get(at));
            let (n, sum) = cells.fold((0.0, 0.0), |(n, sum), cell| (n + cell.n, sum + cell.sum));
            if n > 0.0 && sum.is_finite() {
                self.times.entry(Key { scope, what }).or_insert(sum / ranks);
            }
        }
    }
}

/// True where a call of `rank` receives from any source.
fn has_wildcards(rank: &ampl_trace::structure::RankStructure) -> bool {
    use ampl_core::mpi::Function;
    use ampl_core::mpi::traffic::Ends;
    use ampl_core::value::ANY_SOURCE;
    rank.threads.iter().flat_map(|thread| &thread.signatures).any(|signature| {
        if usize::from(signature.function) >= FUNCTION_COUNT || !crate::calls::is_whole(signature) {
            return false;
        }
        let Some(ends) = Ends::of(Function(signature.function).spec()) else { return false };
        crate::calls::Arguments::of(signature)
            .is_some_and(|call| i64::from(ends.named(&call.words).source) == ANY_SOURCE)
    })
}
