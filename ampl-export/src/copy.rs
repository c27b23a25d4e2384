//! A trace file of a trace that was read.

use std::io::{self, Write};

use ampl_trace::Trace;
use ampl_trace::format::{Writer, rank_parts};

/// Writes `trace` as a trace file to `out`, and returns it. Damage of the file that it was read from is not carried over.
///
/// # Errors
/// Errors of `out`.
pub fn write<W: Write>(trace: &Trace, out: W) -> io::Result<W> {
    let mut writer = Writer::new(out)?;
    writer.structure(&trace.structure)?;
    writer.totals(&trace.totals)?;
    writer.census(&trace.census)?;
    for rank in &trace.ranks {
        writer.rank(&rank_parts(rank))?;
    }
    writer.run(&trace.run, &trace.decisions)?;
    writer.finish()
}
