//! Polls that find nothing: the record of an equal earlier one is reused.
//!
//! Such a poll says no more than which requests it names. [`crate::repeats`] does the same for calls that few words
//! tell, whose entries have a fixed size.

use ampl_core::mpi::Function;

use crate::repeats::Outcome;

/// Entries, which polls share.
const ENTRIES: usize = 1 << 8;

/// A poll that has found nothing.
#[derive(Clone, Copy, Debug)]
pub struct Poll<'a> {
    /// The function.
    pub function: Function,
    /// [Origin](crate::Thread::origin) of its return address into the caller, or of the number of its path.
    pub address: u64,
    /// Changes whenever a handle changes its meaning.
    pub generation: u64,
    /// Words of the requests that it names, as records have them.
    pub requests: &'a [u64],
}

impl Poll<'_> {
    /// Index of its entry.
    #[inline(always)]
    fn entry(&self) -> usize {
        let first = self.requests.first().copied().unwrap_or(0);
        let mixed = (self.address ^ first.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 56) as usize % ENTRIES
    }
}

/// A poll and its outcome.
#[derive(Clone, Debug, Default)]
struct Entry {
    outcome: Option<Outcome>,
    function: u16,
    address: u64,
    generation: u64,
    requests: Vec<u64>,
}

/// The latest polls that found nothing.
#[derive(Debug, Default)]
pub struct Polls(Vec<Entry>);

impl Polls {
    /// Outcome of `poll`, if an equal one is remembered.
    #[inline(always)]
    pub fn find(&self, poll: &Poll<'_>) -> Option<Outcome> {
        let entry = self.0.get(poll.entry())?;
        let same = entry.address == poll.address
            && entry.function == poll.function.0
            && entry.generation == poll.generation
            && entry.requests == poll.requests;
        entry.outcome.filter(|_| same)
    }

    /// Remembers the outcome of `poll`.
    #[inline(never)]
    pub fn note(&mut self, poll: &Poll<'_>, outcome: &Outcome) {
        if self.0.is_empty() {
            self.0.resize(ENTRIES, Entry::default());
        }
        let entry = &mut self.0[poll.entry()];
        let &Poll { function, address, generation, requests } = poll;
        (entry.outcome, entry.function, entry.address, entry.generation) =
            (Some(*outcome), function.0, address, generation);
        entry.requests.clear();
        entry.requests.extend_from_slice(requests);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::buffers::Terminal;

    proptest! {
        /// Finds the latest note of exactly that poll, and nothing for one that differs in anything.
        #[test]
        fn only_the_same_poll_is_found(
            polls in prop::collection::vec(
                (0u16..2, 0u64..3, 0u64..2, prop::collection::vec(0u64..2, 0..4), any::<bool>()),
                0..400
            )
        ) {
            let (mut known, mut noted) = (Polls::default(), HashMap::new());
            for (number, (function, address, generation, requests, notes)) in (0..).zip(polls) {
                let poll = Poll { function: Function(function), address, generation, requests: &requests };
                let of = (function, address, generation, requests.clone());
                let last = noted.get(&poll.entry());
                let expected = last.filter(|(noted, _)| *noted == of).map(|&(_, outcome)| outcome);
                prop_assert_eq!(known.find(&poll), expected);
                if notes {
                    let outcome = Outcome { terminal: Terminal { number, set: 1 }, sent: 2, received: 3 };
                    known.note(&poll, &outcome);
                    noted.insert(poll.entry(), (of, outcome));
                }
            }
        }
    }
}
