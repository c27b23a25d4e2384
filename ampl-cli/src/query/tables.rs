//! `ampl query RUN ranks`, `durations` and `volume`: one table each.

use std::io::Write;
use std::process::ExitCode;

use ampl_analysis::query::distribution::distribution;
use ampl_analysis::query::durations::durations;
use ampl_analysis::query::volume::volume;
use ampl_report::layout::width;
use ampl_report::query as text;
use serde::Serialize;

use super::part::Part;
use crate::output;
use crate::progress::Progress;
use crate::rundir::RunArg;
use ampl_launch::environment;

/// Prints calls, time and bytes of each rank of a part.
///
/// # Errors
/// As [`summary_of`](super::summary::summary_of).
pub fn ranks_of(named: &RunArg, part: &Part) -> anyhow::Result<ExitCode> {
    let mut run = named.open()?;
    let selection = part.selection(&run, named)?;
    part.index(&mut run, named, &selection, false);
    let mut progress = Progress::of(run.ranks().len() as u64, "ranks");
    let found = distribution(&run, &selection, || progress.one_more());
    drop(progress);
    part.notice(&found.extent, &run, named)?;
    print(part, &found.rows, || text::ranks::text(&found))?;
    Ok(part.status(&run))
}

/// Prints the durations of the calls of a part.
///
/// # Errors
/// As [`summary_of`](super::summary::summary_of).
pub fn durations_of(named: &RunArg, part: &Part) -> anyhow::Result<ExitCode> {
    let mut run = named.open()?;
    let selection = part.selection(&run, named)?;
    part.index(&mut run, named, &selection, true);
    let mut progress = Progress::of(run.ranks().len() as u64, "ranks");
    let found = durations(&run, &selection, || progress.one_more());
    drop(progress);
    part.notice(&found.extent, &run, named)?;
    print(part, &found.rows, || text::durations::text(&found, width(environment::columns())))?;
    Ok(part.status(&run))
}

/// Prints the windows of a part.
///
/// # Errors
/// As [`summary_of`](super::summary::summary_of).
pub fn volume_of(named: &RunArg, part: &Part) -> anyhow::Result<ExitCode> {
    let run = named.open()?;
    let selection = part.selection(&run, named)?;
    let rows = volume(&run, &selection);
    if rows.is_empty() {
        return Err(part.no_window(named));
    }
    print(part, &rows, || text::volume::text(&rows))?;
    Ok(part.status(&run))
}

fn print<Row: Serialize>(part: &Part, rows: &[Row], text: impl FnOnce() -> String) -> anyhow::Result<()> {
    match part.json {
        true => output::json(&rows),
        false => output::print(|out| out.write_all(text().as_bytes())),
    }
}
