//! Windows of a rank whose summaries are not stored: the weights of stored times, and the number of windows.
//!
//! Flags, probability, stratum and update are stored of a window with times: the design weight of the times follows
//! from them. Other windows are not stored; the number of all is one of the process's facts.

use super::windows;
use crate::model::{Process, RankTrace, WindowSummary};

/// The payload of the windows in `rank` that have times; nothing where none has.
pub fn encode(rank: &RankTrace) -> Vec<u8> {
    let stored = rank.windows.entries().iter().filter(|window| window.kept);
    let bare = |window: &WindowSummary| WindowSummary {
        start_ns: 0,
        end_ns: 0,
        own_ns: 0,
        cells: Default::default(),
        ..window.clone()
    };
    windows::encode(&stored.map(bare).collect::<Vec<_>>(), 0)
}

/// The `stored` windows of a process, with an entry for several in a row that are not stored. These have no length, were
/// not drawn as far as is known, and have no cells.
pub fn filled(stored: Vec<WindowSummary>, process: &Process) -> Vec<WindowSummary> {
    let all = process.windows;
    if all == 0 {
        return stored;
    }
    let (mut filled, mut next) = (Vec::new(), 0);
    let fill_up_to = |filled: &mut Vec<WindowSummary>, next: u64, end: u64| {
        if next < end {
            filled.push(WindowSummary { window: next, repeat: end - next, ..WindowSummary::default() });
        }
    };
    for window in stored {
        fill_up_to(&mut filled, next, window.window);
        next = next.max(window.numbers().end);
        filled.push(window);
    }
    if next < all {
        fill_up_to(&mut filled, next, all - 1);
        // MPI_Finalize closes the window that is open: the last one is cut short there.
        let partial = process.finalized;
        filled.push(WindowSummary { window: all - 1, repeat: 1, partial, ..WindowSummary::default() });
    }
    filled
}
