//! Windows whose end is only noted, and that are closed together later.
//!
//! Closing a window takes a few microseconds with warm caches, and several times that where ranks share a processor.
//! Where a window waits for its decision anyway, closing some costs hardly more than closing one. Their calls are in
//! the buffer under their own numbers, so a process that dies loses only these windows' summaries.

use super::Thread;
use crate::governor::Level;
use crate::shared::{Guard, OpenWindow, Shared};

/// How long the end of a window may go unreported, nanoseconds: as long as windows are by default.
const LONGEST_NS: f64 = 250e6;

/// True where the next window is sure to be observed like the `open` one, with nothing to read at its end.
fn is_like_the_next(open: &OpenWindow) -> bool {
    let stored = open.buffered && open.stored && open.governor.level() == Level::Kept;
    stored && open.measured && !open.fallen_back && open.counting.is_none()
}

impl Thread {
    /// Lets up to `most` windows gather between two polls of the tree; without this call none do.
    pub fn gather_up_to(&mut self, most: usize) {
        self.gathers = most;
    }

    /// The open window, when all that have gathered are closed.
    pub(super) fn lock<'a>(&mut self, shared: &'a Shared) -> Guard<'a> {
        let mut open = shared.lock();
        self.close_all(&mut open);
        open
    }

    /// Closes the windows that have gathered.
    pub fn close_gathered(&mut self) {
        let shared = self.shared.clone();
        drop(self.lock(&shared));
    }

    /// Until when the windows that follow one that begins at `now` may gather; 0 if none may.
    pub(super) fn gathers_until(&self, now: u64) -> u64 {
        if self.gathers > 1 { now.saturating_add((LONGEST_NS / self.nanos_per_tick) as u64) } else { 0 }
    }

    /// The open window ends at `now`: notes it and goes on with the next, if that is all that must be done. Returns
    /// whether it was.
    pub(super) fn gather(&mut self, shared: &Shared, now: u64) -> bool {
        let whole = !self.stream.is_full() && !self.stream.is_crowded() && !self.log.is_lost();
        if now >= self.gathers_until || self.is_check_due(now) || !whole {
            return false;
        }
        let mut open = shared.lock();
        let gathered = open.gathered.len();
        let is_last = open.window.0 + gathered as u64 == self.window.0;
        // Those that are closed wait for the same poll of the tree, and together there must not be more.
        let most = gathered + open.closed.len() + 1 >= self.gathers;
        if !is_last || most || !is_like_the_next(&open) {
            return false;
        }
        self.gather_totals(&mut open);
        open.gathered.take(now, &mut self.totals);
        self.window = self.window.next();
        shared.show(self.window);
        self.begin_stored(&open, now);
        true
    }

    /// Closes the windows that have gathered, as [`Thread::close_gathered`].
    pub(super) fn close_all(&mut self, open: &mut OpenWindow) {
        if open.gathered.len() == 0 {
            return;
        }
        self.add_stored();
        let shared = self.shared.clone();
        let mut ended = std::mem::take(&mut open.gathered.ended);
        for (end, totals) in &mut ended {
            std::mem::swap(&mut self.totals, totals);
            self.close_ended(open, *end, false);
            std::mem::swap(&mut self.totals, totals);
            shared.begin_unseen(open, *end);
            // Keep the flags the window opened with, even if the file system filled up since.
            (open.buffered, open.stored) = (true, true);
        }
        open.gathered.spares.extend(ended.drain(..).map(|(_, totals)| totals));
        open.gathered.ended = ended;
        shared.publish(open);
    }
}
