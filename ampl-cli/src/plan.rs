//! `ampl plan`: ranks that other bounds would have kept of a run, and bytes.

use std::process::ExitCode;

use ampl_analysis::coverage::Extent;
use ampl_analysis::efficiency::run_times;
use ampl_analysis::what_if::{LeftOut, Row, kept_row, left_out, simulated};
use ampl_report::{coverage, plan as report};

use crate::fraction;
use crate::output;
use crate::progress::Progress;
use crate::rundir::{self, RunArg};

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

/// Prints the ranks and bytes that every bound would have kept.
///
/// # Errors
/// Errors of [`RunArg::read`] and of [`rundir::summarised`].
pub fn plan(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read()?;
    let plan = rundir::summarised(&trace, &args.run.run)?;
    let left_out: Vec<_> = left_out(&trace, &plan).into_iter().map(LeftOut::name).collect();
    let place = args.run.run.display();
    if !left_out.is_empty() {
        let left_out = left_out.join(" and ");
        notice!(
            "ampl: other bounds are shown without the run's {left_out} ({place}): they may come to more than can be had"
        );
    }
    let measured = run_times(&trace).coverage;
    let known = measured.extent() != Extent::Little;
    if measured.extent() != Extent::Whole {
        let bounds = match known {
            true => "other bounds are shown",
            false => "of less than 90 % no other bound is shown",
        };
        notice!("ampl: the run was measured in {} ({place}): {bounds}", coverage::words(&measured));
    }
    let row = |bound| {
        let mut row = match bound {
            (None, None) => kept_row(&trace, &plan),
            bound => {
                let mut progress = Progress::of(trace.windows(), "windows");
                simulated(&trace, &plan, bound, args.seeds, || progress.one_more())
            }
        };
        row.coverage = measured.share;
        if !known {
            row.forget(bound == (None, None));
        }
        row
    };
    let rows: Vec<Row> = bounds(args).into_iter().map(row).collect();
    if args.json {
        output::json(&rows)?;
    } else {
        output::print(|out| report::table(out, &rows))?;
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
