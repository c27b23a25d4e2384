//! A thread's records on their way into the journal.
//!
//! Times of calls go straight into the stream, or into the [buffer](crate::pending) while their window is undecided;
//! everything else goes into the stream.

use std::io;
use std::sync::Arc;

use ampl_core::units::WindowId;
use ampl_trace::gaps::Reason;
use ampl_trace::journal::BlockKind;
use ampl_trace::record::{CALL_MISS, CALL_WORDS, Kind, SIGNATURE_WAY, header, put_text};
use ampl_trace::timing::Settings;

use crate::cursor::Cursor;
use crate::journal::{Journal, Need};
use crate::map::MappedBlock;
use crate::pending::Pending;
use crate::pricing::Pricing;

const FIRST_BLOCK_WORDS: usize = 4088;
const LARGEST_BLOCK_WORDS: usize = (1 << 17) - 8;

/// Appends records; each is visible to readers once it is whole.
#[derive(Debug)]
pub struct Stream {
    journal: Arc<Journal>,
    thread: u32,
    /// Cursor of the stream, then of the buffer.
    cursors: [Cursor; 2],
    pending: Pending,
    /// True while calls go into the buffer.
    buffers: bool,
    /// Records of calls so far; copies out of the buffer are not made again.
    calls: u64,
    full: bool,
    /// Prices of kept calls, where the plan needs them.
    pricing: Option<Box<Pricing>>,
    /// Start, in the stream's block, of the words without a price.
    unpriced: usize,
}

/// The times of a call, to be recorded.
#[derive(Clone, Copy, Debug)]
pub struct CallTimes {
    /// Its terminal.
    pub terminal: u32,
    /// Call flags of [`ampl_trace::record`].
    pub flags: u8,
    /// Entry, ticks.
    pub start: u64,
    /// Time inside, ticks.
    pub duration: u64,
}

impl Stream {
    /// A stream for `thread` with its first block; `prices` is the precision of stored times, where calls are priced.
    ///
    /// # Errors
    /// Errors of the file system, when it is full.
    pub fn new(journal: Arc<Journal>, thread: u32, prices: Option<Settings>) -> io::Result<Self> {
        let block = journal.block(Need::Basic, BlockKind::Stream, thread, FIRST_BLOCK_WORDS)?;
        let none = MappedBlock { head: &[], words: &mut [] };
        let cursors = [block, none].map(|block| Cursor { block, at: 0, last_miss: None });
        let pending = Pending::new(journal.clone(), thread);
        let pricing = prices.map(|prices| Box::new(Pricing::new(prices, thread, journal.nanos_per_tick())));
        Ok(Self {
            journal,
            thread,
            cursors,
            pending,
            buffers: false,
            calls: 0,
            full: false,
            pricing,
            unpriced: 0,
        })
    }

    /// True once the journal could not grow: records are lost from then on.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Records of calls so far.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// True where calls are priced.
    pub fn has_price(&self) -> bool {
        self.pricing.is_some()
    }

    /// Bytes in the trace of the `calls` latest records of calls, if their window is kept; and bytes kept since the
    /// last call of this function.
    pub fn cost(&mut self, calls: u64) -> (u64, u64) {
        let Some(pricing) = &mut self.pricing else { return (0, 0) };
        let [stream, buffer] = &self.cursors;
        pricing.take(&stream.block.words[std::mem::replace(&mut self.unpriced, stream.at)..stream.at]);
        let spent = pricing.take_spent();
        if !self.buffers {
            return (spent, spent);
        }
        let from = self.pending.open_from(buffer);
        (pricing.price(&buffer.block.words[from..buffer.at], calls), spent)
    }

    /// Begins `window`, and sets where its calls go; windows that `decided` has decisions for leave the buffer.
    pub fn begin_window(
        &mut self,
        window: WindowId,
        buffered: bool,
        decided: impl FnMut(WindowId) -> Option<bool>,
    ) {
        self.end_buffer(decided);
        self.buffers = buffered;
        self.cursors[1].last_miss = None;
        if buffered {
            self.pending.begin(window, &mut self.cursors[1]);
        }
    }

