//! Addresses of ranks' places, one rank after the other: what is as far from another address as it was in the rank
//! before takes nothing. Bases that the system has drawn take what was drawn.

use crate::bits::Bits;
use crate::column::Column;
use crate::places::{MOST_PLACES, Places};

/// Bits of an address within a page.
const PAGE: u32 = 12;
/// Entries for each plain bit: few bytes of a damaged file must not stand for many.
const FREE: usize = 16;

/// Columns of a table of addresses.
#[derive(Debug)]
struct Table {
    count: Column,
    numbers: Column,
    pages: Column,
    offsets: Column,
    before: Vec<(u64, u64)>,
}

/// Distances between addresses in a row: places in a block that a program goes through again and again have two, one of
/// which leads back.
#[derive(Clone, Copy, Debug, Default)]
struct Steps {
    last: Option<u64>,
    least: u64,
    most: u64,
    /// The last distance, and the last other one.
    steps: [Option<u64>; 2],
}

impl Steps {
    /// The address that comes next, if distances go on: by the last one, or, where that leads out of the addresses so far, by
    /// the other one; 0 before the first address.
    fn next(&self) -> u64 {
        let Some(last) = self.last else { return 0 };
        let [step, other] = self.steps.map(|step| step.map(|step| last.wrapping_add(step)));
        let is_inside = |at: &u64| (self.least..=self.most).contains(at);
        step.filter(is_inside).or(other).or(step).unwrap_or(last)
    }

    fn take(&mut self, address: u64) {
        if let Some(last) = self.last {
            let step = Some(address.wrapping_sub(last));
            if step != self.steps[0] {
                self.steps = [step, self.steps[0]];
            }
            (self.least, self.most) = (self.least.min(address), self.most.max(address));
        } else {
            (self.least, self.most) = (address, address);
        }
        self.last = Some(address);
    }
}

impl Table {
    const NEW: Self = Self {
        count: Column::NEW,
        numbers: Column::NEW,
        pages: Column::NEW,
        offsets: Column::NEW,
        before: Vec::new(),
    };

    /// Codes a table, ascending by number. `anchors` are an address coded before, of the rank before and of this one.
    fn code<B: Bits>(
        &mut self,
        bits: &mut B,
        table: &[(u64, u64)],
        anchors: (u64, u64),
    ) -> Option<Vec<(u64, u64)>> {
        let count = self.count.code(bits, table.len() as u64, &[self.before.len() as u64]);
        if count > MOST_PLACES {
            return None;
        }
        let mut coded: Vec<(u64, u64)> = Vec::new();
        let mut steps = Steps::default();
        let mut is = table.iter();
        for index in 0..count as usize {
            let (number, address) = is.next().copied().unwrap_or_default();
            let old = self.before.get(index).copied();
            let last = coded.last().copied();
            let next = last.map_or(0, |(number, _)| number.wrapping_add(1));
            let number = self.numbers.code(bits, number, &[old.map_or(next, |(number, _)| number), next]);
            // As far from the address before, or from the anchor, as in the rank before; or the same address.
            let (old_address, old_last) =
                (old.map_or(0, |(_, at)| at), index.checked_sub(1).map(|at| self.before.get(at)));
            let from_last = match (last, old_last.flatten()) {
                (Some((_, last)), Some(&(_, old_last))) => {
                    last.wrapping_add(old_address.wrapping_sub(old_last))
                }
                (Some((_, last)), None) => last,
                _ => anchors.1.wrapping_add(old_address.wrapping_sub(anchors.0)),
            };
            let from_anchor = anchors.1.wrapping_add(old_address.wrapping_sub(anchors.0));
            let guesses = [from_last, from_anchor, old_address, last.map_or(0, |(_, at)| at), steps.next()];
            let page = self.pages.code(bits, address >> PAGE, &guesses.map(|guess| guess >> PAGE));
            let within = address & ((1 << PAGE) - 1);
            let offset = self.offsets.code(bits, within, &guesses.map(|guess| guess & ((1 << PAGE) - 1)));
            if index % FREE == FREE - 1 {
                bits.plain(1, 0);
            }
            let address = page << PAGE | offset & ((1 << PAGE) - 1);
            steps.take(address);
            coded.push((number, address));
        }
        self.before.clone_from(&coded);
        Some(coded)
    }
}

