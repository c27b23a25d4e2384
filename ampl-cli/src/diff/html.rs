//! The page of a comparison: `--html FILE`.

use std::fs;
use std::path::{Path, PathBuf};

use ampl_analysis::comparison::{Comparison, Key, Profile, Quantity, Scope};
use ampl_html::{Side, write_comparison};
use ampl_reader::{Trace, directory};

use crate::failure::{Failure, OTHER};
use crate::rundir;

/// Writes `found`, and of each side the run of median length, to `path` as a page.
///
/// # Errors
/// Errors of reading those runs again, and a [`Failure`] where the page cannot be written.
pub fn write(path: &Path, found: &Comparison, sides: [(&[PathBuf], &[Profile]); 2]) -> anyhow::Result<()> {
    let chosen = sides.map(|(runs, profiles)| &runs[median(profiles)]);
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

/// Number of the run of median length; of an even number the shorter of the two.
fn median(profiles: &[Profile]) -> usize {
    let elapsed = Key { scope: Scope::Run, what: Quantity::Elapsed };
    let length = |at: &usize| profiles[*at].times.get(&elapsed).copied().unwrap_or(f64::MAX);
    let mut order: Vec<usize> = (0..profiles.len()).collect();
    order.sort_by(|a, b| length(a).total_cmp(&length(b)));
    order[(order.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_of_median_length_stands_for_its_side() {
        let profile = |length: Option<f64>| {
            let mut profile = Profile::default();
            let elapsed = Key { scope: Scope::Run, what: Quantity::Elapsed };
            length.into_iter().for_each(|length| _ = profile.times.insert(elapsed.clone(), length));
            profile
        };
        let of = |lengths: &[Option<f64>]| median(&lengths.iter().map(|&of| profile(of)).collect::<Vec<_>>());
        assert_eq!(of(&[Some(5.0)]), 0);
        assert_eq!(of(&[Some(5.0), Some(1.0), Some(3.0)]), 2);
        assert_eq!(of(&[Some(5.0), Some(1.0), Some(3.0), Some(9.0)]), 2);
        // One whose length is not known is not chosen before others.
        assert_eq!(of(&[None, Some(1.0)]), 1);
    }
}
