//! `ampl query RUN summary`.

use std::process::ExitCode;

use ampl_analysis::query::ranks_with_regions;
use ampl_analysis::query::summary::summary;
use ampl_report::layout::width;
use ampl_report::query::summary::text;

use super::part::Part;
use crate::output;
use crate::progress::Progress;
use crate::rundir::RunArg;
use ampl_launch::environment;

/// Prints the summary of a part.
///
/// # Errors
/// Errors of [`RunArg::open`] and [`Part::selection`], and failures to write.
pub fn summary_of(named: &RunArg, part: &Part) -> anyhow::Result<ExitCode> {
    let mut run = named.open()?;
    let selection = part.selection(&run, named)?;
    part.take_index(&mut run, named);
    let with_regions = ranks_with_regions(&run);
    // Times of all calls of the run are in the census, those of regions are not.
    let needs_times = !selection.takes_all(run.info().ranks) || !with_regions.is_empty();
    part.index(&mut run, named, &selection, needs_times);
    let mut progress = Progress::of(run.ranks().len() as u64, "ranks");
    let found = summary(&run, &selection, &with_regions, || progress.one_more());
    drop(progress);
    part.notice(&found.extent, &run, named)?;
    match part.json {
        true => output::json(&found.rows.iter().chain(&found.regions).collect::<Vec<_>>())?,
        false => output::text(&text(&found, width(environment::columns())))?,
    }
    Ok(part.status(&run))
}
