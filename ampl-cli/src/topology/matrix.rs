//! The matrix of messages between ranks.

use std::io::{self, Write};

use ampl_analysis::messages::{Edge, Messages};
use serde::Serialize;

use crate::output::Stdout;

/// Pairs with less than this share of the largest volume are marked as little.
///
/// # Source
/// Q. Xu, J. Subhlok, R. Zheng, S. Voss, *Logicalization of communication traces from parallel execution* (2009).
const FILTER: f64 = 0.05;

/// An entry of the matrix.
#[derive(Debug, Serialize)]
pub struct Row {
    source: u32,
    dest: u32,
    calls: u64,
    bytes: u64,
    /// True where the filter leaves the entry in.
    kept: bool,
}

/// The entries that are not 0.
pub fn rows(messages: &Messages) -> Vec<Row> {
    let matrix = messages.matrix();
    let by_bytes = matrix.iter().any(|edge| edge.bytes > 0);
    let volume = |edge: &Edge| if by_bytes { edge.bytes } else { edge.messages } as f64;
    let most = matrix.iter().filter(|edge| edge.from != edge.to).map(volume).fold(0.0, f64::max);
    let row = |edge: &Edge| Row {
        source: edge.from,
        dest: edge.to,
        calls: edge.messages,
        bytes: edge.bytes,
        kept: edge.from != edge.to && volume(edge) >= FILTER * most,
    };
    matrix.iter().map(row).collect()
}

/// Prints the entries as lines that `--edges` reads, with what the filter leaves out as comments.
pub fn print(out: &mut Stdout, rows: &[Row]) -> io::Result<()> {
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
