//! Rows of `estimates` and `strata`: what `ampl estimate` and `ampl strata` print.

use std::collections::BTreeSet;
use std::io::{self, Write};

use ampl_analysis::estimate::{Scope, rows};
use ampl_analysis::strata::Found;
use ampl_core::plan::Plan;
use ampl_reader::selection::Selection;
use ampl_trace::Trace;

use crate::columns::{Cell, Column, RowWriter, Type};

const ESTIMATES: [Column; 18] = [
    Column::some("window", Type::Int64),
    Column::every("group", Type::Text),
    Column::every("stratum", Type::Int32),
    Column::every("metric", Type::Text),
    Column::every("event", Type::Text),
    Column::every("population", Type::Int64),
    Column::every("kept", Type::Int64),
    Column::some("mean", Type::Double),
    Column::some("half_width", Type::Double),
    Column::some("low", Type::Double),
    Column::some("high", Type::Double),
    Column::every("coverage", Type::Double),
    Column::every("confidence", Type::Double),
    Column::some("error", Type::Double),
    Column::every("scope", Type::Text),
    Column::every("basis", Type::Text),
    Column::every("guaranteed", Type::Bool),
    Column::every("missing_windows", Type::Int64),
];

/// Writes the estimates of `trace`; for a time range, those of windows in it only. They are of whole groups,
/// whichever ranks are asked for.
///
/// # Errors
/// Errors of `out`.
pub fn write(trace: &Trace, plan: &Plan, selection: &Selection, out: impl Write + Send) -> io::Result<u64> {
    let mut table = RowWriter::new(out, "estimates", &ESTIMATES)?;
    let windows = trace.ranks.iter().flat_map(|rank| &rank.windows);
    let inside: BTreeSet<u64> =
        windows.filter(|window| selection.takes_window(window)).map(|window| window.window).collect();
    let mut written = 0;
    for row in rows(trace, plan) {
        let within = row.scope == Scope::Window && row.window.is_some_and(|window| inside.contains(&window));
        if selection.cuts_time() && !within {
            continue;
        }
        table.push(&[
            Cell::int(row.window.map(|window| window as i64)),
            Cell::Text(&row.group),
            Cell::Int(row.stratum.into()),
            Cell::Text(&row.metric),
            Cell::Text(&row.event),
            Cell::Int(row.population as i64),
            Cell::Int(row.kept as i64),
            Cell::double(row.mean),
            Cell::double(row.half_width),
            Cell::double(row.low),
            Cell::double(row.high),
            Cell::Double(row.coverage),
            Cell::Double(row.confidence),
            Cell::double(row.error),
            Cell::Text(row.scope.name()),
            Cell::Text(row.basis.name()),
            Cell::Bool(row.guaranteed),
            Cell::Int(row.missing_windows as i64),
        ])?;
        written += 1;
    }
    table.close()?;
    Ok(written)
}

const STRATA: [Column; 8] = [
    Column::every("group", Type::Text),
    Column::every("stratum", Type::Int32),
    Column::every("name", Type::Text),
    Column::some("medoid", Type::Int32),
    Column::every("ranks", Type::Text),
    Column::every("population", Type::Int64),
    Column::every("size", Type::Double),
    Column::every("gain", Type::Double),
];

/// Writes the strata that were found; no rows without any.
///
/// # Errors
/// Errors of `out`.
pub fn write_strata(found: Option<&Found>, out: impl Write + Send) -> io::Result<u64> {
    let mut table = RowWriter::new(out, "strata", &STRATA)?;
    let mut written = 0;
    if let Some(found) = found {
        for stratum in &found.strata {
            table.push(&[
                Cell::Text(&found.group),
                Cell::Int(written as i64),
                Cell::Text(&stratum.name),
                Cell::int(stratum.medoid.map(i64::from)),
                Cell::Text(&stratum.ranks),
                Cell::Int(stratum.population as i64),
                Cell::Double(stratum.size),
                Cell::Double(found.gain),
            ])?;
            written += 1;
        }
    }
    table.close()?;
    Ok(written)
}
