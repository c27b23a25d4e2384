//! Work that is rare and long, measured whole.

use super::Thread;
use crate::floating::Environment;
use crate::stopwatch::Stopwatch;

/// Rare work that is under way: the mean per call, which comes from a few calls, would miss it.
#[derive(Debug)]
pub struct Rare {
    watch: Stopwatch,
    journal_ns: u64,
}

impl Thread {
    /// Sets the ratio of the true cost of calls to the measured one, at least 1.
    pub fn set_surcharge(&mut self, surcharge: f64) {
        self.surcharge = surcharge;
    }

    /// Ticks of rare work so far; the mean per call excludes them.
    #[inline]
    pub fn rare_ticks(&self) -> u64 {
        self.rare_ticks
    }

    /// Begins rare work; `None` where it is part of other such work, or is not measured.
    pub fn begin_rare(&mut self) -> Option<Rare> {
        let begins = self.shared.journal.measures() && !std::mem::replace(&mut self.works_rarely, true);
        begins.then(|| Rare { watch: Stopwatch::start(), journal_ns: self.shared.journal.rare_ns() })
    }

    /// Ends it: all of it is the agent's own, though the processor may have gone to another process meanwhile.
    pub fn end_rare(&mut self, rare: Option<Rare>) {
        let Some(Rare { watch, journal_ns }) = rare else { return };
        self.works_rarely = false;
        let _as_it_was = Environment::begin();
        let took = watch.stop();
        let ticks = |ns: u64| (ns as f64 / self.nanos_per_tick) as u64;
        // The journal has its own sum of the part that it measured.
        let journal_ns = self.shared.journal.rare_ns().saturating_sub(journal_ns);
        let wall = ticks(took.wall_ns);
        self.rare_ticks += wall;
        let waited = ticks(took.waited_ns().saturating_add(journal_ns)).min(wall);
        self.totals.own_ticks += wall;
        self.totals.waited_ticks += waited;
        self.rare_own += wall - waited;
    }

    /// Takes that others had the thread's processor `ratio` times as long as the thread since this was last called: the
    /// agent's calls took so much longer than their processor time, which is no time of the program's.
    pub fn was_displaced(&mut self, ratio: f64) {
        let own = self.own().saturating_sub(self.rare_own);
        let since = own.saturating_sub(std::mem::replace(&mut self.displaced_before, own));
        let ticks = (since as f64 * ratio.max(0.0)) as u64;
        self.totals.own_ticks += ticks;
        self.totals.waited_ticks += ticks;
    }

    /// Does rare `work`.
    pub(super) fn rarely<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let rare = self.begin_rare();
        let done = work(self);
        self.end_rare(rare);
        done
    }
}
