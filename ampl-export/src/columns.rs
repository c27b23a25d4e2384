//! Rows as Parquet, for DuckDB, Polars, pandas and Spark.
//!
//! Names repeat in every row: dictionaries and run lengths keep them small. Pages are compressed by zstd.

use std::collections::HashMap;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Rows held in memory and written together, some 10 MB.
const ROWS_PER_GROUP: usize = 1 << 17;
/// Different names that are held to share their bytes.
const MOST_NAMES: usize = 1 << 16;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    Int32,
    Int64,
    Double,
    Bool,
    Text,
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub of: Type,
    /// True where a row may have no value.
    pub optional: bool,
}

impl Column {
    /// A column with a value in every row.
    pub const fn every(name: &'static str, of: Type) -> Self {
        Self { name, of, optional: false }
    }

    /// A column in which rows may have no value.
    pub const fn some(name: &'static str, of: Type) -> Self {
        Self { name, of, optional: true }
    }
}

/// A value, of the type of its column.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    Int(i64),
    Double(f64),
    Bool(bool),
    Text(&'a str),
    None,
}

impl Cell<'_> {
    /// The number, if there is one.
    pub fn int(value: Option<i64>) -> Self {
        value.map_or(Self::None, Self::Int)
    }

    /// The number, if there is one.
    pub fn double(value: Option<f64>) -> Self {
        value.map_or(Self::None, Self::Double)
    }
}

impl<'a> Cell<'a> {
    /// The text, if there is one.
    pub fn text(value: Option<&'a str>) -> Self {
        value.map_or(Self::None, Self::Text)
    }
}

/// Values of a column that are not written yet.
#[derive(Debug)]
enum Values {
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Double(Vec<f64>),
    Bool(Vec<bool>),
    Text(Vec<ByteArray>),
}

/// A column's values and, where it is optional, 1 for each row that has one.
#[derive(Debug)]
struct Held {
    values: Values,
    levels: Option<Vec<i16>>,
}

/// Writes rows in groups; memory does not grow with their number.
pub struct RowWriter<W: Write + Send> {
    out: SerializedFileWriter<W>,
    held: Vec<Held>,
    rows: usize,
    names: HashMap<String, ByteArray>,
}

fn schema(table: &str, columns: &[Column]) -> String {
    let column = |column: &Column| {
        let often = if column.optional { "OPTIONAL" } else { "REQUIRED" };
        let name = column.name;
        match column.of {
            Type::Int32 => format!("{often} INT32 {name};"),
            Type::Int64 => format!("{often} INT64 {name};"),
            Type::Double => format!("{often} DOUBLE {name};"),
            Type::Bool => format!("{often} BOOLEAN {name};"),
            Type::Text => format!("{often} BYTE_ARRAY {name} (UTF8);"),
        }
    };
    format!("message {table} {{ {} }}", columns.iter().map(column).collect::<String>())
}

