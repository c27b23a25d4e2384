//! The calls of a rank, one at a time.

use std::cell::Cell;
use std::collections::HashMap;

use ampl_core::mpi::{Direction, FUNCTION_COUNT, Function};
use ampl_core::value::{ObjectKind, Value};

use crate::args::{Named, Names, decode};
use crate::buffers;
use crate::communicators::{Communicators, Follower, Name};
use crate::error::ReadError;
use crate::gaps::{Cursor, Gap, ThreadGaps};
use crate::grammar::Runs;
use crate::model::RankTrace;
use crate::places::{Places, may_vary};
use crate::record::{CALL_ERROR, CALL_MISS, CALL_UNFINISHED, GAP, REGION_UNSEEN};
use crate::regions::{Edge, Moment, Region, RegionEvent};
use crate::request;
pub use crate::structure::origins;
use crate::structure::{RankStructure, Signature, ThreadStructure};
use crate::timed::Numbers;
use crate::timing::{Decoder, Time, Window};

/// One call, or failed polls in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Position among the thread's sequenced calls, from 0: calls that were only counted count too.
    pub seq: u64,
    /// The thread, 0 for the one that called `MPI_Init`.
    pub thread: u32,
    /// The function.
    pub function: Function,
    /// Every input by name.
    pub args: Named,
    /// Every output by name.
    pub out: Named,
    /// Failed polls folded into this entry; 1 for an ordinary call.
    pub count: u64,
    /// The error it returned; 0 is `MPI_SUCCESS`.
    pub code: i64,
    /// Index into [`RankStructure::sites`].
    pub site: Option<u32>,
    /// Times, where those of its window are stored.
    pub timed: Option<Timed>,
    /// Index into its thread's signatures.
    pub terminal: u32,
}

impl Call {
    /// True where the call has inputs that could not be recorded.
    pub fn lacks_arguments(&self) -> bool {
        let mut params = self.function.spec().params.iter();
        self.args.is_empty() && params.any(|param| param.direction != Direction::Out)
    }
}

/// A step of a thread's sequence.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A call.
    Call(Box<Call>),
    /// Calls in its place that were counted and not recorded.
    Gap(Gap),
    /// The thread enters a region, before its next call.
    Enter(RegionEvent),
    /// The thread leaves a region, and those that it has entered there and not left.
    Exit(RegionEvent),
}

/// Times of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The window it ended in.
    pub window: u64,
    /// Start, nanoseconds since T0.
    pub start_ns: i64,
    /// Duration, nanoseconds; `None` if it had not returned.
    pub duration_ns: Option<u64>,
}

/// Reads the calls of a rank, thread by thread, in memory that depends on its structure only.
#[derive(Debug)]
pub struct Calls<'a>(Events<'a>);

/// As [`Calls`], with gaps and regions between the calls.
#[derive(Debug)]
pub struct Events<'a> {
    structure: &'a RankStructure,
    rank: &'a RankTrace,
    names: RankNames<'a>,
    times: Option<Times<'a>>,
    thread: Option<Position<'a>>,
    /// Index of the next thread.
    next: usize,
    /// Gaps that are read and not yet given out, last first.
    gaps: Vec<Gap>,
    failed: bool,
}

/// Position in a thread.
#[derive(Debug)]
struct Position<'a> {
    thread: &'a ThreadStructure,
    runs: Runs<'a>,
    /// The run being read and what is left of it.
    run: (u32, u64),
    /// Unrecorded calls, where the thread has any.
    gaps: Option<Cursor<'a>>,
    /// Position in the sequence: calls, and entries and exits of regions.
    at: u64,
    /// Entries and exits up to there.
    regions: u64,
    /// For each terminal that makes a request, the first that makes requests like it.
    origins: Vec<Option<u32>>,
    /// Edges of regions by terminal.
    edges: Vec<Option<(Edge, Region)>>,
    /// Names of terminals for times and buffers.
    numbers: Numbers,
    /// Sets of buffers, where a signature has several.
    buffers: Option<buffers::Cursor<'a>>,
}

impl Position<'_> {
    /// Number of the next call.
    fn seq(&self) -> u64 {
        self.at.saturating_sub(self.regions)
    }

    /// The gap with its number among calls.
    fn numbered(&self, gap: Gap) -> Gap {
        Gap { seq: gap.seq.saturating_sub(self.regions), ..gap }
    }

    /// Passes the gap whose run is being read; puts what it holds into `gaps`, last first.
    fn pass_gap(&mut self, gaps: &mut Vec<Gap>) {
        let (terminal, mut calls) = std::mem::take(&mut self.run);
        // A gap longer than a run can be is several.
        for run in self.runs.by_ref() {
            if run.0 != terminal {
                self.run = run;
                break;
            }
            calls = calls.saturating_add(run.1);
        }
        let none = ThreadGaps { thread: self.thread.thread, ..ThreadGaps::default() };
        let found = match &mut self.gaps {
            Some(cursor) => cursor.take(self.at, calls),
            None => Cursor::new(&none).take(self.at, calls),
        };
        gaps.extend(found.into_iter().rev().map(|gap| self.numbered(gap)));
        self.at = self.at.saturating_add(calls);
    }
}

