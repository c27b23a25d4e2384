//! Rows of `functions`, `sites` and `communicators`: exact counts by rank, by place, and the groups that calls act on.

use std::io::{self, Write};

use ampl_analysis::calls::{Basis, table};
use ampl_core::mpi::Function;
use ampl_reader::selection::Selection;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;

use crate::columns::{Cell, Column, RowWriter, Type};

const FUNCTION_ROWS: [Column; 3] = [
    Column::every("rank", Type::Int32),
    Column::every("function", Type::Text),
    Column::every("calls", Type::Int64),
];

/// Writes the calls of every rank that is asked for, by function; the whole run counts.
///
/// # Errors
/// Errors of `out`.
pub fn write_functions(trace: &Trace, selection: &Selection, out: impl Write + Send) -> io::Result<u64> {
    let mut rows = RowWriter::new(out, "functions", &FUNCTION_ROWS)?;
    let mut written = 0;
    for rank in trace.ranks.iter().filter(|rank| selection.takes_rank(rank.process.rank)) {
        for &(function, calls) in &rank.process.calls {
            rows.push(&[
                Cell::Int(rank.process.rank.into()),
                Cell::Text(Function::name_of(function)),
                Cell::Int(calls as i64),
            ])?;
            written += 1;
        }
    }
    rows.close()?;
    Ok(written)
}

const SITE_ROWS: [Column; 19] = [
    Column::some("function", Type::Text),
    Column::some("site", Type::Text),
    Column::every("path", Type::Text),
    Column::every("calls", Type::Int64),
    Column::every("ns", Type::Int64),
    Column::some("share", Type::Double),
    Column::every("coverage", Type::Double),
    Column::some("min_ns", Type::Int64),
    Column::some("max_ns", Type::Int64),
    Column::some("max_rank", Type::Int32),
    Column::some("late_rank", Type::Int32),
    Column::some("most_rank", Type::Int32),
    Column::some("most_ns", Type::Int64),
    Column::some("ranks", Type::Int32),
    Column::some("bytes_min", Type::Int64),
    Column::some("bytes_mean", Type::Double),
    Column::some("bytes_max", Type::Int64),
    Column::every("sent", Type::Int64),
    Column::every("basis", Type::Text),
];

fn basis(basis: Basis) -> &'static str {
    match basis {
        Basis::Exact => "exact",
        Basis::Totals => "totals",
        Basis::Measured => "measured",
    }
}

/// Writes the table of call sites, of the whole run.
///
/// # Errors
/// Errors of `out`.
pub fn write_sites(trace: &Trace, out: impl Write + Send) -> io::Result<u64> {
    let mut rows = RowWriter::new(out, "sites", &SITE_ROWS)?;
    let sites = table(trace).rows;
    for row in &sites {
        let frames = row.path.iter().map(|frame| frame.function.as_deref().unwrap_or(&frame.site));
        let path = frames.collect::<Vec<_>>().join(">");
        let whole = |value: Option<u64>| Cell::int(value.map(|value| value as i64));
        let rank = |value: Option<u32>| Cell::int(value.map(i64::from));
        rows.push(&[
            Cell::text(row.function),
            Cell::text(row.site.as_deref()),
            Cell::Text(&path),
            Cell::Int(row.calls as i64),
            Cell::Int(row.ns as i64),
            Cell::double(row.share),
            Cell::Double(row.coverage),
            whole(row.min_ns),
            whole(row.max_ns),
            rank(row.max_rank),
            rank(row.late_rank),
            rank(row.most_rank),
            whole(row.most_ns),
            rank(row.ranks),
            whole(row.bytes.min),
            Cell::double(row.bytes.mean),
            whole(row.bytes.max),
            Cell::Int(row.sent as i64),
            Cell::Text(basis(row.basis)),
        ])?;
    }
    rows.close()?;
    Ok(sites.len() as u64)
}

const COMMUNICATOR_ROWS: [Column; 7] = [
    Column::every("name", Type::Text),
    Column::every("made_by", Type::Text),
    Column::some("parent", Type::Text),
    Column::some("size", Type::Int32),
    Column::some("ranks", Type::Text),
    Column::some("remote_ranks", Type::Text),
    Column::every("agreed", Type::Bool),
];

/// Writes the communicators that the program made.
///
/// # Errors
/// Errors of `out`.
pub fn write_communicators(comms: &Communicators, out: impl Write + Send) -> io::Result<u64> {
    let mut rows = RowWriter::new(out, "communicators", &COMMUNICATOR_ROWS)?;
    for comm in comms.iter() {
        let parent = comm.parent.map(|parent| parent.to_string());
        let members = comm.ranks.as_ref().map(ToString::to_string);
        let remote = comm.remote.as_ref().map(ToString::to_string);
        rows.push(&[
            Cell::Text(&comm.name.to_string()),
            Cell::Text(Function::name_of(comm.function)),
            Cell::text(parent.as_deref()),
            Cell::int(comm.size.map(i64::from)),
            Cell::text(members.as_deref()),
            Cell::text(remote.as_deref()),
            Cell::Bool(comm.is_agreed()),
        ])?;
    }
    rows.close()?;
    Ok(comms.iter().len() as u64)
}
