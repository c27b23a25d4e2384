//! The page of a comparison: `--html FILE`.

use std::fs;
use std::path::{Path, PathBuf};

use ampl_analysis::comparison::{Comparison, Profile, median_run};
use ampl_html::{Side, write_comparison};
use ampl_reader::{Trace, directory};

use crate::failure::{Failure, OTHER};
use crate::rundir;

/// Writes `found`, and of each side the run of median length, to `path` as a page.
///
/// # Errors
/// Errors of reading those runs again, and a [`Failure`] where the page cannot be written.
pub fn write(path: &Path, found: &Comparison, sides: [(&[PathBuf], &[Profile]); 2]) -> anyhow::Result<()> {
    let chosen = sides.map(|(runs, profiles)| &runs[median_run(profiles)]);
    // What is damaged in them was said when they were compared.
    let read = |run: &&PathBuf| directory::read(run).map_err(rundir::failure);
    let traces: Vec<Trace> = chosen.iter().map(read).collect::<anyhow::Result<_>>()?;
    let side = |at: usize| Side { trace: &traces[at], run: chosen[at], runs: sides[at].0.len() };
    let mut page = Vec::new();
    write_comparison(&mut page, found, [side(0), side(1)])?;
    fs::write(path, &page).map_err(|error| {
        let fix = "name a file that can be written";
        Failure::message(OTHER, format!("cannot write the page: {error}"), path.display(), fix)
    })
}
