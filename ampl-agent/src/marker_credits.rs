//! Markers that are met without a lock while calls are only counted.
//!
//! A program may end windows at every call. The holder of the open window's lock grants a number of marker credits;
//! threads count them down, and the next to take the lock finds how many windows they have ended.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::governor::Level;
use crate::shared::{OpenWindow, Shared};
use crate::window::Boundary;

/// How long windows that are not summarised are gathered before they are reported, nanoseconds. A report, and adding it
/// up, takes up to 0.2 ms where caches are cold; others' windows wait so long.
const TELLS_EVERY_NS: f64 = 100e6;

/// Markers that may still be met without the lock. They order no other memory: all accesses are relaxed.
#[derive(Debug, Default)]
pub struct MarkerCredits {
    left: AtomicU64,
}

impl MarkerCredits {
    /// Lends out `markers`; none must be.
    pub fn grant(&self, markers: u64) {
        self.left.store(markers, Ordering::Relaxed);
    }

    /// Meets a marker, if one is left.
    #[inline]
    pub fn meet(&self) -> bool {
        let one_less = |left: u64| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Takes back the markers that are left; returns their number.
    pub fn reclaim(&self) -> u64 {
        self.left.swap(0, Ordering::Relaxed)
    }
}

impl Shared {
    /// Markers per window.
    fn markers(&self) -> Option<u64> {
        self.boundary.as_ref().and_then(Boundary::markers).map(u64::from)
    }

    /// Ends in `open` the windows that lent markers have ended. None is lent any more.
    pub(crate) fn reclaim(&self, open: &mut OpenWindow) {
        let lent = std::mem::take(&mut open.lent);
        if let Some(markers) = self.markers().filter(|_| lent > 0) {
            open.met += lent - self.passing.reclaim();
            open.window.0 += open.met / markers;
            open.untold += open.met / markers;
            open.met %= markers;
            self.publish(open);
        }
    }

    /// Ticks until which windows may be passed over before any is reported; 0 where they may not.
    pub(crate) fn passes_until(&self, open: &OpenWindow) -> u64 {
        if open.measured || open.governor.level() != Level::Off {
            return 0;
        }
        open.since + (TELLS_EVERY_NS / self.journal.nanos_per_tick()) as u64
    }

    /// Ends the open window at `now`, which has no summary, without a report, and opens the next, if that may be done;
    /// returns whether it was. Markers may end thousands of windows a second, and a process that only counts must not
    /// take part in the job each time.
    pub(crate) fn pass_over(&self, open: &mut OpenWindow, now: u64) -> bool {
        // All that are reported together are drawn by one directive.
        if now >= self.passes_until(open) || self.directed() <= open.window.next().0 {
            return false;
        }
        open.window = open.window.next();
        open.untold += 1;
        self.open_next(open, now);
        self.publish(open);
        true
    }

    /// Lends out markers, if windows that they end may be passed over. The lock must be held to its end.
    pub(crate) fn grant(&self, open: &mut OpenWindow) {
        let lends = self.passes_until(open) > 0 && !open.fallen_back;
        if let Some(markers) = self.markers().filter(|_| lends) {
            let windows = self.directed().saturating_sub(open.window.next().0);
            open.lent = windows.saturating_mul(markers);
            self.passing.grant(open.lent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn every_marker_is_met_once() {
        const LENT: u64 = 1000;
        let (passing, over) = (MarkerCredits::default(), AtomicBool::new(false));
        let (met, gathered) = std::thread::scope(|scope| {
            let meeting = || {
                let mut met = 0u64;
                while !over.load(Ordering::Relaxed) {
                    met += u64::from(passing.meet());
                }
                met
            };
            let threads = [scope.spawn(meeting), scope.spawn(meeting)];
            let (mut gathered, mut rounds) = (0, 0);
            // The threads may get a processor late.
            while rounds < 2000 || gathered == 0 {
                passing.grant(LENT);
                std::thread::yield_now();
                gathered += LENT - passing.reclaim();
                rounds += 1;
            }
            over.store(true, Ordering::Relaxed);
            (threads.map(|thread| thread.join().unwrap()).into_iter().sum::<u64>(), gathered)
        });
        assert_eq!(met, gathered);
        assert!(met > 0 && !passing.meet());
    }
}
