//! `ampl plan`: ranks that other bounds would have kept of a run, and bytes.

mod kept;
pub mod recorded;

use std::io::Write;
use std::process::ExitCode;

use ampl_client::simulate::Job;
use ampl_core::config::{ErrorBound, Target};
use ampl_core::plan::Plan;
use ampl_trace::Trace;
use serde::Serialize;

use crate::coverage::Extent;
use crate::efficiency::run_times;
use crate::fraction;
use crate::human::{bytes, count, digits, percent};
use crate::output;
use crate::rundir::{self, RunArg};
use crate::simulate::drive::{Seeded, drive};
use recorded::Recorded;

/// Bounds that are shown where none is named.
const USUAL: [(f64, f64); 3] = [(0.90, 0.08), (0.95, 0.05), (0.99, 0.03)];

/// Show how many ranks other bounds would have kept of a run, and how many bytes.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  ampl plan ampl-lmp-4242-20260101T120000 --confidence 0.9,0.99 --error 0.02,0.05"
)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Confidences to try, in (0, 1); without it, each group's own
    #[arg(long, value_name = "P", value_delimiter = ',', value_parser = fraction::inside)]
    confidence: Vec<f64>,
    /// Relative errors to try, in (0, 1); without it, each group's own
    #[arg(long, value_name = "E", value_delimiter = ',', value_parser = fraction::inside)]
    error: Vec<f64>,
    /// How many seeds to average over
    #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One bound; serialised, one element of what `--json` prints. Numbers are means over seeds; without a bound, those of
/// the run itself.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// The confidence tried; none where every group kept its own.
    confidence: Option<f64>,
    /// The relative error tried; none likewise.
    error: Option<f64>,
    /// Share of the ranks' time that was summarised, which the numbers of bounds rest on.
    coverage: f64,
    /// Rank-windows that would have been kept, including the first update interval; none where too little was
    /// summarised.
    kept_windows: Option<f64>,
    /// Rank-windows of the run.
    rank_windows: u64,
    /// Bytes of the trace file; none where the run kept too little to estimate it.
    bytes: Option<f64>,
    /// Groups in the order of the job file.
    groups: Vec<GroupRow>,
}

impl Row {
    /// Removes numbers that a part of the run does not give for all of it; of the run's `own` bounds the kept windows
    /// are known.
    fn forget(&mut self, own: bool) {
        self.groups.iter_mut().for_each(|group| group.coverage_window = None);
        if !own {
            (self.kept_windows, self.bytes) = (None, None);
            self.groups.iter_mut().for_each(|group| group.mean_size = None);
        }
    }
}

/// One group under one bound.
#[derive(Clone, Debug, Serialize)]
struct GroupRow {
    group: String,
    /// Ranks of the group.
    population: u64,
    /// Ranks kept of a window after the first update interval; none where the run is no longer than that.
    mean_size: Option<f64>,
    /// Share of those windows estimated within the bound, of the guide for which it is the smallest; none in a
    /// group of a fixed size.
    coverage_window: Option<f64>,
}

/// Prints the ranks and bytes that every bound would have kept.
///
/// # Errors
/// Errors of [`RunArg::read`] and of [`rundir::summarised`].
pub fn plan(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read()?;
    let plan = rundir::summarised(&trace, &args.run.run)?;
    let left_out = kept::left_out(&trace, &plan).join(" and ");
    if !left_out.is_empty() {
        let place = args.run.run.display();
        tell!(
            "ampl: other bounds are shown without the run's {left_out} ({place}): they may come to more than can be had"
        );
    }
    let coverage = run_times(&trace).coverage;
    let known = coverage.extent() != Extent::Little;
    if coverage.extent() != Extent::Whole {
        let place = args.run.run.display();
        let bounds = match known {
            true => "other bounds are shown",
            false => "of less than 90 % no other bound is shown",
        };
        tell!("ampl: the run was measured in {} ({place}): {bounds}", coverage.words());
    }
    let row = |bound| {
        let mut row = match bound {
            (None, None) => kept::row(&trace, &plan),
            bound => simulated(&trace, &plan, bound, args.seeds),
        };
        row.coverage = coverage.share;
        if !known {
            row.forget(bound == (None, None));
        }
        row
    };
    let rows: Vec<Row> = bounds(args).into_iter().map(row).collect();
    if args.json {
        output::json(&rows)?;
    } else {
        output::print(|out| table(out, &rows))?;
    }
    Ok(rundir::status(&trace))
}

