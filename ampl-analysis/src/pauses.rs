//! Ranks that paused ampl by `MPI_Pcontrol(0)`, and for how long.
//!
//! The trace has no times of pauses. A window's length less its measured time is the time of its pauses.

use ampl_core::config::Quantity;
use ampl_core::mpi::Function;
use ampl_trace::model::WindowSummary;
use ampl_trace::record::{CALL_ERROR, CALL_NO_ARGS, GAP};
use ampl_trace::structure::Signature;
use ampl_trace::{RankTrace, Trace};
use serde::Serialize;

/// Share of a window's length up to which the two may differ without a pause: while a job runs its clock is less
/// exact than at its end.
const CLOCK: f64 = 1e-3;
/// The same in nanoseconds, for windows of next to no length: both ends are whole nanoseconds.
const ROUNDED: f64 = 10.0;

/// The pauses of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paused {
    /// The rank.
    pub rank: u32,
    /// Length of its pauses together, nanoseconds, in windows whose summary is stored; none without such a window.
    pub paused_ns: Option<u64>,
    /// `paused_ns` as a share of these windows' time.
    pub share: Option<f64>,
    /// Time of these windows, nanoseconds.
    #[serde(skip)]
    pub of_ns: f64,
}

/// The program's pauses in all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pauses {
    /// Number of ranks that had any.
    pub ranks: u64,
    /// Their share of the time of all ranks; none where that is not known of some.
    pub share: Option<f64>,
}

/// The pauses of all ranks together; `None` where there is none.
pub fn all(trace: &Trace) -> Option<Pauses> {
    let paused = of(trace);
    let known: Option<u64> = paused.iter().map(|paused| paused.paused_ns).sum();
    let time: f64 = trace.ranks.iter().map(|rank| rank.process.elapsed_ns as f64).sum();
    let share = known.filter(|_| time > 0.0).map(|paused| (paused as f64 / time).min(1.0));
    (!paused.is_empty()).then_some(Pauses { ranks: paused.len() as u64, share })
}

/// The ranks that had pauses, ascending.
pub fn of(trace: &Trace) -> Vec<Paused> {
    let Some(pcontrol) = Function::by_name("MPI_Pcontrol") else { return Vec::new() };
    let name = Quantity::Wall.name();
    let wall = trace.run.metrics.iter().position(|metric| metric.name == name && metric.event == "*");
    let calls_it = |rank: &&RankTrace| {
        rank.process.calls.iter().any(|&(function, calls)| function == pcontrol.0 && calls > 0)
    };
    trace.ranks.iter().filter(calls_it).filter_map(|rank| of_rank(trace, rank, wall, pcontrol)).collect()
}

fn of_rank(trace: &Trace, rank: &RankTrace, wall: Option<usize>, pcontrol: Function) -> Option<Paused> {
    let number = rank.process.rank;
    let begins = begins(trace, number, pcontrol);
    if begins == Some(false) {
        return None;
    }
    let (mut paused, mut of_ns) = (0.0, 0.0);
    for window in rank.windows.iter_known() {
        if let Some((length, measured)) = wall.and_then(|wall| lengths(&window, wall)) {
            of_ns += length;
            let missing = length - measured;
            paused += if missing > CLOCK * length + ROUNDED { missing } else { 0.0 };
        }
    }
    if paused > 0.0 {
        let share = Some(paused / of_ns);
        return Some(Paused { rank: number, paused_ns: Some(paused as u64), share, of_ns });
    }
    begins.map(|_| Paused { rank: number, paused_ns: None, share: None, of_ns: 0.0 })
}

/// Length of `window`, or of the windows that were closed with it, and its measured time; nanoseconds.
fn lengths(window: &WindowSummary, wall: usize) -> Option<(f64, f64)> {
    // A window that was all pause has no observation.
    let cell = window.cells.get(wall)?;
    let windows = window.repeat.max(1) as f64;
    Some((window.end_ns.saturating_sub(window.start_ns) as f64, windows * cell.sum))
}

/// True where a call of the rank begins a pause; `None` where no recorded one does and not all are recorded.
fn begins(trace: &Trace, rank: u32, pcontrol: Function) -> Option<bool> {
    let threads = trace.structure.signatures_of(rank)?;
    let all = || threads.iter().flatten();
    let is_whole = |signature: &&Signature| signature.flags & (CALL_ERROR | CALL_NO_ARGS) == 0;
    let own = || all().filter(|signature| signature.function == pcontrol.0);
    if own().filter(is_whole).any(|signature| signature.words.first() == Some(&0)) {
        return Some(true);
    }
    let counted = all().any(|signature| signature.function == GAP);
    (!counted && own().next().is_some() && own().all(|signature| is_whole(&signature))).then_some(false)
}
