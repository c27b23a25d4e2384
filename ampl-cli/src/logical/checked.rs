//! Output of `ampl logical --check`.

use std::io::{self, Write};

use ampl_analysis::logical::{Check, Losses, Program};
use serde_json::{Value, json};

use crate::output::Stdout;
use ampl_report::human::{count, percent, plural};

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// The JSON document.
pub fn document(program: &Program, check: &Check, gaps: &[u32]) -> Value {
    let losses = |losses: &Losses| {
        json!({
            "ranks_exact": losses.ranks_exact,
            "calls_lost": share(losses.calls_lost, check.calls),
            "bytes_lost": share(losses.bytes_lost, check.bytes),
            "calls_extra": share(losses.calls_extra, check.calls),
        })
    };
    let records = program.records();
    let mut document = json!({
        "schema": 1,
        "ranks": check.ranks,
        "with_values": losses(&check.values),
        "calls": check.calls,
        "longest": check.longest,
        "records": records,
        "compression": if records == 0 { Value::Null } else { (check.longest as f64 / records as f64).into() },
        "outside_topology": {
            "calls": share(check.calls_outside, check.calls_with_partner),
            "bytes": share(check.bytes_outside, check.bytes_with_partner),
        },
        "missing": crate::topology::rank_set(program.missing.iter().copied()),
        "gaps": crate::topology::rank_set(gaps.iter().copied()),
        "complete": !check.cut,
    });
    if let (Value::Object(document), Value::Object(outline)) = (&mut document, losses(&check.outline)) {
        document.extend(outline);
    }
    document
}

/// Prints the comparison.
pub fn print(out: &mut Stdout, program: &Program, check: &Check) -> io::Result<()> {
    writeln!(
        out,
        "{} with recorded calls, {}",
        plural(check.ranks.into(), "rank"),
        plural(check.calls, "call")
    )?;
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
