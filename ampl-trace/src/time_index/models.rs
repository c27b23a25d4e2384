//! Frequencies of what is stored of a rank's calls: numbers of signatures, gaps, durations and numbers of polls, each
//! by the signature of the call.
//!
//! A number that is frequent is a symbol of its own. Others share the symbol of their length in bits, and their bits
//! follow.

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use super::Entry;
use super::ans::{Decoder, Encoder, Slots, TOTAL};
use crate::varint::{Reader, put};

/// Place of the signature's number among the numbers of a call; gap, duration and count follow.
const TERMINAL: usize = 0;
/// Number of kinds.
const KINDS: usize = 4;
/// Most numbers of a kind with symbols of their own.
const MOST_NUMBERS: usize = 1500;
/// Occurrences of a number that has one, at least.
const FREQUENT: u64 = 6;
/// Most signatures with frequencies of their own.
const MOST_CONTEXTS: usize = 96;
/// Calls of such a signature, at least.
const OWN: u64 = 400;
/// Symbol of a number whose symbol is not in the table: its length in bits and its bits follow.
const ESCAPE: u32 = 0;
/// The symbols behind this are numbers.
const LENGTHS: u32 = 64;
/// Bits of a length in bits, less one.
const LENGTH_BITS: u32 = 6;

/// Length of a number in bits, at least 1.
fn length(number: u64) -> u32 {
    u64::BITS - (number | 1).leading_zeros()
}

/// Bits that follow the symbol of that length.
fn rest_bits(length: u32) -> u32 {
    if length == 1 { 1 } else { length - 1 }
}

/// Slots of the symbols of one signature.
#[derive(Debug, Default)]
struct Table {
    /// Symbols, ascending, and their slots.
    symbols: Vec<(u32, Slots)>,
    /// By slot, the index of its symbol; made when it is read from first.
    by_slot: OnceCell<Box<[u16]>>,
}

impl Table {
    /// A table of symbols by how often they come, with the escape where numbers may come that are not among them.
    fn new(mut counts: Vec<(u32, u64)>, is_open: bool) -> Self {
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
        Self::of(counts.map(|(symbol, count)| (symbol, count as u16)).collect())
    }

    fn of(counts: Vec<(u32, u16)>) -> Self {
        let mut start = 0;
        let symbols = counts.into_iter().map(|(symbol, count)| {
            let slots = Slots { start, count };
            start = start.wrapping_add(count);
            (symbol, slots)
        });
        Self { symbols: symbols.collect(), by_slot: OnceCell::new() }
    }

    fn slots(&self, symbol: u32) -> Option<Slots> {
        let found = self.symbols.binary_search_by_key(&symbol, |&(symbol, _)| symbol);
        found.ok().map(|index| self.symbols[index].1)
    }

    #[inline]
    fn take(&self, decoder: &mut Decoder<'_>) -> u32 {
        if let [(symbol, _)] = self.symbols[..] {
            return symbol;
        }
        let by_slot = self.by_slot.get_or_init(|| {
            let mut by_slot = vec![0; TOTAL as usize];
            for (index, (_, slots)) in (0..).zip(&self.symbols) {
                let from = usize::from(slots.start);
                let until = (from + usize::from(slots.count)).min(TOTAL as usize);
                by_slot[from.min(until)..until].fill(index);
            }
            by_slot.into()
        });
        let (symbol, slots) = self.symbols[usize::from(by_slot[decoder.slot() as usize])];
        decoder.take(slots);
        symbol
    }
}

/// Numbers of one kind.
#[derive(Debug, Default)]
struct Numbers {
    /// Numbers that have symbols, ascending.
    own: Vec<u64>,
    /// By context.
    tables: Vec<Table>,
}

impl Numbers {
    fn symbol(&self, number: u64) -> u32 {
        match self.own.binary_search(&number) {
            Ok(index) => LENGTHS + 1 + index as u32,
            Err(_) => length(number),
        }
    }

