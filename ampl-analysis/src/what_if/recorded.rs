//! The windows of a run as a population.

use std::iter::Peekable;

use ampl_client::simulate::{Job, Window};
use ampl_core::message::MetricSummary;
use ampl_trace::Trace;
use ampl_trace::cells::Cell;
use ampl_trace::model::WindowIter;

/// The recorded windows of every rank, one after the other.
pub struct Recorded<'a> {
    /// Windows that are not returned yet, by rank.
    ranks: Vec<Option<Peekable<WindowIter<'a>>>>,
    /// Places of the guides in a window's cells; none where the run could not measure it.
    cells: Vec<Option<usize>>,
}

impl<'a> Recorded<'a> {
    /// Windows of `trace`, for the guides of `job`.
    pub fn new(trace: &'a Trace, job: &Job) -> Self {
        let mut ranks: Vec<_> = (0..job.plan.ranks).map(|_| None).collect();
        for rank in &trace.ranks {
            if let Some(windows) = ranks.get_mut(rank.process.rank as usize) {
                *windows = Some(rank.windows.iter().peekable());
            }
        }
        let cell = |&guide: &usize| {
            let metric = &job.plan.metrics[guide];
            let (name, event) = (metric.name(), metric.event.name());
            trace.run.metrics.iter().position(|have| have.name == name && have.event == event)
        };
        Self { ranks, cells: job.guides.iter().map(cell).collect() }
    }

    /// Puts the observations in window `number` into `window`. Numbers ascend.
    pub fn fill(&mut self, number: u64, window: &mut Window) {
        window.number = number;
        window.guides.resize(self.cells.len(), Vec::new());
        for summaries in &mut window.guides {
            summaries.clear();
            summaries.resize(self.ranks.len(), MetricSummary::default());
        }
        for (rank, windows) in self.ranks.iter_mut().enumerate() {
            let Some(windows) = windows else { continue };
            while let Some(first) = windows.next_if(|first| first.window <= number) {
                if first.window == number {
                    for (summaries, cell) in window.guides.iter_mut().zip(&self.cells) {
                        if let Some(cell) = cell.and_then(|cell| first.cells.get(cell)) {
                            summaries[rank] = summary(cell);
                        }
                    }
                }
            }
        }
    }
}

fn summary(cell: Cell) -> MetricSummary {
    let Cell { n, sum, sum_sq, min, max } = cell;
    // The numbers of a damaged file may be anything.
    let sound = n > 0.0 && [n, sum, sum_sq, min, max].iter().all(|value| value.is_finite());
    if sound { MetricSummary { n: n as u64, sum, sum_sq, min, max } } else { MetricSummary::default() }
}
