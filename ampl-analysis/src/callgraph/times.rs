//! Stored times in the order of a thread's calls.

use ampl_reader::selection::Selection;
use ampl_trace::structure::ThreadStructure;
use ampl_trace::timed::Numbers;
use ampl_trace::timing::{Decoder, Terminal, Window};
use rustc_hash::FxHashMap;

use super::dag::{Dag, Facts, NodeId};
use super::names::{Name, NameId};

/// A stored time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Calls that share it.
    pub calls: u64,
    /// Time from the end of the call before it, or from the window's start, as far as it is asked for, nanoseconds.
    pub before_ns: u64,
    /// Its duration, as far as it is asked for, nanoseconds.
    pub duration_ns: u64,
    /// True where it ends in the time asked for, and so counts.
    pub counts: bool,
    /// Design weight of its window.
    pub weight: f64,
}

/// Times of a thread's calls, in the order of the calls.
pub trait Times {
    /// Number of the next call that has one.
    fn next(&self) -> Option<u64>;
    /// The time of the next call that has one, whose terminal is given; `None` where what is stored
    /// is damaged.
    fn take(&mut self, terminal: Terminal) -> Option<Entry>;
    /// The node of the time before `entry`.
    fn outside(&mut self, dag: &mut Dag, entry: &Entry) -> NodeId;
}

/// Times of a rank as they are stored.
pub struct Stored<'a> {
    decoder: Option<Decoder<'a>>,
    window: Window,
    /// Entries of the window that are left, and the number of the call of the next.
    left: u64,
    seq: u64,
    /// End of the call before, nanoseconds since T0.
    end_ns: i64,
    weight: f64,
    weights: &'a FxHashMap<u64, f64>,
    selection: &'a Selection,
    thread: u32,
    numbers: Numbers,
    outside: NameId,
    /// Facts of time outside that were used last: weight, number.
    facts: (u64, u32),
    /// True where times could not be read.
    pub is_damaged: bool,
}

impl<'a> Stored<'a> {
    /// The times in `bytes`. Windows without a weight have the weight 1.
    pub fn new(
        bytes: &'a [u8],
        weights: &'a FxHashMap<u64, f64>,
        selection: &'a Selection,
        dag: &mut Dag,
    ) -> Self {
        let decoder = if bytes.is_empty() { None } else { Decoder::new(bytes).ok() };
        let mut stored = Self {
            is_damaged: decoder.is_none() && !bytes.is_empty(),
            decoder,
            window: Window { thread: u32::MAX, window: 0, first_seq: 0, start_ns: 0 },
            left: 0,
            seq: 0,
            end_ns: 0,
            weight: 1.0,
            weights,
            selection,
            thread: 0,
            numbers: Numbers::default(),
            outside: dag.names_mut().id(Name::Outside),
            facts: (0, u32::MAX),
        };
        stored.advance();
        stored
    }

    /// Goes to the times of `thread`.
    pub fn thread(&mut self, thread: &ThreadStructure) {
        self.thread = thread.thread;
        if self.decoder.is_some() {
            self.numbers = Numbers::of(&thread.signatures);
        }
    }

    /// Goes to the next window with entries.
    fn advance(&mut self) {
        while self.left == 0 {
            let Some(decoder) = &mut self.decoder else { return };
            let Some((window, left)) = decoder.window() else {
                self.decoder = None;
                return;
            };
            (self.window, self.left, self.seq) = (window, left, window.first_seq);
            self.end_ns = window.start_ns;
            self.weight = self.weights.get(&window.window).copied().unwrap_or(1.0);
        }
    }
}

impl Times for Stored<'_> {
    fn next(&self) -> Option<u64> {
        (self.decoder.is_some() && self.window.thread == self.thread).then_some(self.seq)
    }

    fn take(&mut self, terminal: Terminal) -> Option<Entry> {
        let decoder = self.decoder.as_mut()?;
        let number = self.numbers.name(terminal.number);
        let Ok(time) = decoder.call(Terminal { number, ..terminal }) else {
            (self.decoder, self.is_damaged) = (None, true);
            return None;
        };
        let calls = time.count.max(1);
        let end_ns = time.start_ns.saturating_add_unsigned(time.duration_ns);
        let entry = Entry {
            calls,
            before_ns: self.selection.overlap_ns(self.end_ns, time.start_ns),
            duration_ns: self.selection.overlap_ns(time.start_ns, end_ns),
            counts: self.selection.has(end_ns) || !self.selection.cuts_time(),
            weight: self.weight,
        };
        self.end_ns = self.end_ns.max(end_ns);
        self.left -= 1;
        self.seq = self.seq.saturating_add(calls);
        self.advance();
        Some(entry)
    }

    fn outside(&mut self, dag: &mut Dag, entry: &Entry) -> NodeId {
        let weight = entry.weight.to_bits();
        if self.facts.0 != weight || self.facts.1 == u32::MAX {
            self.facts = (weight, dag.facts_id(self.outside, Facts::timed(0, None, entry.weight)));
        }
        dag.put_leaf_of(self.outside, self.facts.1, entry.before_ns)
    }
}
