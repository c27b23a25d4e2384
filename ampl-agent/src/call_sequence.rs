//! A thread's call sequence: its growing grammar, and the part that survives the process's death.
//!
//! The grammar lives in the process's memory. In the journal there is a snapshot of it and, behind that, a log of the
//! runs that came since. When the log is full the next snapshot is written, to the other of two places; the log is as
//! long as a snapshot at least, so that writing them costs each call a little, and no more as the run goes on.
//!
//! Where the file cannot grow it keeps the last snapshot and the log behind that: memory is gone when the process dies.
//! Only the grammar goes on then; it is written when the process ends.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use ampl_trace::grammar::{Builder, Grammar};
use ampl_trace::journal::{BlockKind, head, snapshot};

use crate::journal::{Journal, Need};
use crate::map::MappedBlock;
use crate::prefetch::fetch;

/// Runs in the first log: with the block's header, 2 pages.
const FIRST_RUNS: usize = 1016;
/// Most positions in a grammar, about 128 MiB: as for signatures.
const MOST_POSITIONS: usize = 2 << 20;
/// Most runs in a log, 8 MiB.
const MOST_RUNS: usize = 1 << 20;
/// Runs that the grammar takes in together, to share the cache misses. The call that brings the last of them must not
/// take longer than others may.
const TOGETHER: usize = 32;

/// Most calls of a run: what its word can hold.
const LONGEST_RUN: u64 = u32::MAX as u64;

/// The calls of a thread as terminals.
#[derive(Debug)]
pub struct Log {
    journal: Arc<Journal>,
    thread: u32,
    /// Kinds of its blocks: snapshots and runs.
    kinds: [BlockKind; 2],
    builder: Builder,
    runs: MappedBlock,
    at: usize,
    /// How many of them the grammar has taken in.
    taken: usize,
    /// The latest run: its terminal and length, 0 before the first.
    open: (u32, u64),
    /// The snapshot written last, and the one before.
    snapshots: [MappedBlock; 2],
    /// The log behind the snapshot that is about to be stored, where it is to be longer.
    next_runs: Option<MappedBlock>,
    /// How many snapshots there have been.
    epoch: u64,
    bytes: Vec<u8>,
    calls: u64,
    lost: bool,
    /// True where the log is in memory; the file then holds what came before.
    in_memory: bool,
}

impl Log {
    /// A log for `thread`.
    ///
    /// # Errors
    /// Errors of the journal's file system.
    pub fn new(journal: Arc<Journal>, thread: u32) -> io::Result<Self> {
        Self::of(journal, thread, [BlockKind::Snapshot, BlockKind::Log])
    }

