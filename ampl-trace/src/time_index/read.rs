//! Indexes read back.

use std::ops::Range;
use std::rc::Rc;

use super::ans::Decoder;
use super::models::{Levels, Models};
use super::visits::Visits;
use super::write::{RANK_HEAD_BYTES, end};
use super::{CHUNK, Classes, MAGIC, folds};
use crate::structure::RankStructure;
use crate::timed::{Numbers, Position};
use crate::timing::Settings;
use crate::varint::{Reader, unzigzag};

/// The beginning of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Identity of the trace that it is of.
    pub identity: u64,
}

impl Header {
    /// Bytes of it.
    pub const BYTES: usize = 16;

    /// The header in `bytes`; `None` where they are of no index of this version.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let identity = u64::from_le_bytes(*rest.first_chunk()?);
        (*magic == MAGIC).then_some(Self { identity })
    }
}

/// Iterator over the ranks of an index, and where their bytes and checksums are. It ends where the bytes are cut off.
#[derive(Debug)]
pub struct Sections<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Sections<'a> {
    /// The ranks of the index in `bytes`.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, at: Header::BYTES }
    }
}

impl Iterator for Sections<'_> {
    /// Rank, its bytes, their CRC-32.
    type Item = (u32, Range<usize>, u32);

    fn next(&mut self) -> Option<Self::Item> {
        let head = self.bytes.get(self.at..)?.first_chunk::<RANK_HEAD_BYTES>()?;
        let number =
            |from: usize| u32::from_le_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
        let length = u64::from(number(4)) | u64::from(number(8)) << 32;
        let from = self.at + head.len();
        let until = from.checked_add(usize::try_from(length).ok()?).filter(|&end| end <= self.bytes.len())?;
        self.at = until;
        Some((number(0), from..until, number(12)))
    }
}

/// Index of a rank's times.
#[derive(Debug)]
pub struct RankIndex<'a> {
    settings: Settings,
    classes: Option<Classes>,
    models: Models,
    chunks: Vec<Chunk<'a>>,
}

/// Stored calls of one window of one thread.
#[derive(Clone, Debug)]
pub struct Chunk<'a> {
    /// The thread.
    pub thread: u32,
    /// Number of the window.
    pub window: u64,
    /// Numbers of its calls, and of calls among them that have no times.
    pub calls: Range<u64>,
    /// Start of the first call.
    pub low_ns: i64,
    /// End of the last.
    pub high_ns: i64,
    /// True where a call among them has not returned.
    pub is_unfinished: bool,
    entries: usize,
    /// Entries of a block that is full.
    block: usize,
    base_ns: i64,
    /// True where classes stand for signatures.
    has_classes: bool,
    groups: &'a [u8],
    sums: &'a [u8],
    visits: &'a [u8],
    blocks: &'a [u8],
    payload: &'a [u8],
}

/// Calls of a function at a site.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    /// One of their signatures, or classes.
    pub terminal: u32,
    /// Number of them.
    pub calls: u64,
    /// Bytes that they move, where there are classes and these are known.
    pub bytes: Option<u64>,
    /// Time in them.
    pub duration_ns: u64,
    /// Largest error of it.
    pub error_ns: f64,
}

/// Calls alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Their signature, or class.
    pub terminal: u32,
    /// Duration of each.
    pub duration_ns: u64,
    /// Calls that each stands for: failed polls in a row.
    pub count: u64,
    /// Number of them.
    pub times: u64,
}

/// A stored call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its signature; its class where these are read.
    pub terminal: u32,
    /// Start, nanoseconds since T0.
    pub start_ns: i64,
    /// Duration.
    pub duration_ns: u64,
    /// Calls that it stands for.
    pub count: u64,
}

/// Stored calls of a chunk in a row.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Start of the first call.
    pub low_ns: i64,
    /// End of the last.
    pub high_ns: i64,
    thread: u32,
    first_seq: u64,
    entries: usize,
    base_ns: i64,
    payload: &'a [u8],
}

/// Reads stored calls, whose signatures the structure has. Fast where it is asked in the order of the chunks.
#[derive(Debug)]
pub struct CallReader<'a> {
    models: &'a Models,
    /// Positions in the threads, and contexts and folding by terminal; none where classes are read.
    threads: Vec<(Position<'a>, Vec<(u16, bool)>)>,
    /// Contexts and folding by class.
    classes: Vec<(u16, bool)>,
}

