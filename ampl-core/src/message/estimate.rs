//! Estimates of a window from the summaries that came up the tree.

use super::CensusWindow;
use crate::config::{Summaries, Target};
use crate::plan::Plan;
use crate::stats::estimate::{Estimate, census, from_moments};

impl CensusWindow {
    /// The estimate of one metric of one group from the window's summaries, census or sampled as the
    /// plan says; `None` without observations.
    ///
    /// `group` and `metric` index the plan's; static groups, which state no confidence, get 90 %.
    pub fn estimate(&self, plan: &Plan, group: usize, metric: usize) -> Option<Estimate> {
        let confidence = match plan.groups[group].target {
            Target::Bound { confidence, .. } => confidence,
            Target::Static { .. } => 0.90,
        };
        let members = plan.groups[group].members.len();
        let pinned = plan.groups[group].pinned.len();
        let cell = |pinned| {
            let cell = self.partial.cell(group as u16, 0, pinned);
            cell.and_then(|cell| cell.metrics.get(metric)).copied().unwrap_or_default()
        };
        let (drawn, taken) = (cell(false), cell(true));
        let windows = self.windows();
        match plan.config.sampling.summaries {
            Summaries::Census => census(&drawn.census.merged(&taken.census), windows, members, confidence),
            Summaries::Sampled => {
                let others = (members - pinned) * windows;
                let mut estimate = from_moments(&taken.kept, &drawn.kept, others, confidence)?;
                estimate.population = members;
                estimate.kept /= windows;
                Some(estimate)
            }
        }
    }
}
