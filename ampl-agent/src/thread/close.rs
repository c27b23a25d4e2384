//! Ends windows.

use ampl_core::config::Mechanism;
use ampl_core::draw::Keep;
use ampl_core::units::WindowId;
use ampl_trace::cells::{Cell, Cells};
use ampl_trace::model::{Level, Step};
use ampl_trace::record::{
    Kind, WINDOW_BUFFERED, WINDOW_DRAWN, WINDOW_INCLUSION, WINDOW_KEPT, WINDOW_PARTIAL, WINDOW_PARTNER,
    WINDOW_RUN, WINDOW_STRATUM,
};

use super::Thread;
use crate::accumulate::Totals;
use crate::call_end::CallEnd;
use crate::closed::ClosedWindow;
use crate::shared::OpenWindow;
use crate::window_decisions::Undecided;

/// Removes the observations of a window that was all `paused`: zeros would count as the rank's work.
fn forget_paused(cells: &mut [Cell], wall: u64, paused: u64) {
    if wall == 0 && paused > 0 {
        cells.fill(Cell::default());
    }
}

/// Rewinds to the first unreported window, among those [passed over](crate::shared::Shared::pass_over); returns how
/// many are unreported, the open one included.
fn rewind(open: &mut OpenWindow) -> u64 {
    let unreported = std::mem::take(&mut open.unreported);
    open.window = WindowId(open.window.0 - unreported);
    unreported
}

impl Thread {
    /// Ends the open window at `end`, with the totals of all threads.
    pub(super) fn close(&mut self, open: &mut OpenWindow, end: u64, partial: bool) {
        self.gather_totals(open);
        self.close_ended(open, end, partial);
    }

    /// Collects in this thread's totals those of all threads for the window that is over.
    pub(super) fn gather_totals(&mut self, open: &mut OpenWindow) {
        self.end_part();
        self.totals.merge(&open.left);
        open.left.clear();
    }

    /// As [`close`](Self::close) where this thread's totals are those of all threads.
    pub(super) fn close_ended(&mut self, open: &mut OpenWindow, end: u64, partial: bool) {
        let shared = self.shared.clone();
        let (wall, paused) = shared.length(open, end);
        let mut cells = self.totals.cells(&shared.events, wall, self.nanos_per_tick);
        if let Some(counting) = &mut open.counting {
            counting.close(end, &mut cells);
        }
        forget_paused(&mut cells, wall, paused);
        let windows = 1 + rewind(open);
        if windows > 1 {
            self.drop_coins(open);
        }
        self.write_window(open, end, cells, windows, partial);
        self.totals.clear();
    }

    /// Ends the open window at `end`, where the next one begins; it is `now`. Returns whether it was closed: it
    /// may have been passed over.
    pub(super) fn turn(&mut self, open: &mut OpenWindow, end: u64, now: u64) -> bool {
        let fell_back = open.fallen_back;
        let shared = self.shared.clone();
        let closes = !shared.pass_over(open, end);
        if closes {
            open.read_counters(now);
            self.close(open, end, false);
            open.window = open.window.max(open.resumes_at().unwrap_or_default());
            shared.begin(open, end);
        }
        if open.fallen_back && !fell_back {
            self.step(&Step { window: open.window.0, at: end, level: Level::Clock, share: 0.0, limit: None });
        }
        closes
    }

    /// Closes the windows from the open one on that are over at `now`, at once if they are many: none of the
    /// threads has done anything in them but be `inside` of one call of MPI, or outside. Returns the ticks at
    /// which the last of them ended, 0 if none was closed.
    ///
    /// A rank may be away for millions of short windows, and must neither fill its journal with them nor take
    /// the time that writing them would take.
    pub(super) fn close_empty(&mut self, open: &mut OpenWindow, now: u64, inside: bool) -> u64 {
        const MANY: u64 = 64;
        let shared = self.shared.clone();
        let Some((windows, end)) = shared.over(open, now).filter(|&(windows, _)| windows >= MANY) else {
            return 0;
        };
        let windows = windows + rewind(open);
        self.drop_coins(open);
        let (wall, paused) = shared.length(open, end);
        let wall = wall / windows;
        let mut one = Totals::new(&shared.events);
        one.mpi_ticks = if inside { wall } else { 0 };
        let mut cells = one.cells(&shared.events, wall, self.nanos_per_tick);
        if let Some(counting) = &mut open.counting {
            counting.close_several(end, windows, &mut cells);
        }
        forget_paused(&mut cells, wall, paused);
        self.write_window(open, end, cells, windows, false);
        shared.begin(open, end);
        end
    }

