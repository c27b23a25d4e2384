//! Rows as both formats give them, checked one by one.

use std::fmt::Display;

use ampl_core::message::MetricSummary;

/// Most ranks of a population: a window of one guide takes 40 bytes of each.
pub const MOST_RANKS: u64 = 1 << 22;
/// Most windows from the first to the last.
pub const MOST_WINDOWS: u64 = 1_000_000;
/// Most different metrics and events.
const MOST_NAMES: usize = 1000;
/// Whole numbers beyond this are not exact in every format.
const MOST_WHOLE: u64 = 1 << 53;
/// Largest value: beyond, the fourth powers in sums over ranks would leave the range of numbers, as in `ampl_metric_add`.
const LARGEST: f64 = 1e60;
/// The event of a file without such a column.
const WHOLE_WINDOW: &str = "*";

/// A fault in a file, and how to correct it.
#[derive(Debug)]
pub struct Fault {
    /// Row from 1 (Parquet) or line (CSV, the names being line 1).
    pub row: Option<u64>,
    /// The fault, for people.
    pub what: String,
    /// Its remedy.
    pub fix: String,
}

impl Fault {
    /// Something wrong with the file as a whole.
    pub fn new(what: impl Display, fix: impl Display) -> Self {
        Self { row: None, what: what.to_string(), fix: fix.to_string() }
    }

    /// Something wrong in a row.
    pub fn at(row: u64, what: impl Display, fix: impl Display) -> Self {
        Self { row: Some(row), ..Self::new(what, fix) }
    }

    /// The file cannot be read any more.
    pub fn reading(error: impl Display) -> Self {
        Self::new(format!("cannot read the population: {error}"), "check that it was copied whole")
    }
}

/// One metric's observations of one rank's window.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its number in the file, see [`Fault::row`].
    pub row: u64,
    pub window: u64,
    pub rank: u32,
    /// Numbers of names in [`Names`].
    pub metric: u16,
    pub event: u16,
    /// Without observations where only places are read.
    pub summary: MetricSummary,
}

/// Source of rows.
pub trait Rows {
    /// Replaces the rows in `batch` by the next ones; none at the end.
    ///
    /// # Errors
    /// The first [`Fault`]; rows before it may be lost.
    fn next(&mut self, batch: &mut Vec<Row>) -> Result<(), Fault>;

    /// The names met so far.
    fn names(&self) -> &Names;

    /// True where a row so far said that only a sample's windows were stored.
    fn sampled(&self) -> bool;
}

/// Names of metrics and events, numbered.
#[derive(Clone, Debug)]
pub struct Names {
    known: Vec<String>,
    /// Number of `*`.
    pub window: u16,
}

impl Default for Names {
    fn default() -> Self {
        Self { known: vec![WHOLE_WINDOW.to_owned()], window: 0 }
    }
}

impl Names {
    /// The number of `name`; `last` is the most likely one.
    ///
    /// # Errors
    /// A [`Fault`] when it is not text, or one name too many.
    pub fn number(&mut self, name: &[u8], last: u16) -> Result<u16, Fault> {
        if self.known[usize::from(last)].as_bytes() == name {
            return Ok(last);
        }
        if let Some(known) = self.known.iter().position(|known| known.as_bytes() == name) {
            return Ok(known as u16);
        }
        let fix = "write metrics as in the job file, mpi.time";
        let text = str::from_utf8(name).ok().filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| Fault::new("a metric or event without a name", fix))?;
        if self.known.len() >= MOST_NAMES {
            return Err(Fault::new(format!("more than {MOST_NAMES} different metrics and events"), fix));
        }
        self.known.push(text.to_owned());
        Ok((self.known.len() - 1) as u16)
    }

    /// The name of that number.
    pub fn name(&self, number: u16) -> &str {
        &self.known[usize::from(number)]
    }
}

/// The numbers of a row as they stand in the file, NaN where there is none.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    pub count: f64,
    pub sum: f64,
    pub sum_sq: f64,
    pub min: f64,
    pub max: f64,
}

/// Window and rank, checked.
pub fn place(window: f64, rank: f64) -> Result<(u64, u32), Fault> {
    let ranks = format!("ranks go from 0 to {}", MOST_RANKS - 1);
    let window = whole("window", window, MOST_WHOLE, "windows are whole numbers from 0")?;
    Ok((window, whole("rank", rank, MOST_RANKS - 1, &ranks)? as u32))
}

