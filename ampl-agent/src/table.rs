//! A small open-addressing table from handles to live requests.
//!
//! Every request is looked up at its making and its end, millions of times a second in some
//! programs; the general map costs several times what the comparison of a few neighbours does.

use crate::requests::Request;

/// No request has this handle.
const EMPTY: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    handle: u64,
    request: Request,
}

const FREE: Entry = Entry { handle: EMPTY, request: Request::NONE };

/// One request per handle. Linear probing; removing moves followers up, so there are no tombstones.
#[derive(Debug)]
pub struct Table {
    entries: Vec<Entry>,
    used: usize,
}

impl Default for Table {
    fn default() -> Self {
        Self { entries: vec![FREE; 64], used: 0 }
    }
}

impl Table {
    #[inline]
    fn home(&self, handle: u64) -> usize {
        // Handles are addresses or small numbers: the product's upper half mixes both.
        let mixed = handle.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        mixed as usize & (self.entries.len() - 1)
    }

    /// Where `handle` is, or where it would go.
    #[inline]
    fn find(&self, handle: u64) -> usize {
        let mask = self.entries.len() - 1;
        let mut at = self.home(handle);
        while self.entries[at].handle != handle && self.entries[at].handle != EMPTY {
            at = (at + 1) & mask;
        }
        at
    }

    /// The request behind `handle`.
    #[inline]
    pub fn get(&mut self, handle: u64) -> Option<&mut Request> {
        let at = self.find(handle);
        let entry = &mut self.entries[at];
        (entry.handle == handle && handle != EMPTY).then_some(&mut entry.request)
    }

    /// Puts `request` behind `handle`; returns what was there.
    pub fn replace(&mut self, handle: u64, request: Request) -> Option<Request> {
        if let Some(place) = self.get(handle) {
            return Some(std::mem::replace(place, request));
        }
        self.insert(handle, request);
        None
    }

    /// Puts `request` behind `handle` unless there is one; whether there was none.
    #[inline]
    pub fn insert(&mut self, handle: u64, request: Request) -> bool {
        let at = self.find(handle);
        let entry = &mut self.entries[at];
        if entry.handle != EMPTY {
            return false;
        }
        *entry = Entry { handle, request };
        self.used += 1;
        if self.used * 2 > self.entries.len() {
            self.grow();
        }
        true
    }

    /// Takes out all but the persistent requests, which become inactive; hands `gone` what it takes out.
    pub fn retain_persistent(&mut self, mut gone: impl FnMut(Request)) {
        let before = std::mem::take(self);
        for Entry { handle, request } in before.entries.into_iter().filter(|entry| entry.handle != EMPTY) {
            if request.persistent {
                self.insert(handle, Request { active: false, ..request });
            } else {
                gone(request);
            }
        }
    }

    /// Takes the request behind `handle` out.
    #[inline]
    pub fn remove(&mut self, handle: u64) -> Option<Request> {
        let mask = self.entries.len() - 1;
        let mut hole = self.find(handle);
        if self.entries[hole].handle == EMPTY {
            return None;
        }
        let removed = self.entries[hole].request;
        self.used -= 1;
        let mut at = (hole + 1) & mask;
        while self.entries[at].handle != EMPTY {
            // An entry may fill the hole unless its home lies behind it.
            let home = self.home(self.entries[at].handle);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.entries[hole] = self.entries[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.entries[hole] = FREE;
        Some(removed)
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![FREE; self.entries.len() * 2];
        let entries = std::mem::replace(&mut self.entries, larger);
        for entry in entries.into_iter().filter(|entry| entry.handle != EMPTY) {
            let at = self.find(entry.handle);
            self.entries[at] = entry;
        }
    }

    /// Whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        /// Whatever is put in and taken out, in any order, the table says what a map says.
        #[test]
        fn agrees_with_a_map(steps in prop::collection::vec((0u64..200, any::<bool>()), 0..2000)) {
            let (mut table, mut map) = (Table::default(), HashMap::new());
            for (number, &(handle, put)) in steps.iter().enumerate() {
                let handle = handle * 64;
                let request = Request { number: number as u64, ..Request::NONE };
                if put {
                    let new = !map.contains_key(&handle);
                    if number % 3 == 0 {
                        prop_assert_eq!(table.replace(handle, request), map.insert(handle, request));
                    } else {
                        prop_assert_eq!(table.insert(handle, request), new);
                        map.entry(handle).or_insert(request);
                    }
                } else {
                    prop_assert_eq!(table.remove(handle), map.remove(&handle));
                }
                prop_assert_eq!(table.is_empty(), map.is_empty());
            }
            for handle in (0..200).map(|handle| handle * 64) {
                prop_assert_eq!(table.get(handle).copied(), map.get(&handle).copied());
            }
        }
    }
}
