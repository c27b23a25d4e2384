//! Rows of `summaries`: the per-rank window vectors, which are also the population of `ampl simulate`.

mod csv;

use std::io::{self, Write};

use ampl_reader::selection::Selection;
use ampl_trace::model::WindowSummary;
use ampl_trace::{RankTrace, RunInfo, Trace};

use crate::Format;
use crate::columns::{Cell, Column, RowWriter, Type};
use csv::CsvWriter;

/// Names of the columns, in order.
pub const COLUMNS: [&str; 9] = ["window", "rank", "metric", "count", "sum", "sum_sq", "min", "max", "event"];

/// Additional last column, and its value, in tables of a run that stored a sample's windows only: without the others'
/// the rows are no population.
pub const BASIS: (&str, &str) = ("basis", "sampled");

/// One metric's observations in one rank's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row<'a> {
    /// The window, from 0.
    pub window: u64,
    /// The rank.
    pub rank: u32,
    /// `mpi.time`
    pub metric: &'a str,
    /// Observations, at least 1.
    pub count: u64,
    /// Their sum, in the metric's unit.
    pub sum: f64,
    /// Their sum of squares.
    pub sum_sq: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Event that is observed; `*` for the whole window.
    pub event: &'a str,
}

/// The rows of `window` of `rank`: one per metric with observations, a missing row means none.
pub fn rows<'a>(
    run: &'a RunInfo,
    rank: &'a RankTrace,
    window: &'a WindowSummary,
) -> impl Iterator<Item = Row<'a>> {
    let observed = run.metrics.iter().zip(window.cells.iter()).filter(|(_, cell)| cell.n > 0.0);
    observed.map(|(metric, cell)| Row {
        window: window.window,
        rank: rank.process.rank,
        metric: &metric.name,
        count: cell.n as u64,
        sum: cell.sum,
        sum_sq: cell.sum_sq,
        min: cell.min,
        max: cell.max,
        event: &metric.event,
    })
}

/// Target that takes rows one after the other.
trait Table {
    /// Takes one more row.
    fn row(&mut self, row: &Row<'_>) -> io::Result<()>;
    /// Writes what is still held back.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// Writes the summaries of the windows of `trace` that are asked for, and returns the number of rows. `sampled` marks
/// them as those of a sample. `rank_done` is called behind each rank.
///
/// # Errors
/// Errors of `out`.
pub fn write<'a>(
    trace: &Trace,
    selection: &Selection,
    sampled: bool,
    format: Format,
    out: impl Write + Send + 'a,
    mut rank_done: impl FnMut(),
) -> io::Result<u64> {
    let mut table: Box<dyn Table + 'a> = match format {
        Format::Csv => Box::new(CsvWriter::new(out, sampled)?),
        Format::Parquet => Box::new(ColumnWriter::new(out, sampled)?),
    };
    let mut written = 0;
    for rank in trace.ranks.iter().filter(|rank| selection.takes_rank(rank.process.rank)) {
        for window in rank.windows.iter().filter(|window| selection.takes_window(window)) {
            for row in rows(&trace.run, rank, &window) {
                table.row(&row)?;
                written += 1;
            }
        }
        rank_done();
    }
    table.finish()?;
    Ok(written)
}

/// Columns as Parquet.
struct ColumnWriter<W: Write + Send> {
    rows: RowWriter<W>,
    sampled: bool,
}

const SUMMARIES: [Column; 10] = [
    Column::every("window", Type::Int64),
    Column::every("rank", Type::Int32),
    Column::every("metric", Type::Text),
    Column::every("count", Type::Int64),
    Column::every("sum", Type::Double),
    Column::every("sum_sq", Type::Double),
    Column::every("min", Type::Double),
    Column::every("max", Type::Double),
    Column::every("event", Type::Text),
    Column::every(BASIS.0, Type::Text),
];

impl<W: Write + Send> ColumnWriter<W> {
    /// A writer to `out`, of rows that are a sample's only or not.
    ///
    /// # Errors
    /// Errors of `out`.
    fn new(out: W, sampled: bool) -> io::Result<Self> {
        let columns = &SUMMARIES[..SUMMARIES.len() - usize::from(!sampled)];
        Ok(Self { rows: RowWriter::new(out, "summaries", columns)?, sampled })
    }
}

impl<W: Write + Send> Table for ColumnWriter<W> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let cells = [
            Cell::Int(row.window as i64),
            Cell::Int(row.rank.into()),
            Cell::Text(row.metric),
            Cell::Int(row.count as i64),
            Cell::Double(row.sum),
            Cell::Double(row.sum_sq),
            Cell::Double(row.min),
            Cell::Double(row.max),
            Cell::Text(row.event),
            Cell::Text(BASIS.1),
        ];
        self.rows.push(&cells[..cells.len() - usize::from(!self.sampled)])
    }

    fn finish(self: Box<Self>) -> io::Result<()> {
        self.rows.close()
    }
}
