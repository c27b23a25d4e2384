//! Clocks for work that is rare and long: the agent's mean per call, which comes from a few calls, would miss it.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on a clock.
fn now(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// Nanoseconds of processor time that the calling thread has had.
pub fn thread_ns() -> u64 {
    now(ClockId::ThreadCPUTime)
}

/// Nanoseconds of processor time that all threads of the process have had.
pub fn process_ns() -> u64 {
    now(ClockId::ProcessCPUTime)
}

/// A piece of work that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    wall_ns: u64,
    cpu_ns: u64,
}

/// Time of a piece of work, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Took {
    /// On the clock.
    pub wall_ns: u64,
    /// Of a processor.
    pub cpu_ns: u64,
}

impl Took {
    /// How long the thread slept, or others had its processor.
    pub fn waited_ns(self) -> u64 {
        self.wall_ns.saturating_sub(self.cpu_ns)
    }
}

impl Stopwatch {
    /// Starts on the calling thread.
    pub fn start() -> Self {
        Self { wall_ns: now(ClockId::Monotonic), cpu_ns: thread_ns() }
    }

    /// Time of the work since the start; it must end on the same thread.
    pub fn stop(self) -> Took {
        Took {
            wall_ns: now(ClockId::Monotonic).saturating_sub(self.wall_ns),
            cpu_ns: thread_ns().saturating_sub(self.cpu_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_both_and_sleep_only_one() {
        let watch = Stopwatch::start();
        let begun = thread_ns();
        while thread_ns() - begun < 2_000_000 {}
        std::thread::sleep(std::time::Duration::from_millis(5));
        let took = watch.stop();
        assert!(took.cpu_ns >= 2_000_000 && took.wall_ns >= took.cpu_ns, "{took:?}");
        assert!(took.waited_ns() >= 4_000_000 && process_ns() >= took.cpu_ns, "{took:?}");
    }
}
