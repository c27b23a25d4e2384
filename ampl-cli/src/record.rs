//! `ampl record`: the records of runs that are there already.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use ampl_core::config::Config;
use ampl_export::archive;
use ampl_launch::{environment, inherited};

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

/// Time that the end of a job waits for its record.
const WITHIN: Duration = Duration::from_secs(10);

/// Has a process of its own write the records; fails where that has failed within the time.
fn apart(args: &Args) -> anyhow::Result<ExitCode> {
    inherited::leave_processor();
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("record").args(&args.runs).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut child, end) = (command.process_group(0).spawn()?, Instant::now() + WITHIN);
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(ExitCode::SUCCESS),
            Some(_) => return Ok(ExitCode::from(OTHER)),
            // An archive that is slow must not hold the job.
            None if Instant::now() >= end => return Ok(ExitCode::SUCCESS),
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Writes the records, and prints their paths to stderr.
///
/// # Errors
/// Errors of [`RunArg::read`]; a [`Failure`] of status 2 where no file is named, of status 1 where one cannot be written.
pub fn record(args: &Args) -> anyhow::Result<ExitCode> {
    if args.detached {
        return apart(args);
    }
    for run in &args.runs {
        let trace = RunArg { run: run.clone() }.read()?;
        let own = || Config::parse(&trace.run.config).ok().and_then(|(config, _)| config.output.record);
        let Some(template) = args.to.clone().or_else(own) else {
            let fix = "name a file with --to";
            return Err(Failure::message(USAGE, "the run has no output.record", run.display(), fix));
        };
        let job = trace.run.metadata.job.as_ref().map(|job| job.id.clone());
        // Without a scheduler, the directory is the name that nobody else has.
        let job = job.filter(|id| !id.is_empty()).unwrap_or_else(|| {
            let run = std::path::absolute(run).unwrap_or_else(|_| run.clone());
            let directory = if run.is_file() { run.parent() } else { Some(run.as_path()) };
            let name = directory.and_then(|directory| directory.file_name());
            name.unwrap_or_default().to_string_lossy().into_owned()
        });
        match archive::write(&trace, run, &template, &environment::user(), &job) {
            Ok(path) => tell!("ampl: record {}", path.display()),
            Err((path, why)) => {
                let what = format!("the record cannot be written: {why}");
                return Err(Failure::message(OTHER, what, path.display(), "name another file with --to"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
