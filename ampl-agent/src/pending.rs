//! Where a thread's calls wait until their window is decided.
//!
//! A ring of blocks of the journal, so that a process that dies leaves them. What is kept is copied into the
//! stream; the blocks are used again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ampl_core::units::WindowId;
use ampl_trace::journal::{BlockKind, head};

use crate::cursor::Cursor;
use crate::journal::{Journal, Need};
use crate::map::MappedBlock;

/// Words of a block: with its header, 16 pages.
const BLOCK_WORDS: usize = 8184;

/// Words that a thread may buffer, 8 MiB: at 70,000 calls a second, some windows of 250 ms.
const MOST_WORDS: usize = 1 << 20;

/// Part of one window in one block.
#[derive(Clone, Copy, Debug)]
struct Segment {
    window: WindowId,
    /// The block's order number.
    block: u64,
    from: usize,
    to: usize,
}

/// The blocks and the windows in them. The block being written is the stream's cursor.
#[derive(Debug)]
pub(crate) struct Pending {
    journal: Arc<Journal>,
    thread: u32,
    /// Blocks in front of the cursor's, oldest first, with their order numbers.
    filled: VecDeque<(u64, MappedBlock)>,
    free: Vec<MappedBlock>,
    /// Oldest first; the last is that of the open window, while that is buffered.
    segments: VecDeque<Segment>,
    /// Number of the cursor's block.
    order: u64,
    /// Words of all blocks.
    words: usize,
}

impl Pending {
    pub fn new(journal: Arc<Journal>, thread: u32) -> Self {
        Self {
            journal,
            thread,
            filled: VecDeque::new(),
            free: Vec::new(),
            segments: VecDeque::new(),
            order: 0,
            words: 0,
        }
    }

    /// The oldest window with calls here.
    pub fn oldest(&self) -> Option<WindowId> {
        self.segments.front().map(|segment| segment.window)
    }

    /// True where half of what may be buffered is in use.
    pub fn is_crowded(&self) -> bool {
        let free: usize = self.free.iter().map(|block| block.words.len()).sum();
        self.words - free > MOST_WORDS / 2
    }

    /// `window` begins where the cursor is.
    pub fn begin(&mut self, window: WindowId, cursor: &mut Cursor) {
        if self.segments.is_empty() && cursor.at > 0 {
            // Nothing in the block is wanted any more.
            self.order += 1;
            reset(&cursor.block, self.order);
            cursor.at = 0;
        }
        let (block, at) = (self.order, cursor.at);
        self.segments.push_back(Segment { window, block, from: at, to: at });
    }

    /// Where the open window's part in the cursor's block begins.
    pub fn open_from(&self, cursor: &Cursor) -> usize {
        let last = self.segments.back().filter(|segment| segment.block == self.order);
        last.map_or(cursor.at, |segment| segment.from.min(cursor.at))
    }

    /// The open window's part ends where the cursor is.
    pub fn end(&mut self, cursor: &Cursor) {
        if let Some(segment) = self.segments.back_mut().filter(|segment| segment.block == self.order) {
            segment.to = cursor.at;
        }
    }

    /// Moves the cursor to a block with room for `words` words; returns true if there is one.
    pub fn next_block(&mut self, words: usize, cursor: &mut Cursor) -> bool {
        let Some(block) = self.take(words) else { return false };
        self.end(cursor);
        let full = std::mem::replace(&mut cursor.block, block);
        if !full.words.is_empty() {
            self.filled.push_back((self.order, full));
        }
        self.order += 1;
        cursor.at = 0;
        cursor.last_miss = None;
        reset(&cursor.block, self.order);
        if let Some(&Segment { window, .. }) = self.segments.back() {
            self.segments.push_back(Segment { window, block: self.order, from: 0, to: 0 });
        }
        true
    }

    fn take(&mut self, words: usize) -> Option<MappedBlock> {
        if let Some(fits) = self.free.iter().position(|block| block.words.len() >= words) {
            return Some(self.free.swap_remove(fits));
        }
        let wanted = words.max(BLOCK_WORDS);
        if self.words + wanted > MOST_WORDS {
            return None;
        }
        let block = self.journal.block(Need::More, BlockKind::Pending, self.thread, wanted).ok()?;
        self.words += block.words.len();
        Some(block)
    }

    /// Takes windows off the ring, oldest first, as far as `decided` has decisions: kept calls are passed to `copy` in
    /// order. The window that is being written must have [ended](Self::end).
    pub fn resolve(
        &mut self,
        cursor: &Cursor,
        mut decided: impl FnMut(WindowId) -> Option<bool>,
        mut copy: impl FnMut(&[u64]),
    ) {
        while let Some(&Segment { window, block, from, to }) = self.segments.front() {
            let Some(keep) = decided(window) else { break };
            while self.filled.front().is_some_and(|&(order, _)| order < block) {
                self.release();
            }
            let holds = match self.filled.front() {
                Some((order, filled)) if *order == block => filled,
                _ => &cursor.block,
            };
            if keep {
                copy(&holds.words[from..to]);
            }
            // After the copy: a reader that finds both takes the copy. Where there was never room for a block there is
            // no head.
            if let Some(live) = holds.head.get(head::LIVE) {
                live.store(to as u64, Ordering::Release);
            }
            self.segments.pop_front();
        }
        let first = self.segments.front().map_or(self.order, |segment| segment.block);
        while self.filled.front().is_some_and(|&(order, _)| order < first) {
            self.release();
        }
    }

    fn release(&mut self) {
        if let Some((_, block)) = self.filled.pop_front() {
            block.head[head::COMMITTED].store(0, Ordering::Release);
            self.free.push(block);
        }
    }
}

/// Empties the block, which is the `order`-th.
fn reset(block: &MappedBlock, order: u64) {
    if block.words.is_empty() {
        return; // none yet
    }
    block.head[head::COMMITTED].store(0, Ordering::Release);
    block.head[head::LIVE].store(0, Ordering::Relaxed);
    block.head[head::ORDER].store(order, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Identity;

    #[test]
    fn windows_are_decided_where_there_was_never_room_for_a_block() {
        let journal = Arc::new(Journal::in_memory(&Identity::default()).unwrap());
        let mut pending = Pending::new(journal, 0);
        let block = MappedBlock { head: &[], words: &mut [] };
        let mut cursor = Cursor { block, at: 0, last_miss: None };
        for window in (0..4).map(WindowId) {
            pending.begin(window, &mut cursor);
            pending.end(&cursor);
        }
        let (mut decided, mut copied) = (0, 0);
        let decide = |window: WindowId| {
            decided += 1;
            Some(window.0.is_multiple_of(2))
        };
        pending.resolve(&cursor, decide, |words| copied += words.len());
        assert_eq!((decided, copied, pending.oldest()), (4, 0, None));
    }
}
