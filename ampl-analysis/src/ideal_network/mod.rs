//! A run on a network that costs nothing: every message arrives when it is sent, every collective ends when the ranks
//! that it needs have begun it. What is left is computing, and waiting for others' computing.
//!
//! The length of such a run splits the communication efficiency into serialisation (dependences) and transfer (Rosas,
//! Giménez, Labarta: *Scalability prediction for fundamental performance factors*, 2014). Standard sends never wait for
//! their receives.

pub(crate) mod compute;
mod path;

use std::collections::BTreeMap;

use ampl_core::mpi::Class;
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;
use serde::Serialize;

use self::compute::Compute;
use self::path::{Path, Profile};
use crate::matching::{At, Instance, Job, Joined, Needs, Source, Terminal, Visitor, play};
use crate::matching::{Collective, Lost};
use crate::waits::causes::elapsed;
use crate::waits::places::{Places, name};

/// Time on the critical path before calls of one site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfSite {
    /// Site of the call that ends the computing.
    pub site: Option<String>,
    /// Its function.
    pub function: &'static str,
    /// Time, nanoseconds.
    pub ns: u64,
    /// Share of the path, in [0, 1].
    pub share: f64,
}

/// Time on the critical path of one rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OfRank {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Time, nanoseconds.
    pub ns: u64,
    /// Share of the path, in [0, 1].
    pub share: f64,
}

/// The longest chain of computing that depends on computing before it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CriticalPath {
    /// Length, nanoseconds.
    pub ns: u64,
    /// Parts by site, longest first.
    pub sites: Vec<OfSite>,
    /// Parts by rank, longest first.
    pub ranks: Vec<OfRank>,
}

/// The run on a network of zero cost; the order of fields is part of the format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ideal {
    /// Length of the recorded run, nanoseconds.
    pub recorded_ns: u64,
    /// Length on the ideal network.
    pub ideal_ns: u64,
    /// Greatest compute time of a rank.
    pub most_compute_ns: u64,
    /// Mean compute time.
    pub mean_compute_ns: u64,
    /// Mean over greatest compute time.
    pub load_balance: f64,
    /// Greatest compute time over the ideal length.
    pub serialisation: f64,
    /// Ideal over recorded length.
    pub transfer: f64,
    /// Product of the last two.
    pub communication: f64,
    /// Product of all three.
    pub parallel: f64,
    /// Share of the compute time that is not measured between kept calls, but modelled from the ranks' totals.
    pub modelled: f64,
    /// Critical path.
    pub critical_path: CriticalPath,
    /// Calls whose dependences are not followed, by function.
    pub not_followed: BTreeMap<&'static str, u64>,
    /// Messages and collectives that were followed.
    pub followed: [u64; 2],
}

/// Reason for which a run cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Calls of these ranks are not all recorded: rank, number of the call, reason.
    NotWhole(Vec<(u32, u64, Lost)>),
    /// The time between calls is not known.
    NoTimes,
}

/// The run `trace` on an ideal network; call sites are named by `symbols`.
///
/// # Errors
/// [`Unknown`].
pub fn ideal(trace: &Trace, symbols: &mut Symbols) -> Result<Ideal, Unknown> {
    let comms = Communicators::of(trace);
    let job = Job::of(trace);
    evaluate(trace, job.ranks, &job.sources(), &comms, symbols)
}

fn evaluate(
    trace: &Trace,
    ranks: u32,
    sources: &[Source<'_>],
    comms: &Communicators,
    symbols: &mut Symbols,
) -> Result<Ideal, Unknown> {
    let mut places = Places::new(sources);
    let compute = Compute::of(trace, sources, &mut places);
    let mut evaluator = Evaluator { places, compute, threads: Vec::new(), not_followed: BTreeMap::new() };
    let outcome = play(ranks, sources, comms, &mut evaluator);
    if !outcome.lost.is_empty() {
        return Err(Unknown::NotWhole(outcome.lost));
    }
    let Evaluator { places, threads, not_followed, .. } = evaluator;
    let threads: Vec<Thread> = threads.into_iter().flatten().collect();
    let mut by_rank: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.number == 0) {
        by_rank.insert(thread.rank, (thread.computed, thread.modelled));
    }
    let most = by_rank.values().map(|(computed, _)| *computed).max().unwrap_or(0);
    let all: u64 = by_rank.values().map(|(computed, _)| computed).sum();
    let modelled: u64 = by_rank.values().map(|(_, modelled)| modelled).sum();
    let last = threads.iter().max_by_key(|thread| thread.path.time());
    let ideal_ns = last.map_or(0, |thread| thread.path.time());
    if ideal_ns == 0 || most == 0 {
        return Err(Unknown::NoTimes);
    }
    let mean = all as f64 / by_rank.len().max(1) as f64;
    let recorded = recorded_ns(trace);
    let list = places.finish();
    let critical_path =
        critical(trace, last.map(|thread| thread.path.profile()).unwrap_or_default(), ideal_ns, |place| {
            let of = &list[place];
            (name(of, symbols), of.0.name())
        });
    let load_balance = mean / most as f64;
    let serialisation = most as f64 / ideal_ns as f64;
    let transfer = ideal_ns as f64 / recorded;
    Ok(Ideal {
        recorded_ns: recorded as u64,
        ideal_ns,
        most_compute_ns: most,
        mean_compute_ns: mean as u64,
        load_balance,
        serialisation,
        transfer,
        communication: serialisation * transfer,
        parallel: load_balance * serialisation * transfer,
        modelled: modelled as f64 / all.max(1) as f64,
        critical_path,
        not_followed,
        followed: [outcome.messages, outcome.collectives],
    })
}

