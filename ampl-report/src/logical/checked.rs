//! The comparison of the logical program with the recorded calls, for people.

use std::io::{self, Write};

use ampl_analysis::logical::{Check, Losses, Program};

use crate::human::{count, percent, plural};

/// Share of `part` in `all`; 0 of nothing.
pub fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// Writes the comparison; `gaps` are the ranks some of whose calls were only counted.
///
/// # Errors
/// Errors of `out`.
pub fn write(out: &mut impl Write, program: &Program, check: &Check, gaps: &[u32]) -> io::Result<()> {
    writeln!(
        out,
        "{} with recorded calls, {}",
        plural(check.ranks.into(), "rank"),
        plural(check.calls, "call")
    )?;
    super::only_counted(out, gaps)?;
    let mut row = |what: &str, losses: &Losses| {
        writeln!(
            out,
            "  {what}: {} of {} ranks exact; lost {} of the calls, {} of the bytes; {} extra",
            losses.ranks_exact,
            check.ranks,
            percent(share(losses.calls_lost, check.calls)),
            percent(share(losses.bytes_lost, check.bytes)),
            percent(share(losses.calls_extra, check.calls)),
        )
    };
    row("by functions, partners, communicators", &check.outline)?;
    row("with counts, tags, types and roots   ", &check.values)?;
    let records = program.records();
    if records > 0 {
        writeln!(
            out,
            "  {} calls of a rank at most are {}: {:.1} to 1",
            count(check.longest),
            plural(records, "record"),
            check.longest as f64 / records as f64
        )?;
    }
    writeln!(
        out,
        "  outside the topology, by number or table: {} of the calls with a partner, {} of their bytes",
        percent(share(check.calls_outside, check.calls_with_partner)),
        percent(share(check.bytes_outside, check.bytes_with_partner)),
    )?;
    if check.cut {
        writeln!(out, "  sequences were too long to be compared to their ends")?;
    }
    Ok(())
}