    fn put(&self, encoder: &mut Encoder, context: usize, number: u64) {
        let (table, symbol) = (&self.tables[context], self.symbol(number));
        match table.slots(symbol) {
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
                encoder.put(table.slots(ESCAPE).expect("a table without it has all symbols"));
            }
        }
    }

    #[inline]
    fn take(&self, decoder: &mut Decoder<'_>, context: usize) -> Option<u64> {
        let symbol = self.tables.get(context)?.take(decoder);
        if symbol > LENGTHS {
            return self.own.get((symbol - LENGTHS - 1) as usize).copied();
        }
        if symbol == ESCAPE {
            let bits = decoder.raw(LENGTH_BITS) as u32 + 1;
            return Some(decoder.raw(bits));
        }
        let bits = decoder.raw(rest_bits(symbol));
        Some(if symbol == 1 { bits } else { 1 << (symbol - 1) | bits })
    }
}

/// Frequencies of a rank's calls.
#[derive(Debug)]
pub struct Models {
    /// By terminal, the context of what follows; 0 is that of all without one.
    contexts: Vec<u8>,
    kinds: [Numbers; KINDS],
}

impl Models {
    /// Frequencies of `entries`; `is_open` where others may come than these.
    pub fn of(entries: &[Entry], is_open: bool) -> Self {
        let mut by_terminal: FxHashMap<u32, u64> = FxHashMap::default();
        entries.iter().for_each(|entry| *by_terminal.entry(entry.terminal).or_default() += 1);
        let mut frequent: Vec<(u64, u32)> = by_terminal
            .iter()
            .filter(|own| *own.1 >= OWN)
            .map(|(&terminal, &calls)| (calls, terminal))
            .collect();
        frequent.sort_unstable_by(|a, b| b.cmp(a));
        frequent.truncate(MOST_CONTEXTS);
        let mut models = Self { contexts: Vec::new(), kinds: Default::default() };
        for (context, &(_, terminal)) in (1..).zip(&frequent) {
            models.set_context(terminal, context);
        }
        let contexts = frequent.len() + 1;
        for (kind, numbers) in models.kinds.iter_mut().enumerate() {
            let mut often: FxHashMap<u64, u64> = FxHashMap::default();
            entries.iter().for_each(|entry| *often.entry(entry.numbers()[kind]).or_default() += 1);
            let mut own: Vec<(u64, u64)> = often.into_iter().map(|(number, times)| (times, number)).collect();
            own.retain(|&(times, _)| times >= FREQUENT);
            own.sort_unstable_by(|a, b| b.cmp(a));
            own.truncate(MOST_NUMBERS);
            numbers.own = own.into_iter().map(|(_, number)| number).collect();
            numbers.own.sort_unstable();
        }
        let mut counts: Vec<Vec<FxHashMap<u32, u64>>> = vec![vec![FxHashMap::default(); contexts]; KINDS];
        let mut before = None;
        for entry in entries {
            let at = models.places(before, entry.terminal);
            for ((kind, number), context) in entry.numbers().into_iter().enumerate().zip(at) {
                *counts[kind][context].entry(models.kinds[kind].symbol(number)).or_default() += 1;
            }
            before = Some(entry.terminal);
        }
        for (kind, counts) in counts.into_iter().enumerate() {
            // The first call of a block has none before it.
            let is_open = is_open || kind == TERMINAL;
            models.kinds[kind].tables =
                counts.into_iter().map(|own| Table::new(own.into_iter().collect(), is_open)).collect();
        }
        models
    }

    fn set_context(&mut self, terminal: u32, context: u8) {
        let at = terminal as usize;
        if self.contexts.len() <= at {
            self.contexts.resize(at + 1, 0);
        }
        self.contexts[at] = context;
    }

    #[inline]
    fn context(&self, terminal: u32) -> usize {
        self.contexts.get(terminal as usize).copied().unwrap_or(0).into()
    }

