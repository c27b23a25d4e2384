//! Visits of regions before a chunk: sums of those that have ended, and those that have not.
//!
//! The time of a region in a stretch is that before the stretch's end less that before its beginning; the calls of two
//! chunks have both.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::grammar::Grammar;
use crate::record::CALL_UNFINISHED;
use crate::regions::Edge;
use crate::structure::Signature;
use crate::varint::{Reader, put, put_signed, unzigzag};

/// Regions of a thread.
#[derive(Debug, Default)]
pub struct Regions {
    /// Edges, and numbers of regions, by terminal; `None` for calls.
    edges: Vec<Option<(Edge, u32)>>,
    /// One terminal of each region.
    terminals: Vec<u32>,
    /// True for calls that have not returned, by terminal.
    unfinished: Vec<bool>,
}

impl Regions {
    /// The regions that these signatures are edges of.
    pub fn of(signatures: &[Signature]) -> Self {
        let (mut numbers, mut terminals) = (FxHashMap::default(), Vec::new());
        let edge = |(terminal, own): (u32, &Signature)| {
            let (edge, region) = own.region()?;
            let number = *numbers.entry(region).or_insert_with(|| {
                terminals.push(terminal);
                terminals.len() as u32 - 1
            });
            Some((edge, number))
        };
        let edges = (0..).zip(signatures).map(edge).collect();
        let unfinished = signatures.iter().map(|own| own.flags & CALL_UNFINISHED != 0).collect();
        Self { edges, terminals, unfinished }
    }

    /// A terminal of each region, in the order of their numbers.
    pub fn terminals(&self) -> &[u32] {
        &self.terminals
    }
}

/// Visits of a region that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Number of them.
    pub visits: u64,
    /// Time in them, nanoseconds; of visits in each other, that of the outer one.
    pub inclusive_ns: u64,
    /// The same without regions and calls of MPI in them.
    pub exclusive_ns: u64,
}

/// A visit that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Open {
    region: u32,
    begin_ns: i64,
    /// Time of regions and calls in it.
    inner_ns: u64,
}

/// Visits of a thread's regions up to a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visits {
    ended: Vec<Ended>,
    open: Vec<Open>,
}

impl Visits {
    /// No visits yet.
    pub fn none(regions: &Regions) -> Self {
        Self { ended: vec![Ended::default(); regions.terminals.len()], open: Vec::new() }
    }

    /// Sums by number of the region.
    pub fn ended(&self) -> &[Ended] {
        &self.ended
    }

    /// Takes up an edge, or a call as far as it lies before `until_ns`. Returns false where that is not known: the call has
    /// not returned, and a visit is open.
    #[must_use]
    pub fn step(
        &mut self,
        regions: &Regions,
        terminal: u32,
        start_ns: i64,
        end_ns: i64,
        until_ns: i64,
    ) -> bool {
        match regions.edges.get(terminal as usize).copied().flatten() {
            None if regions.unfinished.get(terminal as usize) == Some(&true) => return self.open.is_empty(),
            None => self.inside(start_ns, end_ns.min(until_ns)),
            Some((Edge::Enter, region)) => self.open.push(Open { region, begin_ns: start_ns, inner_ns: 0 }),
            Some((Edge::Exit, region)) => {
                // Begun before anything was recorded.
                let Some(at) = self.open.iter().rposition(|open| open.region == region) else { return true };
                while self.open.len() > at {
                    self.end(start_ns, true);
                }
            }
        }
        true
    }

    /// True where nothing of a region lies in these calls of the thread with that grammar: none of them is an edge, and no
    /// visit is open.
    pub fn may_pass(&self, regions: &Regions, grammar: &Grammar, calls: Range<u64>) -> bool {
        let is_edge = |terminal: u32| matches!(regions.edges.get(terminal as usize), Some(Some(_)));
        let has_edges = || {
            let counts = grammar.counts_in(std::slice::from_ref(&calls));
            counts.iter().flatten().any(|&(terminal, _)| is_edge(terminal))
        };
        calls.is_empty() || self.open.is_empty() && !has_edges()
    }

    /// Ends all visits; they count where that is the end that they have.
    pub fn end_all(&mut self, end_ns: i64, counts: bool) {
        while !self.open.is_empty() {
            self.end(end_ns, counts);
        }
    }

    fn inside(&mut self, start_ns: i64, end_ns: i64) {
        if let Some(open) = self.open.last_mut().filter(|_| start_ns < end_ns) {
            open.inner_ns = open.inner_ns.saturating_add(end_ns.abs_diff(start_ns));
        }
    }

    fn end(&mut self, end_ns: i64, counts: bool) {
        let Some(Open { region, begin_ns, inner_ns }) = self.open.pop() else { return };
        let recurs = self.open.iter().any(|outer| outer.region == region);
        let nanos = if begin_ns < end_ns { end_ns.abs_diff(begin_ns) } else { 0 };
        self.inside(begin_ns, end_ns);
        let Some(sums) = self.ended.get_mut(region as usize) else { return };
        sums.visits += u64::from(counts);
        if !recurs {
            sums.inclusive_ns = sums.inclusive_ns.saturating_add(nanos);
        }
        sums.exclusive_ns = sums.exclusive_ns.saturating_add(nanos.saturating_sub(inner_ns));
    }

    /// Appends them to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        put(out, self.ended.len() as u64);
        for sums in &self.ended {
            put(out, sums.visits);
            put(out, sums.inclusive_ns);
            put(out, sums.exclusive_ns);
        }
        let mut before = 0;
        for open in &self.open {
            put(out, open.region.into());
            put_signed(out, open.begin_ns.wrapping_sub(before));
            put(out, open.inner_ns);
            before = open.begin_ns;
        }
    }

    /// The visits that [`write`](Self::write) appended; `None` where they are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let (mut ended, mut open) = (Vec::new(), Vec::new());
        for _ in 0..reader.get()? {
            let (visits, inclusive_ns, exclusive_ns) = (reader.get()?, reader.get()?, reader.get()?);
            ended.push(Ended { visits, inclusive_ns, exclusive_ns });
        }
        let mut begin_ns = 0i64;
        while !reader.is_empty() {
            let region = u32::try_from(reader.get()?).ok()?;
            begin_ns = begin_ns.wrapping_add(unzigzag(reader.get()?));
            open.push(Open { region, begin_ns, inner_ns: reader.get()? });
        }
        Some(Self { ended, open })
    }
}
