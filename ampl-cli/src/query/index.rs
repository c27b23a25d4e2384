//! The index of a run's times: made when the first question needs times, and kept beside the trace.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use ampl_analysis::query::index;
use ampl_reader::Run;
use ampl_report::human::plural;
use clap::ValueEnum;

use crate::output::part_beside;
use crate::progress::Progress;
use crate::rundir::RunArg;

/// Bytes of times that are read as fast without an index.
const FEW_BYTES: u64 = 1 << 20;

/// Use of an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Index {
    /// Use the index beside the trace; make one where there is none and times take more than 1 MiB.
    #[default]
    Auto,
    /// Make it anew, whatever the trace's size.
    Build,
    /// Read the times of the trace.
    Off,
}

/// The index beside the trace of `run` is used from here on, and made where that is worth it.
pub fn prepare(run: &mut Run, named: &RunArg, wanted: Index) {
    if wanted == Index::Off || wanted == Index::Auto && run.take_index(&named.run) {
        return;
    }
    let is_large = run.sizes().timing > FEW_BYTES;
    let Some((place, identity)) = run.index_place(&named.run) else { return };
    if wanted != Index::Build && !is_large {
        return;
    }
    if let Err(error) = make(run, identity, &place) {
        let fix = "each question reads all times; make the directory writable, or ask with --index off";
        tell!("ampl: the index of times cannot be written: {error} ({}): {fix}", place.display());
        return;
    }
    run.take_index(&named.run);
}

/// Writes the index to `place`; a file that is there is replaced when the new one is whole.
fn make(run: &Run, identity: u64, place: &Path) -> io::Result<()> {
    let mut out = BufWriter::new(part_beside(place)?);
    let ranks = run.ranks().len() as u64;
    let mut progress = Progress::of(ranks, "ranks indexed");
    index::write(run, identity, &mut out, || progress.one_more())?;
    drop(progress);
    out.flush()?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let bytes = file.as_file().metadata()?.len();
    file.persist(place).map_err(|error| error.error)?;
    tell!("ampl: index of the times of {} in {}, {bytes} bytes", plural(ranks, "rank"), place.display());
    Ok(())
}
