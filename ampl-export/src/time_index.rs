//! The index of a run's times as a file.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use ampl_analysis::query::index;
use ampl_reader::Run;

use crate::place::Part;

/// Bytes by which an index may be larger than the trace: about those of a rank's frequencies.
pub const SPARE_BYTES: u64 = 1 << 16;

/// Writes the index of `run` to `file`, which is replaced when the new one is whole; `rank_done` is called after each rank.
/// Returns its bytes: no more than those of the trace, and [`SPARE_BYTES`].
///
/// # Errors
/// Failures to write.
pub fn write(run: &Run, identity: u64, file: &Path, rank_done: impl FnMut()) -> io::Result<u64> {
    let mut out = BufWriter::new(Part::beside(file)?);
    index::write(run, identity, run.sizes().total + SPARE_BYTES, &mut out, rank_done)?;
    out.flush()?;
    let part = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    let bytes = part.as_file().metadata()?.len();
    part.replace(file)?;
    Ok(bytes)
}
