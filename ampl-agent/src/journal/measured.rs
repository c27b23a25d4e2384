//! Header words for the agent's and the process's time, for room to run, and for the agent's end.

use std::sync::atomic::Ordering;

use ampl_trace::journal::{flag, word};
use ampl_trace::model::GaveUp;

use super::Journal;
use crate::stopwatch;

impl Journal {
    /// The agent gave up.
    pub fn mark_disabled(&self, why: GaveUp) {
        let why = if why == GaveUp::NoRoom { flag::NO_ROOM } else { 0 };
        self.header[word::FLAGS].fetch_or(flag::DISABLED | why, Ordering::Release);
    }

    /// Adds to the agent's own time.
    pub fn add_own_ticks(&self, ticks: u64) {
        self.header[word::OWN_TICKS].fetch_add(ticks, Ordering::Relaxed);
    }

    /// Adds to the part of that for polls in a row that found nothing.
    pub fn add_polling_ticks(&self, ticks: u64) {
        self.header[word::POLLING_TICKS].fetch_add(ticks, Ordering::Relaxed);
    }

    /// This journal, for a process with a simulated clock: rare work takes none of its time.
    pub fn unmeasured(mut self) -> Self {
        self.measures = false;
        self.set(word::RARE_NS, 0);
        self
    }

    /// True where rare work is measured.
    pub fn measures(&self) -> bool {
        self.measures
    }

    /// Does rare `work` of the agent, and measures its processor time.
    pub fn rarely<T>(&self, work: impl FnOnce() -> T) -> T {
        if !self.measures {
            return work();
        }
        let (begun, before) = (stopwatch::thread_ns(), self.rare_ns());
        let done = work();
        // Less the rare work within it.
        let took = stopwatch::thread_ns().saturating_sub(begun).saturating_sub(self.rare_ns() - before);
        self.header[word::RARE_NS].fetch_add(took, Ordering::Relaxed);
        done
    }

    /// Processor time of [rare work](Self::rarely) so far, nanoseconds.
    pub fn rare_ns(&self) -> u64 {
        self.header[word::RARE_NS].load(Ordering::Relaxed)
    }

    /// Records the processor time of the agent's start, `ns` nanoseconds, rare work among it.
    pub fn has_begun(&self, ns: u64) {
        self.set(word::BEGIN_NS, ns.saturating_sub(self.rare_ns()));
    }

    /// Records the processor time of the process so far, and how often its main thread has lost its processor, if that
    /// is known.
    pub fn processor(&self, switches: Option<u64>) {
        self.set(word::PROCESSOR_NS, stopwatch::process_ns());
        if let Some(switches) = switches {
            self.set(word::SWITCHES, switches);
        }
    }

    /// Records how many processors the node has in use, and how many thousandths of one the job may have.
    pub fn room_to_run(&self, processors: u64, quota: u64) {
        self.set(word::PROCESSORS, processors);
        self.set(word::QUOTA, quota);
    }
}
