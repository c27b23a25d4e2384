//! Windows in order, at most [`RING`] records of them.

use std::collections::VecDeque;

use ampl_core::message::CensusWindow;

use super::RING;

/// Appends a window; beyond [`RING`] records two neighbours merge into a range.
///
/// Ranges are blocks of 2ᵏ windows that begin at multiples of 2ᵏ, as far as the windows allow.
/// Of two such blocks one contains the other, or they are apart; so however differently the edges
/// of a tree are held up, ranges from different nodes end together again and again, and a node
/// that adds them up is never kept waiting by one range that straddles the end of another.
pub(super) fn push(ring: &mut VecDeque<CensusWindow>, window: CensusWindow) {
    ring.push_back(window);
    if ring.len() <= RING {
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
        ring[left].merge(&right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_core::config::Config;
    use ampl_core::message::Shape;
    use ampl_core::plan::Plan;
    use ampl_core::units::WindowId;

    #[test]
    fn ranges_are_aligned_blocks() {
        let shape = Shape::of(&Plan::new(Config::default(), 1).unwrap());
        let mut ring = VecDeque::new();
        for window in 7..5000 {
            push(&mut ring, CensusWindow::new(&shape, WindowId(window), WindowId(window)));
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
}
