//! A thread's calls, recorded whether times are kept or not.

use ampl_core::config::{Keep as Of, SiteTrace};
use ampl_core::mpi::Function;
use ampl_core::value::ObjectKind;
use ampl_trace::places::UNKNOWN;
use ampl_trace::record::{GAP, Kind, MOVE_FIRST, OBJECT_HANDLE};

use super::Thread;
use crate::buffers::{Moved, Terminal, VARIES};
use crate::call_end::CallEnd;
use crate::gaps::LeftOut;
use crate::governor::Level;
use crate::polls::{Poll, Polls};
use crate::repeats::{Given, Outcome, Repeats};
use crate::signatures::head;
use crate::stream::CallTimes;

impl Thread {
    /// True where calls are recorded now, with their arguments.
    #[inline]
    pub fn records(&self) -> bool {
        self.wants_structure()
            && self.level <= Level::Structure
            && !self.log.is_lost()
            && !self.shared.is_paused()
    }

    /// True where the job wants calls recorded now.
    #[inline(always)]
    pub(super) fn wants_structure(&self) -> bool {
        match self.structure {
            Of::All => true,
            Of::Kept => self.stores,
            Of::Off => false,
        }
    }

    /// True where calls that make or free communicators and groups are recorded although others are
    /// [not](Self::records): later calls could not be decoded without them.
    #[cold]
    pub fn records_objects(&self) -> bool {
        self.structure == Of::All && !self.log.is_lost()
    }

    /// True where the places of buffers are told apart; where not they are [unknown](ampl_trace::places::UNKNOWN).
    #[inline(always)]
    pub fn knows_places(&self) -> bool {
        self.buffers.are_known()
    }

    /// The terminal of a call of `function` that returns to `address`, with call flags of [`ampl_trace::record`] and
    /// arguments as of [`ampl_trace::args`], in which `places` stand where [`VARIES`] does; `None` where nothing is to be
    /// stored of its site. Calls are to be [recorded](Self::records).
    #[inline]
    pub fn terminal(
        &mut self,
        function: Function,
        address: u64,
        flags: u8,
        words: &[u64],
        places: &[u64],
    ) -> Option<Terminal> {
        let site = self.site(function, address);
        if self.policy(site) == SiteTrace::Off {
            return None;
        }
        // Entry 0 of the table has calls of several sites, whose ways are not known.
        let at = (site, if site == 0 { 0 } else { self.way });
        let (number, new) = self.signatures.find(head(function.0, flags, at), words);
        if new {
            match places {
                [] => self.new_signature(function.0, flags, at, words),
                _ => {
                    let mut body = std::mem::take(&mut self.body);
                    put_places(words, places, &mut body);
                    self.new_signature(function.0, flags, at, &body);
                    self.body = body;
                }
            }
        }
        let latest = self.latest.get_mut(site as usize).map(|latest| std::mem::replace(latest, number));
        self.is_likely = self.signatures.was_expected() || latest == Some(number);
        let found = self.buffers.find(number, places);
        if found.is_new {
            self.new_buffers(number, places);
        }
        Some(Terminal { number, set: found.number })
    }

    #[cold]
    fn new_buffers(&mut self, terminal: u32, places: &[u64]) {
        self.body.clear();
        self.body.push(terminal.into());
        self.body.extend_from_slice(places);
        self.stream.record(Kind::Buffers, 0, &self.body);
    }

    /// The call goes into the sequence at that `position`, with buffers that were not expected. Returns whether there
    /// was room.
    #[cold]
    fn move_to(&mut self, call: Terminal, position: u64) -> bool {
        let Some(Moved { kind, new, is_first }) = self.buffers.take(call, position) else { return true };
        if let Some((since, to)) = new {
            let flags = if is_first { MOVE_FIRST } else { 0 };
            self.stream.record(Kind::Move, flags, &[call.number.into(), since, to.into()]);
        }
        if self.stream.is_full() || !self.buffers.push(kind) {
            self.log.give_up();
            return false;
        }
        if self.buffers.is_full() || self.shared.journal.is_crowded() {
            // Later calls have other signatures, whose places are unknown.
            self.buffers.give_up();
            self.repeats = Repeats::default();
            self.polls = Polls::default();
        }
        true
    }

    /// Prefetches data that the [end](Self::leave) of an entered call with that `first` word is likely to need. Calls are to be
    /// [recorded](Self::records).
    #[inline(always)]
    pub fn fetch(&self, first: usize) {
        self.sites.fetch();
        self.log.fetch();
        if self.stores {
            self.stream.fetch();
        }
        if let Some(next) = self.signatures.next() {
            self.repeats.fetch(next, first);
        }
    }

    /// Outcome of the call `given`, which has succeeded, if it is the one expected here, made as it was before: then
    /// [`Thread::terminal`] need not be called. Calls are to be [recorded](Self::records).
    #[inline(always)]
    pub fn repeated(&mut self, given: &Given<'_>) -> Option<Outcome> {
        let outcome = self.repeats.find(self.signatures.next()?, given)?;
        self.signatures.advance(outcome.terminal.number);
        Some(outcome)
    }

    /// As [`Thread::repeated`], of a poll that has found nothing: it is found wherever it comes.
    #[inline]
    pub fn repeated_poll(&mut self, poll: &Poll<'_>) -> Option<Outcome> {
        let outcome = self.polls.find(poll)?;
        self.signatures.advance(outcome.terminal.number);
        Some(outcome)
    }

    /// A repeated call of `terminal` comes next.
    pub fn follow_terminal(&mut self, terminal: u32) {
        self.signatures.advance(terminal);
    }

