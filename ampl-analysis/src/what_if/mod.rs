//! Ranks and bytes that other bounds would have kept of a run, and results of a job file on a population.

mod drive;
mod kept;
mod recorded;
mod scores;

use ampl_client::simulate::Job;
use ampl_core::config::{ErrorBound, Target};
use ampl_core::plan::Plan;
use ampl_trace::Trace;
use serde::Serialize;

pub use drive::{Seeded, drive};
pub use kept::{LeftOut, left_out, row as kept_row};
pub use recorded::Recorded;
pub use scores::{Entry, WindowEntry, entries};

/// One bound; serialised, one element of what `--json` prints. Numbers are means over seeds; without a bound, those of
/// the run itself.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The confidence tried; none where every group kept its own.
    pub confidence: Option<f64>,
    /// The relative error tried; none likewise.
    pub error: Option<f64>,
    /// Share of the ranks' time that was summarised, which the numbers of bounds rest on.
    pub coverage: f64,
    /// Rank-windows that would have been kept, including the first update interval; none where too little was
    /// summarised.
    pub kept_windows: Option<f64>,
    /// Rank-windows of the run.
    pub rank_windows: u64,
    /// Bytes of the trace file; none where the run kept too little to estimate it.
    pub bytes: Option<f64>,
    /// Groups in the order of the job file.
    pub groups: Vec<GroupRow>,
}

impl Row {
    /// Removes numbers that a part of the run does not give for all of it; of the run's `own` bounds the kept windows
    /// are known.
    pub fn forget(&mut self, own: bool) {
        self.groups.iter_mut().for_each(|group| group.coverage_window = None);
        if !own {
            (self.kept_windows, self.bytes) = (None, None);
            self.groups.iter_mut().for_each(|group| group.mean_size = None);
        }
    }
}

/// One group under one bound.
#[derive(Clone, Debug, Serialize)]
pub struct GroupRow {
    /// The group.
    pub group: String,
    /// Ranks of the group.
    pub population: u64,
    /// Ranks kept of a window after the first update interval; none where the run is no longer than that.
    pub mean_size: Option<f64>,
    /// Share of those windows estimated within the bound, of the guide for which it is the smallest; none in a
    /// group of a fixed size.
    pub coverage_window: Option<f64>,
}

/// The row of another `bound`, a confidence and a relative error, over so many `seeds`; the group's own where there is
/// none. `window_done` is called behind each window.
pub fn simulated(
    trace: &Trace,
    plan: &Plan,
    bound: (Option<f64>, Option<f64>),
    seeds: u64,
    window_done: impl FnMut(),
) -> Row {
    let mut plan = plan.clone();
    for group in &mut plan.groups {
        if let Target::Bound { confidence, error } = &mut group.target {
            *confidence = bound.0.unwrap_or(*confidence);
            *error = bound.1.map_or(*error, ErrorBound::Relative);
        }
    }
    let job = Job::new(plan);
    let mut recorded = Recorded::new(trace, &job);
    let first = job.plan.config.sampling.seed;
    let seeds: Vec<u64> = (0..seeds).map(|index| first.wrapping_add(index)).collect();
    let last = trace.windows() - 1;
    let fill = |number, window: &mut _| {
        recorded.fill(number, window);
        Ok::<(), std::convert::Infallible>(())
    };
    let runs = match drive(&job, fill, (0, last), &seeds, window_done) {
        Ok(runs) => runs,
        Err(never) => match never {},
    };
    let groups = 0..job.plan.groups.len();
    let kept = runs.iter().flat_map(|run| &run.kept).sum::<u64>() as f64 / runs.len() as f64;
    let stored: u64 = trace.ranks.iter().map(|rank| rank.times.len() as u64).sum();
    let rest = trace.sizes.total.saturating_sub(stored) as f64;
    // Priced as the row of the run itself is, so that the same windows take the same bytes.
    let (windows, bytes) = kept::sample(trace, &job.plan);
    let each = bytes.filter(|_| windows > 0).map(|bytes| (bytes - rest).max(0.0) / windows as f64);
    Row {
        confidence: bound.0,
        error: bound.1,
        coverage: 1.0,
        kept_windows: Some(kept),
        rank_windows: trace.rank_windows(),
        bytes: each.map(|each| rest + each * kept),
        groups: groups.map(|group| group_row(&job, &runs, group)).collect(),
    }
}

