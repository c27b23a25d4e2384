//! Index of a rank's times, made of the times.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::ans::Encoder;
use super::models::{Contexts, Models};
use super::read::Sum;
use super::visits::{Regions, Visits};
use super::{BLOCKS, CHUNK, Classes, Entry, MAGIC, OfTerminals};
use crate::grammar::Grammar;
use crate::record::CALL_UNFINISHED;
use crate::structure::{RankStructure, Signature, ThreadStructure};
use crate::timed::for_each_at;
use crate::timing::{Decoder, Malformed, Settings};
use crate::varint::{put, put_signed, zigzag};

/// Stored calls whose frequencies stand for all of a rank: its first ones.
const TRAINED: usize = 1 << 20;

/// Groups of calls alike take no more than one part in so many of the bytes of the calls.
const GROUPED: usize = 8;
/// As much for sums by function and site.
const SUMMED: usize = 4;
/// Most stretches of calls without times, in a thread, that are searched for regions.
const MOST_LOOKS: u32 = 16;
/// Bytes before those of a rank: its number, their number, their checksum.
pub const RANK_HEAD_BYTES: usize = 16;

/// Calls of a chunk.
struct Chunk {
    thread: u32,
    window: u64,
    calls: Range<u64>,
    /// End of the call before.
    base_ns: i64,
    entries: Vec<Entry>,
    /// Visits of regions before it, coded; empty where they are not known.
    visits: Vec<u8>,
}

/// Visits of a thread's regions, as its times go on.
struct Walk<'a> {
    grammar: &'a Grammar,
    regions: Regions,
    visits: Visits,
    next_seq: u64,
    /// Stretches without times that may still be looked into.
    looks: u32,
    /// True where something has no time that a region has a part of: what is behind it is not known.
    is_broken: bool,
}

impl<'a> Walk<'a> {
    fn of(thread: &'a ThreadStructure) -> Self {
        let regions = Regions::of(&thread.signatures);
        let visits = Visits::none(&regions);
        Self { grammar: &thread.grammar, regions, visits, next_seq: 0, looks: MOST_LOOKS, is_broken: false }
    }

    /// The visits before the call with that number.
    fn before(&mut self, seq: u64) -> Vec<u8> {
        self.pass_to(seq);
        let mut visits = Vec::new();
        if !self.is_broken && !self.regions.terminals().is_empty() {
            self.visits.write(&mut visits);
        }
        visits
    }

    /// Passes calls without times.
    fn pass_to(&mut self, seq: u64) {
        if self.is_broken || self.regions.terminals().is_empty() || seq == self.next_seq {
            return;
        }
        let looks = self.looks.checked_sub(1).filter(|_| seq > self.next_seq);
        let passed = looks.is_some() && self.visits.may_pass(&self.regions, self.grammar, self.next_seq..seq);
        (self.looks, self.is_broken) = (looks.unwrap_or(0), !passed);
        self.next_seq = seq;
    }

    fn step(&mut self, seq: u64, entry: &Entry, start_ns: i64) {
        self.pass_to(seq);
        self.next_seq = entry.next_seq;
        let end_ns = start_ns.saturating_add_unsigned(entry.duration_ns);
        self.is_broken |= !self.visits.step(&self.regions, entry.terminal, start_ns, end_ns, i64::MAX);
    }
}

/// Writes the beginning of an index of the trace with that identity.
///
/// # Errors
/// Errors of `out`.
pub fn put_header(out: &mut impl Write, identity: u64) -> io::Result<()> {
    out.write_all(&MAGIC)?;
    out.write_all(&identity.to_le_bytes())
}

/// Writes what [`encode`] returned of `rank`.
///
/// # Errors
/// Errors of `out`.
pub fn put_rank(out: &mut impl Write, rank: u32, bytes: &[u8]) -> io::Result<()> {
    let mut head = [0; RANK_HEAD_BYTES];
    head[..4].copy_from_slice(&rank.to_le_bytes());
    head[4..12].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    head[12..].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    out.write_all(&head)?;
    out.write_all(bytes)
}

