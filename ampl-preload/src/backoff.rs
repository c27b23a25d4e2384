//! Waiting for other ranks at the end of a job.

use std::time::{Duration, Instant};

use ampl_agent::transport::TransportError;

/// Longest wait without progress for a rank that has reported its end too.
const SILENCE: Duration = Duration::from_secs(600);
/// Longest wait without progress for ranks that may still be at work. `MPI_Finalize` would wait for them as well, so
/// waiting costs nothing; a rank that takes no further part [announces
/// it](crate::transport::MpiTransport::announce_departure). This limit is for a rank that could not even do that.
const WORKING: Duration = Duration::from_secs(6 * 3600);

/// Longest wait without pauses: messages that come later are late.
const AT_ONCE: Duration = Duration::from_millis(1);

/// Waits for others at the end of the job, politely: cores may be shared with ranks still working.
#[derive(Debug)]
pub struct Backoff {
    since: Instant,
    pause: Duration,
    /// Longest wait without progress before giving up; `None` for no limit.
    limit: Option<Duration>,
    /// How long to poll without a pause.
    eager: Duration,
}

impl Backoff {
    /// Starts to wait for a rank that is at its end.
    pub fn new() -> Self {
        let (since, pause, eager) = (Instant::now(), Duration::ZERO, Duration::ZERO);
        Self { since, pause, limit: Some(SILENCE), eager }
    }

    /// Starts to wait for a message that is about to come.
    pub fn short() -> Self {
        Self { eager: AT_ONCE, ..Self::new() }
    }

    /// Starts to wait for ranks that may still be at work.
    pub fn for_running_ranks() -> Self {
        Self { limit: Some(WORKING), ..Self::new() }
    }

    /// Starts to wait for as long as it takes: for rank 0, which serves one rank after the other, and
    /// without which the launcher ends the job anyway.
    pub fn endless() -> Self {
        Self { limit: None, ..Self::new() }
    }

    /// Restarts the wait, because something moved.
    pub fn reset(&mut self) {
        *self = Self { limit: self.limit, eager: self.eager, ..Self::new() };
    }

    /// Pauses a little, longer each time.
    ///
    /// # Errors
    /// [`TransportError`] when nothing has moved for too long.
    pub fn pause(&mut self) -> Result<(), TransportError> {
        if let Some(limit) = self.limit.filter(|&limit| self.since.elapsed() > limit) {
            let minutes = limit.as_secs() / 60;
            return Err(TransportError(format!("no other rank has been heard of for {minutes} minutes")));
        }
        if self.since.elapsed() < self.eager {
            std::thread::yield_now();
        } else if self.pause.is_zero() {
            std::thread::yield_now();
            self.pause = Duration::from_micros(20);
        } else {
            std::thread::sleep(self.pause);
            self.pause = (self.pause * 2).min(Duration::from_millis(2));
        }
        Ok(())
    }
}
