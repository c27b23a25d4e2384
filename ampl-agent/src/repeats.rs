//! Repeated calls: the outcome of an equal earlier call is reused.
//!
//! Where MPI was given the same words, and no handle has changed its meaning since, the call has the same terminal and
//! moves as many bytes. Comparing the words takes two lines of memory. Encoding the call takes every place and object
//! that it names, and a program that has computed meanwhile has none of them in its caches.

use ampl_core::mpi::Function;

use crate::buffers::{NO_SET, Terminal};
use crate::prefetch::fetch;

/// Most words of a call in an entry: with its other fields they fill two cache lines.
pub const MOST_WORDS: usize = 11;
/// Entries, which terminals share, and calls of one with different first words: buffers, mostly.
const ENTRIES: usize = 1 << 10;

/// A call as MPI was given it.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The function.
    pub function: Function,
    /// Call flags of [`ampl_trace::record`].
    pub flags: u8,
    /// [Origin](crate::Thread::origin) of its return address into the caller, or of the number of its path.
    pub address: u64,
    /// Changes whenever a handle changes its meaning.
    pub generation: u64,
    /// The words that determine the call's record; at most [`MOST_WORDS`], as many for every call of the function.
    pub words: &'a [usize],
    /// The value that the call has given, where its function gives one; there are fewer words then.
    pub value: Option<u32>,
}

impl Given<'_> {
    #[inline(always)]
    fn first(&self) -> usize {
        self.words.first().copied().unwrap_or(0)
    }
}

/// Terminal and bytes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its terminal.
    pub terminal: Terminal,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

/// A call and its outcome.
#[repr(align(128))]
#[derive(Clone, Copy, Debug)]
struct Entry {
    terminal: Terminal,
    /// Flags and function, as of [`kind`].
    kind: u32,
    /// The lower half: it does not come again after 2^32 changes while the entry is there.
    generation: u32,
    address: u64,
    sent: u64,
    received: u64,
    words: [usize; MOST_WORDS],
}

/// No call has that function.
const EMPTY: Entry = Entry {
    terminal: Terminal { number: 0, set: NO_SET },
    kind: u32::MAX,
    generation: 0,
    address: 0,
    sent: 0,
    received: 0,
    words: [0; MOST_WORDS],
};

/// The latest calls of some terminals.
#[derive(Debug, Default)]
pub struct Repeats(Vec<Entry>);

#[inline(always)]
fn kind(given: &Given<'_>) -> u32 {
    u32::from(given.flags) << 16 | u32::from(given.function.0)
}

/// Index of the entry of calls of `terminal` with that first word, 0 where there is none.
#[inline(always)]
fn entry_of(terminal: u32, first: usize) -> usize {
    // Buffers lie at multiples of 16, and often of much more.
    let first = (first as u64 >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54;
    (terminal as usize ^ first as usize) % ENTRIES
}

/// True where `words` are the first ones of an entry: two at a time, for a call of memcmp would be one more thing to
/// fetch.
#[inline(always)]
fn begins(entry: &[usize; MOST_WORDS], words: &[usize]) -> bool {
    let ((pairs, rest), (own, _)) = (words.as_chunks::<2>(), entry.as_chunks::<2>());
    let differ = |(one, other): (&[usize; 2], &[usize; 2])| (one[0] ^ other[0] | one[1] ^ other[1]) != 0;
    !pairs.iter().zip(own).any(differ)
        && rest.first().is_none_or(|word| entry.get(words.len() - 1) == Some(word))
}

impl Repeats {
    /// Outcome of the call `given`, if it equals the one remembered of `terminal`.
    #[inline(always)]
    pub fn find(&self, terminal: u32, given: &Given<'_>) -> Option<Outcome> {
        let entry = self.0.get(entry_of(terminal, given.first()))?;
        let same = entry.terminal.number == terminal
            && entry.kind == kind(given)
            && entry.address == given.address
            && entry.generation == given.generation as u32
            && begins(&entry.words, given.words)
            && given.value.is_none_or(|value| entry.words.get(given.words.len()) == Some(&(value as usize)));
        same.then_some(Outcome { terminal: entry.terminal, sent: entry.sent, received: entry.received })
    }

    /// Prefetches the entry of a call of `terminal` with that first word, 0 where there is none.
    #[inline(always)]
    pub fn fetch(&self, terminal: u32, first: usize) {
        let entry = self.0.as_ptr().wrapping_add(entry_of(terminal, first));
        fetch(entry);
        fetch(entry.cast::<u8>().wrapping_add(size_of::<Entry>() - 1));
    }

    /// Remembers the outcome of the call `given`.
    #[inline(never)]
    pub fn note(&mut self, given: &Given<'_>, outcome: &Outcome) {
        let at = entry_of(outcome.terminal.number, given.first());
        if self.0.is_empty() {
            self.0.resize(ENTRIES, EMPTY);
        }
        let &Outcome { terminal, sent, received } = outcome;
        let &Given { address, generation, words, value, .. } = given;
        let generation = generation as u32;
        let mut entry = Entry { terminal, kind: kind(given), address, generation, sent, received, ..EMPTY };
        entry.words[..words.len()].copy_from_slice(words);
        if let (Some(value), Some(place)) = (value, entry.words.get_mut(words.len())) {
            *place = value as usize;
        }
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
                (0u32..3, 0u16..2, 0u8..2, 0u64..2, 0u64..2, prop::collection::vec(0usize..2, 2), 0u32..3, any::<bool>()),
                0..600
            )
        ) {
            let (mut repeats, mut noted) = (Repeats::default(), HashMap::new());
            for (sent, (terminal, function, flags, address, generation, mut words, value, notes)) in (0..).zip(calls) {
                // Two of them share an entry.
                let number = terminal % 2 + terminal / 2 * ENTRIES as u32;
                words[0] <<= 4;
                // One of the functions gives values.
                let value = (function == 1).then_some(value);
                let given = Given { function: Function(function), flags, address, generation, words: &words, value };
                let call = (number, function, flags, address, generation, words.clone(), value);
                let found = repeats.find(number, &given);
                let at = entry_of(number, words[0]);
                let last = noted.get(&at);
                prop_assert_eq!(found, last.filter(|(of, _)| *of == call).map(|&(_, outcome)| outcome));
                if notes {
                    let terminal = Terminal { number, set: sent as u32 };
                    let outcome = Outcome { terminal, sent, received: sent * 3 };
                    repeats.note(&given, &outcome);
                    noted.insert(at, (call, outcome));
                }
            }
        }
    }

    #[test]
    fn two_buffers_of_a_call_are_remembered() {
        let mut repeats = Repeats::default();
        let given =
            |words| Given { function: Function(3), flags: 0, address: 9, generation: 0, words, value: None };
        let outcome = |set| Outcome { terminal: Terminal { number: 5, set }, sent: 8, received: 0 };
        let buffers = [[0x7f00_0000_1010usize, 1], [0x7f00_0002_3010, 1]];
        (0..).zip(&buffers).for_each(|(number, words)| repeats.note(&given(words), &outcome(number)));
        let found = buffers.each_ref().map(|words| repeats.find(5, &given(words)));
        assert_eq!(found, [Some(outcome(0)), Some(outcome(1))]);
    }

    #[test]
    fn an_entry_fills_two_lines() {
        assert_eq!(size_of::<Entry>(), 128);
    }
}
