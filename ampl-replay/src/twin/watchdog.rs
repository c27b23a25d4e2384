//! A thread that names the call in which a rank waits for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ampl_reader::Call;

/// The call that a rank is in.
#[derive(Debug, Default)]
pub struct Progress {
    /// One more than the number of its call; 0 between calls.
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
            std::thread::sleep(limit);
            let now = progress.now();
            if now != last || now.0 == 0 {
                (last, times) = (now, 0);
                continue;
            }
            times += 1;
            match times {
                1 => name(now.0 - 1),
                2 => end(),
                _ => {}
            }
        }
    };
    std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch).map(drop)
}
