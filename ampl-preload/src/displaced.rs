//! Time for which others had a thread's processor though it did not give it away.

use std::fs::File;
use std::io::Read as _;

use crate::switches::{Switches, switches};

/// Mean length of a turn from which on turns end by their length: those that a thread gives away are shorter.
const LONG_NS: f64 = 1e6;

/// Counts of the system for a thread; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    /// Processor time.
    ran: u64,
    /// Time for which the thread waited for a processor.
    waited: u64,
    /// Times that it was given one.
    turns: u64,
    /// Times that it lost one, and gave it away as far as that is no sleep.
    lost: u64,
    /// Times that it lost one, without as many as it may have given away.
    surely_lost: u64,
}

impl Counted {
    /// Counts of the calling thread, which `own` is of; `None` where the system does not tell.
    fn now(own: &Switches) -> Option<Self> {
        let mut text = [0; 96];
        let read =
            File::open("/proc/thread-self/schedstat").and_then(|mut file| file.read(&mut text)).ok()?;
        let mut numbers = str::from_utf8(text.get(..read)?).ok()?.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        let surely_lost = own.now()?;
        Some(Self { ran: next()?, waited: next()?, turns: next()?, lost: switches(), surely_lost })
    }
}

/// How long a thread was displaced since it was last asked, relative to its processor time.
#[derive(Debug)]
pub struct Displaced {
    switches: Switches,
    before: Option<Counted>,
}

impl Displaced {
    /// The calling thread's from now on.
    pub fn start() -> Self {
        let switches = Switches::start();
        let before = Counted::now(&switches);
        Self { switches, before }
    }

    /// Time for which others had the thread's processor since the last call, over its own processor time meanwhile; 0
    /// where that is not known.
    ///
    /// A turn that the thread gives away, and the wait after a sleep, are not counted: the mean wait before a turn stands
    /// for each that it lost.
    pub fn ratio(&mut self) -> f64 {
        if self.switches.now().is_none() {
            // Another thread's now.
            *self = Self::start();
            return 0.0;
        }
        let now = Counted::now(&self.switches);
        let before = std::mem::replace(&mut self.before, now);
        let (Some(now), Some(before)) = (now, before) else { return 0.0 };
        let since = |of: fn(&Counted) -> u64| of(&now).saturating_sub(of(&before)) as f64;
        let (ran, waited, turns) = (since(|of| of.ran), since(|of| of.waited), since(|of| of.turns));
        if ran <= 0.0 || turns <= 0.0 {
            return 0.0;
        }
        // A yield that nobody waits for is no turn that is given away: many of them say nothing of long turns.
        let lost = if ran >= LONG_NS * turns { since(|of| of.lost) } else { since(|of| of.surely_lost) };
        waited * (lost / turns).min(1.0) / ran
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn sleep_and_turns_given_away_displace_nobody() {
        let mut displaced = Displaced::start();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let (ran, ratio) = (displaced.before.map(|of| of.ran), displaced.ratio());
        assert!(ratio.is_finite() && ratio >= 0.0, "{ran:?} {ratio}");
        // Another thread's is not known.
        let other = std::thread::scope(|scope| scope.spawn(|| displaced.ratio()).join());
        assert_eq!(other.ok(), Some(0.0));
    }

    #[test]
    fn threads_that_share_a_processor_displace_each_other() {
        // Both on the processor that this thread is on.
        let share = || {
            // SAFETY: plain data, filled by the call.
            unsafe {
                let mut set: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
                libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
            }
        };
        let ratios = std::thread::scope(|scope| {
            share();
            let spin = || {
                let mut displaced = Displaced::start();
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_millis(300) {
                    std::hint::spin_loop();
                }
                displaced.ratio()
            };
            let threads = [scope.spawn(spin), scope.spawn(spin)];
            threads.map(|thread| thread.join().unwrap())
        });
        // Each had half of it, at most, while both ran.
        assert!(ratios.iter().any(|&ratio| ratio > 0.3), "{ratios:?}");
    }
}
