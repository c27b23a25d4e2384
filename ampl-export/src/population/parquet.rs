//! Rows of a Parquet file, whatever wrote it: any order of columns, any width of numbers, with or without
//! nulls, compressed or not.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};
use parquet::schema::types::ColumnDescriptor;

use super::Columns;
use super::pages::column;
use super::rows::{self, Fault, Names, Numbers, REQUIRED, Row, Rows, missing_column};
use crate::summaries::BASIS;

/// Rows returned together.
const BATCH: usize = 8192;

/// The rows of a file.
pub struct ParquetRows {
    file: Arc<File>,
    metadata: ParquetMetaData,
    columns: Columns,
    /// Places of [`REQUIRED`] among the file's columns, then of the event.
    places: [usize; 8],
    event: Option<usize>,
    /// Place of the basis, where it is text; other tools may write any column of that name.
    basis: Option<usize>,
    sampled: bool,
    names: Names,
    group: usize,
    open: Option<Group>,
    /// Rows returned.
    done: u64,
}

/// A row group that is being read.
struct Group {
    left: usize,
    window: NumberColumn,
    rank: NumberColumn,
    metric: NameColumn,
    event: Option<NameColumn>,
    basis: Option<Column<ByteArrayType>>,
    /// `count`, `sum`, `sum_sq`, `min`, `max`, where they are read.
    numbers: Vec<NumberColumn>,
}

/// Number of rows of `file`, unless it is damaged.
pub fn row_count(file: File) -> Option<u64> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).ok()?;
    let of_group = |group: &RowGroupMetaData| u64::try_from(group.num_rows()).ok();
    metadata.row_groups().iter().try_fold(0_u64, |sum, group| sum.checked_add(of_group(group)?))
}

impl ParquetRows {
    /// The rows of `file`.
    ///
    /// # Errors
    /// A [`Fault`] where it is damaged, a column is missing, or a column holds something else.
    pub fn new(file: File, columns: Columns, names: Names) -> Result<Self, Fault> {
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(fault)?;
        let schema = metadata.file_metadata().schema_descr_ptr();
        let plain =
            |column: &ColumnDescriptor| column.path().parts().len() == 1 && column.max_rep_level() == 0;
        let found: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
        let place =
            |name: &str| schema.columns().iter().position(|column| column.name() == name && plain(column));
        let mut places = [0; 8];
        for (slot, name) in places.iter_mut().zip(REQUIRED) {
            *slot = place(name).ok_or_else(|| missing_column(name, &found))?;
            let column = &schema.column(*slot);
            let text = column.physical_type() == Type::BYTE_ARRAY;
            if (name == "metric") != text || (name != "metric" && !is_number(column)) {
                return Err(wrong_type(name, column));
            }
        }
        let event = place("event");
        if let Some(column) = event.map(|place| schema.column(place))
            && column.physical_type() != Type::BYTE_ARRAY
        {
            return Err(wrong_type("event", &column));
        }
        let basis = place(BASIS.0).filter(|&at| schema.column(at).physical_type() == Type::BYTE_ARRAY);
        Ok(Self {
            file: Arc::new(file),
            metadata,
            columns,
            places,
            event,
            basis,
            sampled: false,
            names,
            group: 0,
            open: None,
            done: 0,
        })
    }

    /// The next row group with rows, unless there is none.
    fn open(&mut self) -> Result<bool, ParquetError> {
        while self.open.is_none() && self.group < self.metadata.num_row_groups() {
            let group = self.metadata.row_group(self.group);
            self.group += 1;
            let left = usize::try_from(group.num_rows()).unwrap_or(0);
            if left == 0 {
                continue;
            }
            let number = |place: usize| {
                let unsigned = is_unsigned(&group.schema_descr().column(place));
                NumberColumn::new(column(&self.file, group, place)?, unsigned)
            };
            let text = |place: usize| text(column(&self.file, group, place)?);
            let name = |place: usize| text(place).map(NameColumn::new);
            let numbers = match self.columns {
                Columns::Places => Vec::new(),
                Columns::All => {
                    self.places[3..].iter().map(|&place| number(place)).collect::<Result<_, _>>()?
                }
            };
            self.open = Some(Group {
                left,
                window: number(self.places[0])?,
                rank: number(self.places[1])?,
                metric: name(self.places[2])?,
                event: self.event.map(name).transpose()?,
                basis: self.basis.map(text).transpose()?,
                numbers,
            });
        }
        Ok(self.open.is_some())
    }
}

