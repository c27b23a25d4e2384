//! Populations as files that `ampl simulate` takes: CSV, and Parquet with the column types of `ampl export`.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::population::{Kind, Population, Total};

/// Names of the columns, in order.
pub const COLUMNS: [&str; 8] = ["window", "rank", "metric", "count", "sum", "sum_sq", "min", "max"];

const SCHEMA: &str = "message summaries {
    REQUIRED INT64 window; REQUIRED INT32 rank; REQUIRED BYTE_ARRAY metric (UTF8); REQUIRED INT64 count;
    REQUIRED DOUBLE sum; REQUIRED DOUBLE sum_sq; REQUIRED DOUBLE min; REQUIRED DOUBLE max;
}";

/// Rows held in memory and written together.
const ROWS_PER_GROUP: usize = 1 << 17;

/// One rank's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The window, from 0.
    pub window: u64,
    /// The rank.
    pub rank: u32,
    /// Its observations.
    pub total: Total,
}

impl Row {
    /// `sum`, `sum_sq`, `min` and `max`, as if all observations had been equal.
    fn numbers(&self) -> [f64; 4] {
        let Total { n, y } = self.total;
        let each = y / n.max(1) as f64;
        [y, each * y, each, each]
    }
}

/// Windows of a population, ranks in order; ranks without observations have no row.
pub fn rows(kind: Kind, ranks: u32, windows: u64, seed: u64) -> impl Iterator<Item = Row> {
    let mut population = Population::new(kind, ranks as usize, seed);
    let all = (0..windows).flat_map(move |window| {
        let totals = population.next_window().into_iter().zip(0..);
        totals.map(move |(total, rank)| Row { window, rank, total })
    });
    all.filter(|row| row.total.n > 0)
}

/// Writes `rows` of one metric over whole windows as CSV.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(mut out: impl Write, metric: &str, rows: impl Iterator<Item = Row>) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for row in rows {
        let [sum, sum_sq, min, max] = row.numbers();
        let (window, rank, count) = (row.window, row.rank, row.total.n);
        writeln!(out, "{window},{rank},{metric},{count},{sum},{sum_sq},{min},{max}")?;
    }
    out.flush()
}

/// Writes `rows` of one metric over whole windows as Parquet.
///
/// # Errors
/// Those of `out`.
pub fn write_parquet(
    out: impl Write + Send,
    metric: &str,
    mut rows: impl Iterator<Item = Row>,
) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut out = SerializedFileWriter::new(out, schema, Arc::new(WriterProperties::default()))?;
    loop {
        let group: Vec<Row> = rows.by_ref().take(ROWS_PER_GROUP).collect();
        if group.is_empty() {
            return out.close().map(drop);
        }
        let mut to = out.next_row_group()?;
        column::<_, Int64Type>(&mut to, &group, |row| row.window as i64)?;
        column::<_, Int32Type>(&mut to, &group, |row| row.rank as i32)?;
        let name = ByteArray::from(metric.as_bytes().to_vec());
        column::<_, ByteArrayType>(&mut to, &group, |_| name.clone())?;
        column::<_, Int64Type>(&mut to, &group, |row| row.total.n as i64)?;
        for number in 0..4 {
            column::<_, DoubleType>(&mut to, &group, |row| row.numbers()[number])?;
        }
        to.close()?;
    }
}

fn column<W: Write + Send, T: DataType>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    value: impl Fn(&Row) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = rows.iter().map(value).collect();
    let mut column = to.next_column()?.ok_or_else(|| ParquetError::General("too many columns".into()))?;
    column.typed::<T>().write_batch(&values, None, None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_population_s() {
        let all: Vec<Row> = rows(Kind::VaryingCounts, 7, 3, 5).collect();
        let mut population = Population::new(Kind::VaryingCounts, 7, 5);
        let windows: Vec<Total> = (0..3).flat_map(|_| population.next_window()).collect();
        assert!(all.iter().map(|row| row.total).eq(windows));
        assert_eq!((all[20].window, all[20].rank), (2, 6));
        let mut text = Vec::new();
        write_csv(&mut text, "wall", all.into_iter().take(2)).unwrap();
        let text = String::from_utf8(text).unwrap();
        let fields: Vec<&str> = text.lines().nth(2).unwrap().split(',').collect();
        assert_eq!((fields.len(), &fields[..3]), (COLUMNS.len(), &["0", "1", "wall"][..]));
    }

    #[test]
    fn parquet_holds_every_row() {
        let mut bytes = Vec::new();
        write_parquet(&mut bytes, "wall", rows(Kind::Normal, 300, 500, 1)).unwrap();
        assert_eq!((&bytes[..4], &bytes[bytes.len() - 4..]), (&b"PAR1"[..], &b"PAR1"[..]));
        assert!(bytes.len() > 300 * 500 * 8, "{}", bytes.len());
    }
}
