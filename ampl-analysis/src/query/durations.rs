//! Durations of calls of one function at one call site with one size of message: 8 B and 1 MB apart.

use std::collections::BTreeMap;

use ampl_core::mpi::FUNCTIONS;
use ampl_reader::Run;
use ampl_reader::selection::Selection;
use serde::Serialize;

use super::keys::Keys;
use super::part::{Extent, Facts, absent, read_calls};
use super::stored::Stored;

/// Bins of durations in a factor of two.
const BINS: f64 = 16.0;

/// Calls of a function at a call site that move as many bytes each.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The function.
    pub function: &'static str,
    /// Call site; none where sites were not told apart.
    pub site: Option<String>,
    /// Bytes that a call sends, or receives where it sends none; none where that is not known.
    pub bytes: Option<u64>,
    /// Number of calls; none where it is not known which belong to the part.
    pub calls: Option<u64>,
    /// Calls among them whose times are stored: the durations are theirs.
    pub timed: u64,
    /// Mean duration, nanoseconds; calls of sampled windows count by the inverse of their keep probability.
    pub mean_ns: f64,
    /// The shortest.
    pub min_ns: u64,
    /// Duration that half of the calls do not exceed, to 5 %; weighted likewise.
    pub median_ns: f64,
    /// Duration that 90 % of the calls do not exceed, to 5 %.
    pub p90_ns: f64,
    /// The longest.
    pub max_ns: u64,
    /// Rank of the longest.
    pub max_rank: u32,
}

/// The rows of a part, most time first.
#[derive(Clone, Debug)]
pub struct Durations {
    /// The rows.
    pub rows: Vec<Row>,
    /// Extent to which the part is known.
    pub extent: Extent,
}

/// Sums of a class.
#[derive(Clone, Debug, Default)]
struct Sums {
    calls: u64,
    timed: u64,
    weight: f64,
    ns: f64,
    min_ns: u64,
    max_ns: u64,
    max_rank: u32,
    bins: BTreeMap<u32, f64>,
}

impl Sums {
    fn add(&mut self, nanos: u64, calls: u64, weight: f64, rank: u32) {
        if self.timed == 0 || nanos < self.min_ns {
            self.min_ns = nanos;
        }
        if self.timed == 0 || nanos > self.max_ns {
            (self.max_ns, self.max_rank) = (nanos, rank);
        }
        self.timed += calls;
        self.weight += weight;
        self.ns += weight * nanos as f64;
        *self.bins.entry(((nanos.max(1) as f64).log2() * BINS) as u32).or_default() += weight;
    }

    /// Duration that a share of the calls do not exceed: the middle of its bin.
    fn quantile(&self, share: f64) -> f64 {
        let mut left = share * self.weight;
        for (&bin, &weight) in &self.bins {
            left -= weight;
            if left <= 0.0 {
                let middle = ((f64::from(bin) + 0.5) / BINS).exp2();
                return middle.clamp(self.min_ns as f64, self.max_ns as f64);
            }
        }
        self.max_ns as f64
    }
}

/// Durations by class of the calls in the part of `run` that `selection` asks for; `rank_done` is called behind each rank.
pub fn durations(run: &Run, selection: &Selection, mut rank_done: impl FnMut()) -> Durations {
    let facts = Facts::of(run);
    let all = run.plan().is_some_and(|plan| plan.config.stores_everything());
    let cuts = selection.cuts_time();
    let mut keys = Keys::default();
    let mut sums: BTreeMap<(u32, Option<u64>), Sums> = BTreeMap::new();
    let mut extent = Extent { missing_ranks: absent(run, selection), ..Extent::default() };
    for number in run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)) {
        let Some(stored) = Stored::for_sums(run, number, selection, facts) else { continue };
        let rank = &stored.rank;
        let names = keys.of_rank(rank);
        let moved = stored.bytes(run.info().ranks);
        let class = |thread: usize, terminal: u32| {
            let key = names[thread].get(terminal as usize).copied().flatten()?;
            Some((key, moved[thread].get(terminal as usize).copied().flatten()))
        };
        let windows = rank.trace.windows.entries();
        let part = read_calls(&stored, selection, facts, |call| {
            let Some(class) = class(call.thread, call.terminal).filter(|_| call.belongs && !call.unfinished)
            else {
                return;
            };
            let window = call.window.map(|window| &windows[window]);
            let weight = match window.map(|window| window.inclusion()) {
                Some(probability) if !all && probability > 0.0 => 1.0 / probability,
                _ => 1.0,
            };
            // Failed polls in a row share their time.
            let (nanos, calls) = (call.duration_ns / call.count, call.count.saturating_mul(call.times));
            sums.entry(class).or_default().add(nanos, calls, weight * calls as f64, number);
        });
        for (thread, counts) in part.counts.iter().enumerate() {
            for (terminal, &count) in (0..).zip(counts).filter(|(_, count)| **count > 0) {
                if let Some(class) = class(thread, terminal) {
                    let sum = sums.entry(class).or_default();
                    sum.calls = sum.calls.saturating_add(count);
                }
            }
        }
        extent.add(&stored, &part, cuts);
        rank_done();
    }
    let mut rows: Vec<(f64, Row)> = Vec::new();
    for ((key, bytes), sum) in sums.into_iter().filter(|(_, sum)| sum.timed > 0) {
        let key = &keys.all()[key as usize];
        let Some(spec) = FUNCTIONS.get(usize::from(key.function)) else { continue };
        let row = Row {
            function: spec.name,
            site: key.site.clone(),
            bytes,
            calls: (extent.untold == 0).then_some(sum.calls),
            timed: sum.timed,
            mean_ns: sum.ns / sum.weight,
            min_ns: sum.min_ns,
            median_ns: sum.quantile(0.5),
            p90_ns: sum.quantile(0.9),
            max_ns: sum.max_ns,
            max_rank: sum.max_rank,
        };
        rows.push((sum.ns, row));
    }
    rows.sort_by(|a, b| {
        let name = |row: &Row| (row.function, row.site.clone(), row.bytes);
        b.0.total_cmp(&a.0).then_with(|| name(&a.1).cmp(&name(&b.1)))
    });
    Durations { rows: rows.into_iter().map(|(_, row)| row).collect(), extent }
}
