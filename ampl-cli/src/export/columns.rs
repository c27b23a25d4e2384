//! Rows as Parquet, for DuckDB, Polars, pandas and Spark.
//!
//! Names repeat in every row: Parquet's dictionaries and run lengths keep them small without a codec, which
//! every reader would need too.

use std::io::{self, Write};
use std::sync::Arc;

use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::Table;
use super::summaries::{BASIS, COLUMNS, Row};

/// Rows held in memory and written together, some 10 MB.
const ROWS_PER_GROUP: usize = 1 << 17;

/// Writes rows in groups; memory does not grow with their number.
pub struct ColumnWriter<W: Write + Send> {
    out: SerializedFileWriter<W>,
    group: Group,
}

/// Rows not written yet, by column.
#[derive(Debug, Default)]
struct Group {
    window: Vec<i64>,
    rank: Vec<i32>,
    metric: Vec<ByteArray>,
    count: Vec<i64>,
    sum: Vec<f64>,
    sum_sq: Vec<f64>,
    min: Vec<f64>,
    max: Vec<f64>,
    event: Vec<ByteArray>,
    /// None where rows are of all ranks.
    basis: Option<Vec<ByteArray>>,
    names: Vec<(String, ByteArray)>,
}

/// The types of the columns.
fn schema(sampled: bool) -> String {
    let column = |name: &&str| match *name {
        "window" | "count" => format!("REQUIRED INT64 {name};"),
        "rank" => format!("REQUIRED INT32 {name};"),
        "metric" | "event" | "basis" => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
        _ => format!("REQUIRED DOUBLE {name};"),
    };
    let names = COLUMNS.iter().chain(sampled.then_some(&BASIS.0));
    format!("message summaries {{ {} }}", names.map(column).collect::<String>())
}

impl<W: Write + Send> ColumnWriter<W> {
    /// A writer to `out`, of rows that are a sample's only or not.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, sampled: bool) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(&schema(sampled)).map_err(error)?);
        let properties =
            WriterProperties::builder().set_created_by(concat!("ampl ", env!("CARGO_PKG_VERSION")).into());
        let out = SerializedFileWriter::new(out, schema, Arc::new(properties.build())).map_err(error)?;
        let basis = sampled.then(Vec::new);
        Ok(Self { out, group: Group { basis, ..Group::default() } })
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.group.window.is_empty() {
            return Ok(());
        }
        let mut to = self.out.next_row_group().map_err(error)?;
        self.group.write(&mut to).map_err(error)?;
        to.close().map_err(error)?;
        self.group.clear();
        Ok(())
    }
}

impl<W: Write + Send> Table for ColumnWriter<W> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        self.group.push(row);
        if self.group.window.len() >= ROWS_PER_GROUP { self.flush() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.flush()?;
        self.out.close().map_err(error).map(drop)
    }
}

impl Group {
    fn push(&mut self, row: &Row<'_>) {
        self.window.push(row.window as i64);
        self.rank.push(row.rank as i32);
        let metric = self.name(row.metric);
        self.metric.push(metric);
        self.count.push(row.count as i64);
        self.sum.push(row.sum);
        self.sum_sq.push(row.sum_sq);
        self.min.push(row.min);
        self.max.push(row.max);
        let event = self.name(row.event);
        self.event.push(event);
        if self.basis.is_some() {
            let sampled = self.name(BASIS.1);
            self.basis.iter_mut().for_each(|basis| basis.push(sampled.clone()));
        }
    }

    /// `text` as a value; there are few different ones, which share their bytes.
    fn name(&mut self, text: &str) -> ByteArray {
        if let Some((_, value)) = self.names.iter().find(|(known, _)| known == text) {
            return value.clone();
        }
        let value = ByteArray::from(text.as_bytes().to_vec());
        self.names.push((text.to_owned(), value.clone()));
        value
    }

    fn write<W: Write + Send>(&self, to: &mut SerializedRowGroupWriter<'_, W>) -> Result<(), ParquetError> {
        column::<W, Int64Type>(to, &self.window)?;
        column::<W, Int32Type>(to, &self.rank)?;
        column::<W, ByteArrayType>(to, &self.metric)?;
        column::<W, Int64Type>(to, &self.count)?;
        for values in [&self.sum, &self.sum_sq, &self.min, &self.max] {
            column::<W, DoubleType>(to, values)?;
        }
        column::<W, ByteArrayType>(to, &self.event)?;
        self.basis.as_ref().map_or(Ok(()), |basis| column::<W, ByteArrayType>(to, basis))
    }

    fn clear(&mut self) {
        let (names, basis) = (std::mem::take(&mut self.names), self.basis.as_ref().map(|_| Vec::new()));
        *self = Self { names, basis, ..Self::default() };
    }
}

/// Writes the next column.
fn column<W: Write + Send, T: DataType>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
) -> Result<(), ParquetError> {
    let mut column = to.next_column()?.ok_or_else(|| ParquetError::General("too many columns".into()))?;
    column.typed::<T>().write_batch(values, None, None)?;
    column.close()
}

fn error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
