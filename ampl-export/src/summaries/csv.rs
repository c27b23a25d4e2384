//! Rows as comma-separated values, numbers with all their digits.

use std::io::{self, Write};

use super::{BASIS, COLUMNS, Row, Table};

/// Writes rows as lines, after a line of names.
pub struct CsvWriter<W: Write> {
    out: csv::Writer<W>,
    sampled: bool,
}

impl<W: Write> CsvWriter<W> {
    /// A writer that has written the names, of rows that are a sample's only or not.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: W, sampled: bool) -> io::Result<Self> {
        let mut out = csv::Writer::from_writer(out);
        out.write_record(COLUMNS.into_iter().chain(sampled.then_some(BASIS.0))).map_err(error)?;
        Ok(Self { out, sampled })
    }
}

impl<W: Write> Table for CsvWriter<W> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let numbers = [row.sum, row.sum_sq, row.min, row.max].map(|value| value.to_string());
        let [sum, sum_sq, min, max] = &numbers;
        let (window, rank, count) = (row.window.to_string(), row.rank.to_string(), row.count.to_string());
        let fields = [&window, &rank, row.metric, &count, sum, sum_sq, min, max, row.event];
        self.out.write_record(fields.into_iter().chain(self.sampled.then_some(BASIS.1))).map_err(error)
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.out.flush()
    }
}

/// The error of the file itself: its kind says what to do.
fn error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
