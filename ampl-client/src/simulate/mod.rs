//! A job without processes: the policy and the draws of a live run over a population that is given.
//!
//! A [`Job`] is what all seeds share. The [`Census`] of each [`Window`], in ascending order, is summed once; every
//! seed's [`Run`] then draws from it, estimates, and lets the policy decide. Under retrospective decisions it decides
//! first, by the same references as in a live run. Ranks are summed in [`Job::chunks`] of a fixed size and merged in
//! their order, so that results are the same bit for bit however many threads share the chunks.
//!
//! Not simulated: directives that arrive late, ranks that do not report, a budget.

mod census;
mod draws;
mod retrospective;
mod run;
mod score;
mod stratification;

use std::ops::Range;

use ampl_core::config::{ErrorBound, Target};
use ampl_core::message::{CensusWindow, MessageLayout, MetricSummary};
use ampl_core::plan::Plan;
use ampl_core::stats::Moments;
use ampl_core::stats::quantile::normal_two_sided;
use ampl_core::stats::sizing::simple_random;
use ampl_core::units::{Rank, WindowId};

pub use census::Census;
pub use draws::Draws;
pub use retrospective::Binned;
pub use run::Run;
pub use score::{Score, Scored};

/// Ranks summed together.
const CHUNK: u32 = 1 << 14;

/// Observations of the guides by every rank in one window.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// The window, from 0.
    pub number: u64,
    /// One vector per guide of the job, indexed by rank; a rank without observations has the default.
    pub guides: Vec<Vec<MetricSummary>>,
}

/// A plan with the values that are looked up again and again.
#[derive(Clone, Debug)]
pub struct Job {
    /// The plan.
    pub plan: Plan,
    /// Indices of the guides in [`Plan::metrics`].
    pub guides: Vec<usize>,
    shape: MessageLayout,
    /// Index in the shape's cells, by rank.
    cells: Vec<u16>,
}

impl Job {
    /// The job of that plan.
    pub fn new(mut plan: Plan) -> Self {
        // What a kept window takes is not in a population.
        plan.config.sampling.budget = None;
        let guides = plan.metrics.iter().enumerate().filter(|(_, metric)| metric.guide);
        let guides = guides.map(|(index, _)| index).collect();
        let shape = MessageLayout::of(&plan);
        let cells = (0..plan.ranks).map(|rank| shape.cell_of(&plan, Rank(rank)) as u16).collect();
        Self { plan, guides, shape, cells }
    }

    /// A window in which no rank has observed anything yet.
    pub fn window(&self, number: u64) -> Window {
        let nobody = vec![MetricSummary::default(); self.plan.ranks as usize];
        Window { number, guides: vec![nobody; self.guides.len()] }
    }

    /// Windows per update interval, at least 1.
    pub fn interval(&self) -> u64 {
        u64::from(self.plan.config.sampling.windows_per_update.max(1))
    }

    /// The ranks in pieces, in order.
    pub fn chunks(&self) -> impl Iterator<Item = Range<u32>> + Clone + use<> {
        let ranks = self.plan.ranks;
        (0..ranks).step_by(CHUNK as usize).map(move |first| first..ranks.min(first.saturating_add(CHUNK)))
    }

    /// Bound of `guide`, an index into [`Job::guides`], in a group; `None` for a static size.
    pub fn bound(&self, group: usize, guide: usize) -> Option<(f64, ErrorBound)> {
        match self.plan.target(&self.plan.groups[group], &self.plan.metrics[self.guides[guide]]) {
            Target::Bound { confidence, error } => Some((confidence, error)),
            Target::Static { .. } => None,
        }
    }

    /// Ranks of the smallest simple random sample for the true variance of a window, `all` being its moments
    /// over the whole group.
    pub fn oracle(&self, group: usize, guide: usize, all: &Moments) -> Option<u64> {
        let (confidence, error) = self.bound(group, guide)?;
        let (variance, error) = match error {
            ErrorBound::Relative(error) => (all.residual_variance(), error),
            ErrorBound::Absolute(error) => {
                (all.residual_variance_about(all.ratio()?) / all.mean_n().powi(2), error)
            }
        };
        let allowed = (error / normal_two_sided(confidence)).powi(2);
        Some(simple_random(self.plan.groups[group].members.len(), variance, allowed))
    }

    fn census_window(&self, number: u64) -> CensusWindow {
        CensusWindow::new(&self.shape, WindowId(number), WindowId(number))
    }
}
