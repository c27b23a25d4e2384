//! Results of a simulation.

use ampl_client::simulate::{Job, Scored};
use ampl_core::config::ErrorBound;
use serde::Serialize;

use super::drive::Seeded;

/// One group and guide, all seeds together; serialised, one element of what `--json` prints.
///
/// Shares and means are over scored windows: those after the first update interval in which at least one of
/// the group's ranks observed something. They are none without such a window; what needs a bound is none in
/// a group of a fixed size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entry {
    /// The group.
    pub group: String,
    /// The guide.
    pub metric: String,
    /// Event that the metric observes.
    pub event: String,
    /// Ranks of the group.
    pub population: u64,
    /// The bound's confidence, in (0, 1).
    pub confidence: Option<f64>,
    /// Its half-width relative to the mean.
    pub error: Option<f64>,
    /// Its half-width in the metric's unit, where it was given so.
    pub error_abs: Option<f64>,
    /// Number of seeds.
    pub seeds: u64,
    /// Share of windows whose estimate lies within the bound of the truth.
    pub coverage_window: Option<f64>,
    /// The same of whole update intervals.
    pub coverage_interval: Option<f64>,
    /// Ranks kept of a window.
    pub mean_size: Option<f64>,
    /// The same with the first interval, which is not scored.
    pub mean_size_with_first: Option<f64>,
    /// Ranks of the smallest simple random sample for a window's true variance.
    pub oracle_size: Option<f64>,
    /// The scored windows, seed by seed.
    pub windows: Vec<WindowEntry>,
    /// The windows of the first interval.
    pub first_windows: Vec<WindowEntry>,
}

/// One window under one seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WindowEntry {
    /// The window.
    pub window: u64,
    /// The mean over all of the group's observations, in the metric's unit.
    pub truth: f64,
    /// The weighted estimate from the kept ranks; none where none of them observed anything.
    pub estimate: Option<f64>,
    /// Ranks kept.
    pub size: u64,
    /// The seed of the draws.
    pub seed: u64,
}

/// The entries of `runs`, groups outermost.
pub fn entries(job: &Job, runs: &[Seeded]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (group, plan) in job.plan.groups.iter().enumerate() {
        for (guide, &metric) in job.guides.iter().enumerate() {
            let metric = &job.plan.metrics[metric];
            let bound = job.bound(group, guide);
            let scores = || runs.iter().map(|run| (run.seed, &run.scores[group * job.guides.len() + guide]));
            let list = |first: bool| -> Vec<(u64, Scored)> {
                let of = |(seed, score): (u64, &ampl_client::simulate::Score)| {
                    let windows = if first { &score.first } else { &score.windows };
                    windows.iter().map(|&window| (seed, window)).collect::<Vec<_>>()
                };
                scores().flat_map(of).collect()
            };
            let (scored, first) = (list(false), list(true));
            let intervals = || scores().flat_map(|(_, score)| score.intervals.iter().copied());
            let size = |(_, window): &(u64, Scored)| Some(window.size as f64);
            entries.push(Entry {
                group: plan.name.clone(),
                metric: metric.name().into_owned(),
                event: metric.event.name().into_owned(),
                population: plan.members.len(),
                confidence: bound.map(|(confidence, _)| confidence),
                error: bound.and_then(|(_, error)| match error {
                    ErrorBound::Relative(error) => Some(error),
                    ErrorBound::Absolute(_) => None,
                }),
                error_abs: bound.and_then(|(_, error)| match error {
                    ErrorBound::Relative(_) => None,
                    ErrorBound::Absolute(error) => Some(error),
                }),
                seeds: runs.len() as u64,
                coverage_window: mean(
                    scored
                        .iter()
                        .filter_map(|(_, window)| window.covered)
                        .map(|yes| f64::from(u8::from(yes))),
                ),
                coverage_interval: mean(intervals().map(|yes| f64::from(u8::from(yes)))),
                mean_size: mean(scored.iter().filter_map(size)),
                mean_size_with_first: mean(scored.iter().chain(&first).filter_map(size)),
                oracle_size: mean(
                    scored.iter().filter_map(|(_, window)| window.oracle).map(|oracle| oracle as f64),
                ),
                windows: scored.iter().map(window_entry).collect(),
                first_windows: first.iter().map(window_entry).collect(),
            });
        }
    }
    entries
}

fn window_entry(&(seed, Scored { window, truth, estimate, size, .. }): &(u64, Scored)) -> WindowEntry {
    WindowEntry { window, truth, estimate, size, seed }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0u64, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}
