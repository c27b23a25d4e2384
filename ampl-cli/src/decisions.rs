//! `ampl decisions`: how many ranks were kept, from when on, and why.

use std::process::ExitCode;

use ampl_analysis::decisions::{absolute_groups, in_force};
use ampl_analysis::estimate::windows_per_update;
use ampl_report::decisions as report;

use crate::output;
use crate::rundir::{self, RunArg};

/// List every decision about who is kept.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl decisions ampl-lmp-4242-20260101T120000")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also what was drawn beforehand of windows that were decided when they were over
    #[arg(long)]
    all: bool,
}

/// Prints the decisions of a run.
///
/// # Errors
/// Errors of [`RunArg::read`], and failures to write.
pub fn decisions(args: &Args) -> anyhow::Result<ExitCode> {
    let mut trace = args.run.read()?;
    if !args.all {
        let windows_per_update = rundir::plan(&trace).map_or(1, |plan| windows_per_update(&plan));
        trace.decisions = in_force(std::mem::take(&mut trace.decisions), windows_per_update, trace.windows());
    }
    // A window may be decided after those behind it.
    trace.decisions.sort_by_key(|decision| decision.window);
    if args.json {
        output::json(&trace.decisions)?;
    } else {
        output::print(|out| report::table(out, &trace.decisions, &absolute_groups(&trace)))?;
    }
    Ok(rundir::status(&trace))
}
