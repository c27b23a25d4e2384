//! What rank 0 settles alone in `MPI_Init`: the configuration, the run directory, the start of time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ampl_core::config::Config;
use ampl_core::naming::{awaited, candidates};
use ampl_core::plan::{Clipping, Plan};

use super::message;
use crate::align;
use crate::clock;
use crate::environment;

/// What rank 0 tells the others.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Announcement {
    /// Run directory, absolute.
    pub directory: PathBuf,
    /// T0, nanoseconds since the Unix epoch.
    pub started_ns: i64,
    /// T0 on rank 0's monotonic clock, and which that is.
    pub epoch: i64,
    pub clock: u64,
    /// The configuration's text.
    pub config: String,
}

/// On rank 0: makes the run directory; `None` with a message where that cannot be.
pub fn announce(ranks: u32) -> Option<Announcement> {
    if let Some(run) = environment::named_directory() {
        take_away(&awaited(&run));
    }
    let (config, place) = environment::config_text().inspect_err(|error| message(error)).ok()?;
    let parsed = match Config::parse(&config) {
        Ok((parsed, _)) => parsed,
        Err(errors) => {
            message(errors.render(&place).trim_start_matches("ampl: "));
            return None;
        }
    };
    if let Err(error) = Plan::new(parsed.clone(), ranks) {
        let (line, column) = error.place(&config).unwrap_or((1, 1));
        message(&format!("{error} ({place}:{line}:{column}): the job goes on without ampl"));
        return None;
    }
    if let Some(clipping) = Clipping::of(&parsed, ranks) {
        let (line, column) = clipping.place(&config).unwrap_or((1, 1));
        message(clipping.render(&format!("{place}:{line}:{column}")).trim_start_matches("ampl: "));
    }
    let wanted = environment::run_directory(&parsed.output.dir);
    match make_directory(&wanted) {
        Ok(directory) => {
            // The second program under one `ampl exec`, or what else was given a name twice.
            if environment::named_directory().is_some() && directory != wanted {
                let (taken, run) = (wanted.display(), directory.display());
                message(&format!("{taken} is taken, this run is in {run}: see it with 'ampl info {run}'"));
            }
            Some(Announcement {
                directory,
                started_ns: clock::epoch_ns(),
                epoch: clock::monotonic_ns(),
                clock: align::identity(),
                config,
            })
        }
        Err(error) => {
            message(&format!(
                "cannot make the run directory ({}): {error}; choose another with -o, the job goes on without ampl",
                wanted.display()
            ));
            None
        }
    }
}

/// A directory that did not exist: `wanted`, or with `-2`, `-3`, … behind it.
fn make_directory(wanted: &Path) -> io::Result<PathBuf> {
    if let Some(parent) = wanted.parent() {
        fs::create_dir_all(parent)?;
    }
    for name in candidates(wanted).take(1000) {
        match fs::create_dir(&name) {
            Ok(()) => return Ok(name),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("a thousand runs of that name exist"))
}

/// Removes what `ampl run` has put there, and nothing of that name that somebody else did.
fn take_away(awaited: &Path) {
    if fs::symlink_metadata(awaited).is_ok_and(|found| found.is_file() && found.len() == 0) {
        let _ = fs::remove_file(awaited);
    }
}
