//! The index of a run's times: made when the first question needs times, and kept beside the trace.

use std::io;
use std::path::Path;

use ampl_export::time_index;
use ampl_reader::Run;
use ampl_report::human::plural;
use clap::ValueEnum;

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
        notice!("ampl: the index of times cannot be written: {error} ({}): {fix}", place.display());
        return;
    }
    run.take_index(&named.run);
}

/// Makes the index, and reports it.
fn make(run: &Run, identity: u64, place: &Path) -> io::Result<()> {
    let ranks = run.ranks().len() as u64;
    let mut progress = Progress::of(ranks, "ranks indexed");
    let bytes = time_index::write(run, identity, place, || progress.one_more())?;
    drop(progress);
    notice!("ampl: index of the times of {} in {}, {bytes} bytes", plural(ranks, "rank"), place.display());
    Ok(())
}
