//! Calls that a thread counts and does not record, until it records one again: by function, site and reason.
//!
//! The table lies in the journal, so that a process which dies in a gap leaves what is in it. Entries are found by the
//! call's return address, without a hash: a call that is only counted makes a key, compares it and adds 1.

use std::io;
use std::sync::Arc;

use ampl_core::mpi::Function;
use ampl_trace::gaps::Reason;
use ampl_trace::journal::{BlockKind, gap};
use rustc_hash::FxHashMap;

use crate::call_sequence::Log;
use crate::journal::{Journal, Need};

/// Entries with a site; functions have the rest.
const MOST_SITES: usize = gap::PLACES / 4 * 3;
/// Gaps whose moments are recorded, 40 KiB.
const MOST_SPANS: usize = 1024;
/// No call has that key: there is no such reason.
const NO_KEY: u64 = u64::MAX;

/// A thread's unrecorded calls.
#[derive(Debug)]
pub struct Gaps {
    journal: Arc<Journal>,
    thread: u32,
    head: &'static mut [u64],
    /// Key and number of calls, as of [`gap`].
    entries: &'static mut [[u64; 2]],
    /// Used entries in the order in which they came.
    used: Vec<u8>,
    /// Used entries that have a site.
    sites: usize,
    /// Of each entry the key that it had when it was last taken out, and that key's terminal.
    known: Box<[(u64, u32); gap::PLACES]>,
    /// Terminals of kinds of calls: function, site and reason.
    kinds: FxHashMap<(u16, u32, Reason), u32>,
    log: Option<Box<Log>>,
    /// True once nothing more is appended to that.
    lost: bool,
    /// Bits of return addresses that tell sites apart where calls are only counted: all, or none.
    addresses: u64,
    /// True where the moments of calls that cost too much are not known.
    pub untimed: bool,
    /// Moments that have been recorded.
    spans: usize,
    rest: Option<Moments>,
}

/// Calls that are not recorded.
#[derive(Clone, Copy, Debug)]
pub struct LeftOut {
    /// The function.
    pub function: Function,
    /// Return address into the caller, or the number of its path; 0 where it is not known.
    pub address: u64,
    /// Reason.
    pub reason: Reason,
    /// How many.
    pub calls: u64,
    /// Start of the first, ticks.
    pub start: u64,
    /// End of the last, ticks.
    pub end: u64,
}

/// Moments of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// Number of its first call.
    pub seq: u64,
    /// First moment, ticks.
    pub from: u64,
    /// Last moment, ticks.
    pub until: u64,
    /// Bits of its reasons.
    pub reasons: u16,
}

impl Gaps {
    /// An empty table for `thread`. Calls that are only counted are told apart by their return addresses where these
    /// are their `sites`.
    ///
    /// # Errors
    /// Errors of the journal's file system.
    pub fn new(journal: Arc<Journal>, thread: u32, sites: bool) -> io::Result<Self> {
        let words = gap::HEAD_WORDS + 2 * gap::PLACES;
        let block = journal.block(Need::Basic, BlockKind::Gap, thread, words)?;
        let (head, entries) = block.words.split_at_mut(gap::HEAD_WORDS);
        Ok(Self {
            journal,
            thread,
            head,
            entries: &mut entries.as_chunks_mut::<2>().0[..gap::PLACES],
            used: Vec::with_capacity(gap::PLACES),
            sites: 0,
            known: Box::new([(NO_KEY, 0); gap::PLACES]),
            kinds: FxHashMap::default(),
            log: None,
            lost: false,
            addresses: if sites { u64::MAX } else { 0 },
            untimed: false,
            spans: 0,
            rest: None,
        })
    }

    /// Adds a call of `function` that returns to `address`, at a moment that is not known, to those that cost too much.
    /// It came after `since`, ticks. Returns whether there was room.
    #[inline(always)]
    #[must_use]
    pub fn pass(&mut self, function: Function, address: u64, since: u64) -> bool {
        let address = address & self.addresses;
        let key = gap::key(function.0, address, Reason::Overhead as u64);
        let entry = &mut self.entries[place(address)];
        if entry[0] == key {
            entry[1] += 1;
            return true;
        }
        self.untimed = true;
        self.enter(key, 1, since)
    }

    /// Adds `calls`. Returns whether there was room.
    #[inline]
    #[must_use]
    pub fn add(&mut self, calls: &LeftOut) -> bool {
        let &LeftOut { function, address, reason, calls, start, end } = calls;
        let key = gap::key(function.0, address, reason as u64);
        let entry = &mut self.entries[place(address)];
        let has_room = if entry[0] == key {
            entry[1] += calls;
            true
        } else {
            self.enter(key, calls, start)
        };
        self.head[gap::UNTIL] = end;
        has_room
    }

