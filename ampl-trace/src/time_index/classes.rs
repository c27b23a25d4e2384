//! Calls as questions to times tell them apart: by function, flags, call site and bytes.
//!
//! Where the calls of a rank differ much, its structure takes far longer to read than an index. Such an index has the
//! classes of its calls in their order, and answers without the structure.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::read::{signed, take};
use crate::grammar::Grammar;
use crate::site::Site;
use crate::structure::{RankStructure, Signature, ThreadStructure};
use crate::varint::{Reader, put, put_signed};

/// Most classes of a rank: with more, the structure tells its calls apart.
const MOST: usize = 1 << 12;

/// Classes of a rank's calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Classes {
    /// The classes as signatures, whose words are the bytes that a call moves; none where these are not known.
    signatures: Vec<Signature>,
    /// Numbers of the threads, and the calls that each made of each class.
    threads: Vec<(u32, Vec<u64>)>,
    /// Modules that call sites lie in.
    pub modules: Arc<[String]>,
    /// Call sites.
    pub sites: Arc<[Site]>,
}

/// Classes of the terminals of a rank's threads.
pub type OfTerminals = FxHashMap<u32, Vec<u32>>;

impl Classes {
    /// The classes of the calls of a rank, each of which moves `bytes`, by thread and terminal; and which class each terminal
    /// has, by number of the thread. `None` where they are too many, and of regions, which have names.
    pub fn of(structure: &RankStructure, bytes: &[Vec<Option<u64>>]) -> Option<(Self, OfTerminals)> {
        let mut numbers: FxHashMap<Signature, u32> = FxHashMap::default();
        let mut of_terminals = OfTerminals::default();
        for (thread, bytes) in structure.threads.iter().zip(bytes) {
            let mut own = Vec::with_capacity(thread.signatures.len());
            for (signature, bytes) in thread.signatures.iter().zip(bytes) {
                if signature.is_region() {
                    return None;
                }
                let Signature { function, flags, site, .. } = *signature;
                let words = bytes.iter().copied().collect();
                let class = Signature { function, flags, site, path: 0, words };
                let next = numbers.len() as u32;
                own.push(*numbers.entry(class).or_insert(next));
                if numbers.len() > MOST {
                    return None;
                }
            }
            of_terminals.insert(thread.thread, own);
        }
        let mut signatures = vec![Signature::default(); numbers.len()];
        numbers.into_iter().for_each(|(class, number)| signatures[number as usize] = class);
        let calls = |thread: &ThreadStructure| {
            let mut calls = vec![0u64; signatures.len()];
            for (terminal, count) in thread.grammar.totals() {
                let class = of_terminals[&thread.thread].get(terminal as usize);
                let Some(sum) = class.and_then(|&class| calls.get_mut(class as usize)) else { continue };
                *sum = sum.saturating_add(count);
            }
            (thread.thread, calls)
        };
        let threads = structure.threads.iter().map(calls).collect();
        let (modules, sites) = (structure.modules.clone().into(), structure.sites.clone().into());
        Some((Self { signatures, threads, modules, sites }, of_terminals))
    }

    /// The classes as signatures, by number.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Bytes that a call of each class moves; `None` where these are not known.
    pub fn bytes(&self) -> Vec<Option<u64>> {
        self.signatures.iter().map(|class| class.words.first().copied()).collect()
    }

    /// Calls by thread and class.
    pub fn calls(&self) -> Vec<Vec<u64>> {
        self.threads.iter().map(|(_, calls)| calls.clone()).collect()
    }

    /// The threads of `rank`, with the classes in place of signatures and without sequences.
    pub fn structure(&self, rank: u32) -> RankStructure {
        let thread = |&(thread, _): &(u32, Vec<u64>)| {
            let (signatures, grammar) = (self.signatures.clone(), Grammar::default());
            ThreadStructure { thread, signatures, grammar }
        };
        RankStructure { rank, threads: self.threads.iter().map(thread).collect(), ..RankStructure::default() }
    }

    /// Appends them to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put(out, self.signatures.len() as u64);
        for Signature { function, flags, site, words, .. } in &self.signatures {
            put(out, (*function).into());
            put(out, (*flags).into());
            put(out, (*site).into());
            put(out, words.len() as u64);
            words.iter().for_each(|&bytes| put(out, bytes));
        }
        put(out, self.threads.len() as u64);
        for (thread, calls) in &self.threads {
            put(out, (*thread).into());
            calls.iter().for_each(|&calls| put(out, calls));
        }
        put(out, self.modules.len() as u64);
        for module in self.modules.iter() {
            put(out, module.len() as u64);
            out.extend(module.bytes());
        }
        put(out, self.sites.len() as u64);
        let mut before = 0;
        for &Site { module, offset, caller } in self.sites.iter() {
            put(out, module.into());
            put_signed(out, offset.wrapping_sub(before) as i64);
            put(out, caller.into());
            before = offset;
        }
    }

    /// The classes that [`write`](Self::write) appended; `None` where they are none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let narrow = |number: u64| u32::try_from(number).ok();
        let mut signatures = Vec::new();
        for _ in 0..reader.get().filter(|&classes| classes <= MOST as u64)? {
            let function = u16::try_from(reader.get()?).ok()?;
            let flags = u8::try_from(reader.get()?).ok()?;
            let site = narrow(reader.get()?)?;
            let words = if reader.get()? > 0 { vec![reader.get()?] } else { Vec::new() };
            signatures.push(Signature { function, flags, site, path: 0, words });
        }
        let mut threads = Vec::new();
        for _ in 0..reader.get()? {
            let thread = narrow(reader.get()?)?;
            let calls = signatures.iter().map(|_| reader.get());
            threads.push((thread, calls.collect::<Option<_>>()?));
        }
        let mut modules = Vec::new();
        for _ in 0..reader.get()? {
            modules.push(String::from_utf8(take(&mut reader)?.to_vec()).ok()?);
        }
        let (mut sites, mut offset) = (Vec::new(), 0u64);
        for _ in 0..reader.get()? {
            let module = narrow(reader.get()?)?;
            offset = offset.wrapping_add_signed(signed(&mut reader)?);
            sites.push(Site { module, offset, caller: narrow(reader.get()?)? });
        }
        Some(Self { signatures, threads, modules: modules.into(), sites: sites.into() })
    }
}
