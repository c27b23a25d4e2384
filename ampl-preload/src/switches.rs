//! Turns on the processor that a thread loses to others.

use crate::yield_suppressor::yielded;

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

/// How often the calling thread has lost its processor since it began, turns that it gave away among them.
pub fn switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: fills the structure passed, which is plain data.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_nivcsw).unwrap_or(0)
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
        let given = yielded() - given;
        assert!(counted.now().is_some_and(|since| since <= (switches() - before).saturating_sub(given)));
        let other = std::thread::scope(|scope| scope.spawn(|| counted.now()).join());
        assert_eq!(other.ok(), Some(None));
    }
}
