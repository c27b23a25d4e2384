//! The report of a run: one HTML file with everything in it.
//!
//! A browser shows it without a network: scripts and styles are inlined, and the page's own policy allows no others.
//! Values come from the analyses, sentences from `ampl-report`; this crate arranges them. It opens no files.
//!
//! ```
//! use std::path::Path;
//!
//! use ampl_html::{Source, write};
//!
//! let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1/four-ranks.ampl");
//! let trace = ampl_reader::directory::read(&golden)?;
//! let mut page = Vec::new();
//! write(&mut page, &trace, &Source { run: Path::new("four-ranks"), has_file: true, calls: None })?;
//! let page = String::from_utf8(page)?;
//! assert!(page.contains("default-src 'none'") && page.contains("4 ranks"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod calls;
mod charts;
mod comparison;
mod drawn;
mod frame;
mod grid;
mod matrix;
mod page;
mod pooling;
mod source;
mod strata;
mod tables;
#[cfg(test)]
mod tests;
mod timeline;
mod waiting;

use std::io::{self, Write};

use ampl_analysis::comparison::Comparison;
use ampl_reader::Trace;

pub use comparison::Side;
pub use source::Source;

/// Writes the report of `trace`, which was read from `source`.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, trace: &Trace, source: &Source<'_>) -> io::Result<()> {
    let text = page::text(trace, source).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}

/// Writes the page of `comparison`, which shows a run of the base and a new one next to each other.
///
/// # Errors
/// Errors of `out`.
pub fn write_comparison(
    out: &mut impl Write,
    comparison: &Comparison,
    sides: [Side<'_>; 2],
) -> io::Result<()> {
    let text = comparison::text(comparison, sides).map_err(io::Error::other)?;
    out.write_all(text.as_bytes())
}