    /// Contexts of a call's numbers.
    #[inline]
    fn places(&self, before: Option<u32>, terminal: u32) -> [usize; KINDS] {
        let own = self.context(terminal);
        [before.map_or(0, |before| self.context(before)), own, own, own]
    }

    /// Appends the bytes of `entries` to `out`.
    pub fn encode(&self, encoder: &mut Encoder, entries: &[Entry], out: &mut Vec<u8>) {
        for (index, entry) in entries.iter().enumerate().rev() {
            let before = index.checked_sub(1).map(|before| entries[before].terminal);
            let at = self.places(before, entry.terminal);
            for ((numbers, number), context) in self.kinds.iter().zip(entry.numbers()).zip(at).rev() {
                numbers.put(encoder, context, number);
            }
        }
        encoder.finish(out);
    }

    /// The next call; `None` where the bytes are those of none.
    #[inline]
    pub fn take(&self, decoder: &mut Decoder<'_>, before: Option<u32>) -> Option<Entry> {
        let [terminals, gaps, durations, counts] = &self.kinds;
        let before = before.map_or(0, |before| self.context(before));
        let terminal = u32::try_from(terminals.take(decoder, before)?).ok()?;
        let context = self.context(terminal);
        let gap = gaps.take(decoder, context)?;
        let duration_ns = durations.take(decoder, context)?;
        let count = counts.take(decoder, context)?;
        Some(Entry { terminal, gap, duration_ns, count })
    }

    /// Appends the frequencies to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut own: Vec<(u8, u32)> = self
            .contexts
            .iter()
            .zip(0..)
            .filter(|own| *own.0 > 0)
            .map(|(&at, terminal)| (at, terminal))
            .collect();
        own.sort_unstable();
        put(out, own.len() as u64);
        own.iter().for_each(|&(_, terminal)| put(out, terminal.into()));
        for numbers in &self.kinds {
            put(out, numbers.own.len() as u64);
            let mut before = 0;
            for &number in &numbers.own {
                put(out, number - before);
                before = number;
            }
            for table in &numbers.tables {
                put(out, table.symbols.len() as u64);
                let mut before = 0;
                for &(symbol, slots) in &table.symbols {
                    put(out, (symbol - before).into());
                    put(out, slots.count.into());
                    before = symbol;
                }
            }
        }
    }

    /// The frequencies that [`write`](Self::write) appended; `None` where they are none.
    pub fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let contexts = usize::try_from(reader.get()?).ok().filter(|&own| own <= MOST_CONTEXTS)?;
        let mut models = Self { contexts: Vec::new(), kinds: Default::default() };
        for context in 1..=contexts {
            // No rank has more signatures than this.
            let terminal = u32::try_from(reader.get()?).ok().filter(|&terminal| terminal < 1 << 24)?;
            models.set_context(terminal, context as u8);
        }
        for numbers in &mut models.kinds {
            let own = usize::try_from(reader.get()?).ok().filter(|&own| own <= MOST_NUMBERS)?;
            let mut before = 0u64;
            for _ in 0..own {
                before = before.checked_add(reader.get()?)?;
                numbers.own.push(before);
            }
            for _ in 0..=contexts {
                let symbols = reader.get()?;
                let (mut symbol, mut sum) = (0u32, 0u64);
                let mut counts = Vec::new();
                for _ in 0..symbols {
                    symbol = symbol.checked_add(u32::try_from(reader.get()?).ok()?)?;
                    let count = reader.get()?;
                    sum = sum.checked_add(count)?;
                    if sum > TOTAL.into() || count == 0 || symbol as usize > LENGTHS as usize + own {
                        return None;
                    }
                    counts.push((symbol, count as u16));
                }
                if sum != u64::from(TOTAL) {
                    return None;
                }
                numbers.tables.push(Table::of(counts));
            }
        }
        Some(models)
    }
}
