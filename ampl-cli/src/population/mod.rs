//! Populations for `ampl simulate`: observations of every rank in every window, from CSV or Parquet.
//!
//! Rows may come in any order. The file is read twice: first for its extent (ranks, windows, metrics, whether windows
//! ascend), then window by window. Memory holds a batch of rows and a few windows, however long the file. Rows go
//! through a temporary file where windows do not ascend; so does a file that can be read only once.

mod csv;
mod extent;
mod parquet;
mod rows;
mod spool;
mod windows;

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempPath;

use crate::failure::{DAMAGED, Failure, NOT_FOUND};

pub use extent::Extent;
pub use rows::{Fault, Names};
pub use windows::Windows;

use rows::Rows;

/// Columns that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Columns {
    /// `window`, `rank`, `metric` and `event`.
    Places,
    /// The numbers too.
    All,
}

/// A population's file.
#[derive(Clone, Debug)]
pub struct Population {
    path: PathBuf,
    /// Copy of a population that came through a pipe.
    copy: Option<Arc<TempPath>>,
    parquet: bool,
}

impl Population {
    /// The population in the file `path`, or in the directory that `ampl export` wrote.
    ///
    /// # Errors
    /// A [`Failure`] of status 4 when there is no such file.
    pub fn open(path: &Path) -> anyhow::Result<Self> {
        let candidates = match path.is_dir() {
            true => ["summaries.parquet", "summaries.csv"].map(|name| path.join(name)).to_vec(),
            false => vec![path.to_owned()],
        };
        let found = candidates.iter().find(|file| file.exists()).unwrap_or(&candidates[0]);
        let absent = |error: io::Error| {
            let fix = match path.join("trace.ampl").exists() {
                true => "a run is made a population by 'ampl export --to parquet RUN'",
                false => "name a CSV or Parquet file, or a directory that 'ampl export' wrote",
            };
            let status = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { DAMAGED };
            Failure::message(status, format!("no such population: {error}"), found.display(), fix)
        };
        let copy = match std::fs::metadata(found) {
            Ok(what) if !what.is_file() => Some(Arc::new(copied(found).map_err(absent)?)),
            _ => None,
        };
        let mut population = Self { path: found.clone(), copy, parquet: false };
        let mut magic = Vec::new();
        population.file().and_then(|file| file.take(4).read_to_end(&mut magic)).map_err(absent)?;
        population.parquet = magic == b"PAR1";
        Ok(population)
    }

    fn file(&self) -> io::Result<File> {
        File::open(self.copy.as_ref().map_or(&*self.path, |copy| copy))
    }

    /// Number of its rows, where the file has it.
    pub fn row_count(&self) -> Option<u64> {
        let file = self.parquet.then(|| self.file().ok())??;
        parquet::row_count(file)
    }

    /// Its rows from the first one on.
    fn rows(&self, columns: Columns, names: Names) -> Result<Box<dyn Rows + Send>, Fault> {
        let file = self.file().map_err(Fault::reading)?;
        Ok(match self.parquet {
            true => Box::new(parquet::ParquetRows::new(file, columns, names)?),
            false => Box::new(csv::CsvRows::new(file, columns, names)?),
        })
    }

    /// `fault` as the message about this file, exit status 3.
    pub fn failure(&self, fault: &Fault) -> anyhow::Error {
        let unit = if self.parquet { "row" } else { "line" };
        let place = match fault.row {
            Some(row) => format!("{}, {unit} {row}", self.path.display()),
            None => self.path.display().to_string(),
        };
        Failure::message(DAMAGED, &fault.what, place, &fault.fix)
    }

    /// Refuses a population of which only a sample's windows were stored: its results would be true of the sample
    /// only.
    ///
    /// # Errors
    /// A [`Failure`] of status 4, as for such a run.
    pub fn check_whole(&self, extent: &Extent) -> anyhow::Result<()> {
        if !extent.sampled {
            return Ok(());
        }
        let what = "the population has a sample's windows only: coverage over it is not coverage over the population";
        let fix = "export a run with summaries = \"census\" and output.rank_summaries = \"all\"";
        Err(Failure::message(NOT_FOUND, what, self.place(), fix))
    }

    /// Its path, for messages.
    pub fn place(&self) -> std::path::Display<'_> {
        self.path.display()
    }
}

/// A file that can be read again, with the contents of `pipe`.
fn copied(pipe: &Path) -> io::Result<TempPath> {
    let mut copy = tempfile::NamedTempFile::new()?;
    io::copy(&mut File::open(pipe)?, &mut copy)?;
    Ok(copy.into_temp_path())
}
