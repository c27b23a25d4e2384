//! Messages about populations.

use std::io::ErrorKind;

use ampl_export::population::{Extent, Fault, OpenError, Population};

use crate::failure::{DAMAGED, Failure, NOT_FOUND};

/// The message that there is no such population, exit status 4.
pub fn failure(error: OpenError) -> anyhow::Error {
    let fix = match error.is_run {
        true => "a run is made a population by 'ampl export --to parquet RUN'",
        false => "name a CSV or Parquet file, or a directory that 'ampl export' wrote",
    };
    let status = if error.error.kind() == ErrorKind::NotFound { NOT_FOUND } else { DAMAGED };
    Failure::message(status, &error, error.path.display(), fix)
}

/// `fault` as the message about the file of `population`, exit status 3.
pub fn fault(population: &Population, fault: &Fault) -> anyhow::Error {
    let unit = if population.is_parquet() { "row" } else { "line" };
    let place = match fault.row {
        Some(row) => format!("{}, {unit} {row}", population.path().display()),
        None => population.path().display().to_string(),
    };
    Failure::message(DAMAGED, &fault.what, place, &fault.fix)
}

/// Refuses a population of which only a sample's windows were stored: its results would be true of the sample only.
///
/// # Errors
/// A [`Failure`] of status 4, as for such a run.
pub fn check_whole(population: &Population, extent: &Extent) -> anyhow::Result<()> {
    if !extent.sampled {
        return Ok(());
    }
    let what =
        "the population has a sample's windows only: coverage over it is not coverage over the population";
    let fix = "export a run with summaries = \"census\" and output.rank_summaries = \"all\"";
    Err(Failure::message(NOT_FOUND, what, population.path().display(), fix))
}
