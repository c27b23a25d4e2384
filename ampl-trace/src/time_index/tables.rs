//! Numbers as symbols, and tables of how often these come.
//!
//! A number that is frequent is a symbol of its own. Others share the symbol of their length in bits, and their bits
//! follow.

use rustc_hash::FxHashMap;

use super::ans::{BITS, Decoder, Encoder, Slots, TOTAL};
use crate::varint::{Reader, put};

/// Most numbers with symbols of their own.
const MOST_NUMBERS: usize = 1500;
/// Occurrences of a number that has one, at least.
const FREQUENT: u64 = 6;
/// Symbol of a number whose symbol is not in the table: its length in bits and its bits follow.
const ESCAPE: u32 = 0;
/// The symbols behind this are numbers.
const LENGTHS: u32 = 64;
/// Bits of a length in bits, less one.
const LENGTH_BITS: u32 = 6;
/// Slots between those whose symbols a table has at hand.
const STEP: usize = 1 << (BITS - 6);

/// Length of a number in bits, at least 1.
fn length(number: u64) -> u32 {
    u64::BITS - (number | 1).leading_zeros()
}

/// Bits that follow the symbol of that length.
fn rest_bits(length: u32) -> u32 {
    if length == 1 { 1 } else { length - 1 }
}

/// How often symbols come.
pub type Counts = FxHashMap<u32, u64>;

/// Numbers that have symbols of their own, ascending.
#[derive(Debug, Default)]
pub struct Numbers(Vec<u64>);

impl Numbers {
    /// The most frequent of `numbers`.
    pub fn of(numbers: impl Iterator<Item = u64>) -> Self {
        let mut often: FxHashMap<u64, u64> = FxHashMap::default();
        numbers.for_each(|number| *often.entry(number).or_default() += 1);
        let mut own: Vec<(u64, u64)> = often.into_iter().map(|(number, times)| (times, number)).collect();
        own.retain(|&(times, _)| times >= FREQUENT);
        own.sort_unstable_by(|a, b| b.cmp(a));
        own.truncate(MOST_NUMBERS);
        let mut own: Vec<u64> = own.into_iter().map(|(_, number)| number).collect();
        own.sort_unstable();
        Self(own)
    }

    /// The symbol of a number.
    pub fn symbol(&self, number: u64) -> u32 {
        match self.0.binary_search(&number) {
            Ok(index) => LENGTHS + 1 + index as u32,
            Err(_) => length(number),
        }
    }

    /// The greatest symbol.
    fn last(&self) -> u32 {
        LENGTHS + self.0.len() as u32
    }

    /// Appends the numbers to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        put(out, self.0.len() as u64);
        let mut before = 0;
        for &number in &self.0 {
            put(out, number - before);
            before = number;
        }
    }

    /// The numbers that [`write`](Self::write) appended; `None` where they are none.
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let own = usize::try_from(reader.get()?).ok().filter(|&own| own <= MOST_NUMBERS)?;
        let (mut numbers, mut before) = (Vec::new(), 0u64);
        for _ in 0..own {
            before = before.checked_add(reader.get()?)?;
            numbers.push(before);
        }
        Some(Self(numbers))
    }
}

/// Slots of symbols.
#[derive(Debug)]
pub struct Table {
    /// Symbols, ascending, and their slots.
    symbols: Vec<(u32, Slots)>,
    /// Of every so many slots, the index of its symbol.
    near: [u16; TOTAL as usize / STEP],
}

impl Table {
    /// A table of symbols by how often they come, with the escape where numbers may come that are not among them.
    pub fn of(counts: &Counts, is_open: bool) -> Self {
        let mut counts: Vec<(u32, u64)> = counts.iter().map(|(&symbol, &count)| (symbol, count)).collect();
        if is_open || counts.is_empty() {
            counts.push((ESCAPE, 1));
        }
        counts.sort_unstable();
        let all: u64 = counts.iter().map(|(_, count)| count).sum();
        let share = |count: u64| ((u128::from(count) * u128::from(TOTAL) / u128::from(all)) as u32).max(1);
        let mut slots: Vec<u32> = counts.iter().map(|&(_, count)| share(count)).collect();
        let mut sum: u32 = slots.iter().sum();
        while sum != TOTAL {
            let largest = slots.iter_mut().max().expect("there is one");
            if sum < TOTAL {
                *largest += TOTAL - sum;
                sum = TOTAL;
            } else {
                // Never all of the largest: its half at most is taken off.
                let less = (sum - TOTAL).min((*largest / 2).max(1));
                *largest -= less;
                sum -= less;
            }
        }
        let counts = counts.iter().map(|&(symbol, _)| symbol).zip(slots);
        Self::with(counts.map(|(symbol, count)| (symbol, count as u16)).collect())
    }