    /// Ends the window that is being buffered; windows that `decided` has decisions for leave the buffer.
    pub fn end_buffer(&mut self, decided: impl FnMut(WindowId) -> Option<bool>) {
        if self.buffers {
            self.pending.end(&self.cursors[1]);
        }
        self.resolve(decided);
    }

    /// True where the buffer will soon be full.
    pub fn is_crowded(&self) -> bool {
        self.pending.is_crowded()
    }

    /// The oldest window in the buffer.
    pub fn oldest_buffered(&self) -> Option<WindowId> {
        self.pending.oldest()
    }

    /// Takes windows that `decided` has decisions for out of the buffer.
    pub fn resolve(&mut self, decided: impl FnMut(WindowId) -> Option<bool>) {
        let [stream, buffer] = &mut self.cursors;
        let (journal, thread, full) = (&self.journal, self.thread, &mut self.full);
        let price = &mut (&mut self.pricing, &mut self.unpriced);
        let copy = |words: &[u64]| {
            let has_room = !*full
                && (stream.has_room(words.len()) || grow(journal, thread, stream, words.len(), full, price));
            if !has_room {
                return;
            }
            stream.block.words[stream.at..stream.at + words.len()].copy_from_slice(words);
            stream.at += words.len();
            stream.last_miss = None;
            stream.commit();
        };
        self.pending.resolve(buffer, decided, copy);
    }

    /// Decides the window that is being buffered before its end: its calls so far are dropped or kept, and later ones
    /// are not buffered.
    pub fn decide_open(&mut self, kept: bool) {
        self.pending.end(&self.cursors[1]);
        self.buffers = false;
        self.resolve(|_| Some(kept));
    }

    /// Makes sure of room for `words` in the buffer or the stream.
    #[inline]
    fn reserve(&mut self, words: usize, buffered: bool) -> bool {
        // After a record without room, no later one may be stored: it would seem to be the next.
        !self.full
            && (self.cursors[usize::from(buffered)].has_room(words) || self.next_block(words, buffered))
    }

    /// True where a [call](Self::call) needs no new block.
    #[inline(always)]
    pub fn has_room_for_call(&self) -> bool {
        !self.full && self.cursors[usize::from(self.buffers)].has_room(CALL_WORDS)
    }

    #[cold]
    fn next_block(&mut self, words: usize, buffered: bool) -> bool {
        let [stream, buffer] = &mut self.cursors;
        match buffered {
            true => self.pending.next_block(words, buffer),
            false => {
                let price = &mut (&mut self.pricing, &mut self.unpriced);
                grow(&self.journal, self.thread, stream, words, &mut self.full, price)
            }
        }
    }

    /// Asks for where the next call goes.
    #[inline(always)]
    pub fn fetch(&self) {
        self.cursors[usize::from(self.buffers)].fetch();
    }

    /// Appends a call; a failed poll equal to the record before it only raises that one's count. Returns whether
    /// there was room: false where the buffer is full.
    #[inline]
    #[must_use]
    pub fn call(&mut self, call: &CallTimes) -> bool {
        let miss = call.flags & CALL_MISS != 0;
        if miss && self.fold(call) {
            return true;
        }
        if !self.reserve(CALL_WORDS, self.buffers) {
            return !self.buffers || self.full;
        }
        let cursor = &mut self.cursors[usize::from(self.buffers)];
        let Some(room) = cursor.block.words[cursor.at..].first_chunk_mut::<CALL_WORDS>() else { return true };
        let head = header(Kind::Call, call.flags, 0, CALL_WORDS);
        *room = [head, call.start, call.duration, u64::from(call.terminal) | 1 << 32];
        cursor.last_miss = miss.then_some(cursor.at);
        cursor.at += CALL_WORDS;
        self.calls += 1;
        cursor.commit();
        true
    }