impl CallReader<'_> {
    /// Passes the calls of `chunk` to `each`, in their order; `None` where they cannot be read.
    pub fn chunk(&mut self, chunk: &Chunk<'_>, mut each: impl FnMut(Call)) -> Option<()> {
        let mut whole = Some(());
        chunk.blocks(|block, _| whole = whole.and_then(|()| self.block(block, &mut each)))?;
        whole
    }

    /// Passes the calls of `block` to `each`, in their order; `None` where they cannot be read.
    pub fn block(&mut self, block: &Block<'_>, mut each: impl FnMut(Call)) -> Option<()> {
        if self.threads.is_empty() {
            return self.classes(block, each);
        }
        let mut threads = self.threads.iter_mut();
        let (position, signatures) = threads.find(|(at, _)| at.thread.thread == block.thread)?;
        let mut decoder = Decoder::new(block.payload)?;
        let (mut end_ns, mut seq) = (block.base_ns, block.first_seq);
        if position.seq > seq {
            position.rewind();
        }
        let mut levels = Levels::default();
        for _ in 0..block.entries {
            let terminal = position.seek(seq)?.number;
            let &(context, folds) = match self.models.has_classes {
                true => self.classes.get(self.models.take_class(&mut decoder, &levels)? as usize)?,
                false => signatures.get(terminal as usize)?,
            };
            let (gap, duration_ns, count) = self.models.take(&mut decoder, &mut levels, context, folds)?;
            seq = position.seq.saturating_add(count.max(1));
            let start_ns = end_ns.wrapping_add(unzigzag(gap));
            end_ns = end(start_ns, duration_ns);
            each(Call { terminal, start_ns, duration_ns, count });
        }
        Some(())
    }

    /// The same by class: no structure is read.
    fn classes(&self, block: &Block<'_>, mut each: impl FnMut(Call)) -> Option<()> {
        let mut decoder = Decoder::new(block.payload)?;
        let (mut end_ns, mut levels) = (block.base_ns, Levels::default());
        for _ in 0..block.entries {
            let terminal = self.models.take_class(&mut decoder, &levels)?;
            let &(context, folds) = self.classes.get(terminal as usize)?;
            let (gap, duration_ns, count) = self.models.take(&mut decoder, &mut levels, context, folds)?;
            let start_ns = end_ns.wrapping_add(unzigzag(gap));
            end_ns = end(start_ns, duration_ns);
            each(Call { terminal, start_ns, duration_ns, count });
        }
        Some(())
    }
}

/// A signed number; wraps where an index is of no encoder.
pub(super) fn signed(reader: &mut Reader<'_>) -> Option<i64> {
    reader.get().map(unzigzag)
}

impl<'a> RankIndex<'a> {
    /// True where the index in `bytes` has classes.
    pub fn has_classes(bytes: &[u8]) -> bool {
        head(bytes).is_some_and(|(.., classes, _)| !classes.is_empty())
    }

    /// The index in `bytes`; `None` where they are none.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (settings, block, classes, rest) = head(bytes)?;
        let mut reader = Reader::new(rest);
        let has_classes = !classes.is_empty();
        let classes = match has_classes {
            true => Some(Classes::read(classes)?),
            false => None,
        };
        let models = Models::read(&mut reader, has_classes)?;
        let meta = take(&mut reader)?;
        let mut payload = &rest[reader.position()..];
        let mut reader = Reader::new(meta);
        let mut chunks = Vec::new();
        let (mut window, mut seq, mut base) = (0u64, 0u64, 0i64);
        while !reader.is_empty() {
            let thread = reader.get()?;
            window = window.wrapping_add_signed(signed(&mut reader)?);
            let first = seq.wrapping_add_signed(signed(&mut reader)?);
            seq = first.checked_add(reader.get()?)?;
            let base_ns = base.wrapping_add(signed(&mut reader)?);
            let entries = usize::try_from(reader.get()?).ok().filter(|&entries| entries <= CHUNK)?;
            let low_ns = base_ns.wrapping_add(signed(&mut reader)?);
            let high = signed(&mut reader)?;
            base = base_ns.wrapping_add(signed(&mut reader)?);
            let (groups, sums) = (take(&mut reader)?, take(&mut reader)?);
            let (visits, blocks) = (take(&mut reader)?, take(&mut reader)?);
            let own;
            (own, payload) = payload.split_at_checked(usize::try_from(reader.get()?).ok()?)?;
            chunks.push(Chunk {
                thread: u32::try_from(thread >> 1).ok()?,
                window,
                calls: first..seq,
                low_ns,
                high_ns: base.wrapping_add(high),
                is_unfinished: thread & 1 == 1,
                entries,
                block,
                base_ns,
                has_classes,
                groups,
                sums,
                visits,
                blocks,
                payload: own,
            });
        }
        Some(Self { settings, classes, models, chunks })
    }

    /// Settings that the times were kept with.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Classes of the calls, where the index has them.
    pub fn classes(&self) -> Option<&Classes> {
        self.classes.as_ref()
    }

    /// The chunks, in the order of the times.
    pub fn chunks(&self) -> &[Chunk<'a>] {
        &self.chunks
    }

    /// A reader of the calls, of the rank with that structure.
    pub fn reader<'b>(&'b self, structure: &'b RankStructure) -> CallReader<'b> {
        let threads = structure.threads.iter().map(|thread| {
            let contexts = self.models.contexts.by_terminal(&thread.signatures);
            let folding = contexts.into_iter().zip(thread.signatures.iter().map(folds));
            (Position::new(thread, Rc::new(Numbers::of(&thread.signatures))), folding.collect())
        });
        CallReader { threads: threads.collect(), ..self.class_reader() }
    }

    /// A reader of the calls by class, where the index has classes.
    pub fn class_reader(&self) -> CallReader<'_> {
        let classes = self.classes.as_ref().map_or(&[][..], |classes| classes.signatures());
        let contexts = self.models.contexts.by_terminal(classes);
        let classes = contexts.into_iter().zip(classes.iter().map(folds)).collect();
        CallReader { models: &self.models, threads: Vec::new(), classes }
    }
}

