//! Windows of a run or of a population, one after the other.

use ampl_analysis::what_if::Recorded;
use ampl_client::simulate::{Job, Window};
use ampl_trace::Trace;

use super::{Extent, Fault, Population, Windows};

/// A run whose windows are all stored, or a population.
pub enum Observed {
    /// A run.
    Run(Box<Trace>),
    /// A population, and its extent.
    Population(Population, Box<Extent>),
}

impl Observed {
    /// The first window and the last.
    pub fn windows(&self) -> (u64, u64) {
        match self {
            Self::Run(trace) => (0, trace.windows().saturating_sub(1)),
            Self::Population(_, extent) => extent.windows,
        }
    }

    /// Calls `take` with every window, as `job` measures it; guides that a population lacks are left out.
    ///
    /// # Errors
    /// A [`Fault`] of a population.
    pub fn each_window(&self, job: &Job, take: &mut dyn FnMut(&Window)) -> Result<(), Fault> {
        let mut window = Window::default();
        let (first, last) = self.windows();
        match self {
            Self::Run(trace) => {
                let mut recorded = Recorded::new(trace, job);
                for number in first..=last {
                    recorded.fill(number, &mut window);
                    take(&window);
                }
            }
            Self::Population(source, extent) => {
                let number = |&guide: &usize| {
                    let metric = &job.plan.metrics[guide];
                    extent.find(&metric.name(), &metric.event.name())
                };
                let guides = job.guides.iter().filter_map(number).collect();
                let mut windows = Windows::new(source, extent, guides, job.plan.ranks, |_| ())?;
                for number in first..=last {
                    windows.fill(number, &mut window)?;
                    take(&window);
                }
            }
        }
        Ok(())
    }
}
