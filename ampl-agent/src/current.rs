//! The call that a thread is in, for readers outside of the process: one line of the journal.
//!
//! It is written at every call, so it needs no lookup and stores no more than a few words. [`ampl_trace::current`]
//! defines their order, so that readers need no lock.

use std::sync::atomic::{AtomicU64, Ordering};

use ampl_core::mpi::Function;
use ampl_trace::current::{COUNTED, LINE_WORDS, RETURNED, at, call};

/// A thread's line.
#[derive(Debug)]
pub struct Current {
    line: &'static [AtomicU64; LINE_WORDS],
    /// True where all recent calls were polls that found nothing.
    polls: bool,
}

impl Current {
    /// The line in the first words of `words`.
    ///
    /// # Panics
    /// When there are too few.
    pub fn new(words: &'static [AtomicU64]) -> Self {
        Self { line: words.first_chunk().expect("a whole line"), polls: false }
    }

    #[inline(always)]
    fn set(&self, index: usize, value: u64) {
        self.line[index].store(value, Ordering::Relaxed);
    }

    /// Notes partners and object of the call that is about to be [entered](Self::enter).
    #[inline(always)]
    pub fn about(&self, ends: u64, object: u64) {
        self.set(at::ENDS, ends);
        self.set(at::OBJECT, object);
    }

    /// Notes that a call of `function` that returns to `address` is entered at `now`.
    #[inline(always)]
    pub fn enter(&self, function: Function, address: u64, now: u64) {
        self.set(at::CALL, call(function.0, address));
        // Last: until here the call before counts, which has returned.
        self.line[at::SINCE].store(now, Ordering::Release);
    }

    /// Notes that it has returned at `now`.
    #[inline(always)]
    pub fn leave(&self, now: u64) {
        self.set(at::LEFT, now);
    }

    /// Notes whether the call that has returned, entered at `start`, was a poll that found nothing.
    #[inline(always)]
    pub fn polled(&mut self, missed: bool, start: u64) {
        if missed != self.polls {
            self.polls = missed;
            self.set(at::POLLING, if missed { start } else { 0 });
        }
    }

    /// True where the latest call was a poll that found nothing.
    #[inline(always)]
    pub fn is_polling(&self) -> bool {
        self.polls
    }

    /// Notes a call that is only counted.
    #[inline(always)]
    pub fn pass(&self, function: Function, address: u64) {
        self.set(at::CALL, call(function.0, address) | COUNTED);
    }

    /// Notes that it has returned. Only for the thread that has [passed](Self::pass), before anything else.
    #[inline(always)]
    pub fn passed(&self) {
        let entered = self.line[at::CALL].load(Ordering::Relaxed);
        self.set(at::CALL, entered | RETURNED);
    }

    /// Notes that the thread has ended: it is in no call, and will make none.
    pub fn end(&mut self) {
        self.set(at::CALL, 0);
        self.polled(false, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_the_latest_call() {
        let words: &'static [AtomicU64] = Box::leak((0..LINE_WORDS).map(|_| AtomicU64::new(0)).collect());
        let mut current = Current::new(words);
        let line = || -> Vec<u64> { words.iter().map(|word| word.load(Ordering::Relaxed)).collect() };
        current.about(7, 8);
        current.enter(Function(3), 0x1000, 50);
        assert_eq!(line()[..6], [call(3, 0x1000), 50, 0, 7, 8, 0]);
        current.leave(60);
        current.polled(true, 50);
        current.polled(true, 70);
        assert_eq!((line()[at::LEFT], line()[at::POLLING]), (60, 50));
        current.polled(false, 80);
        current.pass(Function(4), 0x2000);
        assert_eq!((line()[at::CALL], line()[at::POLLING]), (call(4, 0x2000) | COUNTED, 0));
        current.passed();
        assert_eq!(line()[at::CALL], call(4, 0x2000) | COUNTED | RETURNED);
        current.end();
        assert_eq!(line()[at::CALL], 0);
    }
}
