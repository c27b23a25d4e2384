//! Places in memory as words that are equal on every rank, wherever the loader has put things: the distance from where
//! the thread first called MPI on its stack, an offset in a module, or the ordinal of an otherwise unknown address, with the
//! number of the device in whose memory it lies.
//!
//! The upper four bits are the kind; where they are 0 the word is the address itself.

use std::collections::BTreeMap;

use ampl_core::value::Value;

use crate::varint::{self, Reader, zigzag};

const KIND_AT: u32 = 60;
const OTHER: u64 = 1;
const STACK: u64 = 2;
const MODULE: u64 = 3;
const OFFSET_BITS: u32 = 40;
/// Above are the bits of a device, plus one, in the words of other addresses; they are 0 for the host.
const DEVICE_AT: u32 = 40;

/// The word of a place that is not known: the address was not asked for, or there were too many.
pub const UNKNOWN: u64 = OTHER << KIND_AT | ((1 << DEVICE_AT) - 1);

/// The word of a place that differs from call to call, where it is left out which calls had which.
pub const LEFT_OUT: u64 = UNKNOWN - 1;

/// Upper limit of offsets in a module.
pub const MOST_OFFSET: u64 = 1 << OFFSET_BITS;
/// Largest number of other addresses that are numbered.
pub const MOST_PLACES: u64 = 1 << 20;

/// The word of `address` on a stack that is measured from `base`.
pub fn stack(base: u64, address: u64) -> u64 {
    STACK << KIND_AT | zigzag(base.wrapping_sub(address) as i64)
}

/// The word of an offset in the module of that number.
pub fn module(module: u32, offset: u64) -> u64 {
    MODULE << KIND_AT | u64::from(module) << OFFSET_BITS | offset
}

/// The word of the other address of that number, in the memory of `device` or the host's.
pub fn other(device: Option<u8>, number: u64) -> u64 {
    OTHER << KIND_AT | device.map_or(0, |device| u64::from(device) + 1) << DEVICE_AT | number
}

/// True for words that the calls of one signature may differ in: those of places that are no addresses themselves.
#[inline]
pub fn may_vary(word: u64) -> bool {
    matches!(word >> KIND_AT, OTHER | STACK | MODULE) && word != UNKNOWN
}

/// Addresses of a rank's places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Other addresses by device and number.
    others: BTreeMap<u64, u64>,
    /// Bases of modules by number.
    modules: BTreeMap<u32, u64>,
    /// Bases of stacks by thread.
    stacks: BTreeMap<u32, u64>,
}

impl Places {
    /// Takes a record of a thread's journal: `word` stands for `address`.
    pub fn take(&mut self, thread: u32, word: u64, address: u64) {
        let value = word & ((1 << KIND_AT) - 1);
        match word >> KIND_AT {
            OTHER => drop(self.others.insert(value, address)),
            MODULE => drop(self.modules.insert((value >> OFFSET_BITS) as u32, address)),
            STACK => drop(self.stacks.insert(thread, address)),
            _ => {}
        }
    }

    /// Value that `word` stood for in a call of `thread`: the address, or, where it is not known, the relative place,
    /// `stack-0x30`, `module:2+0x40` or `address:3`. In the memory of a device it is `device:0+0x7f0000`, or `device:0:3`.
    /// Absent where the place is not [known](UNKNOWN) either.
    pub fn value(&self, thread: u32, word: u64) -> Value {
        if matches!(word, UNKNOWN | LEFT_OUT) {
            return Value::Absent;
        }
        let value = word & ((1 << KIND_AT) - 1);
        let or = |found: Option<u64>, place: String| found.map_or(Value::Name(place), Value::Address);
        match word >> KIND_AT {
            OTHER => {
                let (found, number) = (self.others.get(&value).copied(), value & ((1 << DEVICE_AT) - 1));
                match (value >> DEVICE_AT, found) {
                    (0, found) => or(found, format!("address:{number}")),
                    (device, Some(address)) => Value::Name(format!("device:{}+{address:#x}", device - 1)),
                    (device, None) => Value::Name(format!("device:{}:{number}", device - 1)),
                }
            }
            MODULE => {
                let (module, offset) = ((value >> OFFSET_BITS) as u32, value & (MOST_OFFSET - 1));
                let base = self.modules.get(&module);
                or(base.map(|base| base.wrapping_add(offset)), format!("module:{module}+{offset:#x}"))
            }
            STACK => {
                let below = (value >> 1) as i64 ^ -((value & 1) as i64);
                let (sign, far) = (if below < 0 { '+' } else { '-' }, below.unsigned_abs());
                let base = self.stacks.get(&thread);
                or(base.map(|base| base.wrapping_sub(below as u64)), format!("stack{sign}{far:#x}"))
            }
            _ => Value::Address(word),
        }
    }

