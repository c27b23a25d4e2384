//! Sums of windows that have been passed on, to be filled again.
//!
//! Windows come by the thousand, each with what every contributor brings. Their memory would be asked for and given
//! back each time, in pieces that allocators are slow with, and cold where processes share a processor.

use ampl_core::message::Partial;

/// Sums of one lane that are of no more use.
#[derive(Debug)]
pub(super) struct Spares {
    partials: Vec<Partial>,
    most: usize,
}

impl Spares {
    /// None yet, and never more than so many.
    pub fn new(most: usize) -> Self {
        Self { partials: Vec::new(), most }
    }

    /// Sums that are of no more use.
    pub fn keep(&mut self, partial: Partial) {
        if self.partials.len() < self.most {
            self.partials.push(partial);
        }
    }

    /// Memory to be filled, whatever it holds.
    pub fn take(&mut self) -> Partial {
        self.partials.pop().unwrap_or_default()
    }

    /// Sums over no rank; where there is no memory for them, those that `new` makes.
    pub fn empty(&mut self, new: impl FnOnce() -> Partial) -> Partial {
        // What is divided knows only where it was made how much it may hold.
        match self.partials.pop_if(|partial| partial.divided.is_empty()) {
            Some(mut partial) => {
                partial.clear();
                partial
            }
            None => new(),
        }
    }
}
