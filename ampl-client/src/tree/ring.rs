//! Queues of windows in order, of bounded length.

use std::collections::VecDeque;

use ampl_core::message::{
    CellSums, CensusWindow, MOST_NAMED, MOST_STRATA, MessageLayout, MetricMoments, NamedCall,
    RetrospectiveShape, Sampled, StratumSums,
};
use ampl_core::stats::Moments;
use ampl_core::stats::bins::{Histogram, Residuals};

use super::RING;

/// Bytes that all queues of a node may take together.
const MEMORY: usize = 960 << 10;

/// The same where ranks are binned: windows that had to be merged cannot be decided by their values any more.
const MEMORY_BINNED: usize = 4 << 20;

/// Records that a queue has room for, however large they are: neighbours to merge and one more.
const LEAST: usize = 4;

/// Most records in each queue of a node with that many contributors: [`RING`], or as many as fit in a megabyte with the
/// rest of the node where a plan of many groups makes records large. There is a queue for each contributor, one for
/// what is complete and one for spares.
pub(super) fn capacity(shape: &MessageLayout, contributors: usize) -> usize {
    let cell = size_of::<CellSums>() + shape.asked.len() * size_of::<MetricMoments>();
    let divided = shape.divisions.as_ref().map_or(0, |divisions| {
        let guides = divisions.guides.len();
        let stratum = size_of::<StratumSums>() + guides * size_of::<Moments>();
        let sampled = size_of::<Sampled>() + guides * size_of::<[f32; 2]>();
        divisions.groups.len() * (MOST_STRATA * stratum + usize::from(divisions.sample) * sampled)
    });
    let steps = if shape.steps { MOST_NAMED * size_of::<NamedCall>() } else { 0 };
    let record = size_of::<CensusWindow>() + shape.cells.len() * cell + divided + steps;
    (MEMORY / ((contributors + 2) * record)).clamp(LEAST, RING)
}

/// The same for the retrospective pass, where the contributors stand for so many ranks each.
pub(super) fn capacity_binned(retrospective: &RetrospectiveShape, contributors: &[u32]) -> usize {
    let bin = size_of::<u64>() + size_of::<u16>() + retrospective.guides.len() * size_of::<Residuals>();
    let fixed = size_of::<CensusWindow>() + retrospective.groups.len() * size_of::<Histogram>();
    let bins = retrospective.groups.len() * usize::from(retrospective.bins);
    // Empty bins take no room.
    let record = |ranks: u32| fixed + bins.min(ranks as usize) * bin;
    let one_of_each: usize = contributors.iter().copied().map(record).sum();
    (MEMORY_BINNED / (one_of_each + 2 * record(contributors.iter().sum()))).clamp(2 * LEAST, RING)
}

/// Appends a window; beyond `capacity` records two neighbours merge into a range.
///
/// A range over windows that its contributor never brought is late: they are in its length, and not in
/// its sums.
///
/// Ranges are blocks of 2ᵏ windows that begin at multiples of 2ᵏ, as far as the windows allow.
/// Of two such blocks one contains the other, or they are apart. So ranges from different nodes end together again and
/// again, however differently the edges of a tree are held up. A node that adds them up never waits long for a range
/// that straddles the end of another.
pub(super) fn push(ring: &mut VecDeque<CensusWindow>, window: CensusWindow, capacity: usize) {
    ring.push_back(window);
    if ring.len() <= capacity {
        return;
    }
    // The block around a pair has as many windows as the first and the last differ in low bits.
    let block = |&left: &usize| {
        let (first, last) = (ring[left].first_window.0, ring[left + 1].last_window.0);
        u64::BITS - (first ^ last).leading_zeros()
    };
    // The smallest block, of equals the oldest: coarse ranges only once nothing fine is left.
    if let Some(left) = (0..ring.len() - 1).min_by_key(block)
        && let Some(right) = ring.remove(left + 1)
    {
        let left = &mut ring[left];
        left.late |= right.first_window.0 > left.last_window.0.saturating_add(1);
        left.merge(&right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::config::Config;
    use ampl_core::message::MessageLayout;
    use ampl_core::plan::Plan;
    use ampl_core::units::WindowId;

    #[test]
    fn ranges_are_aligned_blocks() {
        let shape = MessageLayout::of(&Plan::new(Config::default(), 1).unwrap());
        let mut ring = VecDeque::new();
        for window in 7..5000 {
            let window = WindowId(window);
            push(&mut ring, CensusWindow::new(&shape, window, window), RING);
        }
        assert_eq!(ring.len(), RING);
        let mut next = 7;
        for range in &ring {
            assert_eq!(range.first_window.0, next);
            next = range.last_window.0 + 1;
            // Blocks end at multiples of their size; only the first may begin late.
            let size = range.windows().next_power_of_two();
            assert_eq!(next % size, 0, "{:?}", range.last_window);
            assert!(size <= 256, "{size}");
        }
        assert_eq!(next, 5000);
    }

    #[test]
    fn a_range_over_a_hole_is_late() {
        let shape = MessageLayout::of(&Plan::new(Config::default(), 1).unwrap());
        let ring = |windows: [u64; 3]| {
            let mut ring = VecDeque::new();
            for window in windows.map(WindowId) {
                push(&mut ring, CensusWindow::new(&shape, window, window), 2);
            }
            ring.iter().any(|range| range.windows() > 1 && range.late)
        };
        assert_eq!([ring([8, 9, 10]), ring([8, 10, 12])], [false, true]);
    }

    #[test]
    fn a_node_fits_in_a_megabyte_unless_its_records_are_huge() {
        let mut shape = MessageLayout::of(&Plan::new(Config::default(), 1).unwrap());
        let cell = shape.cells[0];
        let capacities = [(1, 0), (1, 8), (8, 8), (64, 0), (64, 8)].map(|(groups, contributors)| {
            shape.cells = vec![cell; groups];
            capacity(&shape, contributors)
        });
        assert_eq!(capacities[0], RING);
        assert!(capacities[1] >= RING / 2, "{capacities:?}");
        assert!(capacities.iter().all(|&records| records >= LEAST));
    }
}
