//! `ampl query RUN waits`: who waits for whom.

use std::process::ExitCode;

use ampl_analysis::waits;
use ampl_reader::sites::Symbols;
use ampl_report::layout::width;
use ampl_report::waits as text;

use super::part::Part;
use crate::output;
use crate::rundir::{self, RunArg};
use ampl_launch::environment;

/// Prints the waits of a part of the run.
///
/// # Errors
/// Errors of [`RunArg::read`] and of [`Part::selection`], and failures to write.
pub fn of_query(run: &RunArg, part: &Part) -> anyhow::Result<ExitCode> {
    let selection = part.selection(&run.open()?, run)?;
    let trace = run.read()?;
    let found = waits::waits(&trace, &selection, &mut Symbols::default());
    match part.json {
        true => output::json(&found.rows)?,
        false => output::text(&text::text(&found, width(environment::columns())))?,
    }
    Ok(rundir::status(&trace))
}
