//! `ampl efficiency`: how much of the ranks' time computes, and whom the others wait for.

mod bounds;
mod columns;
mod imbalance;
mod rows;
mod run;
mod shares;
mod table;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use crate::output;
use crate::rundir::{self, RunArg};

pub use columns::Columns;
pub use rows::Basis;
pub use run::{RunTimes, counted_spans, is_only_counted, measured_share, run_times};
pub use shares::{Shares, Times};

/// Show parallel efficiency, load balance and communication efficiency, and the slowest rank and host.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  ampl efficiency ampl-lmp-4242-20260101T120000")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints the efficiencies of a run and of its windows.
///
/// # Errors
/// Those of [`RunArg::read`], and failures to write.
pub fn efficiency(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read()?;
    let rows = rows::rows(&trace);
    if args.json {
        output::json(&rows)?;
    } else {
        output::print(|out| table::write(out, &rows))?;
    }
    Ok(rundir::status(&trace))
}
