//! Windows that end with markers met without the lock.

use super::{OpenWindow, Shared};
use crate::governor::Level;
use crate::window::Boundary;

/// How long windows that are not summarised are gathered before they are reported, nanoseconds. A report, and adding it
/// up, takes up to 0.2 ms where caches are cold; others' windows wait so long.
const REPORT_EVERY_NS: f64 = 100e6;

impl Shared {
    /// Markers that end the window of that number; `None` where the clock ends windows.
    pub(crate) fn markers(&self, window: u64) -> Option<u64> {
        let markers = self.boundary.as_ref().and_then(Boundary::markers)?;
        Some(u64::from(markers).saturating_mul(self.growth.units(window)))
    }

    /// Takes all credits back, and ends in `open` the windows that markers met meanwhile have ended.
    pub(crate) fn reclaim(&self, open: &mut OpenWindow) {
        let granted = std::mem::take(&mut open.granted);
        if granted == 0 {
            return;
        }
        open.markers_met += granted - self.credits.reclaim();
        if let Some(markers) = self.boundary.as_ref().and_then(Boundary::markers).map(u64::from) {
            let begin = self.growth.begin(open.window.0);
            let window = self.growth.window_of(begin.saturating_add(open.markers_met / markers));
            open.unreported += window - open.window.0;
            open.markers_met -= (self.growth.begin(window) - begin).saturating_mul(markers);
            open.window.0 = window;
        }
        self.publish(open);
    }

    /// Ticks until which windows may be passed over before any is reported; 0 where they may not.
    pub(crate) fn passes_until(&self, open: &OpenWindow) -> u64 {
        if open.measured || open.governor.level() != Level::Off {
            return 0;
        }
        open.since + (REPORT_EVERY_NS / self.journal.nanos_per_tick()) as u64
    }

    /// Ends the open window at `now`, which has no summary, without a report, and opens the next, if that may be done;
    /// returns whether it was. Markers may end thousands of windows a second, and a process that only counts must not
    /// take part in the job each time.
    pub(crate) fn pass_over(&self, open: &mut OpenWindow, now: u64) -> bool {
        // All that are reported together are drawn by one directive.
        if now >= self.passes_until(open)
            || open.resumes_at().is_some()
            || self.directed() <= open.window.next().0
        {
            return false;
        }
        open.window = open.window.next();
        open.unreported += 1;
        self.open_next(open, now);
        self.publish(open);
        true
    }

    /// Grants credits, if windows that they end may be passed over. The lock must be held to its end.
    pub(crate) fn grant(&self, open: &mut OpenWindow) {
        let grants = self.passes_until(open) > 0 && !open.fallen_back;
        // Later windows end with no fewer.
        if let Some(markers) = self.markers(open.window.0).filter(|_| grants) {
            let windows = self.directed().saturating_sub(open.window.next().0);
            open.granted = windows.saturating_mul(markers);
            self.credits.grant(open.granted);
        }
    }
}
