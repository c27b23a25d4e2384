//! The clock of the hot path: time-stamp counter ticks, or nanoseconds where it cannot be trusted.

use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

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