/// Codes places: a writer passes them in, and both sides return them.
#[derive(Debug)]
pub struct Coder {
    modules: Table,
    stacks: Table,
    others: Table,
    anchor: u64,
}

impl Coder {
    /// A coder before the first rank.
    pub const NEW: Self = Self { modules: Table::NEW, stacks: Table::NEW, others: Table::NEW, anchor: 0 };

    /// Codes the places of the next rank; `None` where their numbers are out of range.
    pub fn code<B: Bits>(&mut self, bits: &mut B, places: &Places) -> Option<Places> {
        let tables = places.tables();
        if tables.iter().any(|table| table.len() as u64 > MOST_PLACES) {
            return None;
        }
        let [others, modules, stacks] = tables;
        let modules = self.modules.code(bits, &modules, (0, 0))?;
        let base = modules.first().map_or(0, |&(_, base)| base);
        let anchors = (std::mem::replace(&mut self.anchor, base), base);
        let stacks = self.stacks.code(bits, &stacks, anchors)?;
        let others = self.others.code(bits, &others, anchors)?;
        Places::of_tables([others, modules, stacks])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::bits::{Reader, Writer};
    use crate::places::{module, other, stack};

    fn places(others: &[u64], modules: &[(u32, u64)], stacks: &[(u32, u64)]) -> Places {
        let mut places = Places::default();
        (0..).zip(others).for_each(|(number, &address)| places.take(0, other(None, number), address));
        modules.iter().for_each(|&(number, base)| places.take(0, module(number % (1 << 20), 0), base));
        stacks.iter().for_each(|&(thread, base)| places.take(thread, stack(0, 0), base));
        places
    }

    fn coded(ranks: &[Places]) -> Vec<u8> {
        let (mut coder, mut bits) = (Coder::NEW, Writer::default());
        for rank in ranks {
            assert_eq!(coder.code(&mut bits, rank).as_ref(), Some(rank));
        }
        bits.into_bytes()
    }

    proptest! {
        #[test]
        fn places_of_ranks_come_back(
            ranks in prop::collection::vec((any::<Vec<u64>>(), any::<Vec<(u32, u64)>>(), any::<Vec<(u32, u64)>>()), 0..6),
        ) {
            let ranks: Vec<Places> = ranks.iter().map(|(others, modules, stacks)| places(others, modules, stacks)).collect();
            let bytes = coded(&ranks);
            let (mut coder, mut bits) = (Coder::NEW, Reader::new(&bytes[..]));
            for rank in &ranks {
                prop_assert_eq!(coder.code(&mut bits, &Places::default()), Some(rank.clone()));
            }
            prop_assert!(bits.is_sound());
        }
    }

    #[test]
    fn places_in_a_block_take_little() {
        for step in [1u64, 1031, 3065, 2048 + 1] {
            let ranks: Vec<Places> = (0..4)
                .map(|rank| {
                    let block = 0x7f00_0000_0010 + rank * 0x1234_5000;
                    let others: Vec<u64> = (0..4096).map(|index| block + index * step % 4096 * 128).collect();
                    places(&others, &[], &[])
                })
                .collect();
            let bytes = coded(&ranks).len();
            assert!(bytes < 600, "{step}: {bytes}");
        }
    }

    /// Bases drawn from 28 bits of pages for modules, 13 more for the heap, and 22 and 8 for stacks.
    #[test]
    fn a_rank_takes_what_was_drawn_of_it() {
        let mut state = 1u64;
        let mut drawn = |bits: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> (64 - bits)
        };
        let mut rank = || {
            let module = 0x5555_0000_0000 + (drawn(28) << PAGE);
            let heap = module + (drawn(13) << PAGE);
            let others: Vec<u64> = (0..12).map(|index| heap + 0x2a0 + index * 0x1090).collect();
            places(
                &others,
                &[(0, module), (2, module + 0x3000)],
                &[(0, 0x7ffc_0000_0000 + (drawn(22) << PAGE) + (drawn(8) << 4))],
            )
        };
        let ranks: Vec<Places> = (0..64).map(|_| rank()).collect();
        let bytes = coded(&ranks).len();
        assert!(bytes < 64 * (28 + 13 + 22 + 8 + 24) / 8, "{bytes}");
        let alike = coded(&vec![ranks[0].clone(); 64]).len();
        assert!(alike < 200, "{alike}");
    }
}