/// The times stored next.
#[derive(Debug)]
struct Times<'a> {
    decoder: Decoder<'a>,
    window: Window,
    /// Entries left in it, and the number of the call of the next.
    left: u64,
    seq: u64,
}

#[derive(Debug)]
struct RankNames<'a> {
    places: &'a Places,
    /// Places of the call being read, where these are others than those in its signature.
    moved: Cell<&'a [u64]>,
    thread: u32,
    /// Names of requests by their words, in the order in which they are met.
    requests: HashMap<u64, u64>,
    /// Names of communicators, where those of the job are known.
    comms: Option<Follower<'a>>,
}

impl Names for RankNames<'_> {
    fn place(&self, word: u64) -> Value {
        let word = match self.moved.get().split_first() {
            Some((&other, rest)) if may_vary(word) => {
                self.moved.set(rest);
                other
            }
            _ => word,
        };
        self.places.value(self.thread, word)
    }

    fn request(&mut self, word: u64) -> u64 {
        let next = self.requests.len() as u64 + 1;
        *self.requests.entry(word).or_insert(next)
    }

    fn comm(&self, word: u64) -> Value {
        let Some(follower) = &self.comms else { return Value::Object(ObjectKind::Comm, word) };
        match follower.name(word) {
            Some(Name::Agreed(number)) => Value::Object(ObjectKind::Comm, number.into()),
            Some(own) => Value::Name(own.to_string()),
            // Its making was not seen, or it may be one of several.
            None => Value::Name(format!("comm:{}.w{word}", follower.rank())),
        }
    }
}

impl<'a> Calls<'a> {
    /// The calls of `structure`, with the times and places of `rank`. Communicators are named by their words, which
    /// other ranks use for others, and this one too once they are free.
    pub fn new(structure: &'a RankStructure, rank: &'a RankTrace) -> Self {
        Self(Events::new(structure, rank))
    }

    /// As [`Calls::new`], but communicators are called as on all ranks.
    pub fn naming(structure: &'a RankStructure, rank: &'a RankTrace, comms: &'a Communicators) -> Self {
        Self(Events::naming(structure, rank, comms))
    }
}

