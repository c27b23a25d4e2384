//! Names that the program gives to regions and metrics: numbers for them, for good.
//!
//! Without locks, because a program may fork while another of its threads is in here.

use std::ptr;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, Ordering};

/// Most names of a kind.
pub const MOST: usize = 1000;
/// Slots to look a name up in.
const SLOTS: usize = 2048;
/// Bytes of a name that count.
pub const LONGEST: usize = 255;

/// Regions of the program.
pub static REGIONS: Names = Names::new();
/// Metrics of the program.
pub static METRICS: Names = Names::new();

/// State of a name that has not been looked up in the configuration.
const UNKNOWN: u32 = 0;
/// Bit of those that have been.
const KNOWN: u32 = 1;
/// Bit of regions that are recorded.
const RECORDED: u32 = 2;
/// First bit of the index that the configuration gives the name, plus 1; 0 where it gives none.
const INDEX: u32 = 2;

/// The hash of `text` by Fowler, Noll and Vo: FNV-1a, 64 bits.
pub fn hash(text: &[u8]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// A region or metric of the program.
#[derive(Debug)]
pub struct Name {
    text: Box<[u8]>,
    /// The same as a trace has it.
    label: Box<str>,
    /// [`UNKNOWN`], or bits: see above.
    declared: AtomicU32,
    /// How often it was entered and not left before the agent existed.
    pub early: AtomicI64,
}

impl Name {
    /// Its index in the configuration, and true where it is recorded; `ask` asks for both once for a process.
    #[inline]
    pub fn uses(&self, ask: impl FnOnce(&str) -> (Option<u16>, bool)) -> (Option<u16>, bool) {
        let mut known = self.declared.load(Ordering::Relaxed);
        if known == UNKNOWN {
            known = self.ask(ask);
        }
        ((known >> INDEX).checked_sub(1).map(|index| index as u16), known & RECORDED != 0)
    }

    /// Its index in the configuration; `None` if it is not there.
    #[inline]
    pub fn index(&self, declared: impl FnOnce(&str) -> Option<u16>) -> Option<u16> {
        self.uses(|text| (declared(text), false)).0
    }

    /// Its text as a trace has it.
    pub fn label(&self) -> &str {
        &self.label
    }

    #[cold]
    fn ask(&self, ask: impl FnOnce(&str) -> (Option<u16>, bool)) -> u32 {
        let (index, recorded) = ask(&self.label);
        let found = index.map_or(0, |index| u32::from(index) + 1) << INDEX;
        let found = found | KNOWN | if recorded { RECORDED } else { 0 };
        self.declared.store(found, Ordering::Relaxed);
        found
    }
}

/// Every name of a kind.
#[derive(Debug)]
pub struct Names {
    by_number: [AtomicPtr<Name>; MOST + 1],
    slots: [AtomicU32; SLOTS],
    count: AtomicU32,
}

impl Names {
    /// An empty table of names.
    pub const fn new() -> Self {
        Self {
            by_number: [const { AtomicPtr::new(ptr::null_mut()) }; MOST + 1],
            slots: [const { AtomicU32::new(0) }; SLOTS],
            count: AtomicU32::new(0),
        }
    }

    /// Every name so far.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        (1..=MOST as i32).filter_map(|number| str::from_utf8(&self.get(number)?.text).ok())
    }

    /// The name of that number.
    #[inline]
    pub fn get(&self, number: i32) -> Option<&'static Name> {
        let name = self.by_number.get(usize::try_from(number).ok()?)?;
        // SAFETY: null, or a name that was leaked.
        unsafe { name.load(Ordering::Acquire).as_ref() }
    }

    /// The number of `text`, above 0; 0 once there are too many names.
    pub fn number(&self, text: &[u8]) -> i32 {
        let text = &text[..text.len().min(LONGEST)];
        let hash = hash(text);
        let mut slot = (hash ^ hash >> 32) as usize % SLOTS;
        let mut made = 0;
        loop {
            let mut number = self.slots[slot].load(Ordering::Acquire);
            if number == 0 {
                made = if made == 0 { self.make(text) } else { made };
                if made == 0 {
                    return 0;
                }
                let taken = self.slots[slot].compare_exchange(0, made, Ordering::AcqRel, Ordering::Acquire);
                match taken {
                    Ok(_) => return made as i32,
                    // Another thread was quicker, perhaps with the same name: ours stays unused then.
                    Err(other) => number = other,
                }
            }
            if self.get(number as i32).is_some_and(|name| *name.text == *text) {
                return number as i32;
            }
            slot = (slot + 1) % SLOTS;
        }
    }

    #[cold]
    fn make(&self, text: &[u8]) -> u32 {
        let more = |count: u32| (count < MOST as u32).then_some(count + 1);
        let Ok(count) = self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) else { return 0 };
        let (declared, early) = (AtomicU32::new(UNKNOWN), AtomicI64::new(0));
        let label = String::from_utf8_lossy(text).into();
        let name = Box::leak(Box::new(Name { text: text.into(), label, declared, early }));
        self.by_number[count as usize + 1].store(name, Ordering::Release);
        count + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        static NAMES: Names = Names::new();
        let numbers: Vec<i32> = std::thread::scope(|scope| {
            let ask = || (0..400).map(|i| NAMES.number(format!("region {i}").as_bytes())).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(ask)).collect();
            let all: Vec<Vec<i32>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            assert!(all.iter().all(|numbers| *numbers == all[0]));
            all[0].clone()
        });
        let mut distinct = numbers.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), 400);
        let name = NAMES.get(numbers[7]).unwrap();
        assert_eq!(name.index(|text| (text == "region 7").then_some(3)), Some(3));
        assert_eq!(name.index(|_| panic!("asked once")), Some(3));
        assert!(NAMES.get(0).is_none() && NAMES.get(-1).is_none() && NAMES.get(100_000).is_none());
    }

    #[test]
    fn there_may_be_too_many_names() {
        static NAMES: Names = Names::new();
        let numbers: Vec<i32> = (0..3 * MOST).map(|i| NAMES.number(i.to_string().as_bytes())).collect();
        assert!(numbers[..MOST].iter().all(|&number| number > 0));
        assert!(numbers[MOST..].iter().all(|&number| number == 0));
        assert_eq!(NAMES.number(b"17"), numbers[17]);
    }

    #[test]
    fn long_names_are_cut() {
        static NAMES: Names = Names::new();
        assert_eq!(NAMES.number(&[b'a'; 255]), NAMES.number(&[b'a'; 300]));
        assert_ne!(NAMES.number(&[b'a'; 254]), NAMES.number(&[b'a'; 255]));
    }
}