    /// The table of symbols with so many slots, which add up to all.
    fn with(counts: Vec<(u32, u16)>) -> Self {
        let mut start = 0;
        let symbols = counts.into_iter().map(|(symbol, count)| {
            let slots = Slots { start, count };
            start += count;
            (symbol, slots)
        });
        let symbols: Vec<(u32, Slots)> = symbols.collect();
        let at = |slot: usize| symbols.partition_point(|(_, slots)| usize::from(slots.start) <= slot) - 1;
        let near = std::array::from_fn(|step| at(step * STEP) as u16);
        Self { symbols, near }
    }

    fn slots(&self, symbol: u32) -> Option<Slots> {
        let found = self.symbols.binary_search_by_key(&symbol, |&(symbol, _)| symbol);
        found.ok().map(|index| self.symbols[index].1)
    }

    /// Puts `number` to `encoder`.
    pub fn put(&self, numbers: &Numbers, encoder: &mut Encoder, number: u64) {
        let symbol = numbers.symbol(number);
        match self.slots(symbol) {
            Some(slots) => {
                if symbol <= LENGTHS {
                    encoder.put_raw(number, rest_bits(symbol));
                }
                encoder.put(slots);
            }
            None => {
                let bits = length(number);
                encoder.put_raw(number, bits);
                encoder.put_raw(u64::from(bits - 1), LENGTH_BITS);
                encoder.put(self.slots(ESCAPE).expect("a table without it has all symbols"));
            }
        }
    }

    /// The next number of `decoder`.
    #[inline]
    pub fn take(&self, numbers: &Numbers, decoder: &mut Decoder<'_>) -> u64 {
        let symbol = self.symbol(decoder);
        if symbol > LENGTHS {
            return numbers.0[(symbol - LENGTHS - 1) as usize];
        }
        if symbol == ESCAPE {
            let bits = decoder.raw(LENGTH_BITS) as u32 + 1;
            return decoder.raw(bits);
        }
        let bits = decoder.raw(rest_bits(symbol));
        if symbol == 1 { bits } else { 1 << (symbol - 1) | bits }
    }

    #[inline]
    fn symbol(&self, decoder: &mut Decoder<'_>) -> u32 {
        if let [(symbol, _)] = self.symbols[..] {
            return symbol;
        }
        let slot = decoder.slot();
        let mut at = usize::from(self.near[slot as usize / STEP]);
        while self.symbols.get(at + 1).is_some_and(|(_, slots)| u32::from(slots.start) <= slot) {
            at += 1;
        }
        let (symbol, slots) = self.symbols[at];
        decoder.take(slots);
        symbol
    }

    /// Appends the table to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        put(out, self.symbols.len() as u64);
        let mut before = 0;
        for &(symbol, slots) in &self.symbols {
            put(out, (symbol - before).into());
            put(out, slots.count.into());
            before = symbol;
        }
    }

    /// The table of `numbers` that [`write`](Self::write) appended; `None` where they are none.
    pub fn read(numbers: &Numbers, reader: &mut Reader<'_>) -> Option<Self> {
        let (mut symbol, mut sum) = (0u32, 0u64);
        let mut counts = Vec::new();
        for at in 0..reader.get()? {
            let more = u32::try_from(reader.get()?).ok().filter(|&more| at == 0 || more > 0)?;
            symbol = symbol.checked_add(more)?;
            let count = reader.get()?;
            sum = sum.checked_add(count)?;
            if sum > TOTAL.into() || count == 0 || symbol > numbers.last() {
                return None;
            }
            counts.push((symbol, count as u16));
        }
        (sum == u64::from(TOTAL)).then(|| Self::with(counts))
    }
}

/// Bytes that a table takes, for each of its symbols about.
const SYMBOL_BYTES: f64 = 2.5;

/// Bytes of numbers that come as often as in `counts`, with their table.
pub fn cost(counts: &Counts) -> f64 {
    let all: u64 = counts.values().sum();
    let bits = |&count: &u64| count as f64 * (all as f64 / count as f64).log2();
    counts.values().map(bits).sum::<f64>() / 8.0 + 1.0 + SYMBOL_BYTES * counts.len() as f64
}
