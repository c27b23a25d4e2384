//! A thread's unrecorded calls in its journal.
//!
//! The agent notes them in a table, and puts the table's contents into a sequence of their own where calls are recorded
//! again. A process that dies leaves its last ones in the table. Every call that was counted and is in neither
//! sequence is added behind them here, so that all of them add up whenever the journal is read.

use std::collections::BTreeMap;

use ampl_core::mpi::{Class, FUNCTION_COUNT, Function};

use super::clock::Clock;
use super::sequence;
use crate::gaps::{Reason, Span, ThreadGaps, Unrecorded};
use crate::grammar::Builder;
use crate::journal::{Block, BlockKind, SITE_WORDS, gap};
use crate::record::{GAP_REST, Record};
use crate::structure::ThreadStructure;

/// Records about a thread's gaps.
#[derive(Debug, Default)]
pub struct Records {
    /// Kinds of unrecorded calls; sites are still indices in the thread's table.
    kinds: Vec<Unrecorded>,
    spans: Vec<Span>,
    rest: Option<Span>,
}

impl Records {
    /// Takes the record of a kind of unrecorded calls; `None` if it is too short.
    pub fn unrecorded(&mut self, record: Record<'_>) -> Option<()> {
        let &[site] = record.words().first_chunk()?;
        let reason = Reason::from_number(record.flags.into());
        self.kinds.push(Unrecorded { function: record.function, site: site as u32, reason });
        Some(())
    }

    /// Takes the record of a gap's moments; `None` if it is too short.
    pub fn span(&mut self, record: Record<'_>, clock: Clock) -> Option<()> {
        let &[seq, from, until, reasons] = record.words().first_chunk()?;
        let (from_ns, until_ns) = (clock.instant(from), clock.instant(until));
        let span = Span { seq, from_ns, until_ns, reasons: reasons as u16 };
        match record.flags & GAP_REST {
            0 => self.spans.push(span),
            _ => self.rest = Some(span),
        }
        Some(())
    }
}

/// A thread's journal, and what else is known of its unrecorded calls.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its blocks.
    pub blocks: &'a [Block<'a>],
    /// Its recorded calls.
    pub structure: &'a ThreadStructure,
    /// The function that it is in, if any.
    pub inside: Option<u16>,
    /// True where a part of the journal was in memory that is gone.
    pub cut: bool,
    /// Reason of calls that nothing else is known of.
    pub otherwise: Reason,
    /// The latest moment that is known, ticks.
    pub latest: u64,
    /// Conversion of ticks.
    pub clock: Clock,
}

/// The gaps of a thread with these `records`, its calls by function, and the damage found. `stored` is the number of a
/// site by its index in the thread's table.
pub fn read(
    records: Records,
    source: Source<'_>,
    stored: impl Fn(u32) -> u32,
) -> (ThreadGaps, Vec<u64>, Option<&'static str>) {
    let Source { blocks, structure, .. } = source;
    let Records { mut kinds, mut spans, rest } = records;
    kinds.iter_mut().for_each(|kind| kind.site = stored(kind.site));
    let kept = [BlockKind::GapSnapshot, BlockKind::GapLog];
    let (sequence, damage) = sequence::grammar(blocks, kept, kinds.len(), source.cut);
    let mut known = vec![0u64; FUNCTION_COUNT];
    let mut add = |function: u16, calls: u64| {
        if let Some(sum) = known.get_mut(usize::from(function)) {
            *sum = sum.saturating_add(calls);
        }
    };
    for (terminal, calls) in structure.grammar.totals() {
        if let Some(signature) = structure.signatures.get(terminal as usize) {
            add(signature.function, calls);
        }
    }
    for (kind, calls) in sequence.totals() {
        if let Some(kind) = kinds.get(kind as usize) {
            add(kind.function, calls);
        }
    }
    // Last: a process that is alive counts each call before it is in a sequence.
    let mut counted = counts(blocks);
    counted.iter_mut().zip(&known).for_each(|(counted, &known)| *counted = (*counted).max(known));
    let missing = |function: usize| {
        let only = Function(function as u16).spec().class == Class::CountOnly;
        if only { 0 } else { counted[function] - known[function] }
    };
    let missing: BTreeMap<u16, u64> = (0..FUNCTION_COUNT)
        .map(|function| (function as u16, missing(function)))
        .filter(|own| own.1 > 0)
        .collect();
    let mut gaps = ThreadGaps { thread: structure.thread, kinds, sequence, ..ThreadGaps::default() };
    if !missing.is_empty() {
        let table = Table::of(blocks);
        let found = attribute(missing, &table, &source, stored);
        let reasons = found.iter().fold(0, |all, (kind, _)| all | kind.reason.bit());
        append(&mut gaps, &found);
        if let Some((from, until)) = table.moments {
            let until =
                until.max(from).max(if reasons & Reason::Overhead.bit() != 0 { source.latest } else { 0 });
            let moments = [from, until].map(|ticks| source.clock.instant(ticks));
            spans.push(Span {
                seq: structure.grammar.len(),
                from_ns: moments[0],
                until_ns: moments[1],
                reasons,
            });
        }
    }
    // Records of a damaged journal may be out of order.
    spans.sort_by_key(|span| span.seq);
    // Gaps behind the last call that is recorded are one.
    let calls = structure.grammar.len();
    spans.retain(|span| span.seq <= calls);
    (gaps.spans, gaps.rest) = (spans, rest.filter(|rest| rest.seq <= calls));
    (gaps, counted, damage)
}

