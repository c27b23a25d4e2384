//! A run as a trace file of its own.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use ampl_export::anonymous::anonymise;
use ampl_export::copy;
use ampl_export::place::Part;
use ampl_report::human::bytes;
use ampl_trace::Trace;

use super::{beside, refuse_existing, unwritable};
use crate::progress::Progress;

/// Writes the file, whole or not at all, and prints its path to stderr. Where it is to be `anonymous`, without names.
///
/// # Errors
/// A [`crate::failure::Failure`] of status 2 where it exists, of status 1 where it cannot be written.
pub fn write(run: &Path, output: Option<PathBuf>, mut trace: Trace, anonymous: bool) -> anyhow::Result<()> {
    let name = if anonymous { "anonymous.ampl" } else { "copy.ampl" };
    let file = output.unwrap_or_else(|| beside(run, name));
    refuse_existing(&file, "file")?;
    let unwritable = |error| unwritable(&file, &error);
    let part = Part::beside(&file).map_err(unwritable)?;
    if anonymous {
        let mut progress = Progress::of(trace.ranks.len() as u64, "ranks");
        anonymise(&mut trace, || progress.one_more());
    }
    let out = copy::write(&trace, BufWriter::new(part)).map_err(unwritable)?;
    let part = out.into_inner().map_err(|error| unwritable(error.into_error()))?;
    let size = part.as_file().metadata().map_err(unwritable)?.len();
    part.finish(&file).map_err(unwritable)?;
    notice!("ampl: {} in {}", bytes(size as f64), file.display());
    Ok(())
}
