//! Checks that sums from below can be this job's: they came from outside the process.

use ampl_core::message::{CensusWindow, MessageLayout, PartialSums};

/// `true` if the sums of a message of `pass` have the `shape` of the job's.
pub(super) fn fits(shape: &MessageLayout, pass: u8, window: &CensusWindow) -> bool {
    let (partial, metrics) = (&window.partial, shape.asked.len());
    match (&shape.retrospective, pass) {
        (_, 0) => {
            partial.cells.iter().map(|cell| cell.key).eq(shape.cells.iter().copied())
                && partial.cells.iter().all(|cell| cell.metrics.len() == metrics)
                && fits_divisions(shape, partial)
        }
        (Some(retrospective), 1) => {
            let bins = usize::from(retrospective.bins);
            partial.binned.len() == retrospective.groups.len()
                && partial
                    .binned
                    .iter()
                    .all(|group| (group.bins(), group.guides()) == (bins, retrospective.guides.len()))
        }
        _ => false,
    }
}

fn fits_divisions(shape: &MessageLayout, partial: &PartialSums) -> bool {
    match &shape.divisions {
        None => partial.divided.is_empty(),
        Some(divisions) => {
            partial.divided.len() == divisions.groups.len()
                && partial.divided.iter().all(|sums| sums.fits(divisions))
        }
    }
}
