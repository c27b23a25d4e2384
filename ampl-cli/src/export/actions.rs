//! Actions of the ranks for simulators.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use ampl_analysis::actions::actions;
use ampl_export::place::Part;
use ampl_export::{goal, simgrid};
use ampl_report::actions::refused;
use ampl_report::human::{bytes, plural};
use ampl_trace::Trace;

use super::{beside, refuse_existing, unwritable};
use crate::failure::{Failure, NOT_FOUND};

/// Form of the actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Time-independent traces: a directory with a file for each rank.
    Simgrid,
    /// One text for LogGOPSim and htsim.
    Goal,
}

impl Format {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simgrid => "simgrid",
            Self::Goal => "goal",
        }
    }
}

/// Writes the file or the directory, whole or not at all, and prints its path to stderr.
///
/// # Errors
/// A [`Failure`] of status 2 where it exists, of status 4 where the actions would not be those of the run, of status 1
/// where it cannot be written.
pub fn write(run: &Path, output: Option<PathBuf>, trace: &Trace, format: Format) -> anyhow::Result<()> {
    let target = output.unwrap_or_else(|| match format {
        Format::Simgrid => beside(run, "simgrid"),
        Format::Goal => beside(run, "trace.goal"),
    });
    refuse_existing(&target, if format == Format::Goal { "file" } else { "directory" })?;
    let found = actions(trace, format == Format::Simgrid).map_err(|refusal| {
        let (what, fix) = refused(&refusal);
        Failure::message(NOT_FOUND, what, run.display(), fix)
    })?;
    let failed = |error| unwritable(&target, &error);
    match format {
        Format::Goal => {
            let mut out = BufWriter::new(Part::beside(&target).map_err(failed)?);
            goal::write(&found, &mut out).and_then(|()| out.flush()).map_err(failed)?;
            let part = out.into_inner().map_err(|error| failed(error.into_error()))?;
            part.finish(&target).map_err(failed)?;
        }
        Format::Simgrid => {
            simgrid::write(&found, &target).map_err(failed)?;
        }
    }
    let all: u64 = found.ranks.iter().map(|own| own.len() as u64).sum();
    notice!(
        "ampl: {} in {}: {} of {}, {}",
        plural(all, "action"),
        target.display(),
        plural(found.messages, "message"),
        bytes(found.bytes as f64),
        plural(found.collectives, "collective")
    );
    if found.modelled_ns > 0 {
        notice!(
            "ampl: computing of windows that are not kept is modelled from the ranks' sums ({})",
            run.display()
        );
    }
    Ok(())
}
