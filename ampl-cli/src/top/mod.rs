//! `ampl top`: a job while it runs.

mod reading;
mod screen;

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use ampl_core::config::nanoseconds;
use ampl_report::layout::width;
use ampl_report::live;

use crate::failure::{Failure, USAGE};
use crate::output;
use crate::rundir::{self, RunArg};
use ampl_launch::environment;

/// Shortest time between two readings.
const SHORTEST: Duration = Duration::from_millis(100);

/// Show a job while it runs: who waits for whom, calls of all ranks, efficiency, sample and cost.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Reads the run directory and the journals of this node, and nothing else: the job sends and waits for nothing, and no
port is opened. Leaving it leaves the job alone. Reading takes a tenth of one processor at most, at the lowest priority.

Keys: q, Esc or Ctrl-C leave; arrows, Page Up and Page Down scroll.

Examples:
  ampl top ampl-lmp-4242-20260101T120000
  ampl top ampl-lmp-4242-20260101T120000 --once | head -20
  srun --overlap --jobid 4242 -w node7 --pty ampl top ampl-lmp-4242-20260101T120000")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print one frame as text and end; so it is, too, where the output is no terminal
    #[arg(long)]
    once: bool,
    /// Time between two readings, at least
    #[arg(long, value_name = "TIME", default_value = "1s")]
    interval: String,
}

/// Shows the run until the user leaves, or prints it once.
///
/// # Errors
/// Errors of reading the run for the first time, and of the terminal.
pub fn top(args: &Args) -> anyhow::Result<ExitCode> {
    let interval = nanoseconds(&args.interval).map(Duration::from_nanos).ok_or_else(|| {
        let what = format!("'{}' is not a time", args.interval);
        Failure::message(USAGE, what, "--interval", "write it as in 1s or 250ms")
    })?;
    // Processors belong to the job.
    let _ = rustix::process::setpriority_process(None, 19);
    let run = &args.run.run;
    let first = reading::Reader::new(run).read().map_err(rundir::failure)?;
    if args.once || !std::io::stdout().is_terminal() {
        let text = live::text(&first.view(run, None), width(environment::columns()));
        output::text(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    screen::watch(run, first, interval.max(SHORTEST))
}
