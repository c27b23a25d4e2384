//! Start-up, body and wind-down of a run, with their headlines.
//!
//! Their limits follow from the places that call MPI in each window ([`find`]). Times are those of these windows, by
//! the rules of the whole run.

mod activity;
mod find;
#[cfg(test)]
mod tests;
mod top;
mod walk;

use std::ops::Range;

use ampl_reader::directory;
use ampl_trace::Trace;
use serde::{Serialize, Serializer};

use crate::coverage::{Coverage, Extent};
use crate::efficiency::{
    Basis, Bounds, Imbalance, Lost, Row, RunTimes, Shares, SlowestHost, SlowestRank, parts,
};

pub use top::{TimeBasis, Top};

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    /// Before the repeated part.
    StartUp,
    /// From the first repetition to the last.
    Body,
    /// After it.
    WindDown,
}

/// A phase and its headlines.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// Name of the phase.
    pub phase: Name,
    /// Its windows: the first and the last.
    pub windows: [u64; 2],
    /// Time in these windows, of the rank that spent most in them, nanoseconds.
    pub ns: f64,
    /// `ns` over that of all phases.
    pub share: f64,
    /// Error of its ends, nanoseconds: the length of the windows there, and the body's usual time without calls.
    pub boundary_ns: f64,
    /// Ranks by whose calls it was found.
    pub found_by: u64,
    /// As of the run; none, as the next ones, where too little was measured.
    pub parallel: Option<f64>,
    /// As of the run.
    pub load_balance: Option<f64>,
    /// As of the run.
    pub communication: Option<f64>,
    /// Share of the ranks' time that is in MPI.
    pub mpi: Option<f64>,
    /// The rank with the most compute time.
    pub slowest: Option<SlowestRank>,
    /// The host with the most.
    pub slowest_host: Option<SlowestHost>,
    /// Time of an average rank that imbalance and MPI cost.
    pub lost: Option<Lost>,
    /// Imbalance of the ranks in it.
    pub imbalance: Option<Imbalance>,
    /// Data that the numbers rest on.
    pub basis: Basis,
    /// The share of the ranks' time in the phase that they rest on.
    #[serde(serialize_with = "share_of")]
    pub coverage: Coverage,
    /// Bounds of the numbers, where not all of it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bounds: Option<Bounds>,
    /// Calls by function, the most time first; empty where calls of some ranks are not known.
    pub top: Vec<Top>,
}

fn share_of<S: Serializer>(coverage: &Coverage, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(coverage.of_run())
}

/// Phases of `trace` in their order; empty where it has one phase, or they are not known.
pub fn of(trace: &Trace) -> Vec<Phase> {
    let Some(known) = directory::plan(&trace.run).and_then(|plan| activity::of(trace, &plan)) else {
        return Vec::new();
    };
    // A few ranks do not stand for the run.
    if !is_most(known.ranks, trace) {
        return Vec::new();
    }
    let windows = known.activity.lengths.len();
    let Some(found) = find::body(&known.activity) else { return Vec::new() };
    let body = found.windows;
    let named =
        [(Name::StartUp, 0..body.start), (Name::Body, body.clone()), (Name::WindDown, body.end..windows)];
    let named: Vec<(Name, Range<usize>)> = named.into_iter().filter(|(_, part)| !part.is_empty()).collect();
    let mut ranges: Vec<Range<u64>> =
        named.iter().map(|(_, part)| part.start as u64..part.end as u64).collect();
    // What ranks did behind their last window is of the last phase.
    if let Some(last) = ranges.last_mut() {
        last.end = u64::MAX;
    }
    let parts = parts(trace, &ranges);
    let longest = |times: &RunTimes| times.longest_ns;
    let all: f64 = parts.iter().map(|(times, _)| longest(times)).sum();
    if all <= 0.0 {
        return Vec::new();
    }
    let boundary_ns = boundary_ns(trace, &body, windows) + found.silence / known.ranks.max(1) as f64;
    named
        .into_iter()
        .zip(parts)
        .map(|((phase, part), (times, row))| {
            let mut found = Phase::of(phase, &part, &times, row);
            found.ns = longest(&times);
            found.share = found.ns / all;
            (found.boundary_ns, found.found_by) = (boundary_ns, known.ranks);
            let whole = times.extent() == Extent::Whole && times.over_threads <= 1.0;
            let mpi_ns = whole.then(|| times.times.iter().map(|times| times.mpi).sum());
            found.top = top::of(trace, &known, &part, mpi_ns, boundary_ns);
            found
        })
        .collect()
}

/// True where `ranks` are at least nine tenths of the ranks that were to be examined.
fn is_most(ranks: u64, trace: &Trace) -> bool {
    ranks as f64 >= 0.9 * activity::to_be_looked_at(trace) as f64
}

/// The mean length of a window on either side of the body's ends; the longest of them.
fn boundary_ns(trace: &Trace, body: &Range<usize>, windows: usize) -> f64 {
    let inner = [body.start, body.end];
    let at = inner.into_iter().filter(|&end| end > 0 && end < windows).flat_map(|end| [end - 1, end]);
    // A window that the program ends may be all of a phase, and then says nothing about the boundary.
    let inside = at.filter(|window| body.contains(window));
    let mean = |window: usize| {
        let of = |rank: &ampl_trace::RankTrace| {
            let of = rank.windows.get(window as u64)?;
            Some(of.end_ns.saturating_sub(of.start_ns).max(0) as f64)
        };
        let lengths: Vec<f64> = trace.ranks.iter().filter_map(of).collect();
        lengths.iter().sum::<f64>() / lengths.len().max(1) as f64
    };
    inside.map(mean).fold(0.0, f64::max)
}

impl Phase {
    fn of(phase: Name, part: &Range<usize>, times: &RunTimes, row: Row) -> Self {
        let known = Shares::of(&times.times).filter(|_| times.extent() != Extent::Little);
        Self {
            phase,
            windows: [part.start as u64, part.end as u64 - 1],
            ns: 0.0,
            share: 0.0,
            boundary_ns: 0.0,
            found_by: 0,
            parallel: row.parallel,
            load_balance: row.load_balance,
            communication: row.communication,
            mpi: known.map(|shares| shares.mpi),
            slowest: row.slowest,
            slowest_host: row.slowest_host,
            lost: row.lost,
            imbalance: row.imbalance,
            basis: row.basis,
            coverage: times.coverage,
            bounds: row.bounds,
            top: Vec::new(),
        }
    }
}
