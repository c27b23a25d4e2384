//! Calls of one thread by their terminals, with times and gaps: for readers that decode arguments once a terminal.

use std::collections::VecDeque;

use crate::gaps::{Cursor, Gap};
use crate::grammar::Runs;
use crate::model::RankTrace;
use crate::record::{CALL_MISS, GAP};
use crate::structure::{RankStructure, ThreadStructure};
use crate::timed::Numbers;
use crate::timing::{Decoder, Terminal, Time, Window};

/// A call, failed polls in a row, or calls that were counted and not recorded. Regions are passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Calls of one terminal.
    Calls {
        /// Number of the first in the thread's sequence.
        seq: u64,
        /// Index into the thread's signatures.
        terminal: u32,
        /// Number of calls; 1 where times were asked for and stored, but for failed polls.
        count: u64,
        /// Window and time, where those of the window are stored.
        time: Option<(u64, Time)>,
    },
    /// A gap.
    Gap(Gap),
}

/// Entries of times that are read at once. A decoder's models take more memory than these, and most ranks of a large job
/// have fewer.
const AHEAD: usize = 2048;

/// Iterator over the steps of one thread, in memory that depends on its structure only.
#[derive(Debug)]
pub struct Steps<'a> {
    thread: &'a ThreadStructure,
    runs: Runs<'a>,
    /// The run being read, and its calls that are left.
    run: (u32, u64),
    /// Position in the sequence: calls, and edges of regions.
    seq: u64,
    /// Edges of regions up to there.
    regions: u64,
    gaps: Option<Cursor<'a>>,
    /// Gaps that are read and not yet given out, last first.
    pending: Vec<Gap>,
    times: Option<Times<'a>>,
    numbers: Numbers,
    ended: bool,
}

/// Times of a thread's calls.
#[derive(Debug)]
struct Times<'a> {
    /// Times that have been read: number of the call, window, time.
    ready: VecDeque<(u64, u64, Time)>,
    /// Reader of those behind; none where all have been read.
    rest: Option<Box<Reader<'a>>>,
}

/// Reader of a thread's times along its sequence.
#[derive(Debug)]
struct Reader<'a> {
    decoder: Decoder<'a>,
    steps: Steps<'a>,
    window: Window,
    left: u64,
    /// Number of the call of the next entry, or of one behind which a gap has it.
    seq: u64,
}

impl<'a> Times<'a> {
    /// Times of the thread number `index` of `structure`; `None` where there are none.
    fn of(structure: &'a RankStructure, index: usize, bytes: &'a [u8]) -> Option<Self> {
        let mut decoder = Decoder::new(bytes).ok().filter(|_| !bytes.is_empty())?;
        let wanted = structure.threads.get(index)?.thread;
        let mut before: Option<(usize, Steps<'a>)> = None;
        loop {
            let (window, left) = decoder.window()?;
            if window.thread == wanted {
                let steps = Steps::untimed(structure, index)?.numbered();
                let reader = Reader { decoder, steps, window, left, seq: window.first_seq };
                let mut times = Self { ready: VecDeque::new(), rest: Some(Box::new(reader)) };
                // At once: where threads of all ranks are read at the same time, few of their decoders stay.
                times.next_seq();
                return Some(times);
            }
            // The times of a thread before: they must be read to come to those behind.
            let place = structure.threads.iter().position(|thread| thread.thread == window.thread)?;
            let (_, steps) = match &mut before {
                Some(found) if found.0 == place => found,
                other => other.insert((place, Steps::untimed(structure, place)?.numbered())),
            };
            let mut seq = window.first_seq;
            for _ in 0..left {
                let terminal = steps.seek(seq)?;
                let count = decoder.call(terminal).ok()?.count.max(1);
                seq = steps.seq.saturating_add(count);
            }
        }
    }

    /// Number of the next call with a time; `None` behind the last.
    fn next_seq(&mut self) -> Option<u64> {
        if self.ready.is_empty()
            && let Some(mut reader) = self.rest.take()
        {
            self.ready.extend(reader.by_ref().take(AHEAD));
            self.rest = (self.ready.len() == AHEAD).then_some(reader);
        }
        self.ready.front().map(|next| next.0)
    }
}

impl Iterator for Reader<'_> {
    type Item = (u64, u64, Time);

    /// The next entry of the thread; `None` at its end, or where times do not fit the calls.
    fn next(&mut self) -> Option<Self::Item> {
        while self.left == 0 {
            let (window, left) = self.decoder.window()?;
            if window.thread != self.steps.thread.thread {
                return None;
            }
            (self.window, self.left, self.seq) = (window, left, window.first_seq);
        }
        let terminal = self.steps.seek(self.seq)?;
        let time = self.decoder.call(terminal).ok()?;
        self.left -= 1;
        self.seq = self.steps.seq.saturating_add(time.count.max(1));
        Some((self.steps.seq, self.window.window, time))
    }
}

