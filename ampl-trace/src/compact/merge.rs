//! The stored call sequence: the threads' calls in one order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Sites;
use super::clock::Clock;
use crate::record::{Kind, Record, Records, Word};
use crate::varint::{Encoder, zigzag};

/// One thread's calls and beginnings of windows in program order, and how they are stored.
#[derive(Debug)]
pub struct Lane<'a> {
    thread: u32,
    sites: Sites,
    blocks: std::vec::IntoIter<&'a [Word]>,
    records: Records<'a>,
    /// The next record and its start, while other threads come first.
    head: Option<(i64, Record<'a>)>,
}

/// Whether a call's record has all words that every call has.
pub fn is_whole_call(record: Record<'_>) -> bool {
    call(record).is_some()
}

/// Whether a window's beginning is complete.
pub fn is_whole_open(record: Record<'_>) -> bool {
    open(record).is_some()
}

/// Start, duration, site and count; and the arguments.
#[inline]
fn call(record: Record<'_>) -> Option<(&[Word; 3], &[Word])> {
    record.body.split_first_chunk()
}

/// Window, start, probability, update, calls before.
fn open(record: Record<'_>) -> Option<&[Word; 5]> {
    record.body.first_chunk()
}

/// When the call or window of `record` starts; `None` for records without a place in the sequence.
#[inline]
fn start(record: Record<'_>, clock: Clock) -> Option<i64> {
    let ticks = match record.kind {
        Kind::Call => call(record)?.0[0],
        Kind::Open => open(record)?[1],
        _ => return None,
    };
    Some(clock.instant(u64::from_le_bytes(ticks)))
}

impl<'a> Lane<'a> {
    /// The calls of `thread` in its stream's `blocks`.
    pub fn new(thread: u32, sites: Sites, blocks: Vec<&'a [Word]>) -> Self {
        Self { thread, sites, blocks: blocks.into_iter(), records: Records::default(), head: None }
    }

    #[inline(always)]
    fn next(&mut self, clock: Clock) -> Option<(i64, Record<'a>)> {
        loop {
            for record in self.records.by_ref() {
                if let Some(start) = start(record, clock) {
                    return Some((start, record));
                }
            }
            self.records = Records::new(self.blocks.next()?);
        }
    }
}

/// Calls and their times of all `lanes`, as a trace stores them: by start time, then by lane; each
/// lane keeps its own order, whatever its clock says.
pub fn merge(mut lanes: Vec<Lane<'_>>, clock: Clock) -> (Vec<u8>, Vec<u8>) {
    let mut stored = Stored::default();
    let mut heads = BinaryHeap::new();
    for (number, lane) in lanes.iter_mut().enumerate() {
        lane.head = lane.next(clock);
        heads.extend(lane.head.map(|(start, _)| Reverse((start, number))));
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        let others = heads.peek().map(|&Reverse(head)| head);
        let lane = &mut lanes[number];
        let mut next = lane.head.take();
        // As long as it stays ahead of the others: for ever where there is one thread.
        while let Some((start, record)) = next {
            if others.is_some_and(|other| other < (start, number)) {
                heads.push(Reverse((start, number)));
                lane.head = next;
                break;
            }
            stored.push(lane, start, record, clock);
            next = lane.next(clock);
        }
    }
    (stored.calls.into_bytes(), stored.times.into_bytes())
}

#[derive(Debug, Default)]
struct Stored {
    calls: Encoder,
    times: Encoder,
    /// Start of the call before.
    start: i64,
}

impl Stored {
    #[inline(always)]
    fn push(&mut self, lane: &Lane<'_>, start: i64, record: Record<'_>, clock: Clock) {
        let thread = u64::from(lane.thread);
        let Some((&[_, ticks, site], arguments)) = call(record).filter(|_| record.kind == Kind::Call) else {
            let words =
                open(record).map(|&[window, _, _, _, before]| [window, before].map(u64::from_le_bytes));
            let [window, calls_before] = words.unwrap_or_default();
            return self.calls.extend([0, thread, window, calls_before].into_iter());
        };
        let (ticks, site) = (u64::from_le_bytes(ticks), u64::from_le_bytes(site));
        let (site, count) = (lane.sites.stored(site as u32), site >> 32);
        let small = [record.flags.into(), thread, site.into(), count, arguments.len() as u64];
        self.calls.extend_small(u64::from(record.function) + 1, small);
        self.calls.extend_signed(arguments);
        let since = zigzag(start.wrapping_sub(self.start));
        self.times.extend([since, clock.whole_duration(ticks)].into_iter());
        self.start = start;
    }
}