impl<W: Write + Send> RowWriter<W> {
    /// A writer of the table of that name to `out`.
    ///
    /// # Errors
    /// Errors of `out`.
    pub fn new(out: W, table: &str, columns: &[Column]) -> io::Result<Self> {
        let schema = Arc::new(parse_message_type(&schema(table, columns)).map_err(error)?);
        let properties = WriterProperties::builder()
            .set_created_by(concat!("ampl ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::ZSTD(ZstdLevel::default()));
        let out = SerializedFileWriter::new(out, schema, Arc::new(properties.build())).map_err(error)?;
        let held = columns.iter().map(|column| Held {
            values: match column.of {
                Type::Int32 => Values::Int32(Vec::new()),
                Type::Int64 => Values::Int64(Vec::new()),
                Type::Double => Values::Double(Vec::new()),
                Type::Bool => Values::Bool(Vec::new()),
                Type::Text => Values::Text(Vec::new()),
            },
            levels: column.optional.then(Vec::new),
        });
        Ok(Self { out, held: held.collect(), rows: 0, names: HashMap::new() })
    }

    /// Takes one more row, a cell for each column.
    ///
    /// # Errors
    /// Errors of the file, and a cell that does not fit its column.
    pub fn push(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        debug_assert_eq!(cells.len(), self.held.len());
        for (held, cell) in self.held.iter_mut().zip(cells) {
            let there = !matches!(cell, Cell::None);
            match (&mut held.levels, there) {
                (Some(levels), there) => levels.push(i16::from(there)),
                (None, true) => {}
                (None, false) => return Err(io::Error::other("a value is missing")),
            }
            match (&mut held.values, cell) {
                (_, Cell::None) => {}
                (Values::Int32(values), Cell::Int(value)) => {
                    values.push(i32::try_from(*value).map_err(io::Error::other)?);
                }
                (Values::Int64(values), Cell::Int(value)) => values.push(*value),
                (Values::Double(values), Cell::Double(value)) => values.push(*value),
                (Values::Bool(values), Cell::Bool(value)) => values.push(*value),
                (Values::Text(values), Cell::Text(text)) => values.push(named(&mut self.names, text)),
                _ => return Err(io::Error::other("a value is of another type than its column")),
            }
        }
        self.rows += 1;
        if self.rows >= ROWS_PER_GROUP { self.flush() } else { Ok(()) }
    }

    /// Writes what is held, and the end of the file.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn close(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.into_inner().map_err(error)?.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut to = self.out.next_row_group().map_err(error)?;
        for held in &mut self.held {
            let levels = held.levels.as_deref();
            match &mut held.values {
                Values::Int32(values) => column::<W, Int32Type>(&mut to, values, levels),
                Values::Int64(values) => column::<W, Int64Type>(&mut to, values, levels),
                Values::Double(values) => column::<W, DoubleType>(&mut to, values, levels),
                Values::Bool(values) => column::<W, BoolType>(&mut to, values, levels),
                Values::Text(values) => column::<W, ByteArrayType>(&mut to, values, levels),
            }
            .map_err(error)?;
            held.levels.iter_mut().for_each(Vec::clear);
        }
        to.close().map_err(error)?;
        self.rows = 0;
        if self.names.len() > MOST_NAMES {
            self.names.clear();
        }
        Ok(())
    }
}

/// `text` as a value; equal ones share their bytes.
fn named(names: &mut HashMap<String, ByteArray>, text: &str) -> ByteArray {
    if let Some(value) = names.get(text) {
        return value.clone();
    }
    let value = ByteArray::from(text.as_bytes().to_vec());
    names.insert(text.to_owned(), value.clone());
    value
}

/// Writes the next column, and frees its values.
fn column<W: Write + Send, T: DataType>(
    to: &mut SerializedRowGroupWriter<'_, W>,
    values: &mut Vec<T::T>,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = to.next_column()?.ok_or_else(|| ParquetError::General("too many columns".into()))?;
    column.typed::<T>().write_batch(values, levels, None)?;
    values.clear();
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

#[cfg(test)]
mod tests {
    use std::fs::File;

    use parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    const COLUMNS: [Column; 3] = [
        Column::every("window", Type::Int64),
        Column::every("event", Type::Text),
        Column::some("mean", Type::Double),
    ];

    #[test]
    fn groups_of_rows_are_bounded_and_complete() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("long.parquet");
        let mut table = RowWriter::new(File::create(&file).unwrap(), "long", &COLUMNS).unwrap();
        let long = 300_000i64;
        for window in 0..long {
            let event = if window % 2 == 0 { "*" } else { "MPI_Send" };
            table.push(&[Cell::Int(window), Cell::Text(event), Cell::None]).unwrap();
        }
        table.close().unwrap();
        let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 3);
        assert_eq!(reader.metadata().file_metadata().num_rows(), long);
    }

    #[test]
    fn cells_fit_their_columns() {
        let mut table = RowWriter::new(Vec::new(), "rows", &COLUMNS).unwrap();
        for wrong in [
            [Cell::None, Cell::Text("*"), Cell::None],
            [Cell::Int(1), Cell::Int(1), Cell::None],
            [Cell::Int(1), Cell::Text("*"), Cell::Bool(true)],
        ] {
            assert!(table.push(&wrong).is_err(), "{wrong:?}");
        }
    }
}
