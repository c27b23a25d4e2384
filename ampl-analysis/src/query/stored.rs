//! The stored calls of a rank: from the index of its times where there is one, else from the times.

use std::ops::Range;

use ampl_core::mpi::FUNCTIONS;
use ampl_reader::selection::Selection;
use ampl_reader::{Rank, Run};
use ampl_trace::model::WindowSummary;
use ampl_trace::record::CALL_UNFINISHED;
use ampl_trace::time_index::{CallReader, Chunk, RankIndex};
use ampl_trace::timed::for_each_at;
use ampl_trace::timing::{Decoder, Settings};

/// Calls with times that are alike.
#[derive(Clone, Copy, Debug)]
pub struct TimedCall {
    /// Index of the window that they end in, among the rank's.
    pub window: Option<usize>,
    /// Index of their thread.
    pub thread: usize,
    /// Their terminal.
    pub terminal: u32,
    /// Duration of each, nanoseconds; 0 of a call that has not returned.
    pub duration_ns: u64,
    /// As much of it as the part has.
    pub inside_ns: u64,
    /// True where they have not returned.
    pub unfinished: bool,
    /// Calls that each stands for: failed polls in a row.
    pub count: u64,
    /// Number of them.
    pub times: u64,
    /// True where they count as calls of the part.
    pub belongs: bool,
}

/// A stretch of time in a function of MPI.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Index of its function.
    pub function: u16,
    /// Start, nanoseconds since T0; of several calls, that of the first.
    pub start_ns: i64,
    /// End; of several calls, that of the last.
    pub end_ns: i64,
    /// Time in the calls, where there are several, all of them between start and end.
    pub several_ns: Option<u64>,
}

/// Stored calls, or time in them, for a timeline.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Calls of MPI that end in a window, by index, of a thread, by index.
    Calls {
        /// The window.
        window: Option<usize>,
        /// The thread.
        thread: usize,
        /// Number of calls.
        calls: u64,
    },
    /// Time in MPI, in calls that end in that window.
    Time(Option<usize>, Span),
}

/// A rank with its stored calls.
pub struct Stored<'a> {
    /// The rank, each of its windows an entry of its own; without times where there is an index.
    pub rank: Rank<'a>,
    index: Option<RankIndex<'a>>,
}

/// Reason that stored calls cannot be read.
#[derive(Clone, Copy, Debug)]
pub struct Damaged;

impl<'a> Stored<'a> {
    /// The rank of that number; `None` where it left nothing.
    pub fn of(run: &'a Run, number: u32) -> Option<Self> {
        let (mut rank, index) = run.indexed_rank(number)?;
        rank.trace.windows.spread_all();
        Some(Self { rank, index })
    }

    /// Settings of the times; `None` without times.
    pub fn settings(&self) -> Option<Settings> {
        match &self.index {
            Some(index) => Some(index.settings()),
            None => Decoder::new(&self.rank.trace.times).ok().map(|decoder| decoder.settings()),
        }
    }

    fn windows(&self) -> &[WindowSummary] {
        self.rank.trace.windows.entries()
    }

    /// Index of the window of that number.
    fn window(&self, number: u64) -> Option<usize> {
        self.windows().binary_search_by_key(&number, |window| window.window).ok()
    }

    /// Index of the thread of that number.
    fn thread(&self, number: u32) -> Option<usize> {
        self.rank.structure.threads.iter().position(|own| own.thread == number)
    }

