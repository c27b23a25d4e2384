//! The short way of repeated calls through a thread's state.
//!
//! [`Thread::begin_shortly`] and [`Thread::leave_shortly`] do what [`Thread::begin_call`] and [`Thread::leave`] do, for
//! calls that need nothing else of the thread. Either does all of it, or nothing: then the whole way follows. They rest on these
//! conditions.
//!
//! - The thread is *plain*: calls are recorded, and their sites are their return addresses. That is worked out where it
//!   changes ([`Thread::note_plain`]).
//! - ampl is not paused, no window ends, and no windows end at calls of the function.
//! - The call is the one that came next before, or the latest of its site: same words, place and meaning of handles. Its
//!   buffers are the ones that are [expected](crate::buffers).
//! - Its site is known, the call is no sample, and no policy or metric is about the site. There is room for the call, and
//!   no gap before it.
//!
//! The short way does not allocate, wait or panic.

use ampl_core::mpi::Function;

use super::Thread;
use crate::governor::Level;
use crate::polls::Poll;
use crate::repeats::{Given, Outcome};
use crate::stream::CallTimes;

/// Site of a call that has been begun on the short way.
#[derive(Clone, Copy, Debug)]
pub struct Settled(u32);

/// When a call was made, and how that counts.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Ticks just before MPI was entered.
    pub start: u64,
    /// Ticks just after MPI returned.
    pub end: u64,
    /// True where the time is part of the time in MPI.
    pub timed: bool,
    /// True where the bytes are those of files or windows.
    pub apart: bool,
}

impl Thread {
    /// Works out whether the thread is plain.
    pub(super) fn note_plain(&mut self) {
        self.is_plain = !self.takes_whole_way
            && self.wants_structure()
            && self.level <= Level::Structure
            && self.path_frames() <= 1;
    }

    /// Has all calls take the whole way, for tests that compare the two.
    pub fn take_whole_way(&mut self) {
        self.takes_whole_way = true;
        self.note_plain();
    }

    /// Site of a call of `function` that returns to `address`, with that `first` word, if it may be begun on the short way.
    #[inline(always)]
    pub fn may_begin_shortly(&mut self, function: Function, address: u64, first: usize) -> Option<Settled> {
        let may = self.is_plain
            && !self.log.is_lost()
            && !self.shared.is_paused()
            && self.shared.window() == self.window
            && self.marker != Some(function.0);
        if !may {
            return None;
        }
        let site = self.sites.settled(self.site_key(address), function.0)?;
        self.log.fetch();
        if self.stores {
            self.stream.fetch();
        }
        if let Some(next) = self.signatures.next() {
            self.repeats.fetch(next, first);
        }
        Some(Settled(site))
    }

    /// Counts a call of `function` that [may](Self::may_begin_shortly) be begun at `now`; returns false where a window
    /// is over.
    #[inline(always)]
    #[must_use]
    pub fn begin_shortly(&mut self, function: Function, now: u64) -> bool {
        if now >= self.until {
            return false;
        }
        let Some(count) = self.counts.get_mut(usize::from(function.0)) else { return false };
        *count = count.wrapping_add(1);
        true
    }

    /// Outcome of the call `given`, if it is the one looked up last at its site.
    #[inline(never)]
    fn latest_at(&self, site: u32, given: &Given<'_>) -> Option<Outcome> {
        self.repeats.find(*self.latest.get(site as usize)?, given)
    }

    /// Outcome of the call `given`, which has succeeded, if it may [end](Self::leave_shortly) on the short way.
    #[inline(always)]
    pub fn foresee(&self, Settled(site): Settled, given: &Given<'_>, span: &Span) -> Option<Outcome> {
        if !self.may_end_shortly(span) {
            return None;
        }
        let expected = self.signatures.next().and_then(|next| self.repeats.find(next, given));
        let outcome = expected.or_else(|| self.latest_at(site, given))?;
        self.has_room_for_times().then_some(outcome)
    }

    /// As [`Thread::foresee`], of a poll that has found nothing.
    #[inline(always)]
    pub fn foresee_poll(&self, poll: &Poll<'_>, span: &Span) -> Option<Outcome> {
        let may = self.may_end_shortly(span) && self.has_room_for_times();
        if may { self.polls.find(poll) } else { None }
    }

    #[inline(always)]
    fn may_end_shortly(&self, span: &Span) -> bool {
        self.is_plain && !self.shared.is_paused() && span.end < self.until && !self.lags()
    }

    #[inline(always)]
    fn has_room_for_times(&self) -> bool {
        !self.stores || (!self.skipped && self.stream.has_room_for_call())
    }

    /// Ends a call of that [outcome](Self::foresee) and call flags; returns false where it has to take the whole way.
    #[inline(always)]
    #[must_use]
    pub fn leave_shortly(
        &mut self,
        Settled(site): Settled,
        flags: u8,
        outcome: &Outcome,
        span: &Span,
    ) -> bool {
        let &Span { start, end, timed, apart } = span;
        let terminal = outcome.terminal;
        let is_settled = self.buffers.is_settled(terminal);
        if !(is_settled || self.buffers.expect(terminal)) || !self.log.push_shortly(terminal.number) {
            return false;
        }
        if !is_settled {
            self.buffers.pass(terminal);
        }
        self.signatures.advance(terminal.number);
        let ticks = if timed { end.saturating_sub(start) } else { 0 };
        self.totals.count_call(ticks);
        if !apart {
            self.totals.add_bytes(outcome.sent, outcome.received);
        }
        self.sites.add_settled(site, ticks, outcome.sent, outcome.received);
        self.sequence += 1;
        if self.stores {
            let duration = end.saturating_sub(start);
            let times = CallTimes { terminal: terminal.number, flags, start, duration };
            // There is room.
            let _ = self.stream.call(&times);
        }
        true
    }
}
