//! Numbers of regions by a key of 64 bits, which is faster to find than a name.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A table of at most `MOST` regions.
pub struct Numbered<const MOST: usize> {
    /// 0 where a place is free.
    keys: [AtomicU64; MOST],
    /// 0 until the number is known.
    regions: [AtomicU32; MOST],
}

impl<const MOST: usize> Numbered<MOST> {
    /// A table without regions.
    pub const fn new() -> Self {
        Self { keys: [const { AtomicU64::new(0) }; MOST], regions: [const { AtomicU32::new(0) }; MOST] }
    }

    /// The number of the region of `key`, which is not 0; `make` finds it out the first time. `None` where the table is full.
    pub fn number(&self, key: u64, make: impl FnOnce() -> c_int) -> Option<c_int> {
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        for step in 0..MOST {
            let at = (first + step) % MOST;
            let mut known = self.keys[at].load(Ordering::Acquire);
            if known == 0 {
                let taken = self.keys[at].compare_exchange(0, key, Ordering::AcqRel, Ordering::Acquire);
                known = taken.err().unwrap_or(key);
            }
            if known == key {
                let region = self.regions[at].load(Ordering::Relaxed);
                if region != 0 {
                    return Some(region as c_int);
                }
                let region = make();
                self.regions[at].store(region as u32, Ordering::Relaxed);
                return Some(region);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_knows_what_it_has() {
        static TABLE: Numbered<4> = Numbered::new();
        let number = |key| TABLE.number(key, || key as c_int * 10);
        assert_eq!([1, 2, 3, 4, 5, 1].map(number), [Some(10), Some(20), Some(30), Some(40), None, Some(10)]);
        assert_eq!(TABLE.number(3, || unreachable!("it is known")), Some(30));
    }
}
