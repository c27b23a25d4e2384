//! `ampl efficiency`: share of the ranks' time that computes, and the ranks that the others wait for.

use std::io::Write;
use std::process::ExitCode;

use ampl_analysis::efficiency::{OfProgram, Row, by_program, rows};
use ampl_analysis::phases::{self, Phase};
use ampl_analysis::processors::Sharing;
use ampl_analysis::waits::{Between, between_programs};
use ampl_report::{efficiency as report, processors};
use serde::Serialize;

use crate::output;
use crate::rundir::{self, RunArg};

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

/// A row in JSON.
#[derive(Debug, Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// Ranks that had to share processors, on the run's row; none where no sign of it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<&'a Sharing>,
    /// On the run's row: its phases, if it has several.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    phases: &'a [Phase],
    /// On the run's row: its programs, if it has several.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    programs: &'a [OfProgram],
    /// On the run's row: waits between its programs, if it has several.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    waits_between_programs: &'a [Between],
}

/// Prints the efficiencies of a run and of its windows.
///
/// # Errors
/// Errors of [`RunArg::read`], and failures to write.
pub fn efficiency(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read()?;
    let rows = rows(&trace);
    let (sharing, phases) = (Sharing::of(&trace), phases::of(&trace));
    let programs = by_program(&trace);
    if args.json {
        let between = if programs.is_empty() { Vec::new() } else { between_programs(&trace) };
        let with = |(index, row)| Shown {
            row,
            processors: sharing.as_ref().filter(|_| index == 0),
            phases: if index == 0 { &phases } else { &[] },
            programs: if index == 0 { &programs } else { &[] },
            waits_between_programs: if index == 0 { &between } else { &[] },
        };
        output::json(&rows.iter().enumerate().map(with).collect::<Vec<_>>())?;
    } else {
        output::print(|out| {
            sharing.iter().try_for_each(|sharing| writeln!(out, "{}\n", processors::text(sharing)))?;
            report::write(out, &rows, &phases, &programs)
        })?;
    }
    Ok(rundir::status(&trace))
}
