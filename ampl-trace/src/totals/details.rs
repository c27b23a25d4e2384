//! Blocks of details behind the totals.

use super::{FirstCalls, Spread, Totals, Turns, Way};
use crate::varint::{Reader, put};

/// Blocks behind the totals that readers may pass over, by number.
const SPREADS: u64 = 1;
const WAYS: u64 = 2;
const FIRST_CALLS: u64 = 3;
const TURNS: u64 = 4;

impl Totals {
    /// Appends a block of each kind: its number, its length, and the details of each place in order.
    pub(super) fn put_details(&self, out: &mut Vec<u8>) {
        if self.details.is_empty() {
            return;
        }
        let [mut spreads, mut ways, mut firsts, mut turns] = [const { Vec::new() }; 4];
        let [mut has_firsts, mut has_turns] = [false; 2];
        for place in self.places.keys() {
            let detail = self.details.get(place);
            let first = detail.and_then(|detail| detail.way.as_ref()?.first);
            has_firsts |= first.is_some();
            FirstCalls::put(first, &mut firsts);
            let own = detail.and_then(|detail| detail.way.as_ref()).map(|way| way.turns).unwrap_or_default();
            has_turns |= own.word() > 0;
            own.put(&mut turns);
            detail.map(|detail| detail.spread).unwrap_or_default().put(&mut spreads);
            match detail.and_then(|detail| detail.way.as_ref()) {
                Some(way) => {
                    put(&mut ways, 1);
                    way.put(&mut ways);
                }
                None => put(&mut ways, 0),
            }
        }
        let firsts = has_firsts.then_some((FIRST_CALLS, firsts));
        let turns = has_turns.then_some((TURNS, turns));
        for (number, block) in [(SPREADS, spreads), (WAYS, ways)].into_iter().chain(firsts).chain(turns) {
            put(out, number);
            put(out, block.len() as u64);
            out.extend(block);
        }
    }

    pub(super) fn get_details(&mut self, number: u64, block: &[u8]) -> Option<()> {
        let mut reader = Reader::new(block);
        for place in self.places.keys() {
            match number {
                SPREADS => {
                    let spread = Spread::get(&mut reader)?;
                    if spread.ranks > 0 {
                        self.details.entry(place.clone()).or_default().spread = spread;
                    }
                }
                WAYS => match reader.get()? {
                    0 => {}
                    _ => self.details.entry(place.clone()).or_default().way = Some(Way::get(&mut reader)?),
                },
                FIRST_CALLS => {
                    let first = FirstCalls::get(&mut reader)?;
                    if let Some(way) = self.details.get_mut(place).and_then(|detail| detail.way.as_mut()) {
                        way.first = first;
                    }
                }
                TURNS => {
                    let turns = Turns::get(&mut reader)?;
                    if let Some(way) = self.details.get_mut(place).and_then(|detail| detail.way.as_mut()) {
                        way.turns = turns;
                    }
                }
                // A block of a later version.
                _ => return Some(()),
            }
        }
        reader.is_empty().then_some(())
    }
}
