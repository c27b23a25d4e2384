//! A thread's records on their way into the journal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ampl_trace::journal::BlockKind;
use ampl_trace::record::{CALL_FIXED_WORDS, CALL_MISS, Kind, header, put_text};

use crate::journal::Journal;
use crate::map::MappedBlock;

const FIRST_BLOCK_WORDS: usize = 4088;
const LARGEST_BLOCK_WORDS: usize = (1 << 17) - 8;
const COMMITTED: usize = 4;

/// Appends records; each is visible to readers once it is whole.
#[derive(Debug)]
pub struct Stream {
    journal: Arc<Journal>,
    thread: u32,
    block: MappedBlock,
    at: usize,
    /// Words in earlier blocks.
    before: u64,
    /// Where the last record stands, if it is a failed poll that an equal one may join.
    last_miss: Option<(usize, usize)>,
    full: bool,
}

/// A call about to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct CallRecord<'a> {
    /// Index in the function table.
    pub function: u16,
    /// Call flags of [`ampl_trace::record`].
    pub flags: u8,
    /// Entry, ticks.
    pub start: u64,
    /// Time inside, ticks.
    pub duration: u64,
    /// Index in the thread's site table.
    pub site: u32,
    /// Arguments as of [`ampl_trace::args`].
    pub words: &'a [u64],
}

impl Stream {
    /// A stream for `thread` with its first block.
    ///
    /// # Errors
    /// That of the file system, when it is full.
    pub fn new(journal: Arc<Journal>, thread: u32) -> io::Result<Self> {
        let block = journal.block(BlockKind::Stream, thread, FIRST_BLOCK_WORDS)?;
        Ok(Self { journal, thread, block, at: 0, before: 0, last_miss: None, full: false })
    }

    /// Whether the journal could not grow: records are lost from then on.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes of records so far.
    pub fn written(&self) -> u64 {
        8 * (self.before + self.at as u64)
    }

    #[inline]
    fn reserve(&mut self, words: usize) -> bool {
        // Once something had no room, nothing that happens to fit may follow it: it would seem next.
        !self.full && (self.at + words <= self.block.words.len() || self.grow(words))
    }

    #[cold]
    fn grow(&mut self, words: usize) -> bool {
        let larger = (self.block.words.len() * 2).min(LARGEST_BLOCK_WORDS).max(words);
        match self.journal.block(BlockKind::Stream, self.thread, larger) {
            Ok(block) => {
                self.block = block;
                self.before += self.at as u64;
                self.at = 0;
                self.last_miss = None;
                true
            }
            Err(_) => {
                self.full = true;
                self.journal.count_failure();
                false
            }
        }
    }

    #[inline]
    fn commit(&mut self) {
        // Last and with release order: whoever sees the counter sees the words.
        self.block.head[COMMITTED].store(self.at as u64, Ordering::Release);
    }

    /// Appends a call; a failed poll equal to the record before it only raises that one's count.
    #[inline]
    pub fn call(&mut self, call: &CallRecord<'_>) {
        let length = CALL_FIXED_WORDS + call.words.len();
        let head = header(Kind::Call, call.flags, call.function, length);
        if call.flags & CALL_MISS != 0 && self.fold(head, call) {
            return;
        }
        if !self.reserve(length) {
            return;
        }
        let room = &mut self.block.words[self.at..];
        let Some((fixed, arguments)) = room.split_first_chunk_mut::<CALL_FIXED_WORDS>() else { return };
        *fixed = [head, call.start, call.duration, u64::from(call.site) | 1 << 32];
        arguments[..call.words.len()].copy_from_slice(call.words);
        self.last_miss = (call.flags & CALL_MISS != 0).then_some((self.at, length));
        self.at += length;
        self.commit();
    }

    fn fold(&mut self, head: u64, call: &CallRecord<'_>) -> bool {
        let Some((at, length)) = self.last_miss else { return false };
        let record = &mut self.block.words[at..at + length];
        let same =
            record[0] == head && record[3] as u32 == call.site && record[CALL_FIXED_WORDS..] == *call.words;
        if same {
            record[2] += call.duration;
            record[3] = record[3].wrapping_add(1 << 32);
        }
        same
    }

    /// Appends a record of `body` words.
    pub fn record(&mut self, kind: Kind, flags: u8, body: &[u64]) {
        if !self.reserve(body.len() + 1) {
            return;
        }
        let record = &mut self.block.words[self.at..=self.at + body.len()];
        record[0] = header(kind, flags, 0, body.len() + 1);
        record[1..].copy_from_slice(body);
        self.last_miss = None;
        self.at += body.len() + 1;
        self.commit();
    }

    /// Appends a text record.
    pub fn text(&mut self, flags: u8, text: &str) {
        let mut body = Vec::new();
        put_text(&mut body, text);
        self.record(Kind::Text, flags, &body);
    }
}
