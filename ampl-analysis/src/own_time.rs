//! ampl's own processor time, its parts, and its share of the job's.

use ampl_trace::Trace;
use ampl_trace::model::{Level, Process, WindowSummaries};
use serde::Serialize;

/// Shorter windows are joined, nanoseconds: one of a few calls says nothing of the job.
const SHORTEST_NS: u64 = 50_000_000;

/// Processor time of the agents, nanoseconds, summed over ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OwnTime {
    /// Time for calls, windows, the tree and the journal.
    pub calls_ns: u64,
    /// Part of it for polls in a row that found nothing, but the first of each row: nobody waited for it.
    pub polling_ns: u64,
    /// Time in `MPI_Init`, and before it to start the program.
    pub start_ns: u64,
    /// Time in `MPI_Finalize`: completing messages, merging and writing.
    pub end_ns: u64,
    /// Time that ranks waited there for each other, on the clock.
    pub end_wait_ns: u64,
    /// Processor time of the whole job; none where a rank's is not known.
    pub processor_ns: Option<u64>,
    /// Share of `processor_ns` that the agents took, in [0, 1].
    pub processor_share: Option<f64>,
    /// The part of a rank's time of which they took the greatest share.
    pub largest: Option<Largest>,
}

/// The part of a rank's time of which the agent took the greatest share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Largest {
    /// Share of that part that the agent took, in (0, 1].
    pub share: f64,
    /// The rank.
    pub rank: u32,
    /// The window; the first of several that are shorter than 50 ms.
    pub window: u64,
}

impl OwnTime {
    /// Processor time of the agents of all ranks that were read.
    pub fn of(trace: &Trace) -> Self {
        let sum = |part: fn(&Process) -> u64| -> u64 {
            trace.ranks.iter().map(|rank| part(&rank.process)).fold(0, u64::saturating_add)
        };
        let [calls_ns, polling_ns, start_ns, end_ns, end_wait_ns] = [
            sum(|process| process.own_ns),
            sum(|process| process.polling_ns.min(process.own_ns)),
            sum(|process| process.begin_ns),
            sum(|process| process.end_ns),
            sum(|process| process.end_wait_ns),
        ];
        let known = !trace.ranks.is_empty() && trace.ranks.iter().all(|rank| rank.process.processor_ns > 0);
        let processor_ns = known.then(|| sum(|process| process.processor_ns));
        let all = calls_ns.saturating_add(start_ns).saturating_add(end_ns);
        Self {
            calls_ns,
            polling_ns,
            start_ns,
            end_ns,
            end_wait_ns,
            processor_ns,
            processor_share: processor_ns.map(|job| (all as f64 / job as f64).min(1.0)),
            largest: largest(trace),
        }
    }

    /// Sum of all parts, nanoseconds.
    pub fn all_ns(&self) -> u64 {
        self.calls_ns.saturating_add(self.start_ns).saturating_add(self.end_ns)
    }
}

/// The greatest share that the agent took: of a window, or of the span that made it step down, where work that the end of
/// the run is charged with may exceed the span.
fn largest(trace: &Trace) -> Option<Largest> {
    let of_windows = trace.ranks.iter().flat_map(|rank| {
        stretches(&rank.windows).map(|(window, share)| Largest { share, rank: rank.process.rank, window })
    });
    let of_steps = trace.ranks.iter().flat_map(|rank| {
        let down =
            rank.process.steps.iter().filter(|step| step.level != Level::Kept && step.share.is_finite());
        down.map(|step| Largest { share: step.share, rank: rank.process.rank, window: step.window })
    });
    let all = of_windows.chain(of_steps).map(|one| Largest { share: one.share.min(1.0), ..one });
    all.filter(|one| one.share > 0.0).max_by(|a, b| a.share.total_cmp(&b.share))
}

/// Shares of successive windows, joined to at least [`SHORTEST_NS`]; of all, where all are shorter together.
fn stretches(windows: &WindowSummaries) -> impl Iterator<Item = (u64, f64)> {
    let mut found = Vec::new();
    let (mut first, mut length, mut own) = (0, 0u64, 0u64);
    for window in windows.iter_known().filter(|window| !window.is_bare()) {
        if length == 0 {
            first = window.window;
        }
        length = length.saturating_add(window.end_ns.saturating_sub(window.start_ns).max(0) as u64);
        own = own.saturating_add(window.own_ns);
        if length >= SHORTEST_NS {
            found.push((first, own as f64 / length as f64));
            (length, own) = (0, 0);
        }
    }
    if found.is_empty() && length > 0 {
        found.push((first, own as f64 / length as f64));
    }
    found.into_iter()
}

#[cfg(test)]
mod tests {
    use ampl_trace::RankTrace;
    use ampl_trace::model::{Step, WindowSummary};

    use super::*;

    fn windows(of: &[(i64, u64)]) -> WindowSummaries {
        let mut end_ns = 0;
        let window = |(window, &(length, own_ns)): (u64, &(i64, u64))| {
            let start_ns = end_ns;
            end_ns += length;
            WindowSummary { window, start_ns, end_ns, own_ns, ..WindowSummary::default() }
        };
        (0..).zip(of).map(window).collect()
    }

    #[test]
    fn every_part_is_in_the_whole() {
        let mut rank = RankTrace::default();
        let process = &mut rank.process;
        (process.own_ns, process.begin_ns, process.end_ns, process.end_wait_ns) = (10, 20, 30, 500);
        process.processor_ns = 600;
        let mut trace = Trace { ranks: vec![rank.clone(), rank], ..Trace::default() };
        let own = OwnTime::of(&trace);
        assert_eq!((own.all_ns(), own.end_wait_ns, own.processor_ns), (120, 1000, Some(1200)));
        assert_eq!((own.processor_share, own.largest), (Some(0.1), None));
        // A rank that has not finalized, for example.
        trace.ranks[1].process.processor_ns = 0;
        assert_eq!(OwnTime::of(&trace).processor_share, None);
    }

    #[test]
    fn the_largest_share_is_of_a_window_that_counts() {
        let ms = 1_000_000;
        let mut rank = RankTrace {
            windows: windows(&[(60 * ms, 600_000), (ms, 500_000), (59 * ms, 0)]),
            ..RankTrace::default()
        };
        rank.process.rank = 3;
        let mut trace = Trace { ranks: vec![rank], ..Trace::default() };
        let found = |trace: &Trace| OwnTime::of(trace).largest.unwrap();
        assert_eq!(found(&trace), Largest { share: 0.01, rank: 3, window: 0 });
        // A span that made the rank step down may be shorter than its window.
        trace.ranks[0].process.steps =
            vec![Step { window: 2, level: Level::Off, share: 0.25, ..Step::default() }];
        assert_eq!(found(&trace), Largest { share: 0.25, rank: 3, window: 2 });
        trace.ranks[0].windows = windows(&[(ms, 500_000)]);
        assert_eq!(found(&trace).share, 0.5);
        trace.ranks[0].process.steps[0].share = 1.25;
        assert_eq!(found(&trace).share, 1.0);
    }
}
