//! Markers that are met without a lock while calls are only counted.
//!
//! A program may end windows at every call. The holder of the open window's lock grants a number of marker credits;
//! threads count them down, and the next to take the lock finds how many windows they have ended.

use std::sync::atomic::{AtomicU64, Ordering};

/// Credits for markers that may still be met without the lock. They order no other memory: all accesses are relaxed.
#[derive(Debug, Default)]
pub struct MarkerCredits {
    left: AtomicU64,
}

impl MarkerCredits {
    /// Grants `markers` credits; none may be left.
    pub fn grant(&self, markers: u64) {
        self.left.store(markers, Ordering::Relaxed);
    }

    /// Consumes the credit of a marker that is met; false where none is left.
    #[inline]
    pub fn consume(&self) -> bool {
        let one_less = |left: u64| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Takes back the credits that are left; returns their number.
    pub fn reclaim(&self) -> u64 {
        self.left.swap(0, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn every_marker_is_met_once() {
        const GRANTED: u64 = 1000;
        let (credits, over) = (MarkerCredits::default(), AtomicBool::new(false));
        let (met, gathered) = std::thread::scope(|scope| {
            let meeting = || {
                let mut met = 0u64;
                while !over.load(Ordering::Relaxed) {
                    met += u64::from(credits.consume());
                }
                met
            };
            let threads = [scope.spawn(meeting), scope.spawn(meeting)];
            let (mut gathered, mut rounds) = (0, 0);
            // The threads may get a processor late.
            while rounds < 2000 || gathered == 0 {
                credits.grant(GRANTED);
                std::thread::yield_now();
                gathered += GRANTED - credits.reclaim();
                rounds += 1;
            }
            over.store(true, Ordering::Relaxed);
            (threads.map(|thread| thread.join().unwrap()).into_iter().sum::<u64>(), gathered)
        });
        assert_eq!(met, gathered);
        assert!(met > 0 && !credits.consume());
    }
}
