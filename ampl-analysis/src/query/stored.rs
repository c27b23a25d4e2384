//! The stored calls of a rank: from the index of its times where there is one, else from the times.

use std::ops::Range;

use ampl_reader::selection::Selection;
use ampl_reader::{Rank, Run};
use ampl_trace::model::WindowSummary;
use ampl_trace::record::CALL_UNFINISHED;
use ampl_trace::structure::Signature;
use ampl_trace::time_index::{CallReader, Chunk, Classes, Group, RankIndex, Sum};
use ampl_trace::timed::for_each_at;
use ampl_trace::timing::{Decoder, Settings};
use rustc_hash::FxHashMap;

use super::bytes::bytes;
use super::part::{Facts, touched};

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

/// Calls with times of one function at one site.
#[derive(Clone, Copy, Debug)]
pub struct TimedSum {
    /// Index of the window that they end in, among the rank's.
    pub window: Option<usize>,
    /// Index of their thread.
    pub thread: usize,
    /// Terminal of one of them.
    pub terminal: u32,
    /// True where it is the terminal of all.
    pub is_of_all: bool,
    /// Bytes that they move; `None` where these are not known, and where it is the terminal of all.
    pub moved: Option<u64>,
    /// Number of them.
    pub calls: u64,
    /// Number of those that have not returned.
    pub unfinished: u64,
    /// Time in them, as much of it as the part has, nanoseconds.
    pub inside_ns: u64,
    /// Largest error of it.
    pub error_ns: f64,
    /// True where they count as calls of the part.
    pub belongs: bool,
}

impl TimedSum {
    fn of(call: &TimedCall, settings: Option<Settings>) -> Self {
        let error_ns = settings.map_or(0.0, |settings| settings.error_ns(call.inside_ns as f64));
        Self {
            window: call.window,
            thread: call.thread,
            terminal: call.terminal,
            is_of_all: true,
            moved: None,
            calls: call.count.saturating_mul(call.times),
            unfinished: if call.unfinished { call.times } else { 0 },
            inside_ns: call.inside_ns.saturating_mul(call.times),
            error_ns: error_ns * call.times as f64,
            belongs: call.belongs,
        }
    }
}

/// A rank with its stored calls.
pub struct Stored<'a> {
    /// The rank, each of its windows an entry of its own; without times where there is an index.
    pub rank: Rank<'a>,
    pub(super) index: Option<RankIndex<'a>>,
    /// True where classes stand for signatures, and there is no sequence.
    pub(super) by_class: bool,
}

/// Reason that stored calls cannot be read.
#[derive(Clone, Copy, Debug)]
pub struct Damaged;

impl<'a> Stored<'a> {
    /// The rank of that number; `None` where it left nothing.
    pub fn of(run: &'a Run, number: u32) -> Option<Self> {
        let (mut rank, index) = run.indexed_rank(number)?;
        rank.trace.windows.spread_all();
        Some(Self { rank, index, by_class: false })
    }

    /// The same for questions to the part of `selection` that tell calls apart by function, site and bytes: by the classes of
    /// the index, where that is enough.
    pub fn for_sums(run: &'a Run, number: u32, selection: &Selection, facts: Facts) -> Option<Self> {
        let of_classes = || {
            let (mut rank, index) = run.class_rank(number)?;
            rank.trace.windows.spread_all();
            // Of a window without times the sequence has the calls.
            let windows = rank.trace.windows.entries();
            let is_empty = |window: &WindowSummary| {
                facts.calls.and_then(|slot| window.cells.get(slot)).is_some_and(|cell| cell.sum == 0.0)
            };
            let is_known = |&(at, timed): &(usize, bool)| timed || is_empty(&windows[at]);
            let is_whole =
                !selection.cuts_time() || touched(&rank, selection, facts, false).iter().all(is_known);
            is_whole.then_some(Self { rank, index: Some(index), by_class: true })
        };
        of_classes().or_else(|| Self::of(run, number))
    }

    /// All recorded calls, by thread and terminal.
    pub fn totals(&self) -> Vec<Vec<u64>> {
        if let Some(classes) = self.classes().filter(|_| self.by_class) {
            return classes.calls();
        }
        let threads = self.rank.structure.threads.iter();
        let counts = threads.map(|thread| {
            let mut counts = vec![0u64; thread.signatures.len()];
            for (terminal, count) in thread.grammar.totals() {
                if let Some(sum) = counts.get_mut(terminal as usize) {
                    *sum = sum.saturating_add(count);
                }
            }
            counts
        });
        counts.collect()
    }

    /// Bytes that a call of each terminal moves, by thread, in a job of so many `ranks`; `None` where they are not known.
    pub fn bytes(&self, ranks: u32) -> Vec<Vec<Option<u64>>> {
        match self.classes().filter(|_| self.by_class) {
            Some(classes) => vec![classes.bytes(); self.rank.structure.threads.len()],
            None => bytes(&self.rank.structure, ranks),
        }
    }

