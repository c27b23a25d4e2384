//! The clock of the hot path: time-stamp counter ticks, or nanoseconds where it cannot be trusted.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::yield_suppressor::yielded;

static INVARIANT: OnceLock<bool> = OnceLock::new();

/// True where the time-stamp counter runs at one rate whatever the processor does.
pub fn is_invariant() -> bool {
    *INVARIANT.get_or_init(|| {
        let highest = std::arch::x86_64::__cpuid(0x8000_0000).eax;
        let flag = highest >= 0x8000_0007 && std::arch::x86_64::__cpuid(0x8000_0007).edx & (1 << 8) != 0;
        // Hypervisors hide the flag from guests whose counter the kernel trusts all the same.
        flag || std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .is_ok_and(|source| source.trim() == "tsc")
    })
}

/// Now, in ticks.
#[inline(always)]
pub fn ticks(invariant: bool) -> u64 {
    if invariant {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { std::arch::x86_64::_rdtsc() }
    } else {
        monotonic_ns() as u64
    }
}

/// Ticks that one reading of the clock takes, at best.
pub fn read_ticks() -> u64 {
    static READ: OnceLock<u64> = OnceLock::new();
    *READ.get_or_init(|| {
        let invariant = is_invariant();
        (0..32).map(|_| ticks(invariant)).map(|before| ticks(invariant) - before).min().unwrap_or(0)
    })
}

/// Now on the monotonic clock, nanoseconds.
pub fn monotonic_ns() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

fn read(clock: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills the structure passed.
    unsafe { libc::clock_gettime(clock, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Processor time of the calling thread, nanoseconds.
pub fn thread_cpu_ns() -> i64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// How often a thread has lost its processor to another since a start, beyond the times that it gave its turn away: ranks
/// that wait in MPI do so again and again, which the system counts, too.
#[derive(Debug)]
pub struct Switches {
    thread: libc::pid_t,
    before: u64,
    yielded: u64,
}

impl Switches {
    /// The calling thread's from now on.
    pub fn start() -> Self {
        // SAFETY: never fails.
        Self { thread: unsafe { libc::gettid() }, before: switches(), yielded: yielded() }
    }

    /// Number so far; `None` on another thread.
    pub fn now(&self) -> Option<u64> {
        // SAFETY: never fails.
        let is_own = unsafe { libc::gettid() } == self.thread;
        let given = || yielded().wrapping_sub(self.yielded);
        is_own.then(|| switches().saturating_sub(self.before).saturating_sub(given()))
    }
}

/// How often the calling thread has lost its processor since it began.
fn switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: fills the structure passed, which is plain data.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
}

/// Now, nanoseconds since the Unix epoch.
pub fn epoch_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

/// Ticks and monotonic nanoseconds, taken together.
pub fn pair() -> (u64, i64) {
    let invariant = is_invariant();
    // The middle of the quickest of a few: a descheduled one would skew the rate.
    let once = || {
        let before = ticks(invariant);
        let nanos = monotonic_ns();
        let after = ticks(invariant);
        (after - before, before + (after - before) / 2, nanos)
    };
    let (_, ticks, nanos) = (0..4).map(|_| once()).min().expect("several");
    (ticks, nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_the_thread_s_since_the_start() {
        let before = switches();
        let counted = Switches::start();
        assert!(counted.now().is_some_and(|since| since <= switches() - before));
        // Turns that it gives away are not lost.
        let given = yielded();
        (0..1000).for_each(|_| std::thread::yield_now());
        assert_eq!(yielded() - given, 1000);
        assert!(counted.now().is_some_and(|since| since <= (switches() - before).saturating_sub(1000)));
        let other = std::thread::scope(|scope| scope.spawn(|| counted.now()).join());
        assert_eq!(other.ok(), Some(None));
    }
}