    fn fold(&mut self, call: &CallTimes) -> bool {
        let cursor = &mut self.cursors[usize::from(self.buffers)];
        let Some(at) = cursor.last_miss else { return false };
        let record = &mut cursor.block.words[at..at + CALL_WORDS];
        let same = record[3] as u32 == call.terminal && record[3] >> 32 < u64::from(u32::MAX);
        if same {
            record[2] += call.duration;
            record[3] += 1 << 32;
        }
        same
    }

    /// Appends the beginning of a window, where its calls will go.
    pub fn open(&mut self, body: &[u64]) {
        self.append(Kind::Open, (0, 0), &[], body, self.buffers);
    }

    /// Appends a record of `body` words to the stream.
    pub fn record(&mut self, kind: Kind, flags: u8, body: &[u64]) {
        self.append(kind, (flags, 0), &[], body, false);
    }

    /// Appends a call signature; returns true if there was room.
    #[must_use]
    pub fn signature(&mut self, function: u16, flags: u8, (site, way): (u32, u8), words: &[u64]) -> bool {
        let at = u64::from(site) | u64::from(way) << SIGNATURE_WAY;
        let has_room = self.append(Kind::Signature, (flags, function), &[at], words, false);
        if has_room && let Some(pricing) = &mut self.pricing {
            pricing.signature(function);
        }
        has_room
    }

    /// Appends a kind of unrecorded calls; returns true if there was room.
    #[must_use]
    pub fn unrecorded(&mut self, function: u16, site: u32, reason: Reason) -> bool {
        self.append(Kind::Unrecorded, (reason as u8, function), &[], &[site.into()], false)
    }

    /// Appends a record of two parts.
    fn append(
        &mut self,
        kind: Kind,
        (flags, function): (u8, u16),
        front: &[u64],
        back: &[u64],
        buffered: bool,
    ) -> bool {
        let length = 1 + front.len() + back.len();
        if !self.reserve(length, buffered) {
            return false;
        }
        let cursor = &mut self.cursors[usize::from(buffered)];
        let record = &mut cursor.block.words[cursor.at..cursor.at + length];
        record[0] = header(kind, flags, function, length);
        record[1..=front.len()].copy_from_slice(front);
        record[1 + front.len()..].copy_from_slice(back);
        if kind != Kind::Signature {
            cursor.last_miss = None;
        }
        cursor.at += length;
        cursor.commit();
        true
    }

    /// Appends a text record.
    pub fn text(&mut self, flags: u8, text: &str) {
        let mut body = Vec::new();
        put_text(&mut body, text);
        self.record(Kind::Text, flags, &body);
    }
}

/// Prices of kept calls, and the start of the words without a price in a block.
type Priced<'a> = (&'a mut Option<Box<Pricing>>, &'a mut usize);

/// A block for the stream, larger than the last while there is room for more; returns true if there is one.
#[cold]
fn grow(
    journal: &Journal,
    thread: u32,
    stream: &mut Cursor,
    words: usize,
    full: &mut bool,
    (pricing, unpriced): &mut Priced<'_>,
) -> bool {
    let rest = &stream.block.words[std::mem::take(*unpriced)..stream.at];
    if let Some(pricing) = pricing {
        journal.rarely(|| pricing.take(rest));
    }
    let larger = (stream.block.words.len() * 2).min(LARGEST_BLOCK_WORDS).max(words);
    let fits = !journal.is_large() && journal.has_room(larger);
    let next = if fits { larger } else { FIRST_BLOCK_WORDS.max(words) };
    match journal.block(Need::More, BlockKind::Stream, thread, next) {
        Ok(block) => {
            *stream = Cursor { block, at: 0, last_miss: None };
            true
        }
        Err(_) => {
            *full = true;
            journal.lacks();
            false
        }
    }
}
