//! The agent's time in `MPI_Finalize`, working and waiting.

use std::sync::atomic::{AtomicU64, Ordering};

use ampl_agent::journal::Journal;
use ampl_agent::stopwatch::{Stopwatch, process_ns};
use ampl_trace::model::Process;

/// Time of the end so far, nanoseconds.
#[derive(Debug, Default)]
pub struct Ended {
    worked: AtomicU64,
    waited: AtomicU64,
}

/// A part of the end that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    watch: Stopwatch,
    rare_ns: u64,
}

impl Ending {
    /// Starts a part on the calling thread.
    pub fn start(journal: &Journal) -> Self {
        Self { watch: Stopwatch::start(), rare_ns: journal.rare_ns() }
    }

    /// Work and waiting so far, without the journal's own measure, which is in the rank's other time.
    fn so_far(&self, journal: &Journal) -> [u64; 2] {
        let took = self.watch.stop();
        let rare_ns = journal.rare_ns().saturating_sub(self.rare_ns);
        [took.cpu_ns.saturating_sub(rare_ns), took.waited_ns()]
    }

    /// Adds this part, which has ended, to `ended`.
    pub fn stop(self, journal: &Journal, ended: &Ended) {
        let [worked, waited] = self.so_far(journal);
        ended.worked.fetch_add(worked, Ordering::Relaxed);
        ended.waited.fetch_add(waited, Ordering::Relaxed);
    }

    /// Adds the time of the end so far, this part too, to `process`.
    pub fn tell(&self, journal: &Journal, ended: &Ended, process: &mut Process) {
        let [worked, waited] = self.so_far(journal);
        process.end_ns = ended.worked.load(Ordering::Relaxed) + worked;
        process.end_wait_ns = ended.waited.load(Ordering::Relaxed) + waited;
        process.processor_ns = process_ns();
    }
}
