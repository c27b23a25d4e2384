//! Addresses as words that are the same on every rank: [`ampl_trace::places`] is the other side.

use std::collections::hash_map::Entry;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ampl_agent::Thread;
use ampl_trace::places::{self, MOST_OFFSET, MOST_PLACES};
use rustc_hash::FxHashMap;

use crate::device_memory;
use crate::entry::entry;
use crate::resolve;
use crate::stack;

/// Entries of a thread's cache.
const WAYS: usize = 256;
/// Below are no objects of a program.
pub const FIRST_PAGE: u64 = 4096;

/// Places that the process has met.
#[derive(Debug, Default)]
pub struct Places {
    /// Words of addresses that lie in no module and on no stack, numbered in the order in which they were met.
    others: FxHashMap<u64, u64>,
    /// Modules whose base is in the journal.
    modules: Vec<u32>,
}

/// Places of a thread: its stack, and the words of the addresses that it met last.
#[derive(Debug)]
pub struct PlaceCache {
    /// Addresses and their words.
    cache: Box<[(u64, u64); WAYS]>,
    /// Its stack, and the address from which that is measured.
    stack: Stack,
}

#[derive(Clone, Copy, Debug)]
struct Stack {
    low: u64,
    high: u64,
    base: u64,
    /// True once the base is in the journal.
    is_noted: bool,
}

impl PlaceCache {
    /// Places of the calling thread, which is inside of a wrapper.
    pub fn of_this_thread() -> Self {
        let stack = stack::own().unwrap_or_default();
        // Where a program calls MPI first is as far down the stack on every rank; its environment lies above.
        // SAFETY: the calling thread's own block.
        let base = unsafe { (*entry()).stack };
        Self {
            cache: Box::new([(0, 0); WAYS]),
            stack: Stack { low: stack.start, high: stack.end, base, is_noted: false },
        }
    }

    /// The word that `address` has in signatures of `thread`, in a process that has met `places`.
    #[inline(always)]
    pub fn word(&mut self, address: u64, places: &Mutex<Places>, thread: &mut Thread) -> u64 {
        if address < FIRST_PAGE {
            return address;
        }
        let (known, word) = self.cache[way(address)];
        if known == address { word } else { self.meet(address, places, thread) }
    }

    #[cold]
    fn meet(&mut self, address: u64, places: &Mutex<Places>, thread: &mut Thread) -> u64 {
        let word = self.place(address, places, thread);
        self.cache[way(address)] = (address, word);
        word
    }

    fn place(&mut self, address: u64, all: &Mutex<Places>, thread: &mut Thread) -> u64 {
        let Stack { low, high, base, is_noted } = self.stack;
        if (low..high).contains(&address) {
            if !is_noted {
                self.stack.is_noted = true;
                thread.place(places::stack(base, base), base);
            }
            return places::stack(base, address);
        }
        let (path, offset) = resolve::module(address);
        let mut met = lock(all);
        if !path.is_empty() && offset < MOST_OFFSET {
            let module = thread.module(&path);
            if !met.modules.contains(&module) {
                met.modules.push(module);
                thread.place(places::module(module, 0), address - offset);
            }
            return places::module(module, offset);
        }
        if let Some(&word) = met.others.get(&address) {
            return word;
        }
        drop(met);
        // The library of a device may take locks of its own.
        let device = device_memory::device_of(address);
        let mut met = lock(all);
        let next = met.others.len() as u64;
        if next == MOST_PLACES {
            return address;
        }
        let word = places::other(device, next);
        match met.others.entry(address) {
            // Another thread has met it meanwhile.
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                new.insert(word);
                thread.place(word, address);
                word
            }
        }
    }
}

fn lock(places: &Mutex<Places>) -> MutexGuard<'_, Places> {
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

#[inline(always)]
fn way(address: u64) -> usize {
    (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}