    /// As [`new`](Self::new), with blocks of the `kinds` that snapshots and runs are to have.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of(journal: Arc<Journal>, thread: u32, kinds: [BlockKind; 2]) -> io::Result<Self> {
        let runs = journal.block(Need::Basic, kinds[1], thread, FIRST_RUNS)?;
        Ok(Self {
            journal,
            thread,
            kinds,
            builder: Builder::new(),
            runs,
            at: 0,
            taken: 0,
            open: (0, 0),
            snapshots: [none(), none()],
            next_runs: None,
            epoch: 0,
            bytes: Vec::new(),
            calls: 0,
            lost: false,
            in_memory: false,
        })
    }

    /// Calls so far.
    #[inline]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Positions of the grammar that has taken in most of them.
    pub fn positions(&self) -> usize {
        self.builder.size()
    }

    /// True once nothing more is appended: there was no room, or later calls could not be decoded.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Stops appending: there is no room, or nothing that follows could be decoded.
    pub fn give_up(&mut self) {
        if !self.lost {
            self.lost = true;
            self.journal.lacks();
        }
    }

    /// Asks for where the next run goes.
    #[inline(always)]
    pub fn fetch(&self) {
        fetch(self.runs.words.as_ptr().wrapping_add(self.at));
        fetch(self.runs.head.as_ptr());
    }

    /// Appends `count` calls of `terminal`; returns false once nothing more is appended.
    #[inline]
    pub fn push(&mut self, terminal: u32, count: u64) -> bool {
        if self.lost {
            return false;
        }
        self.calls += count;
        if self.open.0 == terminal && self.open.1 > 0 && self.open.1 + count < 1 << 32 {
            self.open.1 += count;
            if let Some(run) = self.runs.words.get_mut(self.at - 1) {
                *run = run.wrapping_add(count << 32);
            }
            return true;
        }
        self.turn(terminal, count);
        true
    }

    /// As [`push`](Self::push) of one call, if that takes no rare work; returns whether it did. Never panics.
    #[inline(always)]
    #[must_use]
    pub fn push_shortly(&mut self, terminal: u32) -> bool {
        let (open, length) = self.open;
        if self.lost {
            return false;
        }
        // A run of none has no terminal.
        if open == terminal && length.wrapping_sub(1) < LONGEST_RUN - 1 {
            self.open.1 = length + 1;
            if let Some(run) = self.runs.words.get_mut(self.at.wrapping_sub(1)) {
                *run = run.wrapping_add(1 << 32);
            }
        } else {
            if self.at - self.taken >= TOGETHER {
                return false;
            }
            let (Some(run), Some(committed)) =
                (self.runs.words.get_mut(self.at), self.runs.head.get(head::COMMITTED))
            else {
                return false;
            };
            *run = u64::from(terminal) | 1 << 32;
            self.at += 1;
            committed.store(self.at as u64, Ordering::Release);
            self.open = (terminal, 1);
        }
        self.calls += 1;
        true
    }

    fn turn(&mut self, terminal: u32, count: u64) {
        // A run longer than a word can hold becomes several.
        let (mut left, most) = (count, u64::from(u32::MAX));
        while left > most {
            self.append(terminal, most);
            left -= most;
        }
        self.open = (terminal, left);
        self.append(terminal, left);
    }

    /// Begins a run: those before it grow no more.
    #[inline]
    fn append(&mut self, terminal: u32, count: u64) {
        if self.at == self.runs.words.len() {
            let journal = self.journal.clone();
            journal.rarely(|| self.snapshot());
        } else if self.at - self.taken >= TOGETHER {
            self.take_in();
        }
        if let Some(run) = self.runs.words.get_mut(self.at) {
            *run = u64::from(terminal) | count << 32;
            self.at += 1;
            // Last and with release order: whoever sees the counter sees the run.
            self.runs.head[head::COMMITTED].store(self.at as u64, Ordering::Release);
        }
    }

    /// The grammar of all calls so far; `None` where it has more than `most` positions, or not all calls.
    #[cold]
    pub fn grammar(&self, most: usize) -> Option<Grammar> {
        if self.lost {
            return None;
        }
        if self.builder.size() > most {
            return None;
        }
        // The latest run may still grow: the builder that stays must not have it.
        let mut builder = self.builder.clone();
        self.runs.words[self.taken..self.at].iter().for_each(|run| builder.push(*run as u32, run >> 32));
        Some(builder.into_grammar())
    }

    /// The grammar takes in all runs that it has not.
    #[inline(never)]
    fn take_in(&mut self) {
        for run in &self.runs.words[self.taken..self.at] {
            self.builder.push(*run as u32, run >> 32);
        }
        self.taken = self.at;
    }

    /// The process ends: everything is in the snapshot, and nothing is appended from then on.
    pub fn finish(&mut self) {
        // Otherwise everything not lost is in the file.
        if self.lost && !self.in_memory {
            return;
        }
        self.take_in();
        self.bytes.clear();
        self.bytes.push(snapshot::GRAMMAR);
        std::mem::take(&mut self.builder).into_grammar().shorter().write(&mut self.bytes);
        let words = self.words();
        if !self.in_memory && self.make_room(words, false).is_err() {
            self.forget_file();
        }
        if self.in_memory && !self.make_room_in_memory(words) {
            self.journal.lacks_all_in_memory();
        } else {
            self.store(words);
        }
        // The log is of an earlier snapshot from here on.
        (self.lost, self.in_memory) = (true, false);
    }

    /// All runs become the snapshot; the log begins anew.
    #[cold]
    fn snapshot(&mut self) {
        self.take_in();
        if self.builder.size() > MOST_POSITIONS {
            // The journal has everything up to here, and nothing more will follow.
            self.give_up();
            return;
        }
        if self.in_memory {
            (self.at, self.taken) = (0, 0);
            return;
        }
        self.bytes.clear();
        self.bytes.push(snapshot::BUILDER);
        self.builder.dump(&mut self.bytes);
        let words = self.words();
        match self.make_room(words, true) {
            Ok(()) => {
                self.store(words);
                self.begin_log();
            }
            // Memory is not to be taken instead.
            Err(_) if self.journal.is_limited() => self.give_up(),
            Err(_) => self.go_on_in_memory(),
        }
    }

    /// Words of the snapshot that is to be stored.
    fn words(&self) -> usize {
        self.bytes.len().div_ceil(8) + 1
    }

    /// Makes room in the file for a snapshot of `words` words, and for the log behind it where one `follows`.
    fn make_room(&mut self, words: usize, follows: bool) -> io::Result<()> {
        if self.snapshots[1].words.len() < words {
            let block = self.journal.file_block(self.kinds[0], self.thread, words * 2)?;
            // A place that was too small is left unused: sizes double, so all of them are less than the last.
            if let Some(order) = self.snapshots[1].head.get(head::ORDER) {
                order.store(0, Ordering::Release);
            }
            self.snapshots[1] = block;
        }
        let longer = words.next_power_of_two().min(MOST_RUNS);
        if follows && self.runs.words.len() < longer {
            self.next_runs = Some(self.journal.file_block(self.kinds[1], self.thread, longer)?);
        }
        Ok(())
    }

    /// Stores the snapshot, of `words` words, where there is [room](Self::make_room) for it.
    fn store(&mut self, words: usize) {
        self.snapshots.swap(0, 1);
        let place = &mut self.snapshots[0];
        place.head[head::ORDER].store(0, Ordering::Relaxed);
        // Order: none of the stores below may be visible before the earlier ones.
        fence(Ordering::SeqCst);
        place.words[0] = self.bytes.len() as u64;
        for (word, bytes) in place.words[1..].iter_mut().zip(self.bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        place.head[head::COMMITTED].store(words as u64, Ordering::Relaxed);
        self.epoch += 1;
        // From here on the snapshot counts, and the log that it has taken in does not: its number is another.
        place.head[head::ORDER].store(self.epoch, Ordering::Release);
    }

    /// The log begins anew behind the snapshot that was stored last.
    fn begin_log(&mut self) {
        self.runs.head[head::COMMITTED].store(0, Ordering::Release);
        if let Some(longer) = self.next_runs.take() {
            self.runs = longer;
        }
        (self.at, self.taken) = (0, 0);
        self.runs.head[head::ORDER].store(self.epoch, Ordering::Release);
    }

    /// The file stays as it is: a log in memory follows.
    fn go_on_in_memory(&mut self) {
        match self.journal.block(Need::Basic, self.kinds[1], self.thread, FIRST_RUNS) {
            Ok(runs) => {
                // It belongs to no snapshot.
                runs.head[head::ORDER].store(u64::MAX, Ordering::Release);
                self.runs = runs;
                self.forget_file();
                (self.at, self.taken) = (0, 0);
            }
            Err(_) => self.give_up(),
        }
    }

    /// Stops writing to the file.
    fn forget_file(&mut self) {
        self.in_memory = true;
        self.snapshots = [none(), none()];
        self.next_runs = None;
    }

    /// Makes room in memory for the last snapshot; returns true if there is any.
    fn make_room_in_memory(&mut self, words: usize) -> bool {
        match self.journal.block(Need::Basic, self.kinds[0], self.thread, words) {
            Ok(block) => {
                self.snapshots[1] = block;
                true
            }
            Err(_) => false,
        }
    }
}

/// No block.
fn none() -> MappedBlock {
    MappedBlock { head: &[], words: &mut [] }
}
