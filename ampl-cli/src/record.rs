//! `ampl record`: the records of runs that are there already.

use std::path::PathBuf;
use std::process::ExitCode;

use ampl_core::config::Config;
use ampl_export::archive;
use ampl_launch::{apart, directory, environment};

use crate::failure::{Failure, OTHER, USAGE};
use crate::rundir::RunArg;

/// Write the record of each run to an archive; jobs do it by themselves.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Example:\n  ampl record ampl-app-4242-20260101T120000 --to '/archive/{user}/{jobid}.json'"
)]
pub struct Args {
    /// Run directories, or their trace.ampl
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,
    /// File for each record; without it, output.record of the run's own configuration
    #[arg(long, value_name = "PATH")]
    to: Option<String>,
    /// Have another process do it, and wait ten seconds for it at most
    #[arg(long, hide = true)]
    detached: bool,
}

/// Writes the records, and prints their paths to stderr.
///
/// # Errors
/// Errors of [`RunArg::read`]; a [`Failure`] of status 2 where no file is named, of status 1 where one cannot be written.
pub fn record(args: &Args) -> anyhow::Result<ExitCode> {
    if args.detached {
        let words =
            [vec!["record".into()], args.runs.iter().map(|run| run.clone().into()).collect()].concat();
        return Ok(if apart::run(&words)? { ExitCode::SUCCESS } else { ExitCode::from(OTHER) });
    }
    for run in &args.runs {
        let trace = RunArg { run: run.clone() }.read()?;
        let own = || Config::parse(&trace.run.config).ok().and_then(|(config, _)| config.output.record);
        let Some(template) = args.to.clone().or_else(own) else {
            let fix = "name a file with --to";
            return Err(Failure::message(USAGE, "the run has no output.record", run.display(), fix));
        };
        let job = directory::job_of(&trace, run);
        match archive::write(&trace, run, &template, &environment::user(), &job) {
            Ok(path) => notice!("ampl: record {}", path.display()),
            Err((path, why)) => {
                let what = format!("the record cannot be written: {why}");
                return Err(Failure::message(OTHER, what, path.display(), "name another file with --to"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
