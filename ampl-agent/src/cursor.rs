//! Place in the journal where a thread's next record goes.

use std::sync::atomic::Ordering;

use ampl_trace::journal::head;

use crate::map::MappedBlock;
use crate::prefetch::fetch;

/// Place in a block of the journal where words are appended.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub block: MappedBlock,
    pub at: usize,
    /// Where the last record stands, if it is a failed poll that an equal one may join.
    pub last_miss: Option<usize>,
}

impl Cursor {
    /// Prefetches the place of the next record.
    #[inline(always)]
    pub fn fetch(&self) {
        fetch(self.block.words.as_ptr().wrapping_add(self.at));
        fetch(self.block.head.as_ptr());
    }

    /// True where the block has room for `words` more.
    pub fn has_room(&self, words: usize) -> bool {
        self.at + words <= self.block.words.len()
    }

    /// Shows readers all words so far.
    #[inline]
    pub fn commit(&mut self) {
        // Last and with release order: a reader that sees the counter sees the words.
        self.block.head[head::COMMITTED].store(self.at as u64, Ordering::Release);
    }
}
