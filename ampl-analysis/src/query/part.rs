//! The calls of one rank that belong to a part of the run.

use std::collections::BTreeSet;
use std::ops::Range;

use ampl_core::config::{Keep, Quantity};
use ampl_core::mpi::{Class, FUNCTIONS};
use ampl_reader::selection::Selection;
use ampl_reader::{Rank, Run};
use ampl_trace::model::WindowSummary;
use ampl_trace::record::GAP;

use super::positions::starts;
use super::stored::{Stored, TimedCall};
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
    /// Windows of which it is not known which calls belong to the part.
    pub untold: u64,
    /// True where times are damaged.
    pub damaged: bool,
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

/// The part of a rank that `selection` asks for. With `times` every call that has a time is passed to `each`; without,
/// times are read only where they decide what belongs to the part.
pub fn read(
    stored: &Stored<'_>,
    selection: &Selection,
    facts: Facts,
    times: bool,
    mut each: impl FnMut(&TimedCall),
) -> RankPart {
    let rank = &stored.rank;
    let (windows, structure) = (rank.trace.windows.entries(), &rank.structure);
    let cuts = selection.cuts_time();
    let mut part = RankPart::default();
    // Windows with calls whose times are stored, and these calls; of the only thread.
    let mut of_windows: Vec<(usize, Range<u64>)> = Vec::new();
    let none = || structure.threads.iter().map(|thread| vec![0u64; thread.signatures.len()]).collect();
    let mut counts: Vec<Vec<u64>> = none();
    if times || cuts {
        let numbers = |index: usize, calls: Range<u64>| match of_windows.last_mut() {
            Some((at, own)) if *at == index => own.end = calls.end,
            _ if cuts => of_windows.push((index, calls)),
            _ => {}
        };
        let read = stored.calls(selection, numbers, |call| {
            if call.belongs && cuts {
                add(&mut counts[call.thread], call.terminal, call.count.saturating_mul(call.times));
            }
            each(call);
        });
        part.damaged = read.is_err();
    }
    part.windows = touched(rank, selection, facts, part.damaged);
    if !cuts {
        part.counts = counts_of(rank, None, none());
        return part;
    }
    let (mut spans, mut of_spans) = (Spans::default(), BTreeSet::new());
    part.untold = rank.trace.process.windows;
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
        counts = none();
        let again = stored.calls(
            selection,
            |_, _| (),
            |call| {
                if call.belongs && call.window.is_none_or(|window| !of_spans.contains(&window)) {
                    add(&mut counts[call.thread], call.terminal, call.count.saturating_mul(call.times));
                }
            },
        );
        part.damaged |= again.is_err();
    }
    part.counts = counts_of(rank, Some(spans), counts);
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

/// Calls by thread and terminal, in these stretches of its only thread or in all of the sequences, and those in
/// `counts`.
fn counts_of(rank: &Rank<'_>, spans: Option<Spans>, mut counts: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let threads = rank.structure.threads.iter();
    match spans {
        None => threads.zip(&mut counts).for_each(|(thread, counts)| {
            thread.grammar.totals().for_each(|(terminal, count)| add(counts, terminal, count));
        }),
        Some(spans) if spans.0.is_empty() => {}
        Some(spans) => {
            let spans = spans.settled();
            threads.take(1).zip(&mut counts).for_each(|(thread, counts)| {
                let found = thread.grammar.counts_in(&spans);
                found.into_iter().flatten().for_each(|(terminal, count)| add(counts, terminal, count));
            });
        }
    }
    counts
}

impl Extent {
    /// Adds a rank's part.
    pub fn add(&mut self, rank: &Rank<'_>, part: &RankPart, cuts: bool) {
        self.ranks += 1;
        self.windows += part.windows.len() as u64;
        self.timed += part.windows.iter().filter(|(_, timed)| *timed).count() as u64;
        self.untold += part.untold;
        self.damaged += u64::from(part.damaged);
        for (thread, counts) in rank.structure.threads.iter().zip(&part.counts) {
            let gaps = thread.signatures.iter().zip(counts);
            let gaps = gaps.filter(|(signature, _)| signature.function == GAP && !cuts);
            self.unrecorded += gaps.map(|(_, &count)| count).sum::<u64>();
        }
        if cuts {
            let gap = |thread: &ampl_trace::structure::ThreadStructure| {
                let of_gap = |terminal: u32| {
                    thread.signatures.get(terminal as usize).is_some_and(|s| s.function == GAP)
                };
                thread
                    .grammar
                    .totals()
                    .filter(|&(terminal, _)| of_gap(terminal))
                    .map(|(_, count)| count)
                    .sum::<u64>()
            };
            self.unrecorded += rank.structure.threads.iter().map(gap).sum::<u64>();
        }
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
