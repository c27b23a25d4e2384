//! The calls of one rank that belong to a part of the run.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

use ampl_core::config::{Keep, Quantity};
use ampl_core::mpi::{Class, FUNCTIONS};
use ampl_reader::selection::Selection;
use ampl_reader::{Rank, Run};
use ampl_trace::model::WindowSummary;
use ampl_trace::record::GAP;
use ampl_trace::structure::Signature;

use super::positions::starts;
use super::stored::{Damaged, Stored, TimedCall, TimedSum};
use crate::counted::in_counted_span;
use crate::window_times::{Columns, Observed};

/// Extent to which a part of the run is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Ranks asked for, and those of them that left nothing.
    pub ranks: u64,
    /// Ranks asked for that left nothing.
    pub missing_ranks: u64,
    /// Rank-windows that the part touches.
    pub windows: u64,
    /// Rank-windows among them whose calls have times.
    pub timed: u64,
    /// Rank-windows among them of which it is not known which calls belong to the part.
    pub untold: u64,
    /// Calls that were counted and not recorded: in the part, or in all of the run where it cuts time.
    pub unrecorded: u64,
    /// Ranks with damaged times.
    pub damaged: u64,
}

/// The calls of a rank that belong to the part.
#[derive(Debug, Default)]
pub struct RankPart {
    /// Calls by thread and terminal, of windows with times and of those whose place is known.
    pub counts: Vec<Vec<u64>>,
    /// Indices of the windows that the part touches, and true for those with times.
    pub windows: Vec<(usize, bool)>,
    /// Calls besides these, of chunks that the part has all of, where classes stand for signatures.
    pub summed: Vec<Summed>,
    /// Windows of which it is not known which calls belong to the part.
    pub untold: u64,
    /// True where times are damaged.
    pub damaged: bool,
}

/// Calls of a function at a site.
#[derive(Clone, Copy, Debug)]
pub struct Summed {
    /// Index of the thread.
    pub thread: usize,
    /// Terminal of one of them.
    pub terminal: u32,
    /// Number of them.
    pub calls: u64,
    /// Bytes that they move; `None` where these are not known.
    pub bytes: Option<u64>,
}

/// Facts about a run that parts of ranks need.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    /// Place of the number of calls among a window's cells.
    pub calls: Option<usize>,
    /// True where times of kept windows are stored.
    pub stores_times: bool,
    columns: Columns,
}

impl Facts {
    /// The facts of `run`.
    pub fn of(run: &Run) -> Self {
        let name = Quantity::Calls.name();
        let calls = |metric: &ampl_trace::model::MetricInfo| metric.name == name && metric.event == "*";
        let stored = run.plan().map(|plan| plan.config.trace.stored());
        Self {
            calls: run.info().metrics.iter().position(calls),
            stores_times: stored.is_none_or(|stored| stored != Keep::Off),
            columns: Columns::of_metrics(&run.info().metrics),
        }
    }
}

/// Stretches of a sequence, ascending.
#[derive(Debug, Default)]
struct Spans(Vec<Range<u64>>);

impl Spans {
    fn push(&mut self, span: Range<u64>) {
        match self.0.last_mut() {
            Some(last) if last.end == span.start => last.end = span.end,
            _ => self.0.push(span),
        }
    }

    fn settled(mut self) -> Vec<Range<u64>> {
        self.0.retain(|span| span.start < span.end);
        self.0.sort_unstable_by_key(|span| span.start);
        let mut joined: Vec<Range<u64>> = Vec::with_capacity(self.0.len());
        for span in self.0 {
            match joined.last_mut() {
                Some(last) if last.end >= span.start => last.end = last.end.max(span.end),
                _ => joined.push(span),
            }
        }
        joined
    }
}

/// Calls of a part, as they are found.
#[derive(Default)]
struct Found {
    /// By thread and terminal.
    counts: Vec<Vec<u64>>,
    /// Stretches of the sequences of threads, all of whose calls belong to the part.
    spans: Vec<Spans>,
    /// Windows whose calls are found otherwise.
    apart: BTreeSet<usize>,
    /// Calls that have no terminals of their own, where classes stand for these.
    summed: Option<Vec<Summed>>,
}

impl Found {
    fn none(stored: &Stored<'_>) -> Self {
        let threads = &stored.rank.structure.threads;
        let counts = threads.iter().map(|thread| vec![0u64; thread.signatures.len()]).collect();
        let spans = threads.iter().map(|_| Spans::default()).collect();
        Self { counts, spans, apart: BTreeSet::new(), summed: stored.by_class.then(Vec::new) }
    }

    fn takes(&self, window: Option<usize>) -> bool {
        window.is_none_or(|window| !self.apart.contains(&window))
    }

