//! Events from the program itself: regions, metrics, markers, pauses.

use ampl_core::mpi::Function;
use ampl_trace::gaps::Reason;

use super::Thread;
use crate::buffers::Terminal;
use crate::declared::Irregularities;
use crate::gaps::LeftOut;
use crate::window::Boundary;

impl Thread {
    /// The region of that index is entered at `now`. Returns whether windows were closed, which were over.
    pub fn region_enter(&mut self, region: u16, now: u64) -> bool {
        let closed = self.catch_up(now);
        let at = self.shared.unpaused(now);
        if !self.visits.enter(&self.shared.events.declared, region, &self.totals, at) {
            Irregularities::count(&self.shared.irregular.unbalanced);
        }
        closed
    }

    /// The region of that index is left at `now`. Returns whether windows were closed, and whether the region
    /// had been entered.
    ///
    /// A visit belongs to the window in which it ends; that of the marker's region, to the one it ends.
    pub fn region_exit(&mut self, region: u16, now: u64) -> (bool, bool) {
        let mut closed = self.catch_up(now);
        let shared = self.shared.clone();
        let at = shared.unpaused(now);
        let exit = self.visits.exit(region, &mut self.totals, at, &shared);
        if exit.entered && !exit.in_order {
            Irregularities::count(&shared.irregular.unbalanced);
        }
        if let (Some(Boundary::Region { .. }), true) = (&shared.boundary, exit.marker) {
            closed |= self.mark(now);
        }
        (closed, exit.entered)
    }

    /// Adds to the total of a metric of the program at `now`. Returns whether windows were closed before.
    pub fn metric_add(&mut self, user: u16, value: f64, now: u64) -> bool {
        let closed = self.catch_up(now);
        if !self.shared.is_paused() {
            self.totals.users[usize::from(user)] += value;
        }
        closed
    }

    /// `MPI_Pcontrol(level)` at `now`: 0 pauses, 1 resumes, any other level is a marker. Returns whether
    /// windows were closed.
    pub fn control(&mut self, level: i32, now: u64) -> bool {
        let closed = self.catch_up(now);
        if level == 1 && !self.shared.is_paused() {
            // It is going on.
            return closed;
        }
        let shared = self.shared.clone();
        match (level, &shared.boundary) {
            (0 | 1, _) => {
                let _turns = self.lock(&shared);
                if level == 0 {
                    shared.pause.begin(now)
                } else {
                    shared.pause.end(now)
                };
                closed
            }
            (_, Some(Boundary::Pcontrol { .. })) => self.mark(now) || closed,
            _ => closed,
        }
    }

    /// A call that the program made in a pause, from `start` to `end`, has returned: it has its place in the sequence, where it is
    /// recorded if it made or freed what later calls name. Returns whether windows were closed.
    #[cold]
    pub(super) fn leave_paused(
        &mut self,
        (function, address, terminal): (Function, u64, Option<Terminal>),
        [start, end]: [u64; 2],
    ) -> bool {
        if terminal.is_none_or(|terminal| !self.append(terminal, start)) {
            let reason = Reason::Paused;
            self.leave_out(&LeftOut { function, address, reason, calls: 1, start, end });
        }
        self.sequence += 1;
        self.skipped = true;
        self.catch_up(end)
    }

    /// Calls are stored again after a pause: where in the sequence they go on is noted.
    #[cold]
    pub(super) fn reopen(&mut self, now: u64) {
        self.skipped = false;
        self.stream.open(&[self.window.0, now, 1.0f64.to_bits(), 0, self.sequence]);
    }
}
