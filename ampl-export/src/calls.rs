//! Rows of `calls`: every stored call, with its time and design weight where its window's times are stored.

use std::io::{self, Write};

use ampl_core::plan::Plan;
use ampl_reader::selection::Selection;
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;

use crate::call_rows::CallRows;
pub use crate::call_rows::Written;
use crate::columns::{Cell, Column, RowWriter, Type};

const COLUMNS: [Column; 14] = [
    Column::every("rank", Type::Int32),
    Column::every("thread", Type::Int32),
    Column::every("seq", Type::Int64),
    Column::some("window", Type::Int64),
    Column::every("function", Type::Text),
    Column::some("site", Type::Text),
    Column::some("start_ns", Type::Int64),
    Column::some("duration_ns", Type::Int64),
    Column::some("weight", Type::Double),
    Column::some("peer", Type::Int64),
    Column::some("tag", Type::Int64),
    Column::some("bytes", Type::Int64),
    Column::some("comm", Type::Text),
    Column::every("count", Type::Int64),
];

/// Writes the calls of `trace` that are asked for, as Parquet. `rank_done` is called behind each rank.
///
/// # Errors
/// Errors of `out`.
pub fn write(
    trace: &Trace,
    comms: &Communicators,
    plan: &Plan,
    selection: &Selection,
    out: impl Write + Send,
    mut rank_done: impl FnMut(),
) -> io::Result<Written> {
    let mut table = RowWriter::new(out, "calls", &COLUMNS)?;
    let mut rows = CallRows::new(trace, comms, plan, selection, false);
    for rank in rows.ranks() {
        rows.of_rank(rank, |row| {
            let (call, timed) = (row.call, row.call.timed);
            table.push(&[
                Cell::Int(row.rank.into()),
                Cell::Int(call.thread.into()),
                Cell::Int(call.seq as i64),
                Cell::int(timed.map(|timed| timed.window as i64)),
                Cell::Text(call.function.name()),
                Cell::text(row.site),
                Cell::int(timed.map(|timed| timed.start_ns)),
                Cell::int(timed.and_then(|timed| timed.duration_ns).map(|nanos| nanos as i64)),
                Cell::double(row.weight),
                Cell::int(row.peer()),
                Cell::int(row.tag()),
                Cell::int(row.bytes().map(|bytes| bytes as i64)),
                Cell::text(row.comm.as_deref()),
                Cell::Int(call.count as i64),
            ])
        })?;
        rank_done();
    }
    table.close()?;
    Ok(rows.written)
}
