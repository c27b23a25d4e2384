//! Sums of windows that have been passed on, to be filled again.
//!
//! Windows come by the thousand, each with what every contributor brings. Their memory would be asked for and given
//! back each time, in pieces that allocators are slow with, and cold where processes share a processor.

use ampl_core::message::PartialSums;

/// Sums of one reduction that are no longer in use.
#[derive(Debug)]
pub(super) struct Spares {
    partials: Vec<PartialSums>,
    most: usize,
}

impl Spares {
    /// No sums yet, and never more than `most`.
    pub fn new(most: usize) -> Self {
        Self { partials: Vec::new(), most }
    }

    /// Takes sums that are no longer in use.
    pub fn keep(&mut self, partial: PartialSums) {
        if self.partials.len() < self.most {
            self.partials.push(partial);
        }
    }

    /// Memory to be filled, whatever it holds.
    pub fn take(&mut self) -> PartialSums {
        self.partials.pop().unwrap_or_default()
    }

    /// Sums over no rank; where there is no memory for them, those that `new` makes.
    pub fn empty(&mut self, new: impl FnOnce() -> PartialSums) -> PartialSums {
        // Stratum sums know their capacity only where they were made.
        match self.partials.pop_if(|partial| partial.divided.is_empty()) {
            Some(mut partial) => {
                partial.clear();
                partial
            }
            None => new(),
        }
    }
}