    fn classes(&self) -> Option<&Classes> {
        self.index.as_ref()?.classes()
    }

    /// A reader of the calls of the index.
    pub(super) fn reader<'b>(&'b self, index: &'b RankIndex<'_>) -> CallReader<'b> {
        if self.by_class { index.class_reader() } else { index.reader(&self.rank.structure) }
    }

    /// Settings of the times; `None` without times.
    pub fn settings(&self) -> Option<Settings> {
        match &self.index {
            Some(index) => Some(index.settings()),
            None => Decoder::new(&self.rank.trace.times).ok().map(|decoder| decoder.settings()),
        }
    }

    pub(super) fn windows(&self) -> &[WindowSummary] {
        self.rank.trace.windows.entries()
    }

    /// Index of the window of that number.
    pub(super) fn window(&self, number: u64) -> Option<usize> {
        self.windows().binary_search_by_key(&number, |window| window.window).ok()
    }

    /// Index of the thread of that number.
    pub(super) fn thread(&self, number: u32) -> Option<usize> {
        self.rank.structure.threads.iter().position(|own| own.thread == number)
    }

    /// Passes the stored calls that have time in the part or belong to it, and others, to `each`, in any order; those of an
    /// index of which the part of `selection` has all or nothing together. The numbers of the calls of each window, in
    /// the order of the times, go to `numbers`.
    pub fn calls(
        &self,
        selection: &Selection,
        mut numbers: impl FnMut(usize, Range<u64>),
        mut each: impl FnMut(&TimedCall),
    ) -> Result<(), Damaged> {
        let Some(index) = &self.index else { return self.decoded(selection, numbers, each) };
        let mut reader = self.reader(index);
        // Groups of classes do not tell signatures.
        let has_groups = self.by_class || index.classes().is_none();
        for chunk in index.chunks() {
            let Some(part) = self.part(chunk, selection, &mut numbers) else { continue };
            if has_groups && chunk.has_groups() && part.is_uncut() {
                let read = chunk.groups(|group| each(&self.group(&part, group)));
                read.ok_or(Damaged)?;
                continue;
            }
            self.cut_chunk(&mut reader, chunk, &part, true, &mut each).ok_or(Damaged)?;
        }
        Ok(())
    }

    /// The same, by function and site: the calls of an index of which the part has all or nothing together, and others each
    /// by itself. The numbers of calls that belong to the part together go to `together`, with their window and thread.
    pub fn sums(
        &self,
        selection: &Selection,
        mut numbers: impl FnMut(usize, Range<u64>),
        mut together: impl FnMut(Option<usize>, usize, Range<u64>),
        mut each: impl FnMut(&TimedSum),
    ) -> Result<(), Damaged> {
        let settings = self.settings();
        let Some(index) = &self.index else {
            return self.decoded(selection, numbers, |call| each(&TimedSum::of(call, settings)));
        };
        let mut reader = self.reader(index);
        let own = index.classes().filter(|_| !self.by_class).map(|classes| self.own_terminals(classes));
        for chunk in index.chunks() {
            let Some(part) = self.part(chunk, selection, &mut numbers) else { continue };
            let mut sums = chunk.sums().filter(|_| !chunk.is_unfinished);
            if let Some(own) = &own {
                let of = |class: u32| own[part.thread].get(class as usize).copied().unwrap_or(0);
                sums.iter_mut().flatten().for_each(|sum| sum.terminal = of(sum.terminal));
            }
            // Calls between them that have no times do not belong to the part.
            let is_uncut = part.outside || part.inside && chunk.is_dense() == Some(true);
            if let Some(sums) = sums.as_ref().filter(|_| is_uncut) {
                if part.inside {
                    together(part.cut.window, part.thread, chunk.calls.clone());
                }
                sums.iter().for_each(|sum| each(&part.sum(sum)));
                continue;
            }
            let mut left: FxHashMap<(u16, u32), Sum> = FxHashMap::default();
            for sum in sums.iter().flatten() {
                left.insert(self.place(part.thread, sum.terminal), *sum);
            }
            let read = self.cut_chunk(&mut reader, chunk, &part, sums.is_some(), |call| {
                if let Some(sum) = left.get_mut(&self.place(call.thread, call.terminal)) {
                    sum.calls = sum.calls.saturating_sub(call.count);
                }
                each(&TimedSum::of(call, settings));
            });
            read.ok_or(Damaged)?;
            let outside = ChunkPart { inside: false, ..part };
            left.values().filter(|sum| sum.calls > 0).for_each(|sum| each(&outside.sum(sum)));
        }
        Ok(())
    }

    /// By thread and class, a terminal with the function and the site of the class.
    fn own_terminals(&self, classes: &Classes) -> Vec<Vec<u32>> {
        let threads = self.rank.structure.threads.iter();
        let own = threads.map(|thread| {
            let mut terminals: FxHashMap<(u16, u32), u32> = FxHashMap::default();
            for (terminal, own) in (0..).zip(&thread.signatures) {
                terminals.entry((own.function, own.site)).or_insert(terminal);
            }
            let of = |class: &Signature| terminals.get(&(class.function, class.site)).copied().unwrap_or(0);
            classes.signatures().iter().map(of).collect()
        });
        own.collect()
    }

    /// Function and site of a terminal.
    fn place(&self, thread: usize, terminal: u32) -> (u16, u32) {
        let signature = self.rank.structure.threads[thread].signatures.get(terminal as usize);
        signature.map_or((0, 0), |own| (own.function, own.site))
    }

    /// The part that a selection has of a chunk, whose numbers of calls go to `numbers`; `None` of an unknown thread.
    fn part<'s>(
        &self,
        chunk: &Chunk<'_>,
        selection: &'s Selection,
        mut numbers: impl FnMut(usize, Range<u64>),
    ) -> Option<ChunkPart<'s>> {
        let thread = self.thread(chunk.thread)?;
        let cut = self.cut(chunk.window, selection);
        if let Some(window) = cut.window {
            numbers(window, chunk.calls.clone());
        }
        let cuts = selection.cuts_time();
        let inside = !cuts || selection.has_all(chunk.low_ns, chunk.high_ns);
        let outside = cuts && !cut.whole && selection.has_none(chunk.low_ns, chunk.high_ns);
        Some(ChunkPart { thread, cut, inside, outside })
    }

    /// The window of that number, as a part cuts it.
    fn cut<'s>(&self, number: u64, selection: &'s Selection) -> Cut<'s> {
        let window = self.window(number);
        let own = window.map(|index| &self.windows()[index]);
        let whole = own.is_some_and(|own| selection.holds_window(own));
        Cut { selection, whole, window, end_ns: own.map_or(i64::MIN, |own| own.end_ns) }
    }

    fn group(&self, part: &ChunkPart<'_>, group: Group) -> TimedCall {
        let unfinished = self.unfinished(part.thread, group.terminal);
        let duration_ns = if unfinished { 0 } else { group.duration_ns };
        TimedCall {
            window: part.cut.window,
            thread: part.thread,
            terminal: group.terminal,
            duration_ns,
            inside_ns: if part.inside { duration_ns } else { 0 },
            unfinished,
            count: group.count.max(1),
            times: group.times,
            belongs: part.inside,
        }
    }

    /// Passes the calls of a chunk to `each`, one by one; blocks that the part has nothing of may be left out.
    fn cut_chunk(
        &self,
        reader: &mut CallReader<'_>,
        chunk: &Chunk<'_>,
        part: &ChunkPart<'_>,
        leaves_out: bool,
        mut each: impl FnMut(&TimedCall),
    ) -> Option<()> {
        let cut = &part.cut;
        let cuts = leaves_out && cut.selection.cuts_time() && !cut.whole && !chunk.is_unfinished;
        let mut whole = Some(());
        chunk.blocks(|block, _| {
            if cuts && cut.selection.has_none(block.low_ns, block.high_ns) {
                return;
            }
            let read = reader.block(block, |call| {
                let unfinished = self.unfinished(part.thread, call.terminal);
                let duration_ns = if unfinished { 0 } else { call.duration_ns };
                let count = call.count.max(1);
                each(&cut.call(part.thread, call.terminal, call.start_ns, duration_ns, unfinished, count));
            });
            whole = whole.and(read);
        })?;
        whole
    }

    pub(super) fn unfinished(&self, thread: usize, terminal: u32) -> bool {
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
                _ => last.insert((window.window, self.cut(window.window, selection))).1,
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
}

/// A chunk of an index, as a part cuts it.
#[derive(Clone, Copy)]
struct ChunkPart<'a> {
    thread: usize,
    cut: Cut<'a>,
    /// True where the part has all of its calls.
    inside: bool,
    /// True where it has none of them.
    outside: bool,
}

impl ChunkPart<'_> {
    fn is_uncut(&self) -> bool {
        self.inside || self.outside
    }

    fn sum(&self, sum: &Sum) -> TimedSum {
        TimedSum {
            window: self.cut.window,
            thread: self.thread,
            terminal: sum.terminal,
            is_of_all: false,
            moved: sum.bytes,
            calls: sum.calls,
            unfinished: 0,
            inside_ns: if self.inside { sum.duration_ns } else { 0 },
            error_ns: if self.inside { sum.error_ns } else { 0.0 },
            belongs: self.inside,
        }
    }
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
