//! `ampl report`: a run as one HTML file.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ampl_html::{Source, write};
use ampl_reader::{Run, directory};

use crate::failure::{Failure, OTHER};
use crate::output;
use crate::rundir::{self, RunArg};

/// Write the report of a run: one HTML file for any browser, without a network.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The report has the verdict, efficiencies by window, ranks by windows, call sites, estimates, messages and what was not
covered. A range of time that is selected in it recomputes its charts and numbers.

Examples:
  ampl report ampl-lmp-4242-20260101T120000
  ampl report ampl-lmp-4242-20260101T120000 -o melt.html")]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// The file to write [default: report.html in the run directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the report and prints the name of its file.
///
/// # Errors
/// Errors of [`RunArg::read`], and a [`Failure`] of status 1 where the file cannot be written.
pub fn report(args: &Args) -> anyhow::Result<ExitCode> {
    let opened = Run::from(args.run.read()?);
    let trace = opened.whole().expect("it was read whole");
    let run = &args.run.run;
    let file = args.output.clone().unwrap_or_else(|| inside(run));
    let mut page = Vec::new();
    write(&mut page, trace, &Source { run, has_file: !directory::has_no_trace(run), calls: Some(&opened) })?;
    fs::write(&file, &page).map_err(|error| {
        let fix = "name a file that can be written, with -o FILE.html";
        Failure::message(OTHER, format!("cannot write the report: {error}"), file.display(), fix)
    })?;
    output::print(|out| writeln!(out, "{}", file.display()))?;
    Ok(rundir::status(trace))
}

/// The report's place in the directory of `run`, which may be the trace file itself.
fn inside(run: &Path) -> PathBuf {
    let directory = if run.is_dir() { run } else { run.parent().unwrap_or(Path::new("")) };
    directory.join("report.html")
}