/// Confidence and error, none for a group's own.
fn bounds(args: &Args) -> Vec<(Option<f64>, Option<f64>)> {
    if args.confidence.is_empty() && args.error.is_empty() {
        let usual = USUAL.map(|(confidence, error)| (Some(confidence), Some(error)));
        return std::iter::once((None, None)).chain(usual).collect();
    }
    let list = |values: &[f64]| match values {
        [] => vec![None],
        values => values.iter().copied().map(Some).collect(),
    };
    let errors = list(&args.error);
    let pairs = list(&args.confidence).into_iter();
    pairs.flat_map(|confidence| errors.iter().map(move |&error| (confidence, error))).collect()
}

fn simulated(trace: &Trace, plan: &Plan, bound: (Option<f64>, Option<f64>), seeds: u64) -> Row {
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
    let runs = match drive(&job, fill, (0, last), &seeds) {
        Ok(runs) => runs,
        Err(never) => match never {},
    };
    let groups = 0..job.plan.groups.len();
    let kept = runs.iter().flat_map(|run| &run.kept).sum::<u64>() as f64 / runs.len() as f64;
    let stored: u64 = trace.ranks.iter().map(|rank| rank.times.len() as u64).sum();
    let each = (trace.kept_windows() > 0).then(|| stored as f64 / trace.kept_windows() as f64);
    Row {
        confidence: bound.0,
        error: bound.1,
        coverage: 1.0,
        kept_windows: Some(kept),
        rank_windows: trace.ranks.iter().map(|rank| rank.windows.len() as u64).sum(),
        bytes: each.map(|each| trace.sizes.total.saturating_sub(stored) as f64 + each * kept),
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

fn table(out: &mut impl Write, rows: &[Row]) -> std::io::Result<()> {
    writeln!(
        out,
        "{:<16} {:<12} {:>9} {:>9} {:>9} {:>20} {:>10}",
        "bound", "group", "ranks", "of ranks", "covered", "kept rank-windows", "trace"
    )?;
    for row in rows {
        let bound = match (row.error, row.confidence) {
            (Some(error), Some(confidence)) => format!("± {} at {}", percent(error), percent(confidence)),
            (Some(error), None) => format!("± {}", percent(error)),
            (None, Some(confidence)) => format!("at {}", percent(confidence)),
            (None, None) => "as in the run".into(),
        };
        for (index, group) in row.groups.iter().enumerate() {
            let number = |number: Option<f64>| number.map_or("-".into(), digits);
            let whole = match index {
                0 => format!(
                    "{:>20} {:>10}",
                    format!("{} of {}", number(row.kept_windows), count(row.rank_windows)),
                    row.bytes.map_or("-".into(), bytes)
                ),
                _ => String::new(),
            };
            let line = format!(
                "{:<16} {:<12} {:>9} {:>9} {:>9} {whole}",
                if index == 0 { bound.as_str() } else { "" },
                group.group,
                number(group.mean_size),
                group.population,
                group.coverage_window.map_or("-".into(), percent),
            );
            writeln!(out, "{}", line.trim_end())?;
        }
    }
    writeln!(
        out,
        "\nranks, covered: kept of a window, and windows estimated within the bound, after the first update interval.\n\
         kept, trace: over the whole run; of bounds that were not the run's, at the bytes per kept rank-window that it took."
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Synthetic;

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
        let mut rows = [kept::row(&job.trace(), &plan), simulated(&job.trace(), &plan, (Some(0.9), None), 1)];
        rows[0].forget(true);
        rows[1].forget(false);
        assert!(rows[0].kept_windows.is_some() && rows[0].groups[0].mean_size.is_some());
        assert_eq!((rows[1].kept_windows, rows[1].bytes, rows[1].groups[0].mean_size), (None, None, None));
        assert!(rows.iter().all(|row| row.groups[0].coverage_window.is_none()));
    }
}