/// Checked summary of a rank's observations. Without observations the other numbers mean nothing.
pub fn summary(numbers: Numbers) -> Result<MetricSummary, Fault> {
    let Numbers { count, sum, sum_sq, min, max } = numbers;
    let n = whole("count", count, MOST_WHOLE, "counts are whole numbers from 0")?;
    if n == 0 {
        return Ok(MetricSummary::default());
    }
    // The comparison is false for NaN.
    let sound = |name: &str, value: f64, most: f64| match value.abs() <= most {
        true => Ok(value),
        false => {
            let found = if value.is_nan() { "not a number".into() } else { format!("{value:e}") };
            Err(Fault::new(
                format!("{name} is {found}"),
                format!("write a number up to {most:e}, or leave the row out where nothing was observed"),
            ))
        }
    };
    let (sum, sum_sq) = (sound("sum", sum, LARGEST)?, sound("sum_sq", sum_sq, LARGEST * LARGEST)?);
    let (min, max) = (sound("min", min, LARGEST)?, sound("max", max, LARGEST)?);
    if sum_sq < 0.0 || min > max {
        let what = if min > max { "min is larger than max" } else { "sum_sq is negative" };
        return Err(Fault::new(what, "correct the row"));
    }
    Ok(MetricSummary { n, sum, sum_sq, min, max })
}

fn whole(name: &str, value: f64, most: u64, fix: &str) -> Result<u64, Fault> {
    if value >= 0.0 && value <= most as f64 && value.fract() == 0.0 {
        return Ok(value as u64);
    }
    let found = if value.is_nan() { "not a number".into() } else { format!("{value}") };
    Err(Fault::new(format!("{name} is {found}"), fix))
}

/// The columns that must be there.
pub const REQUIRED: [&str; 8] = ["window", "rank", "metric", "count", "sum", "sum_sq", "min", "max"];

/// Fault of a file without the column `missing`.
pub fn missing_column(missing: &str, found: &[String]) -> Fault {
    let found = if found.is_empty() { "none".into() } else { found.join(", ") };
    Fault::new(
        format!("no column '{missing}' among its columns: {found}"),
        format!("write the columns {} and, if need be, event", REQUIRED.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_checked() {
        let good = Numbers { count: 2.0, sum: 3.0, sum_sq: 5.0, min: 1.0, max: 2.0 };
        assert_eq!(summary(good).unwrap().n, 2);
        // Without observations the other numbers mean nothing.
        let none = Numbers { count: 0.0, sum: f64::NAN, min: f64::INFINITY, ..good };
        assert_eq!(summary(none).unwrap(), MetricSummary::default());
        for (numbers, what) in [
            (Numbers { count: f64::NAN, ..good }, "count"),
            (Numbers { count: 1.5, ..good }, "count"),
            (Numbers { count: -1.0, ..good }, "count"),
            (Numbers { sum: f64::NAN, ..good }, "sum is not a number"),
            (Numbers { sum_sq: f64::INFINITY, ..good }, "sum_sq is inf"),
            (Numbers { sum_sq: -1.0, ..good }, "negative"),
            (Numbers { sum: -2e60, ..good }, "sum is -2e60"),
            (Numbers { max: 1e308, ..good }, "max is 1e308"),
            (Numbers { min: 3.0, ..good }, "larger"),
        ] {
            let fault = summary(numbers).unwrap_err();
            assert!(fault.what.contains(what), "{fault:?}");
        }
        assert_eq!(place(3.0, 7.0).unwrap(), (3, 7));
        assert!(place(-1.0, 0.0).is_err() && place(0.0, 4e9).is_err() && place(0.0, 0.5).is_err());
    }

    #[test]
    fn names_are_numbered_once() {
        let mut names = Names::default();
        let wall = names.number(b"wall", 0).unwrap();
        assert_eq!((names.number(b"wall", wall).unwrap(), names.number(b"*", wall).unwrap()), (wall, 0));
        assert_eq!(names.name(wall), "wall");
        assert!(names.number(b"", 0).is_err() && names.number(&[0xff], 0).is_err());
        let mut more = (0..2000).map(|number| names.number(format!("m{number}").as_bytes(), 0));
        assert!(more.any(|number| number.is_err()));
    }
}
