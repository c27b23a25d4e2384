//! The counts of a position that cannot change any more.

use crate::varint::{self, Reader};

/// Runs (times, expansions) of which neighbours differ in times.
///
/// Most positions never have any, but polls count differently nearly each time: so a few bytes for each.
#[derive(Clone, Debug, Default)]
pub(super) struct Closed {
    older: Vec<u8>,
    /// The latest run; there is none if it has no expansions.
    last: (u64, u64),
}

impl Closed {
    pub fn push(&mut self, times: u64, expansions: u64) {
        if self.last.1 > 0 {
            varint::put(&mut self.older, self.last.0);
            varint::put(&mut self.older, self.last.1);
        }
        self.last = (times, expansions);
    }

    /// Takes away the last run if it is of so many times, and returns its expansions.
    ///
    /// There is none before it then until the next is pushed.
    pub fn pop(&mut self, times: u64) -> Option<u64> {
        let (last, expansions) = self.last;
        (last == times && expansions > 0).then(|| {
            self.last = (0, 0);
            expansions
        })
    }

    pub fn clear(&mut self) {
        *self = Self { older: Vec::new(), last: (0, 0) };
    }

    pub fn runs(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut reader = Reader::new(&self.older);
        let older = std::iter::from_fn(move || reader.get().zip(reader.get()));
        older.chain(Some(self.last).filter(|last| last.1 > 0))
    }
}
