//! Exact totals per call site, in the journal itself: they survive the process.

use ampl_trace::journal::SITE_WORDS;

use crate::prefetch::fetch;

/// Entries of a thread's table; a program with more sites shares entry 0 for the rest.
pub const SITE_ENTRIES: usize = 1024;
const FULL_AT: usize = SITE_ENTRIES / 4 * 3;
/// Places of the index: it is never half full.
const PLACES: usize = 2 * SITE_ENTRIES;
/// Index of an entry's word with the function's number; readers ignore its bits above.
const NOTE: usize = 1;
/// In that word: calls are left out of the entry.
const MUTED: u64 = 1 << 16;
/// In that word: first bit of the entry whose call came after one of this.
const NEXT: u32 = 17;
/// In the same word: calls of the entry are still sampled.
const SAMPLED: u64 = 1 << 63;
/// Number of the last sampled call of a site; before, the first calls and powers of two are sampled.
const LAST_SAMPLE: u64 = 1 << 9;
/// First calls that are all sampled.
const FIRST_SAMPLES: u64 = 4;

/// Table over mapped words, by return address and function; entries are numbered from 1 as they come, so that those of
/// a loop lie together.
#[derive(Debug)]
pub struct SiteTable {
    words: &'static mut [u64],
    used: u32,
    /// Entries by address and function, open addressing; 0 for none.
    index: Vec<u16>,
    /// The entry found last: loops call from one place.
    last: (u64, u16, u32),
    /// The entry whose call came after that one's before; or from several in turns.
    expected: u32,
    samples: bool,
}

impl SiteTable {
    /// A table over at least [`SITE_ENTRIES`] × [`SITE_WORDS`] zeroed words.
    pub fn new(words: &'static mut [u64]) -> Self {
        Self { words, used: 0, index: vec![0; PLACES], last: (0, 0, 0), expected: 0, samples: false }
    }

    /// Has [`add`](Self::add) ask for samples of calls at sites that are new from here on.
    pub fn sample(&mut self) {
        self.samples = true;
    }

    /// Asks for no more samples of entry `index`.
    pub fn sampled_enough(&mut self, index: u32) {
        self.words[index as usize * SITE_WORDS + NOTE] &= !SAMPLED;
    }

    /// Index of the entry for that call, and whether it is new.
    #[inline]
    pub fn find(&mut self, address: u64, function: u16) -> (u32, bool) {
        if self.reach(address, function) {
            return (self.last.2, false);
        }
        let found = self.look_up(address, function);
        self.pass((address, function, found.0));
        found
    }

    /// True where the entry is the last one, or the expected next one, which becomes the last.
    #[inline(always)]
    pub fn reach(&mut self, address: u64, function: u16) -> bool {
        if (self.last.0, self.last.1) == (address, function) {
            return true;
        }
        let is_expected = self.expected != 0 && self.is(self.expected, address, function);
        if is_expected {
            self.pass((address, function, self.expected));
        }
        is_expected
    }

    #[inline(always)]
    fn pass(&mut self, found: (u64, u16, u32)) {
        self.last = found;
        self.expected = (self.words[found.2 as usize * SITE_WORDS + NOTE] >> NEXT) as u32;
    }

    /// Index and function of each entry.
    pub fn entries(&self) -> impl Iterator<Item = (u32, u16)> {
        (1..=self.used).map(|entry| (entry, self.words[entry as usize * SITE_WORDS + NOTE] as u16))
    }

    /// Address of entry `index`.
    pub fn address(&self, index: u32) -> u64 {
        self.words[index as usize * SITE_WORDS]
    }

    /// Calls of entry `index` so far.
    pub fn calls(&self, index: u32) -> u64 {
        self.words[index as usize * SITE_WORDS + 2]
    }

    #[inline]
    fn is(&self, entry: u32, address: u64, function: u16) -> bool {
        let entry = &self.words[entry as usize * SITE_WORDS..][..2];
        entry[0] == address && entry[1] as u16 == function
    }