/// Index of the `times` of a rank with that structure, in no more than `most_bytes`; `None` where that cannot be. Blocks
/// are longer where they must. With `classes` the index has those of the calls, unless it would be too large.
///
/// # Errors
/// [`Malformed`] where the times are not those of these calls.
pub fn encode(
    structure: &RankStructure,
    times: &[u8],
    classes: Option<&(Classes, OfTerminals)>,
    most_bytes: usize,
) -> Result<Option<Vec<u8>>, Malformed> {
    for classes in classes.map(Some).into_iter().chain([None]) {
        for block in BLOCKS {
            let bytes = encode_by(structure, times, classes, block)?;
            if bytes.len() <= most_bytes {
                return Ok(Some(bytes));
            }
        }
    }
    Ok(None)
}

/// The index with blocks of that many calls at most.
fn encode_by(
    structure: &RankStructure,
    times: &[u8],
    classes: Option<&(Classes, OfTerminals)>,
    block: usize,
) -> Result<Vec<u8>, Malformed> {
    let mut decoder = Decoder::new(times)?;
    let mut writer = Writer { block, ..Writer::default() };
    let settings = decoder.settings();
    writer.settings = Some(settings);
    writer.head.extend(settings.error.to_bits().to_le_bytes());
    put(&mut writer.head, settings.floor_ns);
    put(&mut writer.head, block as u64);
    let mut own = Vec::new();
    if let Some((classes, _)) = classes {
        classes.write(&mut own);
        writer.has_classes = true;
    }
    put(&mut writer.head, own.len() as u64);
    writer.head.extend(own);
    for thread in &structure.threads {
        let signatures = classes.map_or(&thread.signatures[..], |(classes, _)| classes.signatures());
        writer.signatures.insert(thread.thread, signatures);
        writer.walks.insert(thread.thread, Walk::of(thread));
    }
    let mut last: Option<(u64, u32, i64)> = None;
    for_each_at(structure, &mut decoder, |window, terminal, seq, time| {
        let begun = last.filter(|&(number, thread, _)| (number, thread) == (window.window, window.thread));
        let end_ns = begun.map_or(window.start_ns, |(_, _, end_ns)| end_ns);
        let class = classes.and_then(|(_, of)| of.get(&window.thread)?.get(terminal.number as usize));
        let entry = Entry {
            terminal: class.copied().unwrap_or(terminal.number),
            context: 0,
            folds: terminal.folds,
            gap: zigzag(time.start_ns.wrapping_sub(end_ns)),
            duration_ns: time.duration_ns,
            count: time.count,
            next_seq: seq.saturating_add(time.count.max(1)),
        };
        writer.add((window.thread, window.window), begun.is_some(), end_ns, seq, entry);
        if let Some(walk) = writer.walks.get_mut(&window.thread) {
            walk.step(seq, &Entry { terminal: terminal.number, ..entry }, time.start_ns);
        }
        last = Some((window.window, window.thread, end(time.start_ns, time.duration_ns)));
    })?;
    Ok(writer.finish())
}

/// End of a call, as gaps are from.
pub(super) fn end(start_ns: i64, duration_ns: u64) -> i64 {
    start_ns.wrapping_add_unsigned(duration_ns)
}

#[derive(Default)]
struct Writer<'a> {
    /// Most calls of a block.
    block: usize,
    has_classes: bool,
    settings: Option<Settings>,
    signatures: FxHashMap<u32, &'a [Signature]>,
    walks: FxHashMap<u32, Walk<'a>>,
    /// Settings, then frequencies.
    head: Vec<u8>,
    models: Option<Models>,
    /// Chunks that are not written, because there are no frequencies yet; the last is not full.
    waiting: Vec<Chunk>,
    /// Entries of these.
    entries: usize,
    meta: Vec<u8>,
    payload: Vec<u8>,
    encoder: Encoder,
    /// Facts of the chunk written last: window, end of its calls, base.
    before: (u64, u64, i64),
}

