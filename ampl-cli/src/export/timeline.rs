//! The calls of a run over time, as one file.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use ampl_core::plan::Plan;
use ampl_export::place::{Part, directory_of};
use ampl_export::{Selection, perfetto};
use ampl_report::human::count;
use ampl_trace::Trace;

use super::{KEEP_TIMES, beside, notice, refuse_empty, refuse_existing, unwritable};
use crate::progress::Progress;

/// Format of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Perfetto's protobuf.
    Perfetto,
}

impl Format {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Perfetto => "perfetto",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Self::Perfetto => "trace.perfetto-trace",
        }
    }
}

/// Writes the file, whole or not at all, and prints its path to stderr.
///
/// # Errors
/// A [`Failure`] of status 2 where the file exists, of status 4 where no call has a time, of status 1 where it cannot be
/// written.
pub fn write(
    run: &Path,
    output: Option<PathBuf>,
    trace: &Trace,
    plan: &Plan,
    selection: &Selection,
    format: Format,
) -> anyhow::Result<()> {
    let file = output.unwrap_or_else(|| beside(run, format.file()));
    refuse_existing(&file, "file")?;
    let unwritable = |error| unwritable(&file, &error);
    let part = Part::beside(&file).map_err(unwritable)?;
    let mut progress = Progress::of(trace.ranks.len() as u64, "ranks");
    let (place, mut out) = (directory_of(&file), BufWriter::new(part));
    let written = match format {
        Format::Perfetto => perfetto::write(trace, plan, selection, &mut out, place, || progress.one_more()),
    };
    drop(progress);
    let written = written.and_then(|written| out.flush().map(|()| written)).map_err(unwritable)?;
    refuse_empty(&written, run)?;
    notice(&written, run, KEEP_TIMES);
    let part = out.into_inner().map_err(|error| unwritable(error.into_error()))?;
    part.finish(&file).map_err(unwritable)?;
    notice!("ampl: {} calls in {}", count(written.rows), file.display());
    Ok(())
}
