//! `ampl check`: faults of a program's communication, without MPI.

use std::process::ExitCode;

use ampl_analysis::check::{Checked, check};
use ampl_reader::sites::Symbols;
use ampl_report::check as text;
use ampl_report::layout::width;
use serde::Serialize;

use crate::output;
use crate::rundir::{self, RunArg};
use ampl_launch::environment;

/// Some fault was found.
const FAULTS: u8 = 5;

/// Check a run's communication: what does not match, would hang, or is never freed.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Sends are compared with receives, and the ranks' collectives with each other, from the recorded calls; nothing runs.
The exit status is 5 where a fault is found. Objects that a program keeps to its end and leaves to MPI_Finalize are
noted, and are no fault.

Examples:
  ampl check ampl-lmp-4242-20260101T120000
  ampl check ampl-lmp-4242-20260101T120000 --json")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A fault; the order of fields is part of the format.
#[derive(Debug, Serialize)]
struct Row {
    rank: u32,
    seq: u64,
    function: &'static str,
    kind: &'static str,
    text: String,
    site: Option<String>,
    thread: u32,
    /// False of objects that are left to `MPI_Finalize` by habit.
    fault: bool,
}

/// Prints the faults.
///
/// # Errors
/// Errors of [`RunArg::read`], and failures to write.
pub fn check_of(args: &Args) -> anyhow::Result<ExitCode> {
    let trace = args.run.read()?;
    let checked = check(&trace);
    let mut symbols = Symbols::default();
    match args.json {
        true => output::json(&rows(&checked, &mut symbols))?,
        false => {
            let text = text::text(&checked, &mut symbols, width(environment::columns()));
            output::text(&text)?;
        }
    }
    let faults = checked.findings.iter().any(|finding| finding.problem.is_fault());
    Ok(if faults { ExitCode::from(FAULTS) } else { rundir::status(&trace) })
}

fn rows(checked: &Checked, symbols: &mut Symbols) -> Vec<Row> {
    let row = |finding: &ampl_analysis::check::Finding| Row {
        rank: finding.rank,
        seq: finding.seq,
        function: finding.function.name(),
        kind: text::kind(finding.problem.kind()),
        text: text::sentence(&finding.problem),
        site: text::site(finding, symbols),
        thread: finding.thread,
        fault: finding.problem.is_fault(),
    };
    checked.findings.iter().map(row).collect()
}
