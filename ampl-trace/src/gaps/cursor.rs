//! The gaps of a thread in the order of its calls.

use super::{Reason, Span, ThreadGaps};
use crate::grammar::Runs;

/// Calls in a row that were counted and not recorded, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Number in the thread's sequence of its first call; the next call's is higher by `calls`.
    pub seq: u64,
    /// The thread.
    pub thread: u32,
    /// Number of calls.
    pub calls: u64,
    /// Reason.
    pub reason: Reason,
    /// Its calls by function and site, in no order; fewer than `calls` where the rest is not known.
    pub parts: Vec<Part>,
    /// First and last moment, nanoseconds since T0, where these are known.
    pub span_ns: Option<(i64, i64)>,
}

/// Unrecorded calls of one function from one site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index in the function table.
    pub function: u16,
    /// Index into [`RankStructure::sites`](crate::structure::RankStructure::sites).
    pub site: Option<u32>,
    /// Number of calls.
    pub calls: u64,
}

/// Position in the unrecorded calls of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    gaps: &'a ThreadGaps,
    runs: Runs<'a>,
    /// The run being read and what is left of it.
    run: (u32, u64),
    /// Spans that are not read.
    spans: &'a [Span],
}

impl<'a> Cursor<'a> {
    /// A cursor before the first gap.
    pub fn new(gaps: &'a ThreadGaps) -> Self {
        Self { gaps, runs: gaps.sequence.runs(), run: (0, 0), spans: &gaps.spans }
    }

    /// The gaps of the next `calls` unrecorded calls, of which the first has the number `seq`: one for each reason.
    pub fn take(&mut self, seq: u64, calls: u64) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let mut left = calls;
        while left > 0 && self.advance() {
            let taken = self.run.1.min(left);
            (self.run.1, left) = (self.run.1 - taken, left - taken);
            self.put(&mut gaps, self.run.0, taken);
        }
        if left > 0 {
            put(&mut gaps, self.gaps.thread, Reason::Unknown, left, None);
        }
        self.finish(&mut gaps, seq, seq.saturating_add(calls));
        gaps
    }

    /// The gaps of all further unrecorded calls, which have the numbers from `seq` on.
    pub fn rest(&mut self, seq: u64) -> Vec<Gap> {
        let mut gaps = Vec::new();
        while self.advance() {
            let (kind, taken) = std::mem::take(&mut self.run);
            self.put(&mut gaps, kind, taken);
        }
        self.finish(&mut gaps, seq, u64::MAX);
        gaps
    }

    /// Makes sure that a run is being read; false at the end.
    fn advance(&mut self) -> bool {
        while self.run.1 == 0 {
            match self.runs.next() {
                Some(run) => self.run = run,
                None => return false,
            }
        }
        true
    }

    /// Adds `calls` calls of that kind.
    fn put(&self, gaps: &mut Vec<Gap>, kind: u32, calls: u64) {
        let kind = self.gaps.kinds.get(kind as usize);
        let reason = kind.map_or(Reason::Unknown, |kind| kind.reason);
        let part = kind.map(|kind| Part { function: kind.function, site: kind.site.checked_sub(1), calls });
        put(gaps, self.gaps.thread, reason, calls, part);
    }

    /// Numbers the gaps of the calls `from` to `until`, and gives them their moments.
    fn finish(&mut self, gaps: &mut [Gap], from: u64, until: u64) {
        let before = self.spans.partition_point(|span| span.seq < from);
        let behind = self.spans.partition_point(|span| span.seq < until);
        // Moments whose calls were not to be found.
        let own = self.spans.get(before..behind).unwrap_or_default();
        self.spans = self.spans.get(behind..).unwrap_or_default();
        let both = |one: (i64, i64), other: (i64, i64)| (one.0.min(other.0), one.1.max(other.1));
        let span = own.iter().map(|span| (span.from_ns, span.until_ns)).reduce(both);
        let mut seq = from;
        for gap in gaps {
            (gap.seq, gap.span_ns) = (seq, span);
            seq = seq.saturating_add(gap.calls);
        }
    }
}

/// Adds `calls` calls to the gap of that reason.
fn put(gaps: &mut Vec<Gap>, thread: u32, reason: Reason, calls: u64, part: Option<Part>) {
    let at = gaps.iter().position(|gap| gap.reason == reason).unwrap_or_else(|| {
        gaps.push(Gap { seq: 0, thread, calls: 0, reason, parts: Vec::new(), span_ns: None });
        gaps.len() - 1
    });
    let gap = &mut gaps[at];
    gap.calls = gap.calls.saturating_add(calls);
    let Some(part) = part else { return };
    match gap.parts.iter_mut().find(|own| (own.function, own.site) == (part.function, part.site)) {
        Some(own) => own.calls = own.calls.saturating_add(calls),
        None => gap.parts.push(part),
    }
}