    /// Adds `calls` calls of that key to an entry behind the place where it would be found first.
    #[cold]
    fn enter(&mut self, key: u64, calls: u64, now: u64) -> bool {
        let (function, address, reason) = gap::parts(key);
        let is_full = self.sites >= MOST_SITES && address != 0;
        let (key, at) = match self.find(key, is_full) {
            None if is_full => {
                let key = gap::key(function, 0, reason);
                (key, self.find(key, false))
            }
            at => (key, at),
        };
        at.map(|at| self.count(at, key, calls, now)).is_some()
    }

    /// Place of the entry of `key`, or of a free one unless only a `known` one is wanted.
    fn find(&self, key: u64, known: bool) -> Option<usize> {
        let first = place(key);
        for at in (first..gap::PLACES).chain(0..first) {
            match self.entries[at] {
                [_, 0] if known => return None,
                [_, 0] => return Some(at),
                [own, _] if own == key => return Some(at),
                _ => {}
            }
        }
        None
    }

    fn count(&mut self, at: usize, key: u64, calls: u64, now: u64) {
        let entry = &mut self.entries[at];
        if entry[1] == 0 {
            if self.used.is_empty() {
                (self.head[gap::FROM], self.head[gap::UNTIL]) = (now, now);
            }
            self.used.push(at as u8);
            self.sites += usize::from(gap::parts(key).1 != 0);
            entry[0] = key;
        }
        entry[1] += calls;
    }

    /// True where there are no calls in the table.
    pub fn is_empty(&self) -> bool {
        self.used.is_empty()
    }

    /// Number of used entries.
    pub fn len(&self) -> usize {
        self.used.len()
    }

    /// Key and calls of the used entry of that number, and its terminal if that is known.
    pub fn entry(&self, number: usize) -> (u64, u64, Option<u32>) {
        let at = usize::from(self.used[number]);
        let [key, calls] = self.entries[at];
        let (known, terminal) = self.known[at];
        (key, calls, (known == key).then_some(terminal))
    }

    /// Terminal of calls of `function` from the site of that index, and true if it is new. The used entry of that
    /// `number` is one of these.
    pub fn terminal(&mut self, number: usize, function: u16, site: u32, reason: Reason) -> (u32, bool) {
        let next = self.kinds.len() as u32;
        let terminal = *self.kinds.entry((function, site, reason)).or_insert(next);
        let at = usize::from(self.used[number]);
        self.known[at] = (self.entries[at][0], terminal);
        (terminal, terminal == next)
    }

    /// Appends `calls` unrecorded calls of `terminal` to the sequence. Returns whether there was room.
    #[must_use]
    pub fn push(&mut self, terminal: u32, calls: u64) -> bool {
        if self.log.is_none() && !self.lost {
            let kinds = [BlockKind::GapSnapshot, BlockKind::GapLog];
            self.log = Log::of(self.journal.clone(), self.thread, kinds).ok().map(Box::new);
        }
        self.lost = self.lost || !self.log.as_mut().is_some_and(|log| log.push(terminal, calls));
        !self.lost
    }

    /// Appends nothing more: there was no room for a kind of calls.
    pub fn give_up(&mut self) {
        self.lost = true;
    }

    /// Empties the table, whose calls are in the sequence; returns the gap's moments, if these are to be recorded. It
    /// begins at `seq` and ends before `now`.
    pub fn clear(&mut self, seq: u64, now: Option<u64>) -> Option<Moments> {
        let reason = |&at: &u8| Reason::from_number(gap::parts(self.entries[usize::from(at)][0]).2).bit();
        let reasons = self.used.iter().map(reason).fold(0, |all, bit| all | bit);
        let untimed = self.untimed && reasons & Reason::Overhead.bit() != 0;
        let from = self.head[gap::FROM];
        let known = self.head[gap::UNTIL].max(from);
        let until = now.filter(|&now| untimed && now > known).unwrap_or(known);
        for at in self.used.drain(..) {
            self.entries[usize::from(at)] = [0; 2];
        }
        (self.sites, self.untimed) = (0, false);
        let moments = Moments { seq, from, until, reasons };
        if self.spans < MOST_SPANS {
            self.spans += 1;
            return Some(moments);
        }
        let rest = self.rest.get_or_insert(moments);
        (rest.until, rest.reasons) = (until, rest.reasons | reasons);
        None
    }

    /// Ends the sequence; returns the moments of the gaps that have none of their own.
    pub fn finish(&mut self) -> Option<Moments> {
        if let Some(log) = &mut self.log {
            log.finish();
        }
        self.rest.take()
    }
}

/// Place where the entry of calls that return to `address` is looked for first.
#[inline(always)]
fn place(address: u64) -> usize {
    address as usize % gap::PLACES
}
