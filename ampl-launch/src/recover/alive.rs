//! Journals whose processes still run: they must not be removed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Kind};
use ampl_reader::directory::{Holder, living};

/// The first of `files` whose process still runs.
pub fn first(files: &[PathBuf]) -> Option<Holder> {
    files.iter().find_map(|file| living(file))
}

/// Waits until no process of `files` runs any more, `most` at most; returns one that does.
pub fn wait(files: &[PathBuf], most: Duration) -> Option<Holder> {
    let end = Instant::now() + most;
    loop {
        match first(files) {
            Some(holder) if Instant::now() >= end => return Some(holder),
            Some(_) => std::thread::sleep(Duration::from_millis(20)),
            None => return None,
        }
    }
}

/// Refuses a run where a process of `files` still runs.
///
/// # Errors
/// A [`Failure`] that names the process.
pub fn refuse(files: &[PathBuf], run: &Path) -> Result<(), Failure> {
    let Some(Holder { rank, pid, .. }) = first(files) else { return Ok(()) };
    let what = format!("the job still runs: rank {rank} is process {pid}");
    let fix = "see it with 'ampl info', and recover it when it has ended";
    Err(Failure::message(Kind::Other, what, run.display(), fix))
}