fn group_row(job: &Job, runs: &[Seeded], group: usize) -> GroupRow {
    let scores = |guide: usize| runs.iter().map(move |run| &run.scores[group * job.guides.len() + guide]);
    let mean =
        |values: Vec<f64>| (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
    let coverage = |guide: usize| {
        let covered =
            scores(guide).flat_map(|score| score.windows.iter().filter_map(|window| window.covered));
        mean(covered.map(|covered| f64::from(u8::from(covered))).collect())
    };
    let windows = (0..job.guides.len()).flat_map(scores).flat_map(|score| &score.windows);
    GroupRow {
        group: job.plan.groups[group].name.clone(),
        population: job.plan.groups[group].members.len(),
        mean_size: mean(windows.map(|window| window.size as f64).collect()),
        coverage_window: (0..job.guides.len()).filter_map(coverage).reduce(f64::min),
    }
}

#[cfg(test)]
mod tests {
    use ampl_testkit::synthetic::Synthetic;

    use super::*;

    /// The row of the run itself is of its sample, whether everything is stored beside it or not.
    #[test]
    fn a_run_that_verifies_is_of_its_marked_sample() {
        let job = |verify: bool| {
            let config =
                format!("[output]\nverify = {verify}\n[[metric]]\nname = 'mpi.time'\nrole = 'guide'\n");
            Synthetic { config, ranks: 20, size: 8, windows: 40, ..Synthetic::default() }
        };
        let row = |verify: bool| {
            let job = job(verify);
            kept::row(&job.trace(), &job.plan())
        };
        let (plain, verified) = (row(false), row(true));
        // Rank-windows of another bound have the price of the run's own.
        for verify in [false, true] {
            let (trace, plan) = (job(verify).trace(), job(verify).plan());
            let (own, other) =
                (kept::row(&trace, &plan), simulated(&trace, &plan, (Some(0.9), None), 1, || ()));
            let times = trace.ranks.iter().map(|rank| rank.times.len()).sum::<usize>() as f64;
            let rest = trace.sizes.total as f64 - times;
            let each = |row: &Row| (row.bytes.unwrap() - rest) / row.kept_windows.unwrap();
            assert!((each(&own) / each(&other) - 1.0).abs() < 1e-9, "{} {}", each(&own), each(&other));
        }
        assert_eq!((plain.kept_windows, verified.kept_windows), (Some(368.0), Some(368.0)));
        assert_eq!((plain.groups[0].mean_size, verified.groups[0].mean_size), (Some(8.0), Some(8.0)));
        assert_eq!(plain.groups[0].coverage_window, verified.groups[0].coverage_window);
        let (plain, verified) = (plain.bytes.unwrap(), verified.bytes.unwrap());
        assert!((verified / plain - 1.0).abs() < 0.2, "{verified} {plain}");
    }

    #[test]
    fn of_a_run_that_was_hardly_measured_other_bounds_are_not_known() {
        let job = Synthetic::default();
        let plan = job.plan();
        let mut rows =
            [kept::row(&job.trace(), &plan), simulated(&job.trace(), &plan, (Some(0.9), None), 1, || ())];
        rows[0].forget(true);
        rows[1].forget(false);
        assert!(rows[0].kept_windows.is_some() && rows[0].groups[0].mean_size.is_some());
        assert_eq!((rows[1].kept_windows, rows[1].bytes, rows[1].groups[0].mean_size), (None, None, None));
        assert!(rows.iter().all(|row| row.groups[0].coverage_window.is_none()));
    }
}