impl Writer<'_> {
    fn add(&mut self, (thread, window): (u32, u64), goes_on: bool, base_ns: i64, seq: u64, entry: Entry) {
        match self.waiting.last_mut() {
            Some(chunk) if goes_on && chunk.entries.len() < CHUNK => {
                chunk.entries.push(entry);
                chunk.calls.end = entry.next_seq;
            }
            _ => {
                if self.entries >= TRAINED || self.models.is_some() {
                    self.flush(true);
                }
                let calls = seq..entry.next_seq;
                let visits = self.walks.get_mut(&thread).map(|walk| walk.before(seq)).unwrap_or_default();
                self.waiting.push(Chunk { thread, window, calls, base_ns, entries: vec![entry], visits });
            }
        }
        self.entries += 1;
    }

    fn flush(&mut self, is_open: bool) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let models = match self.models.take() {
            Some(models) => {
                waiting.iter_mut().for_each(|chunk| self.assign(&models.contexts, chunk));
                models
            }
            None => {
                let contexts = self.contexts(&waiting);
                waiting.iter_mut().for_each(|chunk| self.assign(&contexts, chunk));
                let blocks = waiting.iter().flat_map(|chunk| chunk.entries.chunks(self.block));
                let models = Models::of(contexts, blocks, is_open, self.has_classes);
                models.write(&mut self.head);
                models
            }
        };
        waiting.iter().for_each(|chunk| self.chunk(&models, chunk));
        self.models = Some(models);
        self.entries = 0;
    }

    fn signature(&self, thread: u32, terminal: u32) -> Option<&Signature> {
        self.signatures.get(&thread)?.get(terminal as usize)
    }

    /// Contexts of these chunks' calls; terminals of threads that share a number share its context.
    fn contexts(&self, chunks: &[Chunk]) -> Contexts {
        let mut functions: FxHashMap<u32, u16> = FxHashMap::default();
        for chunk in chunks {
            for entry in &chunk.entries {
                let function = || self.signature(chunk.thread, entry.terminal).map_or(0, |own| own.function);
                functions.entry(entry.terminal).or_insert_with(function);
            }
        }
        let entries = chunks.iter().flat_map(|chunk| &chunk.entries);
        Contexts::of(entries, |terminal| functions.get(&terminal).copied().unwrap_or(0))
    }

    fn assign(&self, contexts: &Contexts, chunk: &mut Chunk) {
        for entry in &mut chunk.entries {
            let function = self.signature(chunk.thread, entry.terminal).map_or(0, |own| own.function);
            entry.context = contexts.context(entry.terminal, function);
        }
    }

    fn chunk(&mut self, models: &Models, chunk: &Chunk) {
        let signatures = self.signatures.get(&chunk.thread).copied().unwrap_or_default();
        let signature = |terminal: u32| signatures.get(terminal as usize);
        let function = |entry: &Entry| signature(entry.terminal).map_or(0, |own| own.function);
        let mut calls: BTreeMap<u16, u64> = BTreeMap::new();
        for entry in &chunk.entries {
            let sum = calls.entry(function(entry)).or_default();
            *sum = sum.saturating_add(entry.count.max(1));
        }
        let functions: Vec<u16> = calls.keys().copied().collect();
        let mut blocks = Vec::new();
        put(&mut blocks, functions.len() as u64);
        for (function, calls) in calls {
            put(&mut blocks, function.into());
            put(&mut blocks, calls);
        }
        let begin = self.payload.len();
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        let (mut base_ns, mut seq) = (chunk.base_ns, chunk.calls.start);
        for entries in chunk.entries.chunks(self.block) {
            let from = self.payload.len();
            models.encode(&mut self.encoder, entries, &mut self.payload);
            let (mut own_low, mut own_high, mut end_ns) = (i64::MAX, i64::MIN, base_ns);
            let mut sums = vec![0u64; functions.len()];
            for entry in entries {
                let start_ns = end_ns.wrapping_add(crate::varint::unzigzag(entry.gap));
                end_ns = end(start_ns, entry.duration_ns);
                own_low = own_low.min(start_ns);
                own_high = own_high.max(end_ns).max(start_ns.saturating_add_unsigned(entry.duration_ns));
                if let Ok(at) = functions.binary_search(&function(entry)) {
                    sums[at] = sums[at].saturating_add(entry.duration_ns);
                }
            }
            put(&mut blocks, (self.payload.len() - from) as u64);
            put_signed(&mut blocks, end_ns.wrapping_sub(base_ns));
            put_signed(&mut blocks, own_low.wrapping_sub(base_ns));
            let next_seq = entries.last().map_or(seq, |entry| entry.next_seq);
            put(&mut blocks, (next_seq - seq).saturating_sub(entries.len() as u64));
            seq = next_seq;
            put_signed(&mut blocks, own_high.wrapping_sub(end_ns));
            sums.iter().for_each(|&sum| put(&mut blocks, sum));
            (low, high, base_ns) = (low.min(own_low), high.max(own_high), end_ns);
        }
        let unfinished = |entry: &Entry| {
            signature(entry.terminal).is_none_or(|signature| signature.flags & CALL_UNFINISHED != 0)
        };
        let is_unfinished = chunk.entries.iter().any(unfinished);
        let groups = Some(groups(&chunk.entries))
            .filter(|groups| groups.len() * GROUPED <= self.payload.len() - begin)
            .unwrap_or_default();
        let sums = Some(self.sums(&chunk.entries, signatures))
            .filter(|sums| sums.len() * SUMMED <= self.payload.len() - begin)
            .unwrap_or_default();
        let meta = &mut self.meta;
        put(meta, u64::from(chunk.thread) << 1 | u64::from(is_unfinished));
        put_signed(meta, chunk.window.wrapping_sub(self.before.0) as i64);
        put_signed(meta, chunk.calls.start.wrapping_sub(self.before.1) as i64);
        put(meta, chunk.calls.end - chunk.calls.start);
        put_signed(meta, chunk.base_ns.wrapping_sub(self.before.2));
        put(meta, chunk.entries.len() as u64);
        put_signed(meta, low.wrapping_sub(chunk.base_ns));
        put_signed(meta, high.wrapping_sub(base_ns));
        put_signed(meta, base_ns.wrapping_sub(chunk.base_ns));
        for part in [&groups, &sums, &chunk.visits, &blocks] {
            put(meta, part.len() as u64);
            meta.extend(part);
        }
        put(meta, (self.payload.len() - begin) as u64);
        self.before = (chunk.window, chunk.calls.end, base_ns);
    }

    /// Calls, times and errors of these entries by function and site, each by one of its terminals; and bytes, where there
    /// are classes.
    fn sums(&self, entries: &[Entry], signatures: &[Signature]) -> Vec<u8> {
        let mut sums: FxHashMap<(u16, u32), Sum> = FxHashMap::default();
        for entry in entries {
            let own = signatures.get(entry.terminal as usize);
            let place = own.map_or((0, 0), |own| (own.function, own.site));
            let none = Sum { terminal: entry.terminal, bytes: Some(0), ..Sum::default() };
            let sum = sums.entry(place).or_insert(none);
            let calls = entry.count.max(1);
            sum.calls = sum.calls.saturating_add(calls);
            sum.duration_ns = sum.duration_ns.saturating_add(entry.duration_ns);
            sum.error_ns += self.settings.map_or(0.0, |settings| settings.error_ns(entry.duration_ns as f64));
            let bytes = own.and_then(|own| own.words.first()).map(|bytes| bytes.saturating_mul(calls));
            sum.bytes = sum.bytes.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
        }
        let mut sums: Vec<_> = sums.into_values().collect();
        sums.sort_unstable_by_key(|sum| sum.terminal);
        let (mut out, mut before) = (Vec::new(), 0);
        put(&mut out, sums.len() as u64);
        for Sum { terminal, calls, bytes, duration_ns, error_ns } in sums {
            put(&mut out, u64::from(terminal - before));
            put(&mut out, calls);
            put(&mut out, duration_ns);
            out.extend(error_ns.to_bits().to_le_bytes());
            if self.has_classes {
                // Too large a sum is not known.
                put(&mut out, bytes.and_then(|bytes| bytes.checked_add(1)).unwrap_or(0));
            }
            before = terminal;
        }
        out
    }

    fn finish(mut self) -> Vec<u8> {
        self.flush(false);
        let mut bytes = self.head;
        put(&mut bytes, self.meta.len() as u64);
        bytes.extend(self.meta);
        bytes.extend(self.payload);
        bytes
    }
}

/// The calls by signature, count and duration.
fn groups(entries: &[Entry]) -> Vec<u8> {
    let mut times: FxHashMap<(u32, u64, u64), u64> = FxHashMap::default();
    for entry in entries {
        *times.entry((entry.terminal, entry.count, entry.duration_ns)).or_default() += 1;
    }
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_unstable();
    let mut out = Vec::new();
    put(&mut out, times.len() as u64);
    let mut before = (0u32, 0u64);
    for ((terminal, count, duration_ns), times) in times {
        let more = terminal - before.0;
        // A count of 1 takes no byte.
        put(&mut out, u64::from(more) << 1 | u64::from(count != 1));
        if count != 1 {
            put(&mut out, count);
        }
        put_signed(&mut out, duration_ns.wrapping_sub(before.1) as i64);
        put(&mut out, times);
        before = (terminal, duration_ns);
    }
    out
}
