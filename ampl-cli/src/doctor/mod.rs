//! `ampl doctor`: what would happen on this machine, with this program.

mod config;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use ampl_launch::examination::Report;
use ampl_launch::leftovers;

use crate::output;

/// Say what would happen here: MPI, symbols, clock, file system, launchers.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl doctor ./app\n  ampl doctor --config -c job.toml")]
pub struct Args {
    /// The program that would be run
    #[arg(value_name = "APP")]
    app: Option<PathBuf>,
    /// One JSON document instead of lines
    #[arg(long)]
    json: bool,
    /// Only free the memory of this node that journals take whose processes are gone
    #[arg(long, conflicts_with_all = ["app", "json"])]
    clean: bool,
    /// Only print every setting of a job started here, and the layer that it comes from
    #[arg(long, conflicts_with_all = ["app", "clean"])]
    config: bool,
    /// Job file or recipe, for --config
    #[arg(short = 'c', value_name = "JOB.toml", requires = "config")]
    job_file: Option<OsString>,
    /// Set one key, for --config
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "config")]
    set: Vec<String>,
    /// Hooks, for --config
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "config")]
    hooks: Vec<String>,
}

/// Prints the report to stdout; 0 also when it names problems.
///
/// # Errors
/// The program named does not exist (4), or the configuration is wrong (2).
pub fn doctor(args: &Args) -> anyhow::Result<ExitCode> {
    if args.clean {
        leftovers::clean().iter().for_each(|line| notice!("{line}"));
        return Ok(ExitCode::SUCCESS);
    }
    if args.config {
        config::print(args)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report =
        Report::of(args.app.as_deref(), env!("CARGO_PKG_VERSION"), cfg!(target_feature = "crt-static"))?;
    if args.json {
        output::json(&report)?;
    } else {
        output::print(|out| report.lines().iter().try_for_each(|line| writeln!(out, "{line}")))?;
    }
    Ok(ExitCode::SUCCESS)
}
