//! Windows of a rank whose summaries are not stored: the weights of stored times, and the number of windows.
//!
//! Flags, probability, stratum and update are stored of a window with times: the design weight of the times follows
//! from them. Other windows are not stored; the number of all is one of the process's facts.

use rustc_hash::FxHashMap;

use super::windows;
use crate::model::{Process, RankTrace, WindowSummaries, WindowSummary};

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

/// Windows that have been decoded, by what they are of, the number of the rank's windows and whether it was finalized.
#[derive(Default)]
pub struct Decoded<'a>(FxHashMap<(Stored<'a>, u64, bool), Option<WindowSummaries>>);

/// Place of windows in a file.
#[derive(PartialEq, Eq, Hash)]
enum Stored<'a> {
    Payload(&'a [u8]),
    /// The address of those that a section of several ranks has once.
    Shared(usize),
}

impl<'a> Decoded<'a> {
    /// The windows in `payload` of a `process`; `None` where it makes no sense.
    pub fn windows(&mut self, payload: &'a [u8], process: &Process) -> Option<WindowSummaries> {
        let key = (Stored::Payload(payload), process.windows, process.finalized);
        let decode = || Some(filled(windows::decode(payload)?, process).into());
        self.0.entry(key).or_insert_with(decode).clone()
    }

    /// The windows that are `stored` of a `process`, as long as the file has them.
    pub fn shared(&mut self, stored: &WindowSummaries, process: &Process) -> WindowSummaries {
        if process.windows == 0 {
            return stored.clone();
        }
        let key = (Stored::Shared(stored.entries().as_ptr() as usize), process.windows, process.finalized);
        let fill = || Some(filled(stored.entries().to_vec(), process).into());
        self.0.entry(key).or_insert_with(fill).clone().unwrap_or_default()
    }
}