    /// Remembers the outcome of the call `given`, whose [terminal](Self::terminal) was found last, if it is likely to
    /// come here again.
    #[inline]
    pub fn repeats(&mut self, given: &Given<'_>, outcome: &Outcome) {
        if self.is_likely {
            self.repeats.note(given, outcome);
        }
    }

    /// Remembers the outcome of a poll that has found nothing.
    pub fn polls(&mut self, poll: &Poll<'_>, outcome: &Outcome) {
        self.polls.note(poll, outcome);
    }

    #[cold]
    pub(super) fn new_signature(&mut self, function: u16, flags: u8, at: (u32, u8), words: &[u64]) {
        let full = self.signatures.is_full() || self.shared.journal.is_crowded();
        if full || !self.stream.signature(function, flags, at, words) {
            self.log.give_up();
        }
    }

    /// Appends a record about an object met for the first time.
    pub fn object(&mut self, body: &[u64]) {
        self.stream.record(Kind::Object, 0, body);
    }

    /// Appends the handle of a communicator that the program was given.
    pub fn communicator(&mut self, word: u64, handle: u64) {
        self.stream.record(Kind::Object, OBJECT_HANDLE, &[ObjectKind::Comm as u64, word, handle]);
    }

    /// Its number among the threads of the process, from 0.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// A buffer's word stands for that address from here on.
    pub fn place(&mut self, word: u64, address: u64) {
        self.stream.record(Kind::Place, 0, &[word, address]);
    }

    /// Policy for calls from the site of that index.
    #[inline(always)]
    pub(super) fn policy(&self, site: u32) -> SiteTrace {
        self.selected.get(site as usize).copied().unwrap_or(SiteTrace::On)
    }

    /// Ends a call from the site of that index: puts it into the sequence, and stores its times where those are wanted.
    #[inline(always)]
    pub(super) fn record(&mut self, call: &CallEnd, site: u32) {
        if call.terminal.is_none_or(|terminal| !self.append(terminal, call.start)) {
            let &CallEnd { function, address, start, end, .. } = call;
            let reason = self.reason(site);
            self.leave_out(&LeftOut { function, address, reason, calls: 1, start, end });
            self.skipped = true;
        } else if self.stores {
            self.record_times(call, site);
        }
    }

    /// Stores the times of a call that is in the sequence, unless its site's are not wanted.
    #[inline(always)]
    fn record_times(&mut self, call: &CallEnd, site: u32) {
        let Some(terminal) = call.terminal else { return };
        if self.policy(site) == SiteTrace::Aggregate {
            self.skipped = true;
            return;
        }
        if self.skipped {
            self.reopen(call.start);
        }
        let duration = call.end.saturating_sub(call.start);
        let times = CallTimes { terminal: terminal.number, flags: call.flags, start: call.start, duration };
        if !self.stream.call(&times) {
            self.record_after_all(&times);
        }
    }

    /// The next call of the sequence, at `now`, is one of `terminal`. Returns whether there was room.
    #[inline(always)]
    #[must_use]
    pub(super) fn append(&mut self, terminal: Terminal, now: u64) -> bool {
        if self.lags() {
            self.end_gap(Some(now));
        }
        if self.buffers.is_settled(terminal) {
            // Nothing to note.
        } else if self.buffers.expect(terminal) {
            self.buffers.pass(terminal);
        } else if self.log.is_lost() || !self.move_to(terminal, self.log.calls()) {
            // Before the call itself: a process that dies here has a move too many, which no call takes part in.
            return false;
        }
        self.log.push(terminal.number, 1)
    }

    /// True where something before the next position is not in the sequence.
    #[inline(always)]
    pub(super) fn lags(&self) -> bool {
        (self.log.calls() != self.sequence) | self.region_stack.is_behind()
    }

    /// The terminal of gaps.
    pub(super) fn gap_terminal(&mut self) -> u32 {
        let (terminal, new) = self.signatures.find(head(GAP, 0, (0, 0)), &[]);
        if new {
            self.new_signature(GAP, 0, (0, 0), &[]);
        }
        terminal
    }

    /// Records the call that made this thread's process a rank; window 0 starts behind it.
    pub fn initialised(&mut self, call: &CallEnd) {
        self.counts[usize::from(call.function.0)] += 1;
        self.record(call, 0);
        self.sequence += 1;
    }

    /// A local call at `now` whose arguments are not recorded: counted, and never timed.
    ///
    /// Returns whether a window was closed.
    #[inline]
    pub fn local(&mut self, function: Function, address: u64, now: u64) -> bool {
        let closed = self.enter(function, address, now);
        if self.shared.is_paused() {
            return self.leave_paused((function, address, None), [now; 2]) || closed;
        }
        self.totals.calls += 1;
        let site = self.site(function, address);
        self.sites.add(site, function.0, 0, 0, 0);
        self.observe_site(site, [0; 3]);
        let reason = self.reason(site);
        self.leave_out(&LeftOut { function, address, reason, calls: 1, start: now, end: now });
        self.sequence += 1;
        self.skipped = true;
        closed
    }

    /// Everything that the thread has called is in the journal as if it ended now.
    pub fn finish_structure(&mut self) {
        self.end_gap(None);
        self.finish_gaps();
        self.buffers.finish();
        self.note_regions_left_out();
        self.log.finish();
    }
}

/// Fills `body` with the words of a signature and the places of its first call.
fn put_places(words: &[u64], places: &[u64], body: &mut Vec<u64>) {
    // A number that is equal to the mark by chance must not shift them.
    let is_sound = words.iter().filter(|&&word| word == VARIES).count() == places.len();
    let mut places = places.iter().filter(|_| is_sound).copied();
    let place = |&word: &u64| if word == VARIES { places.next().unwrap_or(UNKNOWN) } else { word };
    body.clear();
    body.extend(words.iter().map(place));
}