/// Calls of a thread by function.
fn counts(blocks: &[Block<'_>]) -> Vec<u64> {
    let mut counted = vec![0u64; FUNCTION_COUNT];
    for block in blocks.iter().filter(|block| block.kind == BlockKind::Counters) {
        for (sum, &count) in counted.iter_mut().zip(block.words) {
            *sum = sum.saturating_add(u64::from_le_bytes(count));
        }
    }
    counted
}

/// The table of calls since the last recorded one, as the process left it.
struct Table {
    /// Function, address and reason, and the number of calls.
    entries: Vec<(u16, u64, Reason, u64)>,
    /// First moment, and the last that is known; none where the table is empty.
    moments: Option<(u64, u64)>,
    /// Addresses and functions of the thread's sites, by index.
    sites: Vec<(u64, u16)>,
}

impl Table {
    fn of(blocks: &[Block<'_>]) -> Self {
        let number = |word: &[u8; 8]| u64::from_le_bytes(*word);
        let (mut entries, mut moments) = (Vec::new(), None);
        for block in blocks.iter().filter(|block| block.kind == BlockKind::Gap) {
            let Some((head, places)) = block.words.split_first_chunk::<{ gap::HEAD_WORDS }>() else {
                continue;
            };
            for pair in places.as_chunks::<2>().0.iter().filter(|pair| number(&pair[1]) > 0) {
                let (function, address, reason) = gap::parts(number(&pair[0]));
                entries.push((function, address, Reason::from_number(reason), number(&pair[1])));
            }
            moments = Some((number(&head[gap::FROM]), number(&head[gap::UNTIL])));
        }
        let sites = blocks.iter().filter(|block| block.kind == BlockKind::Sites);
        let sites = sites.flat_map(|block| block.words.as_chunks::<SITE_WORDS>().0);
        let sites = sites.map(|entry| (number(&entry[0]), number(&entry[1]) as u16)).collect();
        Self { moments: moments.filter(|_| !entries.is_empty()), entries, sites }
    }

    /// Index in the thread's table of the site of calls of `function` that return to `address`; 0 where not known.
    fn site(&self, function: u16, address: u64) -> u32 {
        let position = self.sites.iter().skip(1).position(|&site| site == (address, function));
        position.filter(|_| address != 0).map_or(0, |index| index as u32 + 1)
    }
}

/// Sites and reasons of the `missing` calls, as far as they are known.
fn attribute(
    missing: BTreeMap<u16, u64>,
    table: &Table,
    source: &Source<'_>,
    stored: impl Fn(u32) -> u32,
) -> Vec<(Unrecorded, u64)> {
    let mut found = Vec::new();
    for (function, mut calls) in missing {
        let own = || table.entries.iter().filter(|entry| entry.0 == function);
        let in_table = own().fold(0u64, |sum, entry| sum.saturating_add(entry.3));
        if in_table <= calls {
            for &(_, address, reason, number) in own() {
                let site = stored(table.site(function, address));
                found.push((Unrecorded { function, site, reason }, number));
            }
            calls -= in_table;
        } else if let Some(&(_, _, reason, _)) = own().next() {
            // A part of the table was in the sequence already.
            found.push((Unrecorded { function, site: 0, reason }, std::mem::take(&mut calls)));
        }
        let inside = u64::from(source.inside == Some(function)).min(calls);
        for (reason, number) in [(Reason::Unfinished, inside), (source.otherwise, calls - inside)] {
            if number > 0 {
                found.push((Unrecorded { function, site: 0, reason }, number));
            }
        }
    }
    found
}

/// Puts `calls` behind the unrecorded calls of a thread.
fn append(gaps: &mut ThreadGaps, calls: &[(Unrecorded, u64)]) {
    let mut builder = Builder::restore(&gaps.sequence);
    for &(kind, number) in calls {
        let known = gaps.kinds.iter().position(|own| *own == kind);
        let terminal = known.unwrap_or_else(|| {
            gaps.kinds.push(kind);
            gaps.kinds.len() - 1
        });
        builder.push(terminal as u32, number);
    }
    gaps.sequence = builder.into_grammar();
}
