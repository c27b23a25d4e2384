//! Windows that have ended and are not closed yet.

use crate::accumulate::Totals;

/// Windows from the open one on that have ended, oldest first: end, and totals of all threads.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub ended: Vec<(u64, Totals)>,
    /// Empty totals, to be filled again.
    pub spares: Vec<Totals>,
}

impl Gathered {
    pub fn len(&self) -> usize {
        self.ended.len()
    }

    /// Takes a window that has ended at `end`; `totals` are empty afterwards.
    pub fn take(&mut self, end: u64, totals: &mut Totals) {
        let empty = self.spares.pop().unwrap_or_else(|| totals.emptied());
        self.ended.push((end, std::mem::replace(totals, empty)));
    }
}
