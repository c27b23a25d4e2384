//! The entry beside a run by which `ampl run` learns that the run has begun.

use std::fs;
use std::path::Path;

use ampl_core::naming::awaited;

/// Removes the entry that `ampl run` has put beside `run`, if it has, and none of that name that is another's.
pub fn take_away(run: &Path) -> bool {
    let awaited = awaited(run);
    fs::symlink_metadata(&awaited).is_ok_and(|found| found.is_file() && found.len() == 0)
        && fs::remove_file(awaited).is_ok()
}
