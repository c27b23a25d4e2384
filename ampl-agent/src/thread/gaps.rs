//! Calls that a thread counts and does not record.

use ampl_core::config::{Keep as Of, SiteTrace};
use ampl_core::mpi::{Class, Function};
use ampl_trace::gaps::Reason;
use ampl_trace::journal::gap;
use ampl_trace::record::{GAP_REST, Kind};

use super::Thread;
use crate::gaps::{LeftOut, Moments};
use crate::governor::Level;

impl Thread {
    /// Counts `calls` calls of `function` that the program made before the agent came, at `now`: they have the next
    /// places in the sequence.
    pub fn early(&mut self, function: Function, calls: u64, now: u64) {
        self.count(function, calls);
        if calls > 0 && function.spec().class != Class::CountOnly {
            let (reason, start, end) = (Reason::Early, now, now);
            self.leave_out(&LeftOut { function, address: 0, reason, calls, start, end });
            self.sequence += calls;
            self.skipped = true;
        }
    }

    /// Counts a call of `function` that the program makes at `now` within another one, which is about to be recorded:
    /// it has its place before that.
    #[cold]
    pub fn nested(&mut self, function: Function, now: u64) {
        self.count(function, 1);
        if function.spec().class == Class::CountOnly {
            return;
        }
        let (reason, start, end) = (Reason::Nested, now, now);
        self.leave_out(&LeftOut { function, address: 0, reason, calls: 1, start, end });
        self.sequence += 1;
        self.skipped = true;
    }

    /// A call of `function` was counted only, and the table has no room for its site.
    #[cold]
    pub(super) fn pass_without_room(&mut self, function: Function) {
        let (reason, at) = (Reason::Overhead, self.last_check.at);
        self.leave_out(&LeftOut { function, address: 0, reason, calls: 1, start: at, end: at });
    }

    /// Reason for which a call from the site of that index is not recorded now.
    pub(super) fn reason(&self, site: u32) -> Reason {
        match self.structure {
            _ if self.shared.is_paused() => Reason::Paused,
            _ if self.log.is_lost() && self.shared.journal.is_limited() => Reason::Limit,
            _ if self.log.is_lost() => Reason::Room,
            Of::Off => Reason::Structure,
            Of::Kept if !self.stores && self.level <= Level::Structure => Reason::Structure,
            _ if self.level > Level::Structure => Reason::Overhead,
            _ if self.policy(site) == SiteTrace::Off => Reason::Site,
            // The level has changed since the call was entered.
            _ => Reason::Overhead,
        }
    }

    /// Notes calls that are not recorded.
    #[inline]
    pub(super) fn leave_out(&mut self, calls: &LeftOut) {
        if !self.gaps.add(calls) {
            self.empty_gap(None);
            // There is room in an empty table.
            let _ = self.gaps.add(calls);
        }
    }

    /// A call or an edge of a region is about to be recorded at `now`: calls before it that were not are a gap, behind
    /// which come the edges that passed in it.
    #[cold]
    pub(super) fn end_gap(&mut self, now: Option<u64>) {
        self.empty_gap(now);
        if self.log.is_lost() {
            return;
        }
        if let Some(missing) = self.sequence.checked_sub(self.log.calls()).filter(|&missing| missing > 0) {
            let terminal = self.gap_terminal();
            self.log.push(terminal, missing);
        }
        self.follow_regions();
    }

    /// Puts the calls of the table behind the sequence of unrecorded calls, before the gap itself is in its own: a
    /// process that dies meanwhile has them at its end.
    #[cold]
    pub(super) fn empty_gap(&mut self, now: Option<u64>) {
        if self.gaps.is_empty() {
            return;
        }
        for number in 0..self.gaps.len() {
            let (key, calls, known) = self.gaps.entry(number);
            let terminal = known.unwrap_or_else(|| self.unrecorded(number, key));
            if !self.gaps.push(terminal, calls) {
                // Later gaps could not be told from this one.
                self.log.give_up();
            }
        }
        if let Some(moments) = self.gaps.clear(self.log.calls(), now) {
            self.moments(&moments, 0);
        }
    }

    /// Terminal of unrecorded calls of that key, which the entry of that number in the table has.
    fn unrecorded(&mut self, number: usize, key: u64) -> u32 {
        let (function, address, reason) = gap::parts(key);
        let site = if address == 0 { 0 } else { self.site(Function(function), address) };
        let reason = Reason::from_number(reason);
        let (terminal, new) = self.gaps.terminal(number, function, site, reason);
        if new && !self.stream.unrecorded(function, site, reason) {
            self.gaps.give_up();
        }
        terminal
    }

    fn moments(&mut self, moments: &Moments, flags: u8) {
        let &Moments { seq, from, until, reasons } = moments;
        self.stream.record(Kind::Gap, flags, &[seq, from, until, reasons.into()]);
    }

    /// Ends the sequence of unrecorded calls.
    pub(super) fn finish_gaps(&mut self) {
        if let Some(rest) = self.gaps.finish() {
            self.moments(&rest, GAP_REST);
        }
    }
}
