//! Which of the requests of one origin are live.
//!
//! A request is known by the call that made it: a thread, a terminal, and a slot, the lowest that is free. Programs
//! that make and complete the same requests again and again so name them the same each time, in whatever order they
//! complete.

use ampl_trace::request::{self, SLOT_BITS, UNSEEN};
use rustc_hash::FxHashMap;

use crate::numbers::Numbers;

/// The call that makes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maker {
    /// The thread.
    pub thread: u32,
    /// Its terminal, with 0 where the request is told.
    pub terminal: u32,
}

/// The live requests' slots.
#[derive(Debug)]
pub struct Slots {
    /// The first 64 by thread and terminal, a bit each.
    low: Vec<Vec<u64>>,
    /// Those beyond.
    high: FxHashMap<u64, Numbers>,
    /// Requests that nobody was seen making, from 1: their numbers too come again.
    unseen: Numbers,
}

impl Default for Slots {
    fn default() -> Self {
        Self { low: Vec::new(), high: FxHashMap::default(), unseen: Numbers::from(1) }
    }
}

impl Slots {
    /// The number of a new request.
    #[inline]
    pub fn take(&mut self, maker: Option<Maker>) -> u64 {
        let Some(Maker { thread, terminal }) = maker.filter(|maker| maker.terminal < 1 << 27) else {
            return UNSEEN | self.unseen.take();
        };
        let origin = request::number(thread, terminal, 0);
        let (thread, terminal) = (request::thread(origin) as usize, terminal as usize);
        if self.low.len() <= thread {
            self.low.resize(thread + 1, Vec::new());
        }
        let low = &mut self.low[thread];
        if low.len() <= terminal {
            low.resize((terminal + 1).next_power_of_two(), 0);
        }
        let slot = low[terminal].trailing_ones();
        if slot < u64::BITS {
            low[terminal] |= 1 << slot;
            return origin | u64::from(slot);
        }
        self.take_high(origin)
    }

    #[cold]
    fn take_high(&mut self, origin: u64) -> u64 {
        let slot = self.high.entry(origin).or_insert_with(|| Numbers::from(u64::BITS.into())).take();
        if slot >> SLOT_BITS != 0 {
            return UNSEEN | self.unseen.take();
        }
        origin | slot
    }

    /// The request of that number is gone.
    #[inline]
    pub fn give(&mut self, number: u64) {
        if number & UNSEEN != 0 {
            return self.unseen.give(number & !UNSEEN);
        }
        let Some(terminal) = request::terminal(number) else { return };
        let slot = request::slot(number);
        if slot >= u64::from(u64::BITS) {
            if let Some(high) = self.high.get_mut(&(number - slot)) {
                high.give(slot);
            }
            return;
        }
        let low = self.low.get_mut(request::thread(number) as usize);
        if let Some(low) = low.and_then(|low| low.get_mut(terminal as usize)) {
            *low &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_lowest_free_slot_is_taken(steps in prop::collection::vec((0u32..3, any::<prop::sample::Index>(), 0u8..3), 0..600)) {
            let mut slots = Slots::default();
            let mut live: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); 3];
            for (terminal, which, step) in steps {
                let own = &mut live[terminal as usize];
                let maker = Maker { thread: 2, terminal };
                if step > 0 {
                    let number = slots.take(Some(maker));
                    let lowest = (0..).find(|slot| !own.contains(slot)).unwrap();
                    prop_assert_eq!(number, 2 << 48 | u64::from(terminal + 1) << 20 | lowest);
                    own.insert(lowest);
                } else if !own.is_empty() {
                    let slot = *which.get(&own.iter().copied().collect::<Vec<_>>());
                    own.remove(&slot);
                    slots.give(2 << 48 | u64::from(terminal + 1) << 20 | slot);
                }
            }
        }
    }

    #[test]
    fn who_was_not_seen_has_a_name_of_its_own_as_long_as_it_lives() {
        let mut slots = Slots::default();
        let numbers: Vec<u64> = (0..3).map(|_| slots.take(None)).collect();
        numbers.iter().for_each(|&number| slots.give(number));
        assert_eq!(numbers, [1, 2, 3].map(|number| UNSEEN | number));
        assert_eq!([slots.take(None), slots.take(None)], [1, 2].map(|number| UNSEEN | number));
    }
}
