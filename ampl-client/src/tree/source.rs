//! Windows brought by one contributor of a node: the node's own rank, or a child's subtree.

use std::collections::VecDeque;

use ampl_core::message::CensusWindow;

use super::ring;

/// Outcome for windows that a contributor brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The windows wait for the other contributors'.
    Taken,
    /// The windows, or some of a range, have been passed on without this contributor.
    Late,
    /// The contributor had brought the windows before.
    Known,
}

/// Windows of one contributor that are not passed on yet.
#[derive(Debug)]
pub(super) struct Source {
    /// Ranks that it stands for.
    pub ranks: u32,
    /// Ranks among them that have finished.
    pub finished: u32,
    /// Windows below this will not come (again).
    pub through: u64,
    /// `true` if it was waited for in vain and has brought no open window since.
    pub silent: bool,
    queue: VecDeque<CensusWindow>,
}

impl Source {
    pub fn new(ranks: u32) -> Self {
        Self { ranks, finished: 0, through: 0, silent: false, queue: VecDeque::new() }
    }

    pub fn is_finished(&self) -> bool {
        self.finished >= self.ranks
    }

    /// `true` if no window up to `last` is still to come.
    pub fn is_past(&self, last: u64) -> bool {
        self.is_finished() || self.through > last
    }

    /// Takes windows in, if they are new and those from `next` on are all open still.
    ///
    /// A contributor's windows ascend, so their numbers are the sequence numbers of its messages: what is
    /// below `through` is a copy, or was overtaken on its way, which only a broken transport does.
    pub fn push(&mut self, window: CensusWindow, next: u64, capacity: usize) -> Pushed {
        let (first, last) = (window.first_window.0, window.last_window.0);
        if last < self.through || first > last {
            return Pushed::Known;
        }
        let open = first >= next.max(self.through);
        self.through = last.saturating_add(1);
        if !open {
            // What is over is no reason to wait for what comes after it.
            return Pushed::Late;
        }
        self.silent = false;
        ring::push(&mut self.queue, window, capacity);
        Pushed::Taken
    }

    /// Records that wait here.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// First window that waits here.
    pub fn first(&self) -> Option<u64> {
        self.queue.front().map(|window| window.first_window.0)
    }

    /// The last window of those ranges that begin up to `last`.
    pub fn reach(&self, last: u64) -> u64 {
        let begun = self.queue.iter().take_while(|window| window.first_window.0 <= last);
        begun.last().map_or(last, |window| window.last_window.0.max(last))
    }

    /// Newest window that waits here.
    pub fn newest(&self) -> Option<u64> {
        self.queue.back().map(|window| window.last_window.0)
    }

    /// Gives the windows up to `last` to `each`, oldest first; returns whether those were all from `first` on
    /// that there will ever be.
    pub fn take(&mut self, first: u64, last: u64, mut each: impl FnMut(CensusWindow)) -> bool {
        let mut windows = 0;
        while self.queue.front().is_some_and(|window| window.last_window.0 <= last) {
            let window = self.queue.pop_front().expect("there is a front");
            windows += window.windows();
            each(window);
        }
        let past = last.saturating_add(1);
        let end = if self.is_finished() { past.min(self.through) } else { past };
        windows >= end.saturating_sub(first)
    }
}
