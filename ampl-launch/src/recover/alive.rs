//! Journals whose processes still run: they must not be removed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::failure::{Failure, Kind};
use ampl_reader::directory::{self, Holder, host, lives_in, living, nodes};

/// First words of the refusal of a run whose processes run, by which a command on another host knows it.
pub const STILL_RUNS: &str = "the job still runs";

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

/// True where all ranks that `run` notes for this host are known to have ended; false where that of some cannot be told
/// from here, as their process numbers are another namespace's.
///
/// # Errors
/// The [`refusal`] of a run of which a process still runs.
pub fn have_ended(run: &Path) -> Result<bool, Failure> {
    let originals = directory::original_journals(run);
    if let Some(Holder { rank, pid, .. }) = first(&originals) {
        return Err(refusal(run, &format!("rank {rank} is process {pid}")));
    }
    let seen: BTreeSet<u32> =
        originals.iter().filter_map(|file| Holder::of(file)).map(|holder| holder.rank).collect();
    let mut known = true;
    // A journal may be gone before its process.
    for noted in nodes::of(run).remove(&host()).unwrap_or_default() {
        match lives_in(noted.pid_namespace, noted.pid, noted.started) {
            Some(true) => {
                return Err(refusal(run, &format!("rank {} is process {}", noted.rank, noted.pid)));
            }
            Some(false) => {}
            None => known &= seen.contains(&noted.rank),
        }
    }
    Ok(known)
}

/// Message on `run` when `process` still runs.
pub fn refusal(run: &Path, process: &str) -> Failure {
    let fix = "see it with 'ampl info', and recover it when it has ended";
    Failure::message(Kind::Other, format!("{STILL_RUNS}: {process}"), run.display(), fix)
}
