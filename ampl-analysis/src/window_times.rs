//! Times of ranks in their windows.
//!
//! Several threads of a rank may be in MPI at once. Then time in MPI is that of the thread that called `MPI_Init`: it may
//! compute while a helper waits for messages. Where that one leaves MPI to others, it is the mean over the threads
//! that are in MPI. So no share exceeds one.

use std::collections::BTreeSet;

use ampl_core::config::Quantity;
use ampl_trace::cells::Cells;
use ampl_trace::model::{MetricInfo, WindowSummary};
use ampl_trace::{RankTrace, Trace};

/// Difference between a window's length and its measured time that is no pause yet, as a share of the length: while a
/// job runs its clock is less exact than at its end.
const CLOCK: f64 = 1e-3;
/// The same in nanoseconds: both ends are whole.
const ROUNDED: f64 = 10.0;

/// Times of one rank in a window, or in the whole run; nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The rank.
    pub rank: u32,
    /// Wall-clock time.
    pub wall: f64,
    /// Time in MPI.
    pub mpi: f64,
    /// Time neither in MPI nor in ampl.
    pub compute: f64,
    /// Ranks that it stands for: 1 unless only a sample reported.
    pub weight: f64,
}

impl Times {
    /// The times limited to possible values. With several threads in MPI, calls that ended in a window may have begun
    /// before it, and time in MPI may exceed the window's length.
    pub fn settled(self) -> Self {
        Self { mpi: self.mpi.min(self.wall), compute: self.compute.max(0.0), ..self }
    }

    /// Wall-clock time without ampl's: in MPI or computing. Several threads may be in MPI at once.
    pub fn of_program(&self) -> f64 {
        (self.mpi + self.compute).min(self.wall)
    }
}

/// Places of the times among a window's cells.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    wall: Option<usize>,
    mpi: Option<usize>,
    compute: Option<usize>,
}

/// The same for one rank.
#[derive(Clone, Copy, Debug)]
pub struct RankColumns {
    columns: Columns,
    /// Rank number.
    pub rank: u32,
    /// Time in MPI of all its threads over that which counts as the rank's, at least 1: over the main thread's, or the
    /// number of threads over which it is a mean.
    pub threads: f64,
}

/// Times of one window, or why there are none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Observed {
    /// Its times, to be [settled](Times::settled) after they are summed, and its paused time, nanoseconds.
    Measured(Times, f64),
    /// The program had paused ampl for all of it.
    Paused,
    /// There is no summary.
    Nothing,
}

impl Columns {
    /// Places of the times in the cells of `trace`.
    pub fn of(trace: &Trace) -> Self {
        Self::of_metrics(&trace.run.metrics)
    }

    /// Places of the times among `metrics`.
    pub fn of_metrics(metrics: &[MetricInfo]) -> Self {
        let at = |quantity: Quantity| {
            let name = quantity.name();
            metrics.iter().position(|metric| metric.name == name && metric.event == "*")
        };
        Self { wall: at(Quantity::Wall), mpi: at(Quantity::MpiTime), compute: at(Quantity::ComputeTime) }
    }

    /// The same for `rank`, with its number of threads.
    pub fn of_rank(self, rank: &RankTrace) -> RankColumns {
        let least = match (rank.process.main_share, rank.process.mpi_threads) {
            (Some(share), _) if share > 0.0 => 1.0 / share,
            (_, several) => several.into(),
        };
        let threads = if least.is_finite() { least.max(1.0) } else { 1.0 };
        RankColumns { columns: self, rank: rank.process.rank, threads }
    }

    /// True where the rank had paused ampl for all of a window with these cells.
    fn is_paused(self, cells: &Cells) -> bool {
        self.wall.and_then(|wall| cells.get(wall)).is_some_and(|wall| wall.n == 0.0)
    }
}

impl RankColumns {
    /// Times in `window`; `None` where it has none.
    pub fn times(&self, window: &WindowSummary) -> Option<Times> {
        match self.observed(window) {
            Observed::Measured(times, _) => Some(times.settled()),
            Observed::Paused | Observed::Nothing => None,
        }
    }

    /// Length of `window`, or of those that were closed with it, nanoseconds.
    pub fn length(&self, window: &WindowSummary) -> f64 {
        window.end_ns.saturating_sub(window.start_ns).max(0) as f64
    }

    /// Times of `window`, or why there are none.
    pub fn observed(&self, window: &WindowSummary) -> Observed {
        if self.columns.is_paused(&window.cells) {
            return Observed::Paused;
        }
        self.measured(window).map_or(Observed::Nothing, |times| {
            let length = self.length(window);
            let missing = length - times.wall * window.repeat.max(1) as f64;
            Observed::Measured(times, if missing > CLOCK * length + ROUNDED { missing } else { 0.0 })
        })
    }

    fn measured(&self, window: &WindowSummary) -> Option<Times> {
        let sum = |at: Option<usize>| Some(window.cells.get(at?)?.sum);
        let (wall, mpi) = (sum(self.columns.wall)?, sum(self.columns.mpi)?);
        let mut compute = sum(self.columns.compute)?;
        let mut mpi_mean = mpi;
        if self.threads > 1.0 {
            mpi_mean = mpi / self.threads;
            compute = wall - mpi_mean - window.own_ns as f64 / self.threads;
        }
        Some(Times { rank: self.rank, wall, mpi: mpi_mean, compute, weight: 1.0 })
    }
}

/// The windows that the end of the run ended on any of `ranks`.
pub fn partial_windows<'a>(ranks: impl Iterator<Item = &'a RankTrace>) -> BTreeSet<u64> {
    let windows = ranks.flat_map(|rank| rank.windows.iter_known());
    windows.filter(|window| window.partial).map(|window| window.window).collect()
}