    /// Asks for the entry that is expected.
    #[inline(always)]
    pub fn fetch(&self) {
        let entry = self.words.as_ptr().wrapping_add(self.expected as usize * SITE_WORDS);
        fetch(entry);
        fetch(entry.wrapping_add(SITE_WORDS - 1));
    }

    /// Finds an entry that is not the expected one, which it is next time.
    #[inline(never)]
    fn look_up(&mut self, address: u64, function: u16) -> (u32, bool) {
        let (entry, new) = self.search(address, function);
        let note = &mut self.words[self.last.2 as usize * SITE_WORDS + NOTE];
        *note = *note & (((MUTED << 1) - 1) | SAMPLED) | u64::from(entry) << NEXT;
        (entry, new)
    }

    fn search(&mut self, address: u64, function: u16) -> (u32, bool) {
        let key = address ^ u64::from(function) << 48;
        let mut place = (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 53) as usize % PLACES;
        loop {
            match u32::from(self.index[place]) {
                // Entry 0 is the shared one of a full table.
                0 if self.used as usize >= FULL_AT => return (0, false),
                0 => {
                    self.used += 1;
                    self.index[place] = self.used as u16;
                    let entry = &mut self.words[self.used as usize * SITE_WORDS..][..SITE_WORDS];
                    let sampled = if self.samples { SAMPLED } else { 0 };
                    (entry[0], entry[1]) = (address, u64::from(function) | sampled);
                    return (self.used, true);
                }
                entry if self.is(entry, address, function) => return (entry, false),
                _ => place = (place + 1) % PLACES,
            }
        }
    }

    /// Leaves calls out of entry `index` from now on: the job asks for no totals of them.
    pub fn mute(&mut self, index: u32) {
        // Entry 0 is shared by sites that have nothing to do with each other.
        if index != 0 {
            self.words[index as usize * SITE_WORDS + NOTE] |= MUTED;
        }
    }

    /// Adds one call to entry `index`, unless that is muted: its function, time in ticks, bytes sent and received.
    ///
    /// Returns whether this call is to be sampled. Entries that are not any more, nor muted, pay one test for both.
    ///
    /// Single values on purpose: a struct would be stored in halves and loaded whole, which stalls.
    #[inline]
    pub fn add(&mut self, index: u32, function: u16, ticks: u64, sent: u64, received: u64) -> bool {
        let entry = &mut self.words[index as usize * SITE_WORDS..][..SITE_WORDS];
        let mut is_sample = false;
        if entry[NOTE] & (MUTED | SAMPLED) != 0 {
            if entry[NOTE] & MUTED != 0 {
                return false;
            }
            is_sample = samples(entry);
        }
        entry[1] = entry[1] & !0xffff | u64::from(function);
        if entry[2] == 0 || ticks < entry[5] {
            entry[5] = ticks;
        }
        entry[6] = entry[6].max(ticks);
        entry[3] += ticks;
        // In whole numbers, which leave the program's floating-point environment as it is.
        let square = u128::from(ticks) * u128::from(ticks);
        let (low, carries) = entry[4].overflowing_add(square as u64);
        entry[4] = low;
        entry[7] += sent;
        entry[8] += received;
        entry[9] = entry[9].wrapping_add((square >> 64) as u64 + u64::from(carries));
        // Last: an entry counts once its totals are there.
        entry[2] += 1;
        is_sample
    }
}

