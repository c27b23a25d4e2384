//! Repeated calls: the outcome of an equal earlier call is reused.
//!
//! Where MPI was given the same words, and no handle has changed its meaning since, the call has the same terminal and
//! moves as many bytes. Comparing the words takes two lines of memory. Encoding the call takes every place and object
//! that it names, and a program that has computed meanwhile has none of them in its caches.

use ampl_core::mpi::Function;

use crate::prefetch::fetch;

/// Most words of a call in an entry: with its other fields they fill two cache lines.
pub const MOST_WORDS: usize = 11;
/// Entries at most; terminals beyond share them.
const ENTRIES: usize = 1 << 10;

/// A call as MPI was given it.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The function.
    pub function: Function,
    /// Call flags of [`ampl_trace::record`].
    pub flags: u8,
    /// Return address into the caller, or the number of its path.
    pub address: u64,
    /// Changes whenever a handle changes its meaning.
    pub generation: u64,
    /// The words that determine the call's record; at most [`MOST_WORDS`], as many for every call of the function.
    pub words: &'a [usize],
}

/// Terminal and bytes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its terminal.
    pub terminal: u32,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

/// A call and its outcome.
#[repr(align(128))]
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Terminal, flags and function, as of [`key`].
    key: u64,
    address: u64,
    generation: u64,
    sent: u64,
    received: u64,
    words: [usize; MOST_WORDS],
}

/// No call has that function.
const EMPTY: Entry =
    Entry { key: u64::MAX, address: 0, generation: 0, sent: 0, received: 0, words: [0; MOST_WORDS] };

/// The latest calls of some terminals.
#[derive(Debug, Default)]
pub struct Repeats(Vec<Entry>);

#[inline(always)]
fn key(terminal: u32, given: &Given<'_>) -> u64 {
    u64::from(terminal) << 24 | u64::from(given.flags) << 16 | u64::from(given.function.0)
}

impl Repeats {
    /// Outcome of the call `given`, if it equals the one remembered of `terminal`.
    #[inline(always)]
    pub fn find(&self, terminal: u32, given: &Given<'_>) -> Option<Outcome> {
        let entry = self.0.get(terminal as usize % ENTRIES)?;
        let same = entry.key == key(terminal, given)
            && entry.address == given.address
            && entry.generation == given.generation
            // Word by word: a call of memcmp would be one more thing to fetch.
            && entry.words.iter().zip(given.words).all(|(one, other)| one == other);
        same.then_some(Outcome { terminal, sent: entry.sent, received: entry.received })
    }

    /// Prefetches the entry of `terminal`.
    #[inline(always)]
    pub fn fetch(&self, terminal: u32) {
        let entry = self.0.as_ptr().wrapping_add(terminal as usize % ENTRIES);
        fetch(entry);
        fetch(entry.cast::<u8>().wrapping_add(size_of::<Entry>() - 1));
    }

    /// Remembers the outcome of the call `given`.
    #[inline(never)]
    pub fn note(&mut self, given: &Given<'_>, outcome: &Outcome) {
        let at = outcome.terminal as usize % ENTRIES;
        if self.0.len() <= at {
            self.0.resize((at + 1).next_power_of_two(), EMPTY);
        }
        let &Outcome { terminal, sent, received } = outcome;
        let &Given { address, generation, words, .. } = given;
        let mut entry = Entry { key: key(terminal, given), address, generation, sent, received, ..EMPTY };
        entry.words[..words.len()].copy_from_slice(words);
        self.0[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Finds the latest note of exactly that call, and nothing for a call that differs in anything.
        #[test]
        fn only_the_same_call_is_found(
            calls in prop::collection::vec(
                (0u32..3, 0u16..2, 0u8..2, 0u64..2, 0u64..2, prop::collection::vec(0usize..2, 2), any::<bool>()), 0..600
            )
        ) {
            let (mut repeats, mut noted) = (Repeats::default(), HashMap::new());
            for (sent, (terminal, function, flags, address, generation, words, notes)) in (0..).zip(calls) {
                // Two of them share an entry.
                let terminal = terminal % 2 + terminal / 2 * ENTRIES as u32;
                let given = Given { function: Function(function), flags, address, generation, words: &words };
                let call = (terminal, function, flags, address, generation, words.clone());
                let found = repeats.find(terminal, &given);
                let last = noted.get(&(terminal as usize % ENTRIES));
                prop_assert_eq!(found, last.filter(|(of, _)| *of == call).map(|&(_, outcome)| outcome));
                if notes {
                    let outcome = Outcome { terminal, sent, received: sent * 3 };
                    repeats.note(&given, &outcome);
                    noted.insert(terminal as usize % ENTRIES, (call, outcome));
                }
            }
        }
    }

    #[test]
    fn an_entry_fills_two_lines() {
        assert_eq!(size_of::<Entry>(), 128);
    }
}
