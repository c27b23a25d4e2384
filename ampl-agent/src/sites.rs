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
/// Index of an entry's word with the number of its calls.
const CALLS: usize = 2;
/// In that word: calls are left out of the entry.
const MUTED: u64 = 1 << 16;
/// In that word: first bit of the entry whose call came after one of this.
const NEXT: u32 = 17;
/// In the same word: calls of the entry need more than a place in the sequence and its totals.
const WATCHED: u64 = 1 << 62;

/// The words of an entry.
type Entry = [u64; SITE_WORDS];

/// Table over mapped words, by return address and function; entries are numbered from 1 as they come, so that those of
/// a loop lie together.
#[derive(Debug)]
pub struct SiteTable {
    entries: &'static mut [Entry],
    used: u32,
    /// Entries by address and function, open addressing; 0 for none.
    index: Vec<u16>,
    /// The entry found last: loops call from one place.
    last: (u64, u16, u32),
    /// The entry whose call came after that one's before; or from several in turns.
    expected: u32,
}

impl SiteTable {
    /// A table over at least [`SITE_ENTRIES`] × [`SITE_WORDS`] zeroed words.
    pub fn new(words: &'static mut [u64]) -> Self {
        // It is of several functions.
        let entries = words.as_chunks_mut().0;
        entries[0][NOTE] |= WATCHED;
        Self { entries, used: 0, index: vec![0; PLACES], last: (0, 0, 0), expected: 0 }
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

    /// Has [`settled`](Self::settled) leave entry `index` out.
    pub fn watch(&mut self, index: u32) {
        self.entries[index as usize][NOTE] |= WATCHED;
    }

    /// The entry of such calls, if it is known, and the next call needs no more than
    /// [`add_settled`](Self::add_settled): the entry is neither muted nor [watched](Self::watch).
    #[inline(always)]
    pub fn settled(&mut self, address: u64, function: u16) -> Option<u32> {
        if !self.reach(address, function) && !self.recall(address, function) {
            return None;
        }
        let index = self.last.2;
        let entry = self.entries.get(index as usize)?;
        fetch(&raw const entry[SITE_WORDS - 1]);
        let note = entry[NOTE];
        (note & (MUTED | WATCHED) == 0).then_some(index)
    }

    /// As [`add`](Self::add), to a [settled](Self::settled) entry.
    #[inline(always)]
    pub fn add_settled(&mut self, index: u32, ticks: u64, sent: u64, received: u64) {
        if let Some(entry) = self.entries.get_mut(index as usize) {
            sum_up(entry, ticks, sent, received);
        }
    }

    #[inline(always)]
    fn pass(&mut self, found: (u64, u16, u32)) {
        self.last = found;
        self.expected = (self.entries[found.2 as usize][NOTE] >> NEXT) as u32;
    }

    /// Index and function of each entry.
    pub fn entries(&self) -> impl Iterator<Item = (u32, u16)> {
        (1..=self.used).map(|entry| (entry, self.entries[entry as usize][NOTE] as u16))
    }

    /// Address of entry `index`.
    pub fn address(&self, index: u32) -> u64 {
        self.entries[index as usize][0]
    }

    /// Calls of entry `index` so far.
    pub fn calls(&self, index: u32) -> u64 {
        self.entries[index as usize][CALLS]
    }

    #[inline]
    fn is(&self, entry: u32, address: u64, function: u16) -> bool {
        let entry = &self.entries[entry as usize];
        entry[0] == address && entry[1] as u16 == function
    }

    /// Asks for the entry that is expected.
    #[inline(always)]
    pub fn fetch(&self) {
        let entry = self.entries.as_ptr().wrapping_add(self.expected as usize).cast::<u64>();
        fetch(entry);
        fetch(entry.wrapping_add(SITE_WORDS - 1));
    }

    /// Finds an entry that is not the expected one, which it is next time.
    #[inline(never)]
    fn look_up(&mut self, address: u64, function: u16) -> (u32, bool) {
        let (entry, new) = self.search(address, function);
        let note = &mut self.entries[self.last.2 as usize][NOTE];
        *note = *note & (((MUTED << 1) - 1) | WATCHED) | u64::from(entry) << NEXT;
        (entry, new)
    }

    /// [Looks up](Self::look_up) an entry that is there already; returns whether it is.
    #[inline(never)]
    fn recall(&mut self, address: u64, function: u16) -> bool {
        let mut place = place(address, function);
        while self.index[place] != 0 {
            if self.is(u32::from(self.index[place]), address, function) {
                let (entry, _) = self.look_up(address, function);
                self.pass((address, function, entry));
                return true;
            }
            place = (place + 1) % PLACES;
        }
        false
    }

    fn search(&mut self, address: u64, function: u16) -> (u32, bool) {
        let mut place = place(address, function);
        loop {
            match u32::from(self.index[place]) {
                // Entry 0 is the shared one of a full table.
                0 if self.used as usize >= FULL_AT => return (0, false),
                0 => {
                    self.used += 1;
                    self.index[place] = self.used as u16;
                    let entry = &mut self.entries[self.used as usize];
                    (entry[0], entry[1]) = (address, function.into());
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
            self.entries[index as usize][NOTE] |= MUTED;
        }
    }

    /// Adds one call to entry `index`, unless that is muted: its function, time in ticks, bytes sent and received.
    ///
    /// Single values on purpose: a struct would be stored in halves and loaded whole, which stalls.
    #[inline]
    pub fn add(&mut self, index: u32, function: u16, ticks: u64, sent: u64, received: u64) {
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        if entry[NOTE] & MUTED == 0 {
            entry[NOTE] = entry[NOTE] & !0xffff | u64::from(function);
            sum_up(entry, ticks, sent, received);
        }
    }
}

/// Adds a call to its entry.
#[inline(always)]
fn sum_up(entry: &mut Entry, ticks: u64, sent: u64, received: u64) {
    if entry[CALLS] == 0 || ticks < entry[5] {
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
    entry[CALLS] += 1;
}

/// Place in the index at which the search for such an entry begins.
fn place(address: u64, function: u16) -> usize {
    let key = address ^ u64::from(function) << 48;
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 53) as usize % PLACES
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
        let entry = &table.entries[first as usize];
        assert_eq!(&entry[2..4], &[2, 14]);
        assert_eq!(&entry[4..], &[116, 4, 10, 6, 0, 0]);
        // Squares that fill two words.
        table.add(first, 7, 3 << 62, 0, 0);
        table.add(first, 7, (1 << 32) - 1, 0, 0);
        let entry = &table.entries[first as usize];
        let square = |ticks: u128| ticks * ticks;
        let sum = 116 + square(3 << 62) + square((1 << 32) - 1);
        assert_eq!((entry[4], entry[9]), (sum as u64, (sum >> 64) as u64));
    }

    #[test]
    fn an_entry_is_settled_where_it_needs_no_more_than_totals() {
        let mut table = table();
        let (one, _) = table.find(0x1000, 7);
        assert_eq!(table.settled(0x1000, 7), Some(one));
        let (other, _) = table.find(0x2000, 7);
        assert_eq!((table.settled(0x1000, 7), table.settled(0x2000, 7)), (Some(one), Some(other)));
        assert_eq!((table.settled(0x2000, 8), table.used), (None, 2));
        table.watch(other);
        table.mute(one);
        for address in [0x2000, 0x1000, 0x2000] {
            table.find(address, 7);
            assert_eq!(table.settled(address, 7), None);
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
        let calls = |index: u32| table.entries[index as usize][CALLS];
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