    /// Passes the stored calls to `each`, in any order; those of an index of which the part of `selection` has all or
    /// nothing together. The numbers of the calls of each window, in the order of the times, go to `numbers`.
    pub fn calls(
        &self,
        selection: &Selection,
        mut numbers: impl FnMut(usize, Range<u64>),
        mut each: impl FnMut(&TimedCall),
    ) -> Result<(), Damaged> {
        let Some(index) = &self.index else { return self.decoded(selection, numbers, each) };
        let mut reader = index.reader(&self.rank.structure);
        let windows = self.windows();
        let cuts = selection.cuts_time();
        for chunk in index.chunks() {
            let Some(thread) = self.thread(chunk.thread) else { continue };
            let window = self.window(chunk.window);
            let whole = window.is_some_and(|index| selection.holds_window(&windows[index]));
            if let Some(window) = window {
                numbers(window, chunk.calls.clone());
            }
            let unfinished = |terminal: u32| self.unfinished(thread, terminal);
            let inside = !cuts || selection.has_all(chunk.low_ns, chunk.high_ns);
            let outside = cuts && !whole && selection.has_none(chunk.low_ns, chunk.high_ns);
            if chunk.has_groups() && (inside || outside) {
                let read = chunk.groups(|group| {
                    let unfinished = unfinished(group.terminal);
                    let duration_ns = if unfinished { 0 } else { group.duration_ns };
                    each(&TimedCall {
                        window,
                        thread,
                        terminal: group.terminal,
                        duration_ns,
                        inside_ns: if inside { duration_ns } else { 0 },
                        unfinished,
                        count: group.count.max(1),
                        times: group.times,
                        belongs: inside,
                    });
                });
                read.ok_or(Damaged)?;
                continue;
            }
            let cut =
                Cut { selection, whole, window, end_ns: window.map_or(i64::MIN, |at| windows[at].end_ns) };
            let read = reader.chunk(chunk, |call| {
                let unfinished = unfinished(call.terminal);
                let duration_ns = if unfinished { 0 } else { call.duration_ns };
                each(&cut.call(
                    thread,
                    call.terminal,
                    call.start_ns,
                    duration_ns,
                    unfinished,
                    call.count.max(1),
                ));
            });
            read.ok_or(Damaged)?;
        }
        Ok(())
    }

    fn unfinished(&self, thread: usize, terminal: u32) -> bool {
        let signature = self.rank.structure.threads[thread].signatures.get(terminal as usize);
        signature.is_none_or(|signature| signature.flags & CALL_UNFINISHED != 0)
    }

