//! Windows of a rank whose summaries are not stored: the weights of stored times, and the number of windows.
//!
//! Flags, probability, stratum and update are stored of a window with times: the design weight of the times follows
//! from them. Other windows are not stored; the number of all is one of the process's facts.

use super::windows;
use crate::model::{RankTrace, WindowSummary};

/// The payload of the windows in `rank` that have times; nothing where none has.
pub fn encode(rank: &RankTrace) -> Vec<u8> {
    let stored = rank.windows.iter().filter(|window| window.kept);
    let bare = |window: &WindowSummary| WindowSummary {
        start_ns: 0,
        end_ns: 0,
        own_ns: 0,
        cells: Default::default(),
        ..window.clone()
    };
    windows::encode(&stored.map(bare).collect::<Vec<_>>())
}

/// Puts an entry in `rank` for the windows that are not stored, one for several in a row. They have no length, were
/// not drawn as far as is known, and have no cells.
pub fn fill(rank: &mut RankTrace) {
    let all = rank.process.windows;
    if all == 0 {
        return;
    }
    let (mut filled, mut next) = (Vec::new(), 0);
    let fill_up_to = |filled: &mut Vec<WindowSummary>, next: u64, end: u64| {
        if next < end {
            filled.push(WindowSummary { window: next, repeat: end - next, ..WindowSummary::default() });
        }
    };
    for window in std::mem::take(&mut rank.windows) {
        fill_up_to(&mut filled, next, window.window);
        next = next.max(window.window.saturating_add(window.repeat.max(1)));
        filled.push(window);
    }
    if next < all {
        fill_up_to(&mut filled, next, all - 1);
        // MPI_Finalize closes the window that is open: the last one is cut short there.
        let partial = rank.process.finalized;
        filled.push(WindowSummary { window: all - 1, repeat: 1, partial, ..WindowSummary::default() });
    }
    rank.windows = filled;
}