    fn call(&mut self, call: &TimedCall) {
        if call.belongs && self.takes(call.window) {
            add(&mut self.counts[call.thread], call.terminal, call.count.saturating_mul(call.times));
        }
    }

    fn sum(&mut self, sum: &TimedSum) {
        let &TimedSum { thread, terminal, calls, moved: bytes, .. } = sum;
        match &mut self.summed {
            _ if !sum.belongs || sum.window.is_some_and(|window| self.apart.contains(&window)) => {}
            _ if sum.is_of_all => add(&mut self.counts[thread], terminal, calls),
            Some(summed) => summed.push(Summed { thread, terminal, calls, bytes }),
            None => {}
        }
    }

    fn together(&mut self, window: Option<usize>, thread: usize, calls: Range<u64>) {
        if self.summed.is_none() && self.takes(window) {
            self.spans[thread].push(calls);
        }
    }

    /// Adds what [`Stored::sums`] finds.
    fn add_sums(
        &mut self,
        stored: &Stored<'_>,
        selection: &Selection,
        numbers: impl FnMut(usize, Range<u64>),
        mut each: impl FnMut(&TimedSum),
    ) -> Result<(), Damaged> {
        let found = RefCell::new(self);
        let together = |window, thread, calls| found.borrow_mut().together(window, thread, calls);
        stored.sums(selection, numbers, together, |sum| {
            found.borrow_mut().sum(sum);
            each(sum);
        })
    }

    /// The calls by thread and terminal.
    fn settled(self, rank: &Rank<'_>) -> Vec<Vec<u64>> {
        let mut counts = self.counts;
        for ((thread, spans), counts) in rank.structure.threads.iter().zip(self.spans).zip(&mut counts) {
            if spans.0.is_empty() {
                continue;
            }
            let found = thread.grammar.counts_in(&spans.settled());
            found.into_iter().flatten().for_each(|(terminal, count)| add(counts, terminal, count));
        }
        counts
    }
}

/// The part of a rank that `selection` asks for; every call that has a time is passed to `each`.
pub fn read_calls(
    stored: &Stored<'_>,
    selection: &Selection,
    facts: Facts,
    mut each: impl FnMut(&TimedCall),
) -> RankPart {
    read(stored, selection, facts, true, |numbers, found| {
        stored.calls(selection, numbers, |call| {
            found.call(call);
            each(call);
        })
    })
}

/// The same, with the calls of a function at a site together. With `times` every call that has a time is passed to `each`;
/// without, times are read only where they decide what belongs to the part.
pub fn read_sums(
    stored: &Stored<'_>,
    selection: &Selection,
    facts: Facts,
    times: bool,
    mut each: impl FnMut(&TimedSum),
) -> RankPart {
    read(stored, selection, facts, times, |numbers, found| {
        found.add_sums(stored, selection, numbers, &mut each)
    })
}

fn read(
    stored: &Stored<'_>,
    selection: &Selection,
    facts: Facts,
    times: bool,
    pass: impl FnOnce(&mut dyn FnMut(usize, Range<u64>), &mut Found) -> Result<(), Damaged>,
) -> RankPart {
    let rank = &stored.rank;
    let (windows, structure) = (rank.trace.windows.entries(), &rank.structure);
    let cuts = selection.cuts_time();
    let mut part = RankPart::default();
    // Windows with calls whose times are stored, and these calls; of the only thread.
    let mut of_windows: Vec<(usize, Range<u64>)> = Vec::new();
    let mut found = Found::none(stored);
    if times || cuts {
        let mut numbers = |index: usize, calls: Range<u64>| match of_windows.last_mut() {
            Some((at, own)) if *at == index => own.end = calls.end,
            _ if cuts => of_windows.push((index, calls)),
            _ => {}
        };
        part.damaged = pass(&mut numbers, &mut found).is_err();
    }
    part.windows = touched(rank, selection, facts, part.damaged);
    if !cuts {
        part.counts = stored.totals();
        return part;
    }
    let (mut spans, mut of_spans) = (Spans::default(), BTreeSet::new());
    part.untold = rank.trace.process.windows;
    if let Some(summed) = found.summed.take() {
        // All windows have times.
        (part.counts, part.summed) = (found.counts, summed);
        return part;
    }
    let starts = starts(rank, facts.calls, &of_windows);
    for &(index, timed) in part.windows.iter().filter(|(_, timed)| !timed) {
        let window = &windows[index];
        let none = facts.calls.and_then(|slot| window.cells.get(slot)).is_some_and(|cell| cell.sum == 0.0);
        match (starts[index], starts[index + 1], structure.threads.len()) {
            _ if none || timed => {}
            (Some(from), Some(until), 1) if selection.holds_window(window) && from <= until => {
                spans.push(from..until);
                of_spans.insert(index);
            }
            _ => part.untold += 1,
        }
    }
    // Of a window that is only partly stored, or whose times end in damage, the structure has all calls.
    if of_windows.iter().any(|(index, _)| of_spans.contains(index)) {
        found = Found { apart: of_spans, ..Found::none(stored) };
        part.damaged |= found.add_sums(stored, selection, |_, _| (), |_| ()).is_err();
    }
    // They are of the only thread.
    if let Some(own) = found.spans.first_mut() {
        own.0.extend(spans.0);
    }
    part.counts = found.settled(rank);
    part
}