impl Rows for ParquetRows {
    fn next(&mut self, batch: &mut Vec<Row>) -> Result<(), Fault> {
        batch.clear();
        if !self.open().map_err(fault)? {
            return Ok(());
        }
        let group = self.open.as_mut().expect("it was opened");
        let count = group.left.min(BATCH);
        group.fill(count, &mut self.names).map_err(|mut fault| {
            fault.row = fault.row.map(|row| row + self.done);
            fault
        })?;
        if let Some(basis) = &mut group.basis {
            let sampled = &mut self.sampled;
            let look = |value: Option<&ByteArray>| {
                *sampled |= value.is_some_and(|value| value.data() == BASIS.1.as_bytes());
            };
            basis.each(count, look).map_err(fault)?;
        }
        for index in 0..count {
            let row = self.done + index as u64 + 1;
            let read = group.row(index, row, self.names.window);
            batch.push(read.map_err(|fault| Fault { row: Some(row), ..fault })?);
        }
        self.done += count as u64;
        group.left -= count;
        if group.left == 0 {
            self.open = None;
        }
        Ok(())
    }

    fn names(&self) -> &Names {
        &self.names
    }

    fn sampled(&self) -> bool {
        self.sampled
    }
}

impl Group {
    fn fill(&mut self, count: usize, names: &mut Names) -> Result<(), Fault> {
        for column in [&mut self.window, &mut self.rank].into_iter().chain(&mut self.numbers) {
            column.fill(count).map_err(fault)?;
        }
        for column in std::iter::once(&mut self.metric).chain(&mut self.event) {
            column.fill(count, names)?;
        }
        Ok(())
    }

    fn row(&self, index: usize, row: u64, whole_window: u16) -> Result<Row, Fault> {
        let (window, rank) = rows::place(self.window.values[index], self.rank.values[index])?;
        let Some(metric) = self.metric.numbers[index] else {
            return Err(Fault::new("a row without a metric", "write metrics as in the job file, mpi.time"));
        };
        let event = self.event.as_ref().and_then(|event| event.numbers[index]).unwrap_or(whole_window);
        let summary = match &self.numbers[..] {
            [count, sum, sum_sq, min, max] => rows::summary(Numbers {
                count: count.values[index],
                sum: sum.values[index],
                sum_sq: sum_sq.values[index],
                min: min.values[index],
                max: max.values[index],
            })?,
            _ => Default::default(),
        };
        Ok(Row { row, window, rank, metric, event, summary })
    }
}

/// A column of one physical type.
struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    levels: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> Column<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, levels: Vec::new(), values: Vec::new() }
    }

    /// Reads `count` more rows, each of which `take` gets; none for a null.
    fn each(&mut self, count: usize, mut take: impl FnMut(Option<&T::T>)) -> Result<(), ParquetError> {
        let mut left = count;
        while left > 0 {
            self.levels.clear();
            self.values.clear();
            let (rows, ..) =
                self.reader.read_records(left, Some(&mut self.levels), None, &mut self.values)?;
            if rows == 0 {
                return Err(ParquetError::General("a column ends early".into()));
            }
            left -= rows;
            // A column that cannot be null has no levels.
            if self.levels.is_empty() {
                self.values.iter().for_each(|value| take(Some(value)));
                continue;
            }
            let mut values = self.values.iter();
            self.levels.iter().for_each(|&level| take(if level > 0 { values.next() } else { None }));
        }
        Ok(())
    }
}

/// Numbers of any type as floating-point numbers, NaN for null.
struct NumberColumn {
    source: NumberSource,
    values: Vec<f64>,
}

