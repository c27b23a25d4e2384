//! The file of patterns of a user's own.

use std::path::Path;

use ampl_analysis::topology::pattern::{Pattern, parse};

use crate::failure::{Failure, NOT_FOUND, USAGE};

/// Patterns of the file at `path`.
///
/// # Errors
/// A [`Failure`] of status 4 where there is no such file, of status 2 for what is wrong in it.
pub fn read(path: &Path) -> anyhow::Result<Vec<Pattern>> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        let what = format!("cannot read the patterns: {error}");
        Failure::message(NOT_FOUND, what, path.display(), "name another file")
    })?;
    let fix = "see 'ampl topology --help' for an example";
    parse(&text).map_err(|error| Failure::message(USAGE, error, path.display(), fix))
}
