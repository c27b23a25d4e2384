//! `ampl query RUN timeline`.

use std::process::ExitCode;

use ampl_analysis::query::timeline::{MOST_PIXELS, timeline};
use ampl_report::layout::width;
use ampl_report::query::timeline::{pixels, text};

use super::part::Part;
use crate::output;
use crate::progress::Progress;
use crate::rundir::RunArg;
use ampl_launch::environment;

/// Options of `timeline`.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Number of pixels; as many as fit into a line unless it is given
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_PIXELS)))]
    width: Option<u32>,
}

/// Prints the timeline of a part.
///
/// # Errors
/// As [`summary_of`](super::summary::summary_of).
pub fn timeline_of(named: &RunArg, part: &Part, args: &Args) -> anyhow::Result<ExitCode> {
    let mut run = named.open()?;
    let selection = part.selection(&run, named)?;
    part.index(&mut run, named, &selection, true);
    let columns = width(environment::columns());
    let mut progress = Progress::of(run.ranks().len() as u64, "ranks");
    let found = timeline(&run, &selection, args.width.unwrap_or(pixels(columns)), || progress.one_more());
    drop(progress);
    let Some(found) = found else { return Err(part.no_window(named)) };
    part.notice(&found.extent, &run, named)?;
    match part.json {
        true => output::json(&found)?,
        false => {
            let text = text(&found, columns);
            output::text(&text)?;
        }
    }
    Ok(part.status(&run))
}
