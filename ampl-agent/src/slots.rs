//! Slots of a thread's live requests, by origin.
//!
//! A request is known by the call that made it: a thread, a terminal, and a slot, the lowest that is free. Programs
//! that make and complete the same requests again and again so name them the same each time, in whatever order they
//! complete.

use ampl_trace::request::{self, SLOT_BITS};
use rustc_hash::FxHashMap;

use crate::numbers::Numbers;

/// The live requests' slots of one thread.
#[derive(Debug)]
pub struct Slots {
    thread: u32,
    /// The first 64 by terminal, a bit each.
    low: Vec<u64>,
    /// Slots beyond the first 64, by terminal.
    high: FxHashMap<u64, Numbers>,
    /// Numbers of requests without a slot, from 1: they too are reused.
    unseen: Numbers,
}

impl Slots {
    /// Slots of thread `number`, all free.
    pub fn new(number: u32) -> Self {
        Self { thread: number, low: Vec::new(), high: FxHashMap::default(), unseen: Numbers::from(1) }
    }

    /// The number of a new request, by its terminal, with 0 where the request's own word is recorded. A request whose
    /// making was not seen, or that has no room in a number's bits, has a number that only distinguishes it.
    #[inline]
    pub fn take(&mut self, terminal: Option<u32>) -> u64 {
        let Some(origin) = terminal.and_then(|terminal| request::origin(self.thread, terminal)) else {
            return self.take_unseen();
        };
        let at = terminal.map_or(0, |terminal| terminal as usize);
        if self.low.len() <= at {
            self.low.resize((at + 1).next_power_of_two(), 0);
        }
        let slot = self.low[at].trailing_ones();
        if slot < u64::BITS {
            self.low[at] |= 1 << slot;
            return origin | u64::from(slot);
        }
        self.take_high(origin)
    }

    #[cold]
    fn take_unseen(&mut self) -> u64 {
        request::unseen(self.thread, self.unseen.take())
    }

    #[cold]
    fn take_high(&mut self, origin: u64) -> u64 {
        let high = self.high.entry(origin).or_insert_with(|| Numbers::from(u64::BITS.into()));
        let slot = high.take();
        if slot >> SLOT_BITS != 0 {
            high.give(slot);
            return self.take_unseen();
        }
        origin | slot
    }

    /// The request of that number is gone.
    #[inline]
    pub fn give(&mut self, number: u64) {
        if let Some(unseen) = request::unseen_number(number) {
            return self.unseen.give(unseen);
        }
        let Some(terminal) = request::terminal(number) else { return };
        let slot = request::slot(number);
        if slot >= u64::from(u64::BITS) {
            if let Some(high) = self.high.get_mut(&(number - slot)) {
                high.give(slot);
            }
            return;
        }
        if let Some(low) = self.low.get_mut(terminal as usize) {
            *low &= !(1 << slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::request::UNSEEN;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn the_lowest_free_slot_is_taken(steps in prop::collection::vec((0u32..3, any::<prop::sample::Index>(), 0u8..3), 0..600)) {
            let mut slots = Slots::new(2);
            let mut live: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); 3];
            for (terminal, which, step) in steps {
                let own = &mut live[terminal as usize];
                if step > 0 {
                    let number = slots.take(Some(terminal));
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
        let mut slots = Slots::new(3);
        let numbers: Vec<u64> = (0..3).map(|_| slots.take(None)).collect();
        numbers.iter().for_each(|&number| slots.give(number));
        assert_eq!(numbers, [1, 2, 3].map(|number| UNSEEN | 3 << 40 | number));
        assert_eq!([slots.take(None), slots.take(None)], [1, 2].map(|number| UNSEEN | 3 << 40 | number));
    }

    #[test]
    fn what_has_no_room_in_a_number_is_never_called_like_another() {
        let mut slots = Slots::new(0);
        let numbers: Vec<u64> = (0..(1 << 20) + 3).map(|_| slots.take(Some(7))).collect();
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        assert_eq!(distinct.len(), numbers.len());
        assert_eq!(numbers[(1 << 20) - 1], 8 << 20 | ((1 << 20) - 1));
        assert_eq!(numbers[1 << 20..], [1, 2, 3].map(|number| UNSEEN | number));
        // Slots and numbers come again, the lowest first.
        slots.give(8 << 20 | 99);
        slots.give(UNSEEN | 2);
        assert_eq!([slots.take(Some(7)), slots.take(Some(7))], [8 << 20 | 99, UNSEEN | 2]);
        // Neither is a terminal that needs more bits, or a thread that does.
        assert_eq!(slots.take(Some(1 << 27)), UNSEEN | 4);
        let mut others = [Slots::new((1 << 14) - 1), Slots::new(1 << 14)];
        assert_eq!(others.each_mut().map(|slots| slots.take(Some(0)) & UNSEEN), [0, UNSEEN]);
    }
}