impl Iterator for Calls<'_> {
    type Item = Result<Call, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.0.next()? {
                Ok(Event::Call(call)) => return Some(Ok(*call)),
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<'a> Events<'a> {
    /// As [`Calls::new`].
    pub fn new(structure: &'a RankStructure, rank: &'a RankTrace) -> Self {
        Self::with(structure, rank, None)
    }

    /// As [`Calls::naming`].
    pub fn naming(structure: &'a RankStructure, rank: &'a RankTrace, comms: &'a Communicators) -> Self {
        Self::with(structure, rank, Some(comms.follow(structure.rank)))
    }

    fn with(structure: &'a RankStructure, rank: &'a RankTrace, comms: Option<Follower<'a>>) -> Self {
        let (requests, moved) = Default::default();
        let names = RankNames { places: &rank.places, moved, thread: 0, requests, comms };
        let none = Window { thread: u32::MAX, window: 0, first_seq: 0, start_ns: 0 };
        let times = match rank.times.is_empty() {
            true => None,
            // Unreadable times were reported when the trace was read.
            false => {
                Decoder::new(&rank.times).ok().map(|decoder| Times { decoder, window: none, left: 0, seq: 0 })
            }
        };
        let gaps = Vec::new();
        let mut calls = Self { structure, rank, names, times, thread: None, next: 0, gaps, failed: false };
        calls.advance();
        calls
    }

    /// Goes to the next window whose times are stored.
    fn advance(&mut self) {
        while let Some(times) = self.times.as_mut().filter(|times| times.left == 0) {
            match times.decoder.window() {
                Some((window, left)) => {
                    (times.window, times.left, times.seq) = (window, left, window.first_seq)
                }
                None => self.times = None,
            }
        }
    }

    /// Makes sure that a run is being read, or a gap; `None` at the end.
    fn turn(&mut self) -> Option<()> {
        loop {
            if !self.gaps.is_empty() {
                return Some(());
            }
            let Some(position) = &mut self.thread else {
                let thread = self.structure.threads.get(self.next)?;
                self.next += 1;
                self.names.thread = thread.thread;
                if let Some(comms) = &mut self.names.comms {
                    comms.thread(thread.thread);
                }
                let (runs, origins) = (thread.grammar.runs(), origins(&thread.signatures));
                let edges = thread.signatures.iter().map(Signature::region).collect();
                let gaps = self.rank.gaps.thread(thread.thread).map(Cursor::new);
                let buffers = self.rank.buffers.thread(thread.thread).map(buffers::Cursor::new);
                let numbers = match (&self.times, &buffers) {
                    (None, None) => Numbers::default(),
                    _ => Numbers::of(&thread.signatures),
                };
                let (run, at, regions) = Default::default();
                self.thread =
                    Some(Position { thread, runs, run, gaps, at, regions, origins, edges, numbers, buffers });
                continue;
            };
            if position.run.1 > 0 {
                return Some(());
            }
            match position.runs.next() {
                Some(run) => position.run = run,
                None => {
                    // Behind its last call.
                    let rest = position.gaps.as_mut().map(|gaps| gaps.rest(position.at));
                    let rest = rest.unwrap_or_default().into_iter().rev();
                    self.gaps = rest.map(|gap| position.numbered(gap)).collect();
                    self.thread = None;
                }
            }
        }
    }

    fn read(&mut self) -> Option<Result<Event, ReadError>> {
        let malformed = |seq| Some(Err(ReadError::Malformed { what: "call", at: seq as usize }));
        loop {
            self.turn()?;
            if let Some(gap) = self.gaps.pop() {
                return Some(Ok(Event::Gap(gap)));
            }
            let position = self.thread.as_mut()?;
            let (terminal, left) = position.run;
            let (at, seq) = (position.at, position.seq());
            let Some(signature) = position.thread.signatures.get(terminal as usize) else {
                return malformed(seq);
            };
            if let Some(comms) = &mut self.names.comms {
                comms.made(signature);
            }
            let folds = signature.flags & CALL_MISS != 0;
            let thread = position.thread.thread;
            // Times that lie behind belong to calls that are not there; the next ones may.
            let due = self.times.as_mut().filter(|times| times.window.thread == thread);
            let until = due.as_ref().map_or(u64::MAX, |times| times.seq.saturating_sub(at));
            if signature.function == GAP {
                position.pass_gap(&mut self.gaps);
                continue;
            }
            let mut time: Option<(u64, Time)> = None;
            if let Some(times) = due.filter(|_| until == 0) {
                let of = position.numbers.terminal(terminal, signature);
                let Ok(read) = times.decoder.call(of) else { return malformed(seq) };
                times.left -= 1;
                times.seq = times.seq.saturating_add(read.count.max(1));
                time = Some((times.window.window, read));
                self.advance();
            }
            let count = match (folds, time) {
                (false, _) => 1,
                (true, Some((_, time))) => time.count.clamp(1, left),
                (true, None) => left.min(until.max(1)),
            };
            let position = self.thread.as_mut()?;
            let edge = position.edges.get(terminal as usize).cloned().flatten();
            let count = if edge.is_some() { 1 } else { count };
            position.run.1 -= count;
            position.at = at.saturating_add(count);
            if let Some((edge, region)) = edge {
                position.regions += 1;
                let unseen = signature.flags & REGION_UNSEEN != 0;
                let timed = time.map(|(window, time)| Moment { window, at_ns: time.start_ns });
                let event = RegionEvent { seq, thread, region, timed, unseen, terminal };
                return Some(Ok(match edge {
                    Edge::Enter => Event::Enter(event),
                    Edge::Exit => Event::Exit(event),
                }));
            }
            let name = position.numbers.name(terminal);
            let moved = position.buffers.as_mut().filter(|_| !folds);
            let moved = moved.and_then(|buffers| buffers.call(at, name));
            self.names.moved.set(moved.unwrap_or_default());
            let origin = position.origins.get(terminal as usize).copied().flatten();
            let Some((function, args, out, code)) = self.call(signature, origin) else {
                return malformed(seq);
            };
            if let Some(comms) = &mut self.names.comms {
                comms.freed(signature);
            }
            let returned = signature.flags & CALL_UNFINISHED == 0;
            return Some(Ok(Event::Call(Box::new(Call {
                seq,
                thread,
                function,
                args,
                out,
                count,
                code,
                site: signature.site.checked_sub(1),
                timed: time.map(|(window, time)| Timed {
                    window,
                    start_ns: time.start_ns,
                    duration_ns: returned.then_some(time.duration_ns),
                }),
                terminal,
            }))));
        }
    }

    fn call(&mut self, signature: &Signature, origin: Option<u32>) -> Option<(Function, Named, Named, i64)> {
        let known = usize::from(signature.function) < FUNCTION_COUNT;
        let function = Function(signature.function);
        let words = known.then_some(&signature.words[..])?;
        let told;
        let words = match (words.split_last(), origin) {
            // The slot alone does not distinguish it from requests of other calls.
            (Some((&slot, others)), Some(origin)) => {
                let made = request::made(self.names.thread, origin, slot);
                told = [others, &[made]].concat();
                &told[..]
            }
            _ => words,
        };
        let (code, words) = if signature.flags & CALL_ERROR != 0 {
            let (&code, rest) = words.split_first()?;
            (code as i64, rest)
        } else {
            (0, words)
        };
        let (args, out) = decode(function.spec(), signature.flags, words, &mut self.names)?;
        Some((function, args, out, code))
    }
}

impl Iterator for Events<'_> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let call = self.read();
        self.failed = matches!(call, Some(Err(_)));
        call
    }
}