/// The windows of `rank` that the part touches, by index, and true for those whose calls have times.
pub fn touched(rank: &Rank<'_>, selection: &Selection, facts: Facts, damaged: bool) -> Vec<(usize, bool)> {
    // Calls that were only counted, or made while the program had paused ampl, have none.
    let only_counted = in_counted_span(&rank.trace);
    let counted = |window: &WindowSummary| only_counted.as_ref().is_some_and(|in_span| in_span(window));
    let columns = facts.columns.of_rank(&rank.trace);
    let paused = |window: &WindowSummary| match columns.observed(window) {
        Observed::Measured(_, paused) => paused > 0.0,
        Observed::Paused => true,
        Observed::Nothing => false,
    };
    let stored_times = facts.stores_times && !damaged;
    let has_times =
        |window: &WindowSummary| window.kept && stored_times && !counted(window) && !paused(window);
    let windows = rank.trace.windows.iter().enumerate();
    let touched = windows.filter(|(_, window)| !selection.cuts_time() || selection.takes_window(window));
    touched.map(|(index, window)| (index, has_times(&window))).collect()
}

fn add(counts: &mut [u64], terminal: u32, count: u64) {
    if let Some(sum) = counts.get_mut(terminal as usize) {
        *sum = sum.saturating_add(count);
    }
}

impl Extent {
    /// Adds a rank's part.
    pub fn add(&mut self, stored: &Stored<'_>, part: &RankPart, cuts: bool) {
        self.ranks += 1;
        self.windows += part.windows.len() as u64;
        self.timed += part.windows.iter().filter(|(_, timed)| *timed).count() as u64;
        self.untold += part.untold;
        self.damaged += u64::from(part.damaged);
        let threads = &stored.rank.structure.threads;
        let is_gap = |signature: &Signature| signature.function == GAP;
        if !threads.iter().flat_map(|thread| &thread.signatures).any(is_gap) {
            return;
        }
        let totals = if cuts { stored.totals() } else { part.counts.clone() };
        for (thread, counts) in threads.iter().zip(totals) {
            let gaps = thread.signatures.iter().zip(counts).filter(|(signature, _)| is_gap(signature));
            self.unrecorded += gaps.map(|(_, count)| count).sum::<u64>();
        }
    }

    /// Adds the extent of other ranks.
    pub fn join(&mut self, other: Self) {
        self.ranks += other.ranks;
        self.missing_ranks += other.missing_ranks;
        self.windows += other.windows;
        self.timed += other.timed;
        self.untold += other.untold;
        self.unrecorded += other.unrecorded;
        self.damaged += other.damaged;
    }
}

/// True where calls of some of these windows have no times, as the policy of their site may want it: there were more
/// than `timed` of each, but for functions that are only ever counted.
pub fn has_untimed(rank: &Rank<'_>, facts: Facts, windows: &[(usize, bool)], timed: &[u64]) -> bool {
    let only_counted = |function: u16| {
        FUNCTIONS.get(usize::from(function)).is_some_and(|spec| spec.class == Class::CountOnly)
    };
    let spare = rank.trace.process.calls.iter().filter(|(function, _)| only_counted(*function));
    let spare: u64 = spare.map(|(_, calls)| calls).sum();
    let own = rank.trace.windows.entries();
    let (mut counted, mut with_times) = (0u64, 0u64);
    for &(index, _) in windows.iter().filter(|(_, timed)| *timed) {
        let cell = facts.calls.and_then(|slot| own[index].cells.get(slot));
        counted = counted.saturating_add(cell.map_or(timed[index], |cell| cell.sum as u64));
        with_times = with_times.saturating_add(timed[index]);
    }
    counted > with_times.saturating_add(spare)
}

/// Number of ranks asked for that left nothing.
pub fn absent(run: &Run, selection: &Selection) -> u64 {
    let present: std::collections::BTreeSet<u32> = run.ranks().into_iter().collect();
    (0..run.info().ranks).filter(|rank| selection.takes_rank(*rank) && !present.contains(rank)).count() as u64
}