    /// The tables of other addresses, of modules and of stacks: number and address, ascending.
    pub(crate) fn tables(&self) -> [Vec<(u64, u64)>; 3] {
        let wide =
            |table: &BTreeMap<u32, u64>| table.iter().map(|(&number, &at)| (number.into(), at)).collect();
        let others = self.others.iter().map(|(&number, &at)| (number, at)).collect();
        [others, wide(&self.modules), wide(&self.stacks)]
    }

    /// The places of these [tables](Self::tables); `None` where a number is out of range.
    pub(crate) fn of_tables([others, modules, stacks]: [Vec<(u64, u64)>; 3]) -> Option<Self> {
        let short = |table: Vec<(u64, u64)>| {
            let entries = table.into_iter().map(|(number, at)| Some((u32::try_from(number).ok()?, at)));
            entries.collect::<Option<BTreeMap<u32, u64>>>()
        };
        let others = others.into_iter().collect();
        Some(Self { others, modules: short(modules)?, stacks: short(stacks)? })
    }

    /// Appends the places to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut put = |all: &mut dyn ExactSizeIterator<Item = (u64, u64)>| {
            varint::put(out, all.len() as u64);
            let mut before = [0u64; 2];
            for (number, address) in all {
                varint::put(out, number.wrapping_sub(before[0]));
                varint::put_signed(out, address.wrapping_sub(before[1]) as i64);
                before = [number, address];
            }
        };
        put(&mut self.others.iter().map(|(&number, &address)| (number, address)));
        put(&mut self.modules.iter().map(|(&number, &address)| (number.into(), address)));
        put(&mut self.stacks.iter().map(|(&number, &address)| (number.into(), address)));
    }

    /// The places in [bytes](Self::write); `None` if they are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let mut all = || -> Option<Vec<(u64, u64)>> {
            let (mut found, mut before) = (Vec::new(), [0u64; 2]);
            for _ in 0..reader.get()? {
                let number = before[0].wrapping_add(reader.get()?);
                before = [number, before[1].wrapping_add(reader.get_signed()? as u64)];
                found.push((before[0], before[1]));
            }
            Some(found)
        };
        let others = all()?.into_iter().collect();
        let mut short = || all().map(|all| all.into_iter().map(|(number, at)| (number as u32, at)).collect());
        let (modules, stacks) = (short()?, short()?);
        reader.is_empty().then_some(Self { others, modules, stacks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn places_are_found_again(
            others: Vec<u64>,
            base: u64,
            offset in 0..MOST_OFFSET,
            number in 0u32..1 << 20,
            near in -1i64 << 40..1 << 40,
            thread: u32,
            device: u8,
        ) {
            let mut places = Places::default();
            for (number, &address) in (0..).zip(&others) {
                places.take(thread, other(None, number), address);
            }
            places.take(thread, other(Some(device), 0), base);
            places.take(thread, module(number, 0), base);
            places.take(thread, stack(base, base), base);
            let mut bytes = Vec::new();
            places.write(&mut bytes);
            prop_assert_eq!(Places::read(&bytes), Some(places.clone()));
            for (number, &address) in (0..).zip(&others) {
                prop_assert_eq!(places.value(7, other(None, number)), Value::Address(address));
            }
            let name = Value::Name(format!("device:{device}+{base:#x}"));
            prop_assert_eq!(places.value(7, other(Some(device), 0)), name);
            let inside = base.wrapping_add(offset);
            prop_assert_eq!(places.value(7, module(number, offset)), Value::Address(inside));
            let address = base.wrapping_add(near as u64);
            prop_assert_eq!(places.value(thread, stack(base, address)), Value::Address(address));
            let elsewhere = places.value(thread.wrapping_add(1), stack(base, address));
            prop_assert!(matches!(elsewhere, Value::Name(_)), "{elsewhere}");
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = Places::read(&bytes);
        }
    }

    #[test]
    fn the_word_of_an_address_that_is_its_own_is_the_address() {
        assert_eq!(Places::default().value(0, 0x7fff_1234), Value::Address(0x7fff_1234));
        assert_eq!(Places::default().value(0, u64::MAX), Value::Address(u64::MAX));
    }

    #[test]
    fn a_place_without_its_address_is_told_by_what_it_is_measured_from() {
        let mut places = Places::default();
        let words = [
            other(None, 3),
            other(Some(0), 4),
            module(2, 0x40),
            stack(0x7000, 0x6fd0),
            stack(0x7000, 0x7010),
        ];
        let told = |places: &Places| words.map(|word| places.value(1, word).to_string());
        assert_eq!(told(&places), ["address:3", "device:0:4", "module:2+0x40", "stack-0x30", "stack+0x10"]);
        [(other(None, 3), 0x99), (other(Some(0), 4), 0xa0), (module(2, 0), 0x5000), (stack(0, 0), 0x7000)]
            .into_iter()
            .for_each(|(word, address)| places.take(1, word, address));
        assert_eq!(told(&places), ["0x99", "device:0+0xa0", "0x5040", "0x6fd0", "0x7010"]);
    }
}