/// Length from the first rank's start to the last one's end, nanoseconds: ranks may leave `MPI_Init` one after another, and
/// wait for what began before themselves.
fn recorded_ns(trace: &Trace) -> f64 {
    let windows = || trace.ranks.iter().map(|rank| rank.windows.entries());
    let start = windows().filter_map(|own| own.first()).map(|window| window.start_ns).min();
    let end = windows().filter_map(|own| own.last()).map(|window| window.end_ns).max();
    let span = end.unwrap_or(0).saturating_sub(start.unwrap_or(0));
    elapsed(trace).max(span as f64)
}

fn critical(
    trace: &Trace,
    profile: Profile,
    length: u64,
    mut site: impl FnMut(usize) -> (Option<String>, &'static str),
) -> CriticalPath {
    let share = |ns: u64| ns as f64 / length.max(1) as f64;
    let (mut sites, mut ranks): (BTreeMap<_, u64>, BTreeMap<u32, u64>) = Default::default();
    for ((rank, place), ns) in profile {
        *sites.entry(site(place as usize)).or_default() += ns;
        *ranks.entry(rank).or_default() += ns;
    }
    let of_site = |((site, function), ns)| OfSite { site, function, ns, share: share(ns) };
    let host = |rank: u32| trace.rank(rank).map(|own| own.process.host.clone()).unwrap_or_default();
    let of_rank = |(rank, ns)| OfRank { rank, host: host(rank), ns, share: share(ns) };
    let mut sites: Vec<OfSite> = sites.into_iter().map(of_site).collect();
    let mut ranks: Vec<OfRank> = ranks.into_iter().map(of_rank).collect();
    sites.sort_by_key(|one| std::cmp::Reverse(one.ns));
    ranks.sort_by_key(|one| (std::cmp::Reverse(one.ns), one.rank));
    CriticalPath { ns: length, sites, ranks }
}

/// State of a thread.
#[derive(Debug)]
struct Thread {
    rank: u32,
    number: u32,
    path: Path,
    computed: u64,
    modelled: u64,
    gaps: compute::Gaps,
}

/// Carries the time on which each thread's next call depends.
struct Evaluator<'a> {
    places: Places<'a>,
    compute: Compute,
    threads: Vec<Option<Thread>>,
    not_followed: BTreeMap<&'static str, u64>,
}

/// True where calls of a function wait for other ranks in ways that are not followed.
fn is_beyond(terminal: &Terminal) -> bool {
    let spec = terminal.function.spec();
    let name = spec.name;
    let of_window = name.starts_with("MPI_Win_") && spec.class != Class::Local;
    let of_file = name.starts_with("MPI_File_") && (name.contains("_all") || name.contains("_ordered"));
    let waits = ["fence", "wait", "start", "complete", "lock", "flush", "unlock", "free"];
    (of_window && waits.iter().any(|word| name.contains(word))) || of_file
}

impl Evaluator<'_> {
    fn meet(&mut self, actor: u32, at: &At) {
        let index = actor as usize;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, || None);
        }
        self.threads[index].get_or_insert_with(|| Thread {
            rank: at.rank,
            number: at.thread,
            path: Path::default(),
            computed: 0,
            modelled: 0,
            gaps: compute::Gaps::default(),
        });
    }
}

impl Visitor for Evaluator<'_> {
    type Stamp = Path;

    fn wants_times(&self) -> bool {
        true
    }

    fn enter(&mut self, actor: u32, at: &At, count: u64, terminal: &Terminal) -> Path {
        let place = self.places.number(at);
        self.meet(actor, at);
        if is_beyond(terminal) {
            *self.not_followed.entry(terminal.function.name()).or_default() += count;
        }
        let Self { compute, threads, .. } = self;
        let Some(thread) = &mut threads[actor as usize] else { return Path::default() };
        let (ns, modelled) = match at.timed {
            Some(timed) => (thread.gaps.measured(compute, at, &timed, terminal.function), false),
            None => (compute.modelled(at.rank, place).saturating_mul(count), true),
        };
        thread.gaps.pass(at);
        thread.computed += ns;
        thread.modelled += if modelled { ns } else { 0 };
        thread.path.compute((at.rank, place as u32), ns);
        thread.path.stamp()
    }

    fn join(&mut self, actor: u32, stamp: &Path) {
        if let Some(Some(thread)) = self.threads.get_mut(actor as usize) {
            thread.path.join(stamp);
        }
    }

    fn latest(latest: &mut Path, other: &Path) {
        if other.time() > latest.time() {
            *latest = other.clone();
        }
    }

    fn collective(&mut self, instance: &Instance<Path>, calls: &[&Collective], _: &Joined<'_>) -> bool {
        if calls.first().is_some_and(|call| call.needs == Needs::Others) {
            *self.not_followed.entry(calls[0].function.name()).or_default() += instance.arrivals.len() as u64;
        }
        true
    }
}

#[cfg(test)]
mod tests;
