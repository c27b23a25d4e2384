//! Reusable numbers: programs that make and free the same things again and again name them the same each time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Numbers from a first one on; the lowest free one is taken next.
#[derive(Debug)]
pub(crate) struct Numbers {
    /// All from here on have never been taken.
    next: u64,
    /// Free numbers below `next`. A heap keeps its memory when it runs empty.
    free: BinaryHeap<Reverse<u64>>,
}

impl Numbers {
    /// All from `next` on are free.
    pub fn from(next: u64) -> Self {
        Self { next, free: BinaryHeap::new() }
    }

    /// The lowest that is free.
    pub fn take(&mut self) -> u64 {
        if let Some(Reverse(number)) = self.free.pop() {
            return number;
        }
        self.next += 1;
        self.next - 1
    }

    /// `number`, which was taken, is free again.
    pub fn give(&mut self, number: u64) {
        self.free.push(Reverse(number));
    }
}
