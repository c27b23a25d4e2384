//! `ampl whatif`: the run on another network.

use std::process::ExitCode;

use ampl_analysis::ideal_network::{Ideal, ideal};
use ampl_reader::sites::Symbols;
use ampl_report::ideal_network as text;
use ampl_report::layout::width;
use serde::Serialize;

use crate::failure::{Failure, NOT_FOUND};
use crate::output;
use crate::rundir::{self, RunArg};
use ampl_launch::environment;

/// Evaluate a run on a network that costs nothing: serialisation, transfer, critical path.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Every message arrives when it is sent. What is left is computing, and waiting for others' computing. Compute times are
those between kept calls; elsewhere they are modelled from the ranks' sums.

Examples:
  ampl whatif ampl-lmp-4242-20260101T120000 --network ideal
  ampl whatif ampl-lmp-4242-20260101T120000 --network ideal --json")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// The network
    #[arg(long, value_enum)]
    network: Network,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A network.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Network {
    /// No latency, boundless bandwidth
    Ideal,
}

/// Output of `--json`.
#[derive(Debug, Serialize)]
struct Row<'a> {
    network: Network,
    /// `measured`, or `modelled` where some compute times are.
    basis: &'static str,
    #[serde(flatten)]
    ideal: &'a Ideal,
}

/// Prints the evaluation.
///
/// # Errors
/// Errors of [`RunArg::read`], a [`Failure`] of status 4 for a run that cannot be evaluated, and failures to write.
pub fn whatif(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read()?;
    let ideal = ideal(&trace, &mut Symbols::default()).map_err(|unknown| {
        let (what, fix) = text::refusal(&unknown);
        Failure::message(NOT_FOUND, what, args.run.run.display(), fix)
    })?;
    match args.json {
        true => {
            let basis = if ideal.modelled > 0.0 { "modelled" } else { "measured" };
            output::json(&Row { network: args.network, basis, ideal: &ideal })?;
        }
        false => {
            let text = text::text(&ideal, width(environment::columns()));
            output::text(&text)?;
        }
    }
    Ok(rundir::status(&trace))
}
