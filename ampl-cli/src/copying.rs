//! `ampl copy-journals`: started by the library on each node, for `output.copy`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ampl_launch::copying;

/// Copy the journals in a node's memory to the run directory until the node's last rank has ended.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl copy-journals RUN /dev/shm/ampl-1000/RUN-18a 60000")]
pub struct Args {
    run: PathBuf,
    journals: PathBuf,
    /// Milliseconds between two copies
    interval: u64,
    /// Start another process that does it, and end
    #[arg(long)]
    detached: bool,
    /// Copy them once, as they are now, to this directory instead
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "detached")]
    once: Option<PathBuf>,
}

/// Copies, or has another process do so.
///
/// # Errors
/// Errors of the run directory, or of starting a process.
pub fn copy(args: &Args) -> anyhow::Result<ExitCode> {
    let Args { run, journals, interval, detached, once } = args;
    copying::run(run, journals, Duration::from_millis(*interval), *detached, once.as_deref())?;
    Ok(ExitCode::SUCCESS)
}
