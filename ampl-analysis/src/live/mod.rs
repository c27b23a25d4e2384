//! A run while it is under way: its state, the calls of its ranks, its sample, its rates.

mod in_vain;
mod waiting;

use ampl_core::config::Quantity;
use ampl_core::message::Decision;
use ampl_core::units::RankSet;
use ampl_reader::model::{EndBasis, Liveness};
use ampl_reader::{Communicators, Symbols, Trace};

use crate::coverage::Coverage;
use crate::decisions::{absolute_groups, by_group};
use crate::efficiency;
use crate::in_call::{self, Row};
use crate::overhead::Overhead;
use crate::window_times::{Columns, partial_windows};

pub use in_vain::{Ended, InVain, in_vain};
pub use waiting::{Awaited, WAITS_NS, Waiting};

/// State of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Processes of it run on this node.
    Runs,
    /// It has ended and left a whole trace.
    Complete,
    /// Its launcher has returned, and there is no whole trace.
    Died,
    /// No process of it runs on this node; of other nodes nothing is known.
    NoProcess,
}

/// Bytes that the program sent in one window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// Bytes per second, all ranks together.
    pub per_second: f64,
    /// The window: the last one that every rank of the job has closed.
    pub window: u64,
    /// End of that window on the last rank, nanoseconds since the start.
    pub end_ns: i64,
}

/// A run as it is now.
#[derive(Clone, Debug)]
pub struct Live {
    /// State of the job.
    pub state: State,
    /// Ranks of the job.
    pub ranks: u32,
    /// Time since the start, nanoseconds.
    pub elapsed_ns: i64,
    /// Source of that time.
    pub basis: Option<EndBasis>,
    /// Ranks that left nothing that can be read here.
    pub absent: RankSet,
    /// Ranks whose process is gone though the job runs.
    pub gone: RankSet,
    /// Places of the ranks, most ranks first.
    pub rows: Vec<Row>,
    /// Waits of the ranks for each other.
    pub waiting: Waiting,
    /// Efficiencies: the run's, then one row per window.
    pub efficiency: Vec<efficiency::Row>,
    /// Bytes sent in the last window; none where no window was closed by all ranks.
    pub sent: Option<Sent>,
    /// Size of the trace, if the job ended now, bytes.
    pub trace_bytes: u64,
    /// Last decision of each group.
    pub decisions: Vec<Decision>,
    /// Groups whose bound is in the metric's unit.
    pub absolute: Vec<String>,
    /// Rank-windows whose times are kept, and rank-windows.
    pub kept_windows: [u64; 2],
    /// Cost of watching.
    pub overhead: Overhead,
    /// Number of calls.
    pub calls: u64,
}

impl Live {
    /// The run that `trace` was read of; `symbols` names call sites, and is worth keeping from one reading to the next.
    pub fn of(trace: &Trace, symbols: &mut Symbols) -> Self {
        let comms = Communicators::of(trace);
        let rows = in_call::rows(trace, &comms, symbols);
        let end = trace.run.end.filter(|_| !trace.complete);
        let longest = trace.elapsed_ns();
        let heard: RankSet = trace.ranks.iter().map(|rank| rank.process.rank).collect();
        let is_gone = |liveness: Liveness| liveness == Liveness::Gone;
        let gone =
            trace.ranks.iter().filter(|rank| is_gone(rank.process.liveness) && !rank.process.finalized);
        let runs = end.is_some_and(|end| end.basis == EndBasis::Now);
        let calls = trace.calls();
        let windows = trace.rank_windows();
        Self {
            state: match end.map(|end| end.basis) {
                _ if trace.complete => State::Complete,
                Some(EndBasis::Now) => State::Runs,
                Some(EndBasis::Launcher) => State::Died,
                _ => State::NoProcess,
            },
            ranks: trace.run.ranks,
            elapsed_ns: end.map_or(i64::try_from(longest).unwrap_or(i64::MAX), |end| end.at_ns),
            basis: end.map(|end| end.basis),
            absent: heard.complement(trace.run.ranks),
            gone: gone.filter(|_| runs).map(|rank| rank.process.rank).collect(),
            waiting: Waiting::of(&rows, &comms, trace.run.ranks),
            rows,
            efficiency: efficiency::rows(trace),
            sent: sent(trace),
            trace_bytes: trace.sizes.total,
            decisions: last_of_each(by_group(&trace.decisions)),
            absolute: absolute_groups(trace),
            kept_windows: [trace.kept_windows(), windows],
            overhead: Overhead::of(trace, calls),
            calls,
        }
    }

    /// Part of the run that its efficiencies rest on.
    pub fn coverage(&self) -> Option<Coverage> {
        self.efficiency.first().and_then(|run| run.measured)
    }
}

/// The last decision of each group, groups in the order of their first one.
fn last_of_each(decisions: Vec<Decision>) -> Vec<Decision> {
    let mut last: Vec<Decision> = Vec::new();
    for decision in decisions.into_iter().filter(|decision| decision.population > 0) {
        match last.iter_mut().find(|of| of.group == decision.group) {
            // One that no rank reported says nothing of the sample.
            Some(_) if decision.reported == 0 => {}
            Some(of) => *of = decision,
            None => last.push(decision),
        }
    }
    last
}

/// Bytes sent per second in the last window that all ranks of the job have closed.
fn sent(trace: &Trace) -> Option<Sent> {
    let name = Quantity::BytesSent.name();
    let at = trace.run.metrics.iter().position(|metric| metric.name == name && metric.event == "*")?;
    let partial = partial_windows(trace.ranks.iter());
    if trace.ranks.is_empty() || trace.ranks.len() as u64 != u64::from(trace.run.ranks) {
        return None;
    }
    let columns = Columns::of(trace);
    let last = trace.ranks.iter().map(|rank| rank.windows.end().saturating_sub(1)).min()?;
    let of_all = |number: u64| {
        let (mut bytes, mut wall, mut end_ns) = (0.0, 0.0, i64::MIN);
        for rank in &trace.ranks {
            let window = rank.windows.get(number)?;
            bytes += window.cells.get(at)?.sum;
            wall += columns.of_rank(rank).times(&window)?.wall;
            end_ns = window.end_ns.max(end_ns);
        }
        let per_second = bytes / (wall / trace.ranks.len() as f64) * 1e9;
        (wall > 0.0).then_some(Sent { per_second, window: number, end_ns })
    };
    // A few windows back at most: a rate of long ago is none of now.
    let mut numbers = (0..=last).rev().filter(|number| !partial.contains(number)).take(8);
    numbers.find_map(of_all)
}
