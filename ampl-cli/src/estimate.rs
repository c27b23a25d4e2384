//! `ampl estimate`: mean of each metric, with its confidence interval.

use std::process::ExitCode;

use ampl_analysis::estimate::{Row, Scope, rows};
use ampl_report::estimate as report;

use crate::failure::{DAMAGED, Failure, NOT_FOUND};
use crate::output;
use crate::rundir::{self, RunArg};

/// Span that rows are about, as the command line names it.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ScopeArg {
    /// One window.
    Window,
    /// The windows between two directives.
    Update,
    /// The whole run.
    Run,
}

impl From<ScopeArg> for Scope {
    fn from(arg: ScopeArg) -> Self {
        match arg {
            ScopeArg::Window => Self::Window,
            ScopeArg::Update => Self::Update,
            ScopeArg::Run => Self::Run,
        }
    }
}

/// Print means with confidence intervals, per window, update interval and run.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  ampl estimate ampl-lmp-4242-20260101T120000 --metric mpi.time --scope window"
)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Only rows of that scope; the table shows the run unless a window is named
    #[arg(long, value_enum)]
    scope: Option<ScopeArg>,
    /// Only rows of that window, or of the update interval that starts with it
    #[arg(long, value_name = "N")]
    window: Option<u64>,
    /// Only rows of that metric
    #[arg(long, value_name = "NAME")]
    metric: Option<String>,
}

/// Prints the estimates of a run.
///
/// # Errors
/// Errors of [`RunArg::read`]; a [`Failure`] of status 3 when the run's configuration cannot be read, of status 4
/// when no row is about the window or metric named.
pub fn estimate(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read()?;
    let place = args.run.run.display();
    let Some(plan) = rundir::plan(&trace) else {
        let fix = "keep run.toml beside the journals of a run that was not merged";
        return Err(Failure::message(DAMAGED, "the run's configuration cannot be read", place, fix));
    };
    if let Some(limits) = report::limits(&plan) {
        notice!("ampl: {limits} ({place}): set it to \"all\" for the next run");
    }
    let all = rows(&trace, &plan);
    let asked = |row: &Row| {
        args.window.is_none_or(|window| row.window == Some(window))
            && args.metric.as_ref().is_none_or(|metric| *metric == row.metric)
    };
    let found: Vec<Row> = all.into_iter().filter(asked).collect();
    if found.is_empty() && (args.window.is_some() || args.metric.is_some()) {
        let fix = format!(
            "windows go from 0 to {}; see 'ampl estimate RUN' for metrics",
            trace.windows().max(1) - 1
        );
        return Err(Failure::message(NOT_FOUND, "no such window or metric", place, fix));
    }
    let asked = args.scope.map(Scope::from);
    let of_scope = |scope: Option<Scope>| {
        let mut rows = found.clone();
        rows.retain(|row| scope.is_none_or(|scope| row.scope == scope));
        rows
    };
    if args.json {
        output::json(&of_scope(asked))?;
        return Ok(rundir::status(&trace));
    }
    let default = if args.window.is_some() { Scope::Window } else { Scope::Run };
    let scope = asked.unwrap_or(default);
    output::print(|out| {
        report::write(out, &of_scope(Some(scope)), asked.is_none() && args.window.is_none())
    })?;
    Ok(rundir::status(&trace))
}