/// True where the next call of a sampled entry is sampled; clears the entry's flag after its last sample.
#[cold]
fn samples(entry: &mut [u64]) -> bool {
    let number = entry[2] + 1;
    if number >= LAST_SAMPLE {
        entry[NOTE] &= !SAMPLED;
    }
    number <= FIRST_SAMPLES || number.is_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn table() -> SiteTable {
        SiteTable::new(Box::leak(vec![0; SITE_ENTRIES * SITE_WORDS].into_boxed_slice()))
    }

    proptest! {
        /// Whatever comes in whatever order, in loops and out of them, muted or not.
        #[test]
        fn entries_are_numbered_as_they_come(
            calls in prop::collection::vec((1u64..40, 0u16..3, any::<bool>()), 0..200),
            turns in 1usize..4,
        ) {
            let (mut table, mut known) = (table(), HashMap::new());
            for _ in 0..turns {
                for &(address, function, mutes) in &calls {
                    let next = known.len() as u32 + 1;
                    let entry = *known.entry((address, function)).or_insert(next);
                    prop_assert_eq!(table.find(address, function), (entry, entry == next));
                    if mutes {
                        table.mute(entry);
                    }
                }
            }
        }
    }

    #[test]
    fn one_entry_per_site_and_function() {
        let mut table = table();
        let (first, new) = table.find(0x1000, 7);
        assert!(new);
        assert_eq!(table.find(0x1000, 7), (first, false));
        let (other, new) = table.find(0x1000, 8);
        assert!(new && other != first);
        table.add(first, 7, 10, 3, 0);
        table.add(first, 7, 4, 3, 0);
        let entry = &table.words[first as usize * SITE_WORDS..][..SITE_WORDS];
        assert_eq!(&entry[2..4], &[2, 14]);
        assert_eq!(&entry[4..], &[116, 4, 10, 6, 0, 0]);
        // Squares that fill two words.
        table.add(first, 7, 3 << 62, 0, 0);
        table.add(first, 7, (1 << 32) - 1, 0, 0);
        let entry = &table.words[first as usize * SITE_WORDS..][..SITE_WORDS];
        let square = |ticks: u128| ticks * ticks;
        let sum = 116 + square(3 << 62) + square((1 << 32) - 1);
        assert_eq!((entry[4], entry[9]), (sum as u64, (sum >> 64) as u64));
    }

    #[test]
    fn few_calls_of_a_site_are_sampled_and_none_of_a_settled_one() {
        let mut table = table();
        let before = table.find(0x500, 7).0;
        table.sample();
        let (one, other) = (table.find(0x1000, 7).0, table.find(0x2000, 7).0);
        let mut numbers = Vec::new();
        for number in 1..=10_000u64 {
            // In turns, so that each notes what follows it.
            for address in [0x500, 0x1000, 0x2000] {
                let entry = table.find(address, 7).0;
                let is_sample = table.add(entry, 7, 10, 0, 0);
                assert!(!is_sample || entry != before, "known before");
                if is_sample && entry == other {
                    table.sampled_enough(other);
                }
                if is_sample && entry != other {
                    numbers.push(number);
                }
            }
        }
        let expected: Vec<u64> = [1, 2, 3].into_iter().chain((2..10).map(|power| 1 << power)).collect();
        assert_eq!(numbers, expected);
        for entry in [before, one, other] {
            assert_eq!(table.words[entry as usize * SITE_WORDS + NOTE] & SAMPLED, 0);
            assert_eq!(table.words[entry as usize * SITE_WORDS + 2], 10_000);
        }
    }

    #[test]
    fn a_muted_entry_stays_empty() {
        let mut table = table();
        let (muted, _) = table.find(0x1000, 7);
        table.mute(muted);
        let (other, _) = table.find(0x2000, 7);
        for index in [muted, other, 0] {
            table.mute(0);
            table.add(index, 7, 10, 3, 0);
        }
        let calls = |index: u32| table.words[index as usize * SITE_WORDS + 2];
        assert_eq!([muted, other, 0].map(calls), [0, 1, 1]);
    }

    #[test]
    fn a_full_table_shares_entry_zero() {
        let mut table = table();
        let mut own = std::collections::HashSet::new();
        for address in 1..=2 * SITE_ENTRIES as u64 {
            own.insert(table.find(address * 16, 1).0);
        }
        assert!(own.contains(&0));
        assert_eq!(own.len(), FULL_AT + 1);
        assert!(!table.find(16, 1).1, "old sites keep their entries");
        assert_ne!(table.find(16, 1).0, 0);
    }
}
