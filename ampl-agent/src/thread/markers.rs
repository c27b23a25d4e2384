//! Calls that end windows.

use ampl_core::mpi::Function;

use super::Thread;
use crate::window::Boundary;

impl Thread {
    /// Closes the windows that end where `function` is called at `now`; returns whether one was closed.
    pub fn end_windows(&mut self, function: Function, address: u64, now: u64) -> bool {
        if self.catch_up(now) {
            return true;
        }
        self.marker == Some(function.0) && self.meets_marker(address, now)
    }

    #[cold]
    fn meets_marker(&mut self, address: u64, now: u64) -> bool {
        let shared = self.shared.clone();
        let Some(Boundary::Call { site, .. }) = &shared.boundary else {
            return self.meets_step(address, now);
        };
        if site.as_ref().is_some_and(|ranges| !self.marker_accepts(address, ranges)) {
            return false;
        }
        self.mark(now)
    }

    /// Meets a marker at `now` without the lock. If it returns true, the marker is done: [`Thread::end_windows`] must
    /// not see it.
    #[inline]
    pub fn pass_marker(&self, now: u64) -> bool {
        now < self.passes_until && self.shared.credits.consume()
    }

    /// A marker is met at `now`: ends the open window if it is the last of its. Returns whether the window was closed.
    pub(super) fn mark(&mut self, now: u64) -> bool {
        if self.pass_marker(now) {
            return false;
        }
        let shared = self.shared.clone();
        if shared.markers(self.window.0) == Some(1) && self.gather(&shared, now) {
            return false;
        }
        self.rarely(|thread| {
            let mut open = thread.lock(&shared);
            open.markers_met += 1;
            let markers = shared.markers(open.window.0);
            let ends = !open.fallen_back && markers.is_some_and(|markers| open.markers_met >= markers);
            let closed = ends && thread.turn(&mut open, now, now);
            if ends {
                thread.join(&open, now);
            }
            shared.grant(&mut open);
            closed
        })
    }
}
