//! Exact totals per call site, in the journal itself: they survive the process.

use ampl_trace::journal::SITE_WORDS;

use crate::fetch::fetch;

/// Entries of a thread's table; a program with more sites shares entry 0 for the rest.
pub const SITE_ENTRIES: usize = 1024;
const FULL_AT: usize = SITE_ENTRIES / 4 * 3;
/// The word of an entry that says to leave calls out of it; readers take no notice.
const MUTED: usize = 9;

/// Open-addressing table over mapped words, keyed by return address and function.
#[derive(Debug)]
pub struct SiteTable {
    words: &'static mut [u64],
    used: usize,
    /// The entry found last: loops call from one place.
    last: (u64, u16, u32),
}

/// The index where an entry is looked for first.
#[inline(always)]
fn first(address: u64, function: u16) -> usize {
    let key = address ^ u64::from(function) << 48;
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54) as usize % SITE_ENTRIES
}

impl SiteTable {
    /// A table over at least [`SITE_ENTRIES`] × [`SITE_WORDS`] zeroed words.
    pub fn new(words: &'static mut [u64]) -> Self {
        Self { words, used: 0, last: (0, 0, 0) }
    }

    /// Index of the entry for that call, and whether it is new.
    #[inline]
    pub fn find(&mut self, address: u64, function: u16) -> (u32, bool) {
        if (self.last.0, self.last.1) == (address, function) {
            return (self.last.2, false);
        }
        let found = self.search(address, function);
        self.last = (address, function, found.0);
        found
    }

    /// Asks for the entry where that call's is looked for first.
    #[inline(always)]
    pub fn fetch(&self, address: u64, function: u16) {
        let entry = self.words.as_ptr().wrapping_add(first(address, function) * SITE_WORDS);
        fetch(entry);
        fetch(entry.wrapping_add(SITE_WORDS - 1));
    }

    fn search(&mut self, address: u64, function: u16) -> (u32, bool) {
        let mut index = first(address, function);
        loop {
            // Entry 0 is the shared one of a full table.
            index = if index == 0 { 1 } else { index };
            let entry = &mut self.words[index * SITE_WORDS..][..SITE_WORDS];
            if entry[0] == address && entry[1] == u64::from(function) {
                return (index as u32, false);
            }
            if entry[0] == 0 {
                if self.used >= FULL_AT {
                    return (0, false);
                }
                self.used += 1;
                entry[0] = address;
                entry[1] = u64::from(function);
                return (index as u32, true);
            }
            index = (index + 1) % SITE_ENTRIES;
        }
    }

    /// Leaves calls out of entry `index` from now on: the job asks for no totals of them.
    pub fn mute(&mut self, index: u32) {
        // Entry 0 is shared by sites that have nothing to do with each other.
        if index != 0 {
            self.words[index as usize * SITE_WORDS + MUTED] = 1;
        }
    }

    /// Adds one call to entry `index`, unless that is muted: its function, time in ticks, bytes sent and received.
    ///
    /// Single values on purpose: a struct would be stored in halves and loaded whole, which stalls.
    #[inline]
    pub fn add(&mut self, index: u32, function: u16, ticks: u64, sent: u64, received: u64) {
        let entry = &mut self.words[index as usize * SITE_WORDS..][..SITE_WORDS];
        if entry[MUTED] != 0 {
            return;
        }
        entry[1] = u64::from(function);
        if entry[2] == 0 || ticks < entry[5] {
            entry[5] = ticks;
        }
        entry[6] = entry[6].max(ticks);
        entry[3] += ticks;
        // Signed: its conversion is one instruction, and no call lasts 2⁶³ ticks.
        let time = ticks as i64 as f64;
        entry[4] = (f64::from_bits(entry[4]) + time * time).to_bits();
        entry[7] += sent;
        entry[8] += received;
        // Last: an entry counts once its totals are there.
        entry[2] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> SiteTable {
        SiteTable::new(Box::leak(vec![0; SITE_ENTRIES * SITE_WORDS].into_boxed_slice()))
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
        assert_eq!(f64::from_bits(entry[4]), 116.0);
        assert_eq!(&entry[5..9], &[4, 10, 6, 0]);
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
