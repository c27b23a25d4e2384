//! The stored call sequence: the threads' calls in one order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Sites;
use super::clock::Clock;
use crate::record::{Kind, Record, Records, Word};
use crate::varint::{Encoder, zigzag};

/// One thread's events in program order, and how they are stored.
#[derive(Debug)]
pub struct Lane<'a> {
    thread: u32,
    sites: Sites,
    blocks: std::vec::IntoIter<&'a [Word]>,
    records: Records<'a>,
    /// The next event, while other threads come first.
    head: Option<Event<'a>>,
}

/// A record that has a place in the stored call sequence.
#[derive(Clone, Copy, Debug)]
struct Event<'a> {
    start: i64,
    place: Place<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Place<'a> {
    Open { window: u64, calls_before: u64 },
    Call { function: u16, flags: u8, ticks: u64, site: u64, arguments: &'a [Word] },
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
fn call(record: Record<'_>) -> Option<(&[Word; 3], &[Word])> {
    record.body.split_first_chunk()
}

/// Window, start, probability, update, calls before.
fn open(record: Record<'_>) -> Option<&[Word; 5]> {
    record.body.first_chunk()
}

impl<'a> Event<'a> {
    /// `None` for records without a place.
    #[inline]
    fn new(record: Record<'a>, clock: Clock) -> Option<Self> {
        let (start, place) = match record.kind {
            Kind::Call => {
                let (fixed, arguments) = call(record)?;
                let [start, ticks, site] = fixed.map(u64::from_le_bytes);
                let Record { function, flags, .. } = record;
                (start, Place::Call { function, flags, ticks, site, arguments })
            }
            Kind::Open => {
                let [window, start, _probability, _update, calls_before] =
                    open(record)?.map(u64::from_le_bytes);
                (start, Place::Open { window, calls_before })
            }
            _ => return None,
        };
        Some(Self { start: clock.instant(start), place })
    }
}

impl<'a> Lane<'a> {
    /// The calls of `thread` in its stream's `blocks`.
    pub fn new(thread: u32, sites: Sites, blocks: Vec<&'a [Word]>) -> Self {
        Self { thread, sites, blocks: blocks.into_iter(), records: Records::default(), head: None }
    }

    #[inline]
    fn next(&mut self, clock: Clock) -> Option<Event<'a>> {
        loop {
            for record in self.records.by_ref() {
                if let Some(event) = Event::new(record, clock) {
                    return Some(event);
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
        heads.extend(lane.head.map(|head| Reverse((head.start, number))));
    }
    while let Some(Reverse((_, number))) = heads.pop() {
        let others = heads.peek().map(|&Reverse(head)| head);
        let lane = &mut lanes[number];
        let mut next = lane.head.take();
        // As long as it stays ahead of the others: for ever where there is one thread.
        while let Some(event) = next {
            if others.is_some_and(|other| other < (event.start, number)) {
                heads.push(Reverse((event.start, number)));
                lane.head = Some(event);
                break;
            }
            stored.push(lane, event, clock);
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
    #[inline]
    fn push(&mut self, lane: &Lane<'_>, event: Event<'_>, clock: Clock) {
        let thread = u64::from(lane.thread);
        match event.place {
            Place::Open { window, calls_before } => {
                self.calls.extend([0, thread, window, calls_before].into_iter());
            }
            Place::Call { function, flags, ticks, site, arguments } => {
                let (site, count) = (lane.sites.stored(site as u32), site >> 32);
                let length = arguments.len() as u64;
                let small = [flags.into(), thread, site.into(), count, length];
                self.calls.extend_small(u64::from(function) + 1, small);
                self.calls.extend(arguments.iter().map(|&word| zigzag(i64::from_le_bytes(word))));
                let since = zigzag(event.start.wrapping_sub(self.start));
                self.times.extend([since, clock.whole_duration(ticks)].into_iter());
                self.start = event.start;
            }
        }
    }
}