impl<'a> Steps<'a> {
    /// Steps of the thread number `index` of `structure`, without times and with gaps of unknown calls.
    pub fn untimed(structure: &'a RankStructure, index: usize) -> Option<Self> {
        let thread = structure.threads.get(index)?;
        let (pending, runs) = (Vec::new(), thread.grammar.runs());
        let (run, seq, regions, gaps, times, ended) = Default::default();
        let numbers = Numbers::default();
        Some(Self { thread, runs, run, seq, regions, gaps, pending, times, numbers, ended })
    }

    /// The same with the gaps and, where they are asked for, the times of `rank`.
    pub fn new(structure: &'a RankStructure, index: usize, rank: &'a RankTrace, timed: bool) -> Option<Self> {
        let mut steps = Self::untimed(structure, index)?;
        steps.gaps = rank.gaps.thread(steps.thread.thread).map(Cursor::new);
        if timed {
            steps.times = Times::of(structure, index, &rank.times);
        }
        Some(steps)
    }

    /// The same, ready to read times.
    fn numbered(self) -> Self {
        Self { numbers: Numbers::of(&self.thread.signatures), ..self }
    }

    /// Goes to the call with that number, or behind it where a gap has it; returns its terminal.
    fn seek(&mut self, seq: u64) -> Option<Terminal> {
        loop {
            let skipped = seq.saturating_sub(self.seq).min(self.run.1);
            self.run.1 -= skipped;
            self.seq += skipped;
            if self.run.1 == 0 {
                self.run = self.runs.next()?;
                continue;
            }
            let signature = self.thread.signatures.get(self.run.0 as usize)?;
            if signature.function != GAP {
                return Some(self.numbers.terminal(self.run.0, signature));
            }
            self.seq = self.seq.saturating_add(self.run.1);
            self.run.1 = 0;
        }
    }

    /// Reads the gap whose run is being read, which may be several runs.
    fn pass_gap(&mut self) {
        let (terminal, mut calls) = std::mem::take(&mut self.run);
        for run in self.runs.by_ref() {
            if run.0 != terminal {
                self.run = run;
                break;
            }
            calls = calls.saturating_add(run.1);
        }
        let unknown = |seq| Gap {
            seq,
            thread: self.thread.thread,
            calls,
            reason: crate::gaps::Reason::Unknown,
            parts: Vec::new(),
            span_ns: None,
        };
        self.pending = match &mut self.gaps {
            Some(cursor) => cursor.take(self.seq, calls),
            None => vec![unknown(self.seq)],
        };
        self.number_pending();
        self.seq = self.seq.saturating_add(calls);
    }

    /// Numbers the gaps that have just been read among calls, and turns them round.
    fn number_pending(&mut self) {
        self.pending.iter_mut().for_each(|gap| gap.seq = gap.seq.saturating_sub(self.regions));
        self.pending.reverse();
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            if let Some(gap) = self.pending.pop() {
                return Some(Step::Gap(gap));
            }
            if self.ended {
                return None;
            }
            if self.run.1 == 0 {
                match self.runs.next() {
                    Some(run) => self.run = run,
                    None => {
                        self.ended = true;
                        let rest = self.gaps.as_mut().map(|gaps| gaps.rest(self.seq));
                        self.pending = rest.unwrap_or_default();
                        self.number_pending();
                    }
                }
                continue;
            }
            let (terminal, left) = self.run;
            let Some(signature) = self.thread.signatures.get(terminal as usize) else {
                self.ended = true;
                continue;
            };
            if signature.function == GAP {
                self.pass_gap();
                continue;
            }
            let folds = signature.flags & CALL_MISS != 0;
            let at = self.seq;
            let timed = self.times.as_mut().and_then(Times::next_seq);
            let until = timed.map_or(u64::MAX, |seq| seq.saturating_sub(at));
            let stored = self.times.as_mut().filter(|_| until == 0).and_then(|times| times.ready.pop_front());
            let (count, time) = match stored {
                Some((_, window, time)) => {
                    (if folds { time.count.clamp(1, left) } else { 1 }, Some((window, time)))
                }
                None => (left.min(until.max(1)), None),
            };
            self.run.1 -= count;
            self.seq = at.saturating_add(count);
            if signature.is_region() {
                self.regions += count;
                continue;
            }
            let seq = at.saturating_sub(self.regions);
            return Some(Step::Calls { seq, terminal, count, time });
        }
    }
}