/// Settings, entries of a block, classes, and what is behind them.
fn head(bytes: &[u8]) -> Option<(Settings, usize, &[u8], &[u8])> {
    let (error, rest) = bytes.split_first_chunk::<8>()?;
    let mut reader = Reader::new(rest);
    let error = f64::from_bits(u64::from_le_bytes(*error));
    let settings = Settings { error, floor_ns: reader.get()? };
    let block = usize::try_from(reader.get()?).ok().filter(|&block| (1..=CHUNK).contains(&block))?;
    let classes = take(&mut reader)?;
    Some((settings, block, classes, &rest[reader.position()..]))
}

pub(super) fn take<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    let length = usize::try_from(reader.get()?).ok()?;
    reader.take(length)
}

fn functions(reader: &mut Reader<'_>) -> Option<Vec<(u16, u64)>> {
    let mut functions = Vec::new();
    for _ in 0..reader.get()? {
        functions.push((u16::try_from(reader.get()?).ok()?, reader.get()?));
    }
    Some(functions)
}

impl<'a> Chunk<'a> {
    /// True where its calls are known without reading each.
    pub fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// Passes calls alike to `each`; `None` where they cannot be read.
    pub fn groups(&self, mut each: impl FnMut(Group)) -> Option<()> {
        let mut reader = Reader::new(self.groups);
        let groups = reader.get()?;
        let (mut terminal, mut duration_ns) = (0u32, 0u64);
        for _ in 0..groups {
            let head = reader.get()?;
            terminal = terminal.checked_add(u32::try_from(head >> 1).ok()?)?;
            let count = if head & 1 == 1 { reader.get()? } else { 1 };
            duration_ns = duration_ns.wrapping_add_signed(signed(&mut reader)?);
            each(Group { terminal, duration_ns, count, times: reader.get()? });
        }
        Some(())
    }

    /// Its calls by function and site; `None` where they have to be read one by one.
    pub fn sums(&self) -> Option<Vec<Sum>> {
        let mut reader = Reader::new(self.sums);
        let (mut sums, mut terminal) = (Vec::new(), 0u32);
        for _ in 0..reader.get()? {
            terminal = terminal.checked_add(u32::try_from(reader.get()?).ok()?)?;
            let (calls, duration_ns) = (reader.get()?, reader.get()?);
            let error = u64::from_le_bytes(*reader.take(8)?.first_chunk()?);
            let bytes = if self.has_classes { reader.get()?.checked_sub(1) } else { None };
            sums.push(Sum { terminal, calls, bytes, duration_ns, error_ns: f64::from_bits(error) });
        }
        Some(sums)
    }

    /// Visits of regions before its calls; `None` where they are not known.
    pub fn visits(&self) -> Option<Visits> {
        Visits::read(self.visits)
    }

    /// Its functions, and the calls of each; `None` where they cannot be read.
    pub fn functions(&self) -> Option<Vec<(u16, u64)>> {
        functions(&mut Reader::new(self.blocks))
    }

    /// True where all calls of its numbers have times; `None` where that cannot be read.
    pub fn is_dense(&self) -> Option<bool> {
        let calls = self.functions()?.iter().fold(0u64, |sum, (_, calls)| sum.saturating_add(*calls));
        Some(calls == self.calls.end.saturating_sub(self.calls.start))
    }

    /// Passes its blocks to `each`, with the time of each function in them; `None` where they cannot be read.
    pub fn blocks(&self, mut each: impl FnMut(&Block<'a>, &[(u16, u64)])) -> Option<()> {
        let mut reader = Reader::new(self.blocks);
        let mut sums = functions(&mut reader)?;
        let (mut left, mut base_ns, mut payload) = (self.entries, self.base_ns, self.payload);
        let mut first_seq = self.calls.start;
        while left > 0 {
            let length = usize::try_from(reader.get()?).ok()?;
            let end_ns = base_ns.wrapping_add(signed(&mut reader)?);
            let low_ns = base_ns.wrapping_add(signed(&mut reader)?);
            let more = reader.get()?;
            let high_ns = end_ns.wrapping_add(signed(&mut reader)?);
            for (_, sum) in &mut sums {
                *sum = reader.get()?;
            }
            let own;
            (own, payload) = payload.split_at_checked(length)?;
            let entries = left.min(self.block);
            each(
                &Block { low_ns, high_ns, thread: self.thread, first_seq, entries, base_ns, payload: own },
                &sums,
            );
            (left, base_ns) = (left - entries, end_ns);
            first_seq = first_seq.checked_add(entries as u64)?.checked_add(more)?;
        }
        Some(())
    }
}
