//! Ends of windows, as far as the clock ends them.

use ampl_core::config::Marker;
use ampl_core::message::StepMarker;
use ampl_core::units::WindowId;

use super::{MARKER_WAIT_NS, OpenWindow, Shared};
use crate::window::Boundary;

impl OpenWindow {
    /// The window that comes next where the clock ends one before the first of other steps: the same on all ranks.
    pub fn resumes_at(&self) -> Option<WindowId> {
        self.steps.filter(|_| self.replaced).map(|steps| steps.window).filter(|&window| window > self.window)
    }
}

impl Shared {
    /// When the window numbered in `open` ends, as far as that is known where it begins, at `now`.
    pub(crate) fn open_next(&self, open: &mut OpenWindow, now: u64) {
        open.markers_met = 0;
        let number = open.window.0;
        match self.boundary {
            Some(Boundary::Period { nanos } | Boundary::Steps { nanos }) => match open.steps {
                Some(steps) if open.replaced || number + 1 >= steps.window.0 => {
                    self.await_step(open, &steps, now, nanos)
                }
                _ => open.until = self.ticks_at(self.growth.begin(number + 1).saturating_mul(nanos)),
            },
            Some(Boundary::Region { .. }) => {
                open.fallen_back |= number > 0 && now == open.until;
                open.until = match (number, open.fallen_back) {
                    (0, _) => self.ticks_at(MARKER_WAIT_NS),
                    (_, true) => {
                        // The first one waited for the marker.
                        let waited =
                            (self.growth.begin(number + 1) - 1).saturating_mul(Marker::AUTO_PERIOD_NS);
                        self.ticks_at(waited.saturating_add(MARKER_WAIT_NS))
                    }
                    (_, false) => u64::MAX,
                };
            }
            _ => {}
        }
    }

    /// The open window, which begins at `now`, ends at a visit of `steps`. Where none comes for long the clock ends it, and
    /// those behind it: at the same times on all ranks.
    fn await_step(&self, open: &mut OpenWindow, steps: &StepMarker, now: u64, nanos: u64) {
        open.fallen_back |= (open.replaced || open.window >= steps.window) && now == open.until;
        let elapsed = self.nanos_at(now);
        open.until = if open.fallen_back {
            // It begins at a multiple, but for rounding.
            self.ticks_at((elapsed.saturating_add(nanos / 2) / nanos + 1).saturating_mul(nanos))
        } else {
            let timeout = u64::from(steps.timeout_s.max(1)) * 1_000_000_000;
            self.ticks_at((elapsed / timeout + 2).saturating_mul(timeout))
        };
    }

    /// Nanoseconds since T0 at `now`.
    pub(crate) fn nanos_at(&self, now: u64) -> u64 {
        let (ticks, first) = self.journal.first_pair();
        let elapsed = now.saturating_sub(ticks) as f64 * self.journal.nanos_per_tick();
        (elapsed as i64).saturating_add(first).max(0) as u64
    }

    /// Windows from the open one on that are over at `now` under the directive in force, and the ticks at which the
    /// last of them ends. The open one's draw is as likely as their own would be.
    pub(crate) fn over(&self, open: &OpenWindow, now: u64) -> Option<(u64, u64)> {
        let Some(Boundary::Period { nanos } | Boundary::Steps { nanos }) = self.boundary else { return None };
        // Subtract one: rounding in the tick conversion may overshoot by one window.
        let mut next = self.growth.window_of(self.nanos_at(now) / nanos.max(1)).saturating_sub(1);
        // Windows of one entry are as long as each other.
        next = next.min(self.growth.longer_from(open.window.0));
        let directed = self.directed();
        if directed > open.window.0 {
            next = next.min(directed);
        }
        if let Some(steps) = open.steps {
            next = next.min(steps.window.0.saturating_sub(1));
        }
        let windows = next.checked_sub(open.window.0)?;
        Some((windows, self.ticks_at(self.growth.begin(next).saturating_mul(nanos))))
    }
}
