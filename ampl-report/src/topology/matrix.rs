//! The matrix of messages between ranks, as lines.

use std::io::{self, Write};

use ampl_analysis::messages::Entry;

/// Writes the entries as lines that `ampl topology --edges` reads, with what the filter leaves out as comments.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, rows: &[Entry]) -> io::Result<()> {
    writeln!(
        out,
        "# source dest bytes  # messages; lines that begin with '# ' have less than 5 % of the largest"
    )?;
    for row in rows {
        let mark = if row.kept { "" } else { "# " };
        writeln!(out, "{mark}{} {} {}  # {}", row.source, row.dest, row.bytes, row.calls)?;
    }
    Ok(())
}
