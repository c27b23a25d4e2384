//! Blocks of details behind the totals.

use super::{Spread, Totals, Way};
use crate::varint::{Reader, put};

/// Blocks behind the totals that readers may pass over, by number.
const SPREADS: u64 = 1;
const WAYS: u64 = 2;

impl Totals {
    /// Appends a block of each kind: its number, its length, and the details of each place in order.
    pub(super) fn put_details(&self, out: &mut Vec<u8>) {
        if self.details.is_empty() {
            return;
        }
        let [mut spreads, mut ways] = [const { Vec::new() }; 2];
        for place in self.places.keys() {
            let detail = self.details.get(place);
            detail.map(|detail| detail.spread).unwrap_or_default().put(&mut spreads);
            match detail.and_then(|detail| detail.way.as_ref()) {
                Some(way) => {
                    put(&mut ways, 1);
                    way.put(&mut ways);
                }
                None => put(&mut ways, 0),
            }
        }
        for (number, block) in [(SPREADS, spreads), (WAYS, ways)] {
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
                // A block of another version.
                _ => return Some(()),
            }
        }
        reader.is_empty().then_some(())
    }
}
