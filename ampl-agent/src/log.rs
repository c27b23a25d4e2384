//! A thread's call sequence: what grows in its grammar, and what is left of it when the process dies.
//!
//! The grammar lives in the process's memory. In the journal there is a snapshot of it and, behind that, a log of the
//! runs that came since. When the log is full the next snapshot is written, to the other of two places; the log is as
//! long as a snapshot at least, so that writing them costs each call a little, and no more as the run goes on.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use ampl_trace::grammar::Builder;
use ampl_trace::journal::{BlockKind, head, snapshot};

use crate::fetch::fetch;
use crate::journal::Journal;
use crate::map::MappedBlock;

/// Runs in the first log: with the block's header, 2 pages.
const FIRST_RUNS: usize = 1016;
/// Most positions in a grammar, about 128 MiB: as for signatures.
const MOST_POSITIONS: usize = 2 << 20;
/// Most runs in a log, 8 MiB.
const MOST_RUNS: usize = 1 << 20;
/// Runs that the grammar takes in together: a call among many others of the program finds none of it in the caches. So few
/// that the call which brings the last of them takes no longer than others may.
const TOGETHER: usize = 32;

/// The calls of a thread as terminals.
#[derive(Debug)]
pub struct Log {
    journal: Arc<Journal>,
    thread: u32,
    builder: Builder,
    runs: MappedBlock,
    at: usize,
    /// How many of them the grammar has taken in.
    taken: usize,
    /// The latest run: its terminal and length, 0 before the first.
    open: (u32, u64),
    /// The snapshot written last, and the one before.
    snapshots: [MappedBlock; 2],
    /// How many snapshots there have been.
    epoch: u64,
    bytes: Vec<u8>,
    calls: u64,
    lost: bool,
}

impl Log {
    /// A log for `thread`.
    ///
    /// # Errors
    /// That of the journal's file system.
    pub fn new(journal: Arc<Journal>, thread: u32) -> io::Result<Self> {
        let runs = journal.block(BlockKind::Log, thread, FIRST_RUNS)?;
        let none = || MappedBlock { head: &[], words: &mut [] };
        Ok(Self {
            journal,
            thread,
            builder: Builder::new(),
            runs,
            at: 0,
            taken: 0,
            open: (0, 0),
            snapshots: [none(), none()],
            epoch: 0,
            bytes: Vec::new(),
            calls: 0,
            lost: false,
        })
    }

    /// Calls so far.
    #[inline]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Whether there was no room: nothing is appended from then on.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Nothing that follows could be understood, or there is no room for it.
    pub fn give_up(&mut self) {
        self.lost = true;
    }

    /// Asks for where the next run goes.
    #[inline(always)]
    pub fn fetch(&self) {
        fetch(self.runs.words.as_ptr().wrapping_add(self.at));
        fetch(self.runs.head.as_ptr());
    }

    /// Appends `count` calls of `terminal`.
    #[inline]
    pub fn push(&mut self, terminal: u32, count: u64) {
        if self.lost {
            return;
        }
        self.calls += count;
        if self.open.0 == terminal && self.open.1 > 0 && self.open.1 + count < 1 << 32 {
            self.open.1 += count;
            if let Some(run) = self.runs.words.get_mut(self.at - 1) {
                *run = run.wrapping_add(count << 32);
            }
            return;
        }
        self.turn(terminal, count);
    }

    fn turn(&mut self, terminal: u32, count: u64) {
        // A run that is longer than a word can say is several.
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
            self.snapshot();
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
        if self.lost {
            return;
        }
        self.take_in();
        self.bytes.clear();
        self.bytes.push(snapshot::GRAMMAR);
        std::mem::take(&mut self.builder).into_grammar().shorter().write(&mut self.bytes);
        self.keep();
        self.lost = true;
    }

    /// All runs become the snapshot; the log begins anew.
    #[cold]
    fn snapshot(&mut self) {
        self.take_in();
        if self.builder.size() > MOST_POSITIONS {
            // What there is up to here is in the journal, and is all there will be.
            self.lost = true;
            return;
        }
        self.bytes.clear();
        self.bytes.push(snapshot::BUILDER);
        self.builder.dump(&mut self.bytes);
        self.keep();
    }

    fn keep(&mut self) {
        let words = self.bytes.len().div_ceil(8) + 1;
        if self.store(words).is_err() {
            // What the process has done stays in its memory; a death would lose it.
            self.lost = true;
            self.journal.lacks();
        }
    }

    fn store(&mut self, words: usize) -> io::Result<()> {
        self.snapshots.swap(0, 1);
        let place = &mut self.snapshots[0];
        if place.words.len() < words {
            // What was too small is left behind: sizes double, so all of them are less than the last.
            if let Some(order) = place.head.get(head::ORDER) {
                order.store(0, Ordering::Release);
            }
            *place = self.journal.block(BlockKind::Snapshot, self.thread, words * 2)?;
        }
        place.head[head::ORDER].store(0, Ordering::Relaxed);
        // Nothing of what follows may be there before it.
        fence(Ordering::SeqCst);
        place.words[0] = self.bytes.len() as u64;
        for (word, bytes) in place.words[1..].iter_mut().zip(self.bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        place.head[head::COMMITTED].store(words as u64, Ordering::Relaxed);
        self.epoch += 1;
        // From here on the snapshot counts, and the log that it has taken in does not.
        place.head[head::ORDER].store(self.epoch, Ordering::Release);
        self.runs.head[head::COMMITTED].store(0, Ordering::Release);
        let longer = words.next_power_of_two().min(MOST_RUNS);
        if self.runs.words.len() < longer {
            self.runs = self.journal.block(BlockKind::Log, self.thread, longer)?;
        }
        (self.at, self.taken) = (0, 0);
        self.runs.head[head::ORDER].store(self.epoch, Ordering::Release);
        Ok(())
    }
}