    /// Gives each period that ended inside `call` its part of the call's time; returns where the last part starts.
    #[cold]
    pub(super) fn split(&mut self, call: &CallEnd) -> u64 {
        self.rarely(|thread| thread.split_call(call))
    }

    fn split_call(&mut self, call: &CallEnd) -> u64 {
        let shared = self.shared.clone();
        let mut open = self.lock(&shared);
        shared.settle_marker(&mut open);
        let mut from = call.start;
        if open.window == self.window {
            while call.end >= open.until {
                let end = open.until;
                if call.timed {
                    self.totals.add_time(end.saturating_sub(from));
                }
                from = from.max(end);
                self.turn(&mut open, end, call.end);
                from = from.max(self.close_empty(&mut open, call.end, call.timed));
            }
        } else {
            // Other threads have closed windows meanwhile: this one's part comes late, whole.
            self.leave_totals(&mut open);
            self.close_due(&mut open, call.end);
        }
        self.join(&open, from);
        from
    }

    /// Windows closed since the last call.
    pub fn take_closings(&mut self) -> usize {
        std::mem::take(&mut self.closings)
    }

    /// Drops the open window's draw where several windows are closed together and each would have its own draw.
    fn drop_coins(&self, open: &mut OpenWindow) {
        let global = self.shared.plan.config.sampling.update_mechanism == Mechanism::Global;
        if global && open.keep != Keep::ALWAYS {
            open.keep = Keep { kept: false, probability: 0.0 };
            if open.union != Keep::ALWAYS {
                open.union = open.keep;
            }
        }
    }

    /// Writes `windows` windows from the open one on, up to `end`, and queues them for the tree; `cells` are those of
    /// each.
    fn write_window(
        &mut self,
        open: &mut OpenWindow,
        end: u64,
        mut cells: Vec<Cell>,
        windows: u64,
        partial: bool,
    ) {
        let shared = self.shared.clone();
        self.closings += 1;
        let own = self.totals.own_ticks;
        // Rare work was measured whole; calls cost more than was measured of them.
        let rare = self.rare_ticks - std::mem::replace(&mut self.rare_before, self.rare_ticks);
        let beside = own.saturating_sub(rare) as f64 * (self.surcharge - 1.0);
        shared.journal.add_own_ticks(own.saturating_sub(self.totals.waited_ticks) + beside as u64);
        let polling = self.spin.take();
        if polling > 0 {
            shared.journal.add_polling_ticks(polling);
        }
        let stores = open.measured && shared.plan.stores_summary(open.keep.kept);
        let stated = if stores { &cells[..] } else { &[][..] };
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        let probability = open.keep.probability.to_bits();
        body.extend([open.window.0, open.since, end, own, probability, open.update]);
        Cells::put(&mut body, stated);
        if windows > 1 {
            body.push(windows);
        }
        let weighted = open.union.kept && open.union != open.keep;
        if weighted {
            body.push(open.union.probability.to_bits());
        }
        body.extend(open.stratum.map(u64::from));
        let whole = open.stored && !self.stream.is_full() && !self.log.is_lost();
        let kept = whole && !open.buffered;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(kept, WINDOW_KEPT)
            | flag(open.keep.kept, WINDOW_DRAWN)
            | flag(open.union.kept && !open.keep.kept, WINDOW_PARTNER)
            | flag(weighted, WINDOW_INCLUSION)
            | flag(open.stratum.is_some(), WINDOW_STRATUM)
            | flag(partial, WINDOW_PARTIAL)
            | flag(windows > 1, WINDOW_RUN)
            | flag(whole && open.buffered, WINDOW_BUFFERED);
        self.stream.record(Kind::Window, flags, &body);
        self.body = body;
        let last = WindowId(open.window.0 + (windows - 1));
        cells.iter_mut().for_each(|cell| cell.times(windows));
        let mut keep = open.keep;
        if open.buffered || open.marked {
            let drawn = open.keep.kept;
            open.decisions.close(Undecided { window: open.window, last, whole, drawn });
            // The decision is still open; the client prices what it would take.
            keep.kept = false;
        }
        open.closed.leave(ClosedWindow {
            window: open.window,
            last,
            cells,
            keep,
            bytes: if open.union.kept || open.buffered { self.totals.stored } else { 0 },
            spent: self.totals.spent,
            measured: open.measured,
        });
        open.window = last.next();
    }
}
