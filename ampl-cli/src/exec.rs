//! `ampl exec`: becomes the application, with `libampl.so` loaded first.

use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use ampl_core::naming::STARTED_VARIABLE;
use ampl_launch::application::{Prepared, prepare};
use ampl_launch::{environment, inherited, launcher, once};

use crate::job_args::JobArgs;

/// Become the application, with ampl loaded; for use after any launcher.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  mpirun -n 8 ampl exec -c job.toml -- ./app input.txt")]
pub struct Args {
    #[command(flatten)]
    job: JobArgs,
    /// Print the environment that the application would get, and stop
    #[arg(long)]
    dry_run: bool,
    /// `ampl run` has read the configuration and said what is to be said about it
    #[arg(long, hide = true)]
    checked: bool,
    /// The application's command line, after --
    #[arg(trailing_var_arg = true, required = true, value_name = "APP")]
    command: Vec<OsString>,
}

/// Replaces this process by the application; returns only if that fails, or for `--dry-run`.
///
/// # Errors
/// The application was not started: configuration, run directory or library are at fault.
pub fn exec(args: Args) -> anyhow::Result<ExitCode> {
    let Prepared { variables, command } = match environment::disabled() {
        true => Prepared { variables: Vec::new(), command: args.command.clone() },
        false => prepare(&args.job.request(), args.checked, &args.command)?,
    };
    if args.dry_run {
        let mut out = std::io::stdout().lock();
        for (name, value) in &variables {
            out.write_all(&[name.as_bytes(), b"=", value.as_bytes(), b"\n"].concat())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).envs(variables);
    program.env(STARTED_VARIABLE, environment::processor_ns().to_string());
    let error = inherited::hand_on(&mut program).exec();
    // The numbers that shells use.
    let (status, fix) = match error.kind() {
        ErrorKind::NotFound => (127, "check its path"),
        _ => (126, "check that it is a program for this machine that you may execute"),
    };
    let name = args.command[0].to_string_lossy();
    let said = format!("ampl: cannot start the application: {error} ({name}): {fix}");
    if once::is_first(&said) {
        notice!("{said}");
        launcher::end_job(status);
    } else {
        launcher::wait_for_report();
    }
    Ok(ExitCode::from(status))
}
