//! `ampl run`: starts a launcher with `ampl exec` put before every program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ampl_export::archive;
use ampl_launch::directory::{self, job_id};
use ampl_launch::job::{Job, Site};
use ampl_launch::launcher::{Flavour, Inserted};
use ampl_launch::start::{
    Awaited, code, exec_argv, files, flavour, insert, resolve_sites, sets_libraries, spawn, starts_here,
    wait, written,
};
use ampl_launch::{counting, environment, leftovers, library, recover};
use ampl_reader::Trace;

use crate::job_args::JobArgs;
use crate::summary;

/// Run an MPI program under ampl; returns the launcher's exit status.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl run -c job.toml -- mpirun -n 8 ./app input.txt")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// The launcher's command line, after --
    #[arg(trailing_var_arg = true, required = true, value_name = "LAUNCHER")]
    command: Vec<OsString>,
}

/// Runs the launcher and returns its status, after the summary.
///
/// # Errors
/// Nothing was started: configuration, run directory, library or command line are at fault.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if environment::disabled() {
        // The variable may not reach other hosts; leaving the command line alone does.
        return Ok(ExitCode::from(code(wait(&mut spawn(&args.command)?)?)));
    }
    let mut job = Job::load(&args.job.request(), true, Site::Checked)?;
    directory::refuse_named(&job)?;
    let Inserted { programs, .. } = insert(&args.command, &[])?;
    if starts_here(&args.command) {
        let files = if sets_libraries(&args.command) { Vec::new() } else { files(&programs) };
        counting::check(&job.config, &files)?;
    }
    library::find()?;
    if let Some(said) = leftovers::said() {
        notice!("{said}");
    }
    let request = args.job.request();
    let dir = directory::choose(&request, &job, &programs)?;
    let resolved = resolve_sites(&mut job, &programs)?;
    let exec = exec_argv(&request, &job, &dir, resolved)?;
    let (argv, _copies) = written(insert(&args.command, &exec)?)?;
    let flavour = flavour(&args.command);
    let awaited = Awaited::begin(&dir);
    let mut child = spawn(&argv)?;
    let status = wait(&mut child)?;
    let trace = after_run(&dir, awaited.is_over(), flavour);
    if let Some(template) = job.config.output.record.as_ref().filter(|_| dir.is_dir()) {
        keep_record(trace.as_ref(), &dir, template);
    }
    Ok(ExitCode::from(code(status)))
}

/// Prints the result of the run to stderr; nothing where the library has `said` why nothing was recorded. Returns the run.
fn after_run(dir: &Path, said: bool, launcher: Option<Flavour>) -> Option<Trace> {
    if dir.is_dir() {
        recover::after_launch(dir, launcher);
        notice!("ampl: run directory {}", dir.display());
        return summary::print(dir);
    }
    if !said {
        notice!("{}", directory::unrecorded(dir));
    }
    None
}

/// Writes the record of the run in `dir`, which is `trace`.
fn keep_record(trace: Option<&Trace>, dir: &Path, template: &str) {
    let written = match trace {
        Some(trace) => archive::write(trace, dir, template, &environment::user(), &job_id()),
        None => Err((PathBuf::from(template), "the run cannot be read".into())),
    };
    if let Err((path, why)) = written {
        notice!(
            "ampl: the record of the run was not written: {why} ({}): check output.record, then 'ampl record RUN'",
            path.display()
        );
    }
}
