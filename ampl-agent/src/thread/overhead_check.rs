//! A thread checks the agent's cost, and does less where that is too high.

use ampl_core::mpi::Function;
use ampl_trace::model::{Level as Detail, Limit, Step};
use ampl_trace::record::TEXT_STEP;

use super::Thread;
use crate::governor::{Level, SHORTEST_NS, Stretch};
use crate::stopwatch::thread_ns;
use crate::window_decisions::DecisionTiming;

/// Calls between two readings of the clock while calls are only counted.
pub const CHECK_EVERY: u64 = 64;

/// Threads with fewer than `FEW` calls since the last check are checked `CHECK_RARELY` times less often: their work
/// costs little, and a check with cold caches costs more.
const FEW: u64 = 256;
const CHECK_RARELY: u64 = 20;

/// Time between two looks at the memory that ampl has taken, nanoseconds: one reads a directory.
const WATCH_NS: f64 = 1e9;

/// Time to code the times of a call in `MPI_Finalize`, nanoseconds.
const CODING_NS: f64 = 1000.0;
/// Calls that cost that much; those behind them take a fifth of it.
const CODED: u64 = 32_768;

/// State of a thread at its last overhead check.
#[derive(Debug, Default)]
pub(super) struct LastCheck {
    pub at: u64,
    /// Ticks of the next check: the first if there were many calls, the second in any case.
    pub next: [u64; 2],
    pub own: u64,
    /// Processor time of the thread, nanoseconds.
    pub processor: u64,
    pub sequence: u64,
    /// True where calls have been stored since.
    pub stored: bool,
    /// Stored calls already charged for end-of-run coding, capped at [`CODED`].
    pub coded: u64,
    /// Ticks at which memory is compared with its limit next.
    pub watch: u64,
}

/// Ticks of the next check after one at `now`.
fn again(now: u64, nanos_per_tick: f64) -> [u64; 2] {
    let shortest = (SHORTEST_NS / nanos_per_tick) as u64;
    [shortest, shortest.saturating_mul(CHECK_RARELY)].map(|ticks| now.saturating_add(ticks))
}

impl LastCheck {
    /// State of a thread that begins at `now`; true where the agent's time is measured.
    pub fn begin(now: u64, nanos_per_tick: f64, measures: bool) -> Self {
        let next = again(now, nanos_per_tick);
        Self { at: now, next, processor: if measures { thread_ns() } else { now }, ..Self::default() }
    }
}

impl Thread {
    /// True where calls are only counted, because more would cost the job too much.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.level == Level::Off
    }

    /// True where the thread [is off](Thread::is_off) and the next call to [pass](Thread::pass) is not a
    /// [`CHECK_EVERY`]th, which checks.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.is_off() && !self.sequence.is_multiple_of(CHECK_EVERY)
    }

    /// Counts a call that returns to `address` while the thread [is off](Thread::is_off), shows it to readers, and gives
    /// it a place in the sequence.
    #[inline]
    pub fn pass(&mut self, function: Function, address: u64) {
        self.counts[usize::from(function.0)] += 1;
        self.sequence += 1;
        if !self.gaps.pass(function, address, self.last_check.at) {
            self.pass_without_room(function);
        }
        self.current.pass(function, address);
    }

    /// The agent's own processor time on this thread so far, ticks.
    pub(super) fn own(&self) -> u64 {
        self.own_before + self.totals.own_ticks.saturating_sub(self.totals.waited_ticks)
    }

    /// Processor time that the thread has had, nanoseconds; where the agent's time is not measured, all of the time up
    /// to `now`.
    fn processor_ns(&self, now: u64) -> u64 {
        match self.shared.journal.measures() {
            true => thread_ns(),
            false => (now as f64 * self.nanos_per_tick) as u64,
        }
    }

    /// True where [`Thread::check_overhead`] would check at `now`.
    #[inline]
    pub fn is_check_due(&self, now: u64) -> bool {
        let [many, few] = self.last_check.next;
        now >= many && (now >= few || self.sequence - self.last_check.sequence >= FEW)
    }

    /// Checks what the agent costs, at `now`, unless a check was a moment ago: the process may step down, or up again.
    /// The records of the open window are then no longer whole, and not kept.
    ///
    /// Returns true where the recording of calls has begun or ended.
    pub fn check_overhead(&mut self, now: u64) -> bool {
        if !self.is_check_due(now) {
            return false;
        }
        let elapsed_ns = now.saturating_sub(self.last_check.at) as f64 * self.nanos_per_tick;
        let own = self.own().saturating_sub(self.spin.harmless());
        let calls = self.sequence - self.last_check.sequence;
        let stored = self.last_check.stored || self.stores;
        let coded = (self.last_check.coded + if stored { calls } else { 0 }).min(CODED);
        let processor = self.processor_ns(now);
        let stretch = Stretch {
            elapsed_ns,
            processor_ns: processor.saturating_sub(self.last_check.processor) as f64,
            own_ns: own.saturating_sub(self.last_check.own) as f64 * self.nanos_per_tick,
            owed_ns: (coded - self.last_check.coded) as f64 * CODING_NS,
            calls,
            stored,
        };
        let next = again(now, self.nanos_per_tick);
        let (at, sequence, stored) = (now, self.sequence, self.stores);
        let watches = now >= self.last_check.watch;
        let watch = if watches {
            now.saturating_add((WATCH_NS / self.nanos_per_tick) as u64)
        } else {
            self.last_check.watch
        };
        self.last_check = LastCheck { at, next, own, processor, sequence, stored, coded, watch };
        let shared = self.shared.clone();
        if watches {
            shared.journal.watch_memory();
        }
        let mut open = shared.lock();
        let scarce = shared.journal.is_crowded() || shared.journal.is_large() || self.log.is_lost();
        if scarce || open.governor.clone().take(self.number, stretch).is_some() {
            // Gathered windows were recorded at the earlier level.
            self.close_all(&mut open);
        }
        if shared.journal.is_crowded() {
            self.log.give_up();
        }
        if shared.journal.is_large() {
            // Signatures take little room; times would take the program's.
            open.after = DecisionTiming::None;
            open.governor.give_up(Level::Structure);
        }
        if self.log.is_lost() {
            // There is no room for calls, whichever are chosen.
            open.after = DecisionTiming::None;
            open.governor.give_up(Level::Summaries);
        }
        let before = open.governor.level();
        let Some((level, share)) = open.governor.take(self.number, stretch) else { return false };
        let next = level > before && level == open.governor.below(Level::Kept);
        let affords_less = next && open.after == DecisionTiming::All && stretch.stored;
        if affords_less {
            // The costly part is storing the calls of every window until it is decided. Fewer are drawn beforehand.
            open.after = DecisionTiming::None;
            open.governor.hold(Level::Kept);
        }
        let detail = if affords_less { Detail::Drawn } else { level.detail() };
        let level = open.governor.level();
        open.stored &= level == Level::Kept;
        open.measured &= level < Level::Off;
        let limited = share == 0.0 && level > before && shared.journal.is_limited();
        let limit = limited.then_some(Limit::MaxMemory);
        let step = Step { window: open.window.0, at: now, level: detail, share, limit };
        self.join_state(&open);
        shared.publish(&open);
        drop(open);
        self.step(&step);
        before.max(level) > Level::Structure
    }

    /// Writes a step down or up into the journal.
    pub(super) fn step(&mut self, step: &Step) {
        if let Ok(text) = serde_json::to_string(step) {
            self.stream.text(TEXT_STEP, &text);
        }
    }
}
