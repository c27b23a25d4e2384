//! Rows of a CSV file with a line of names.

use std::fs::File;
use std::io::BufReader;

use super::Columns;
use super::rows::{self, Fault, Names, Numbers, REQUIRED, Row, Rows, missing_column};
use crate::summaries::BASIS;

/// Rows returned together.
const BATCH: usize = 8192;

/// The rows of a file.
pub struct CsvRows {
    reader: csv::Reader<BufReader<File>>,
    record: csv::ByteRecord,
    columns: Columns,
    /// Places of [`REQUIRED`] in a record, then of the event.
    places: [usize; 8],
    event: Option<usize>,
    basis: Option<usize>,
    sampled: bool,
    names: Names,
    /// The last row's metric and event.
    last: (u16, u16),
}

impl CsvRows {
    /// The rows of `file`.
    ///
    /// # Errors
    /// A [`Fault`] where a column is missing.
    pub fn new(file: File, columns: Columns, names: Names) -> Result<Self, Fault> {
        let buffered = BufReader::with_capacity(1 << 18, file);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(buffered);
        let header = reader.headers().map_err(|error| fault(&error))?;
        let found: Vec<String> = header.iter().filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let place = |name: &str| header.iter().position(|column| column == name);
        let mut places = [0; 8];
        for (slot, name) in places.iter_mut().zip(REQUIRED) {
            *slot = place(name).ok_or_else(|| missing_column(name, &found))?;
        }
        let (event, basis) = (place("event"), place(BASIS.0));
        let window = names.window;
        Ok(Self {
            reader,
            record: csv::ByteRecord::new(),
            columns,
            places,
            event,
            basis,
            sampled: false,
            names,
            last: (window, window),
        })
    }

    fn row(&mut self, line: u64) -> Result<Row, Fault> {
        let field = |place: usize| self.record.get(place).unwrap_or_default();
        let number = |column: usize| -> Result<f64, Fault> {
            let text = str::from_utf8(field(self.places[column])).unwrap_or_default();
            // An empty field is a number that is missing.
            if text.is_empty() {
                return Ok(f64::NAN);
            }
            text.parse()
                .map_err(|_| Fault::new(format!("{} is '{text}'", REQUIRED[column]), "write a number, 1.5e6"))
        };
        let (window, rank) = rows::place(number(0)?, number(1)?)?;
        let metric = self.names.number(field(self.places[2]), self.last.0)?;
        let event = match self.event.map(field).filter(|event| !event.is_empty()) {
            Some(event) => self.names.number(event, self.last.1)?,
            None => self.names.window,
        };
        self.last = (metric, event);
        self.sampled |= self.basis.is_some_and(|place| field(place) == BASIS.1.as_bytes());
        let summary = match self.columns {
            Columns::Places => Default::default(),
            Columns::All => rows::summary(Numbers {
                count: number(3)?,
                sum: number(4)?,
                sum_sq: number(5)?,
                min: number(6)?,
                max: number(7)?,
            })?,
        };
        Ok(Row { row: line, window, rank, metric, event, summary })
    }
}

impl Rows for CsvRows {
    fn next(&mut self, batch: &mut Vec<Row>) -> Result<(), Fault> {
        batch.clear();
        while batch.len() < BATCH {
            match self.reader.read_byte_record(&mut self.record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return Err(fault(&error)),
            }
            let line = self.record.position().map_or(0, csv::Position::line);
            let row = self.row(line).map_err(|fault| Fault { row: Some(line), ..fault })?;
            batch.push(row);
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

fn fault(error: &csv::Error) -> Fault {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let what = format!("{len} fields instead of {expected_len}");
            Fault { row: pos.as_ref().map(csv::Position::line), ..Fault::new(what, "correct the line") }
        }
        csv::ErrorKind::Utf8 { pos, .. } => {
            let row = pos.as_ref().map(csv::Position::line);
            Fault { row, ..Fault::new("the names are not UTF-8", "name a CSV or Parquet file") }
        }
        _ => Fault::reading(error),
    }
}
