//! Time between calls: measured where both are kept, modelled elsewhere.
//!
//! The census knows in sum how long a rank computes in windows that are not kept. That is divided among the calls
//! there in proportion to the mean measured time before calls of their site, over all ranks.

use std::collections::BTreeMap;

use ampl_core::mpi::{Class, Function};
use ampl_trace::Trace;
use ampl_trace::decode::Timed;
use rustc_hash::FxHashMap;

use crate::matching::{At, Source};
use crate::waits::places::Places;
use crate::window_times::Columns;

/// Facts from which time between calls is measured or modelled.
#[derive(Debug, Default)]
pub struct Compute {
    /// Start of kept windows by rank and number.
    starts: FxHashMap<(u32, u64), i64>,
    /// Mean time before calls by site, nanoseconds.
    means: FxHashMap<usize, f64>,
    /// The mean over all sites.
    mean: f64,
    /// Ratio of a rank's time in windows that are not kept to that of the means.
    scales: FxHashMap<u32, f64>,
    /// Time before each call of a rank no site of which has a mean: its time is divided evenly.
    even: FxHashMap<u32, f64>,
}

/// Position of a thread in its kept times.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    /// End of the call before, where it is kept.
    end_ns: Option<i64>,
}

impl Gaps {
    /// Compute time before a call, with that of a query of MPI itself.
    pub fn measured(&mut self, compute: &Compute, at: &At, timed: &Timed, function: Function) -> u64 {
        let duration = timed.duration_ns.unwrap_or(0);
        let begun = compute.starts.get(&(at.rank, timed.window)).copied();
        let from = self.end_ns.or(begun).unwrap_or(timed.start_ns);
        let gap = u64::try_from(timed.start_ns.saturating_sub(from)).unwrap_or(0);
        let local = function.spec().class == Class::Local;
        gap + if local { duration } else { 0 }
    }

    /// Goes behind the call.
    pub fn pass(&mut self, at: &At) {
        let end = |timed: Timed| timed.start_ns.saturating_add_unsigned(timed.duration_ns.unwrap_or(0));
        self.end_ns = at.timed.map(end);
    }
}

/// Sums of a site.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ns: u64,
    calls: u64,
}

impl Compute {
    /// Facts of a run whose calls are `sources`.
    pub fn of(trace: &Trace, sources: &[Source<'_>], places: &mut Places<'_>) -> Self {
        let mut compute = Self::default();
        for rank in &trace.ranks {
            for window in rank.windows.iter().filter(|window| window.kept) {
                compute.starts.insert((rank.process.rank, window.window), window.start_ns);
            }
        }
        let mut sums: FxHashMap<usize, Sum> = FxHashMap::default();
        let mut kept: BTreeMap<u32, u64> = BTreeMap::new();
        let mut untimed: FxHashMap<(u32, usize), u64> = FxHashMap::default();
        for source in sources {
            let rank = source.structure.rank;
            for index in 0..source.structure.threads.len() {
                let mut gaps = Gaps::default();
                for (at, function, count) in source.calls(index) {
                    let place = places.number(&at);
                    match at.timed {
                        Some(timed) => {
                            let ns = gaps.measured(&compute, &at, &timed, function);
                            let sum = sums.entry(place).or_default();
                            (sum.ns, sum.calls) = (sum.ns + ns, sum.calls + count);
                            if index == 0 {
                                *kept.entry(rank).or_default() += ns;
                            }
                        }
                        None if index == 0 => *untimed.entry((rank, place)).or_default() += count,
                        None => {}
                    }
                    gaps.pass(&at);
                }
            }
        }
        let all = sums
            .values()
            .fold(Sum::default(), |all, own| Sum { ns: all.ns + own.ns, calls: all.calls + own.calls });
        compute.mean = if all.calls == 0 { 1.0 } else { (all.ns as f64 / all.calls as f64).max(1.0) };
        compute.means =
            sums.iter().map(|(&place, own)| (place, own.ns as f64 / own.calls.max(1) as f64)).collect();
        let mut modelled: BTreeMap<u32, f64> = BTreeMap::new();
        for (&(rank, place), &calls) in &untimed {
            *modelled.entry(rank).or_default() += compute.before(place) * calls as f64;
        }
        let columns = Columns::of(trace);
        for rank in &trace.ranks {
            let (number, own) = (rank.process.rank, columns.of_rank(rank));
            let times: Vec<f64> = rank
                .windows
                .iter()
                .filter_map(|window| own.times(&window))
                .map(|times| times.compute)
                .collect();
            if times.is_empty() {
                continue;
            }
            let rest = (times.iter().sum::<f64>() - kept.get(&number).copied().unwrap_or(0) as f64).max(0.0);
            match modelled.get(&number).copied() {
                Some(modelled) if modelled > 0.0 => drop(compute.scales.insert(number, rest / modelled)),
                Some(_) => {
                    let own = untimed.iter().filter(|((rank, _), _)| *rank == number);
                    let calls: u64 = own.map(|(_, calls)| calls).sum();
                    compute.even.insert(number, rest / calls.max(1) as f64);
                }
                None => {}
            }
        }
        compute
    }

    fn before(&self, place: usize) -> f64 {
        self.means.get(&place).copied().unwrap_or(self.mean)
    }

    /// Modelled time before a call whose times are not kept, nanoseconds.
    pub fn modelled(&self, rank: u32, place: usize) -> u64 {
        if let Some(&even) = self.even.get(&rank) {
            return even as u64;
        }
        let scale = self.scales.get(&rank).copied().unwrap_or(if self.means.is_empty() { 0.0 } else { 1.0 });
        (self.before(place) * scale) as u64
    }
}