    fn decoded(
        &self,
        selection: &Selection,
        mut numbers: impl FnMut(usize, Range<u64>),
        mut each: impl FnMut(&TimedCall),
    ) -> Result<(), Damaged> {
        let Rank { trace, structure, .. } = &self.rank;
        if trace.times.is_empty() {
            return Ok(());
        }
        let mut decoder = Decoder::new(&trace.times).map_err(|_| Damaged)?;
        let mut last: Option<(u64, Cut<'_>)> = None;
        let read = for_each_at(structure, &mut decoder, |window, terminal, seq, time| {
            let cut = match last {
                Some((number, found)) if number == window.window => found,
                _ => {
                    let index = self.window(window.window);
                    let whole = index.is_some_and(|index| selection.holds_window(&self.windows()[index]));
                    let end_ns = index.map_or(i64::MIN, |index| self.windows()[index].end_ns);
                    last.insert((window.window, Cut { selection, whole, window: index, end_ns })).1
                }
            };
            let Some(thread) = self.thread(window.thread) else { return };
            let count = time.count.max(1);
            if let Some(index) = cut.window {
                numbers(index, seq..seq.saturating_add(count));
            }
            let unfinished = self.unfinished(thread, terminal.number);
            let duration_ns = if unfinished { 0 } else { time.duration_ns };
            each(&cut.call(thread, terminal.number, time.start_ns, duration_ns, unfinished, count));
        });
        read.map_err(|_| Damaged)
    }

    /// Passes the stored calls of MPI to `each`: those of an index together where `is_one` accepts the start of the
    /// first, the end of the last, and the start of their window.
    pub fn spans(
        &self,
        is_one: impl Fn(i64, i64, i64) -> bool,
        mut each: impl FnMut(Event),
    ) -> Result<(), Damaged> {
        let Some(index) = &self.index else { return self.decoded_spans(each) };
        let mut reader = index.reader(&self.rank.structure);
        for chunk in index.chunks() {
            let Some(thread) = self.thread(chunk.thread) else { continue };
            let window = self.window(chunk.window);
            let functions = chunk.functions().ok_or(Damaged)?;
            let calls = functions.iter().filter(|(function, _)| is_mpi(*function));
            let calls: u64 = calls.map(|(_, calls)| calls).sum();
            if calls > 0 {
                each(Event::Calls { window, thread, calls });
            }
            self.chunk_spans(&mut reader, chunk, (window, thread), &is_one, &mut each).ok_or(Damaged)?;
        }
        Ok(())
    }

    fn chunk_spans(
        &self,
        reader: &mut CallReader<'_>,
        chunk: &Chunk<'_>,
        (window, thread): (Option<usize>, usize),
        is_one: impl Fn(i64, i64, i64) -> bool,
        mut each: impl FnMut(Event),
    ) -> Option<()> {
        let begin = window.map_or(i64::MAX, |window| self.windows()[window].start_ns);
        let signatures = &self.rank.structure.threads[thread].signatures;
        let mut whole = Some(());
        chunk.blocks(|block, sums| {
            if !chunk.is_unfinished && is_one(block.low_ns, block.high_ns, begin) {
                for &(function, ns) in sums.iter().filter(|(function, ns)| is_mpi(*function) && *ns > 0) {
                    let (start_ns, end_ns) = (block.low_ns, block.high_ns);
                    each(Event::Time(window, Span { function, start_ns, end_ns, several_ns: Some(ns) }));
                }
                return;
            }
            let read = reader.block(block, |call| {
                let Some(signature) = signatures.get(call.terminal as usize) else { return };
                let length = if signature.flags & CALL_UNFINISHED != 0 { 0 } else { call.duration_ns };
                let end_ns = call.start_ns.saturating_add_unsigned(length);
                let (function, start_ns) = (signature.function, call.start_ns);
                if is_mpi(function) {
                    each(Event::Time(window, Span { function, start_ns, end_ns, several_ns: None }));
                }
            });
            whole = whole.and(read);
        })?;
        whole
    }

    fn decoded_spans(&self, mut each: impl FnMut(Event)) -> Result<(), Damaged> {
        let Rank { trace, structure, .. } = &self.rank;
        if trace.times.is_empty() {
            return Ok(());
        }
        let mut decoder = Decoder::new(&trace.times).map_err(|_| Damaged)?;
        let mut last: Option<(u64, Option<usize>)> = None;
        let read = for_each_at(structure, &mut decoder, |window, terminal, _, time| {
            let index = match last {
                Some((number, found)) if number == window.window => found,
                _ => last.insert((window.window, self.window(window.window))).1,
            };
            let Some(thread) = self.thread(window.thread) else { return };
            let signature = structure.threads[thread].signatures.get(terminal.number as usize);
            let function = signature.map(|signature| signature.function);
            let Some(function) = function.filter(|&function| is_mpi(function)) else { return };
            let length = if self.unfinished(thread, terminal.number) { 0 } else { time.duration_ns };
            let end_ns = time.start_ns.saturating_add_unsigned(length);
            each(Event::Calls { window: index, thread, calls: time.count.max(1) });
            each(Event::Time(index, Span { function, start_ns: time.start_ns, end_ns, several_ns: None }));
        });
        read.map_err(|_| Damaged)
    }
}

/// True for functions of MPI.
fn is_mpi(function: u16) -> bool {
    usize::from(function) < FUNCTIONS.len()
}

/// A window, as a part cuts it.
#[derive(Clone, Copy)]
struct Cut<'a> {
    selection: &'a Selection,
    /// True where the part has all of the window.
    whole: bool,
    window: Option<usize>,
    end_ns: i64,
}

impl Cut<'_> {
    fn call(
        &self,
        thread: usize,
        terminal: u32,
        start_ns: i64,
        duration_ns: u64,
        unfinished: bool,
        count: u64,
    ) -> TimedCall {
        let end_ns = start_ns.saturating_add_unsigned(duration_ns);
        // MPI_Finalize begins where the last window ends.
        let belongs =
            !self.selection.cuts_time() || self.selection.has(end_ns) || self.whole && start_ns < self.end_ns;
        TimedCall {
            window: self.window,
            thread,
            terminal,
            duration_ns,
            inside_ns: self.selection.overlap_ns(start_ns, end_ns),
            unfinished,
            count,
            times: 1,
            belongs,
        }
    }
}
