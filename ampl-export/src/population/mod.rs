//! Populations for `ampl simulate`: observations of every rank in every window, from CSV or Parquet.
//!
//! Rows may come in any order. The file is read twice: first for its extent (ranks, windows, metrics, whether windows
//! ascend), then window by window. Memory holds a batch of rows and a few windows, however long the file. Rows go
//! through a temporary file where windows do not ascend; so does a file that can be read only once.

mod csv;
mod extent;
mod observed;
mod pages;
mod parquet;
mod rows;
mod spool;
mod windows;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ampl_reader::directory::TRACE;
use tempfile::TempPath;

pub use extent::Extent;
pub use observed::Observed;
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

/// True where `path` is a population rather than a run: Parquet, CSV, or a directory that holds one and no run.
pub fn is_population(path: &Path) -> bool {
    if path.is_dir() {
        let tables = ["summaries.parquet", "summaries.csv"].iter().any(|name| path.join(name).exists());
        return tables && !path.join(TRACE).exists();
    }
    let named = path.extension().is_some_and(|extension| extension == "csv" || extension == "parquet");
    let mut magic = [0; 4];
    let mut file = File::open(path);
    let read = file.as_mut().is_ok_and(|file| file.read_exact(&mut magic).is_ok());
    named || read && &magic == b"PAR1"
}

impl Population {
    /// The population in the file `path`, or in the directory that `ampl export` wrote.
    ///
    /// # Errors
    /// An [`OpenError`] when there is no such file.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let candidates = match path.is_dir() {
            true => ["summaries.parquet", "summaries.csv"].map(|name| path.join(name)).to_vec(),
            false => vec![path.to_owned()],
        };
        let found = candidates.iter().find(|file| file.exists()).unwrap_or(&candidates[0]);
        let absent = |error: io::Error| OpenError {
            path: found.clone(),
            is_run: path.join("trace.ampl").exists(),
            error,
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

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True for Parquet, whose rows have numbers; lines of CSV have them otherwise.
    pub fn is_parquet(&self) -> bool {
        self.parquet
    }
}

/// Failure to open a population.
#[derive(Debug)]
pub struct OpenError {
    /// The file that was tried.
    pub path: PathBuf,
    /// True where the path is a run directory, which is no population.
    pub is_run: bool,
    /// The system's error.
    pub error: io::Error,
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no such population: {}", self.error)
    }
}

impl std::error::Error for OpenError {}

/// A file that can be read again, with the contents of `pipe`.
fn copied(pipe: &Path) -> io::Result<TempPath> {
    let mut copy = tempfile::NamedTempFile::new()?;
    io::copy(&mut File::open(pipe)?, &mut copy)?;
    Ok(copy.into_temp_path())
}