enum NumberSource {
    I32(Column<Int32Type>),
    U32(Column<Int32Type>),
    I64(Column<Int64Type>),
    U64(Column<Int64Type>),
    F32(Column<FloatType>),
    F64(Column<DoubleType>),
}

impl NumberColumn {
    fn new(reader: ColumnReader, unsigned: bool) -> Result<Self, ParquetError> {
        use NumberSource::{F32, F64, I32, I64, U32, U64};
        let source = match reader {
            ColumnReader::Int32ColumnReader(reader) if unsigned => U32(Column::new(reader)),
            ColumnReader::Int32ColumnReader(reader) => I32(Column::new(reader)),
            ColumnReader::Int64ColumnReader(reader) if unsigned => U64(Column::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => I64(Column::new(reader)),
            ColumnReader::FloatColumnReader(reader) => F32(Column::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => F64(Column::new(reader)),
            _ => return Err(ParquetError::General("a column changes its type".into())),
        };
        Ok(Self { source, values: Vec::new() })
    }

    fn fill(&mut self, count: usize) -> Result<(), ParquetError> {
        use NumberSource::{F32, F64, I32, I64, U32, U64};
        let values = &mut self.values;
        values.clear();
        let mut push = |value: Option<f64>| values.push(value.unwrap_or(f64::NAN));
        match &mut self.source {
            I32(column) => column.each(count, |value| push(value.map(|&value| f64::from(value)))),
            U32(column) => column.each(count, |value| push(value.map(|&value| f64::from(value as u32)))),
            I64(column) => column.each(count, |value| push(value.map(|&value| value as f64))),
            U64(column) => column.each(count, |value| push(value.map(|&value| value as u64 as f64))),
            F32(column) => column.each(count, |value| push(value.map(|&value| f64::from(value)))),
            F64(column) => column.each(count, |value| push(value.copied())),
        }
    }
}

/// Names by their numbers, none for null.
struct NameColumn {
    column: Column<ByteArrayType>,
    numbers: Vec<Option<u16>>,
    last: u16,
}

impl NameColumn {
    fn new(column: Column<ByteArrayType>) -> Self {
        Self { column, numbers: Vec::new(), last: 0 }
    }

    fn fill(&mut self, count: usize, names: &mut Names) -> Result<(), Fault> {
        let Self { column, numbers, last } = self;
        numbers.clear();
        let mut wrong = None;
        let read = column.each(count, |value| {
            numbers.push(value.and_then(|value| match names.number(value.data(), *last) {
                Ok(number) => {
                    *last = number;
                    Some(number)
                }
                Err(fault) => {
                    wrong.get_or_insert((numbers.len() as u64 + 1, fault));
                    None
                }
            }));
        });
        read.map_err(fault)?;
        // Counted within the batch; the caller knows how many rows were before it.
        wrong.map_or(Ok(()), |(row, fault)| Err(Fault { row: Some(row), ..fault }))
    }
}

fn text(reader: ColumnReader) -> Result<Column<ByteArrayType>, ParquetError> {
    match reader {
        ColumnReader::ByteArrayColumnReader(reader) => Ok(Column::new(reader)),
        _ => Err(ParquetError::General("a column changes its type".into())),
    }
}

fn is_number(column: &ColumnDescriptor) -> bool {
    let decimal = matches!(column.logical_type_ref(), Some(LogicalType::Decimal { .. }))
        || column.converted_type() == ConvertedType::DECIMAL;
    matches!(column.physical_type(), Type::INT32 | Type::INT64 | Type::FLOAT | Type::DOUBLE) && !decimal
}

fn is_unsigned(column: &ColumnDescriptor) -> bool {
    matches!(column.converted_type(), ConvertedType::UINT_32 | ConvertedType::UINT_64)
}

fn wrong_type(name: &str, column: &ColumnDescriptor) -> Fault {
    let what = format!("column '{name}' holds {}", column.physical_type());
    let fix = if matches!(name, "metric" | "event") { "write it as text" } else { "write it as numbers" };
    Fault::new(what, fix)
}

fn fault(error: ParquetError) -> Fault {
    Fault::reading(error)
}
