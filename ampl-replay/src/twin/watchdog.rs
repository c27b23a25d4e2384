//! A thread that names the call in which a rank waits for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ampl_reader::Call;

/// Polls of a rank's progress in the time that a call may last.
const POLLS: u32 = 8;

/// Place at which a rank is.
#[derive(Debug, Default)]
pub struct Progress {
    /// One more than the number of its call; 0 between calls; the greatest number outside of these.
    inside: AtomicU64,
    /// Calls begun.
    begun: AtomicU64,
}

impl Progress {
    /// Notes that `call` begins.
    pub fn enter(&self, call: &Call) {
        self.inside.store(call.seq + 1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that the rank waits for others outside of the recorded calls, until [`leave`](Self::leave).
    pub fn wait_for_ranks(&self) {
        self.inside.store(u64::MAX, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that it has returned.
    pub fn leave(&self) {
        self.inside.store(0, Ordering::Relaxed);
    }

    fn now(&self) -> (u64, u64) {
        (self.inside.load(Ordering::Relaxed), self.begun.load(Ordering::Relaxed))
    }
}

/// Starts the thread: `name` is called with the number of the call that has lasted for `limit`, and `end` when it has
/// lasted twice as long.
pub fn start(
    progress: &Arc<Progress>,
    limit: Duration,
    name: impl Fn(u64) + Send + 'static,
    end: impl Fn() + Send + 'static,
) -> std::io::Result<()> {
    let progress = Arc::clone(progress);
    let watch = move || {
        let (mut last, mut times) = ((0, 0), 0);
        loop {
            std::thread::sleep(limit / POLLS);
            let now = progress.now();
            if now != last || now.0 == 0 {
                (last, times) = (now, 0);
                continue;
            }
            times += 1;
            if times == POLLS {
                name(now.0 - 1);
            }
            if times == 2 * POLLS {
                end();
            }
        }
    };
    std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch).map(drop)
}
