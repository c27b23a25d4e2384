//! The records of a run for other tools: tables as CSV and Parquet, timelines; and populations read back from tables.
//!
//! ```
//! use std::path::Path;
//!
//! use ampl_export::{Format, Selection, summaries};
//!
//! let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ampl-trace/tests/golden/v1/four-ranks.ampl");
//! let trace = ampl_reader::directory::read(&golden)?;
//! let everything = Selection::new(None, None, None).expect("it has a length");
//! let mut table = Vec::new();
//! let rows = summaries::write(&trace, &everything, false, Format::Csv, &mut table, || ())?;
//! let text = String::from_utf8(table)?;
//! assert!(text.starts_with("window,rank,metric,count,sum,sum_sq,min,max,event"));
//! assert_eq!(text.lines().count() as u64, rows + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod anonymous;
pub mod archive;
pub mod benchmarks;
pub mod call_rows;
pub mod calls;
mod columns;
pub mod copy;
pub mod counts;
pub mod edges;
pub mod estimates;
pub mod goal;
pub mod history;
pub mod junit;
pub mod messages;
pub mod perfetto;
pub mod place;
pub mod population;
pub mod rank_files;
pub mod simgrid;
pub mod skeleton;
pub mod stretch;
pub mod summaries;
pub mod time_index;

pub use ampl_reader::selection::Selection;

/// File format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values.
    Csv,
    /// Columns, for DuckDB, Polars, pandas and Spark.
    Parquet,
}

impl Format {
    /// The format of that name.
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::Csv, Self::Parquet].into_iter().find(|format| format.name() == name)
    }

    /// Its name, which is also the extension of its files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Parquet => "parquet",
        }
    }
}

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Stored calls.
    Calls,
    /// Communicators.
    Communicators,
    /// Estimates.
    Estimates,
    /// Calls by function.
    Functions,
    /// Messages.
    Messages,
    /// Call sites.
    Sites,
    /// Strata.
    Strata,
    /// Windows of ranks.
    Summaries,
}

impl Table {
    /// Tables in the order of their names.
    pub const ALL: [Self; 8] = [
        Self::Calls,
        Self::Communicators,
        Self::Estimates,
        Self::Functions,
        Self::Messages,
        Self::Sites,
        Self::Strata,
        Self::Summaries,
    ];

    /// Tables that are written in a format.
    pub fn of(format: Format) -> &'static [Self] {
        match format {
            Format::Csv => &[Self::Summaries],
            Format::Parquet => &Self::ALL,
        }
    }

    /// Its name, which is also that of its file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Communicators => "communicators",
            Self::Estimates => "estimates",
            Self::Functions => "functions",
            Self::Messages => "messages",
            Self::Sites => "sites",
            Self::Strata => "strata",
            Self::Summaries => "summaries",
        }
    }
}
