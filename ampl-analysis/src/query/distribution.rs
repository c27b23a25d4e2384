//! Calls, time and bytes of each rank.

use ampl_core::mpi::FUNCTION_COUNT;
use ampl_reader::selection::Selection;
use ampl_reader::{Rank, Run};
use ampl_trace::record::GAP;
use serde::Serialize;

use super::part::{Extent, Facts, RankPart, absent, has_untimed, read_sums};
use super::stored::Stored;
use super::summary::Basis;
use crate::window_times::{Columns, Observed, RankColumns};

/// A rank. What is not known is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The rank.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Number of calls.
    pub calls: Option<u64>,
    /// Bytes that they sent, or received where they sent none.
    pub bytes: Option<u64>,
    /// Time of the part, nanoseconds.
    pub wall_ns: Option<f64>,
    /// Time in MPI; the mean over the threads that are in MPI.
    pub mpi_ns: Option<f64>,
    /// Time outside MPI and ampl.
    pub compute_ns: Option<f64>,
    /// Data that the times rest on.
    pub basis: Option<Basis>,
}

/// The rows of a part, by rank.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// The rows.
    pub rows: Vec<Row>,
    /// Extent to which the part is known.
    pub extent: Extent,
}

/// Calls, time and bytes of each rank of the part of `run` that `selection` asks for; `rank_done` is called behind each.
pub fn distribution(run: &Run, selection: &Selection, mut rank_done: impl FnMut()) -> Distribution {
    let facts = Facts::of(run);
    let columns = Columns::of_metrics(&run.info().metrics);
    let cuts = selection.cuts_time();
    let mut rows = Vec::new();
    let mut extent = Extent { missing_ranks: absent(run, selection), ..Extent::default() };
    for number in run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)) {
        let Some(stored) = Stored::for_sums(run, number, selection, facts) else { continue };
        let rank = &stored.rank;
        let mut inside = vec![0.0; rank.trace.windows.entries().len()];
        let mut timed_calls = vec![0u64; inside.len()];
        let part = read_sums(&stored, selection, facts, false, |call| {
            let signature = rank.structure.threads[call.thread].signatures.get(call.terminal as usize);
            let is_call = signature.is_some_and(|own| usize::from(own.function) < FUNCTION_COUNT);
            if let Some(window) = call.window.filter(|_| is_call) {
                inside[window] += call.inside_ns as f64;
                timed_calls[window] = timed_calls[window].saturating_add(call.calls);
            }
        });
        extent.add(&stored, &part, cuts);
        let told = part.untold == 0;
        let (mut calls, moved) = totals(&stored, &part, run.info().ranks);
        if !cuts {
            calls = rank.trace.process.calls.iter().map(|&(_, calls)| calls).sum();
        }
        let untimed = has_untimed(rank, facts, &part.windows, &timed_calls);
        let inside = (!untimed).then_some(&inside[..]);
        let times = times(rank, &part, selection, columns.of_rank(&rank.trace), inside);
        rows.push(Row {
            rank: number,
            host: rank.trace.process.host.clone(),
            calls: told.then_some(calls),
            bytes: moved.filter(|_| told),
            wall_ns: times.map(|times| times.wall),
            mpi_ns: times.map(|times| times.mpi),
            compute_ns: times.map(|times| times.compute),
            basis: times.map(|times| times.basis),
        });
        rank_done();
    }
    Distribution { rows, extent }
}

/// Calls of a part, and their bytes where these are known.
fn totals(stored: &Stored<'_>, part: &RankPart, ranks: u32) -> (u64, Option<u64>) {
    let moved = stored.bytes(ranks);
    let signatures = stored.rank.structure.threads.iter().flat_map(|thread| &thread.signatures);
    let each = part.counts.iter().flatten().zip(moved.iter().flatten()).zip(signatures);
    let (mut calls, mut sum) = (0u64, Some(0u64));
    for ((&count, &bytes), signature) in each.filter(|((count, _), _)| **count > 0) {
        // Edges of regions are in the sequence, too.
        if usize::from(signature.function) >= FUNCTION_COUNT && signature.function != GAP {
            continue;
        }
        calls = calls.saturating_add(count);
        let bytes = bytes.filter(|_| signature.function != GAP);
        sum = sum.and_then(|sum| Some(sum.saturating_add(bytes?.saturating_mul(count))));
    }
    // Of classes none is an edge of a region, and a gap has no times.
    for summed in &part.summed {
        calls = calls.saturating_add(summed.calls);
        sum = sum.zip(summed.bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
    }
    (calls, sum)
}

#[derive(Clone, Copy)]
struct Times {
    wall: f64,
    mpi: f64,
    compute: f64,
    basis: Basis,
}

/// Times of a part: sums of its windows, and of windows that are cut the calls in it, where they are stored. `None` where
/// a window has neither.
fn times(
    rank: &Rank<'_>,
    part: &RankPart,
    selection: &Selection,
    columns: RankColumns,
    inside: Option<&[f64]>,
) -> Option<Times> {
    if part.windows.is_empty() {
        return None;
    }
    let mut sum = Times { wall: 0.0, mpi: 0.0, compute: 0.0, basis: Basis::Census };
    let windows = rank.trace.windows.entries();
    for &(index, timed) in &part.windows {
        let window = &windows[index];
        let (wall, mpi, compute) = match columns.observed(window) {
            Observed::Measured(times, _) if selection.holds_window(window) => {
                let times = times.settled();
                (times.wall, times.mpi, times.compute)
            }
            Observed::Paused if selection.holds_window(window) => continue,
            _ if timed => {
                let inside = inside?;
                let wall = selection.overlap_ns(window.start_ns, window.end_ns) as f64;
                let mpi = (inside[index] / columns.threads).min(wall);
                sum.basis = Basis::Trace;
                (wall, mpi, wall - mpi)
            }
            _ => return None,
        };
        (sum.wall, sum.mpi, sum.compute) = (sum.wall + wall, sum.mpi + mpi, sum.compute + compute);
    }
    Some(sum)
}
