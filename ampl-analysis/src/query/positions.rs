//! Positions of windows in a rank's sequence of calls.
//!
//! A window whose times are stored says where it begins. Between two such places the windows' own numbers of calls are
//! added up: where the sum is the distance, every window between them has its place. Nothing is assumed otherwise.

use std::ops::Range;

use ampl_core::mpi::{FUNCTION_COUNT, Function};
use ampl_reader::Rank;
use ampl_trace::model::WindowSummary;
use ampl_trace::record::GAP;
use ampl_trace::structure::ThreadStructure;

/// Runs at the sequence's begin among which `MPI_Init` is looked for.
const MOST_BEFORE_INIT: usize = 256;

/// Start of each window of `rank` in the sequence of its only thread, and behind them the end of the last; `None`
/// where it is not known. `stored` are windows whose times are stored, by index, with the calls that end in them.
pub fn starts(rank: &Rank<'_>, calls: Option<usize>, stored: &[(usize, Range<u64>)]) -> Vec<Option<u64>> {
    let windows = rank.trace.windows.entries();
    let mut starts = vec![None; windows.len() + 1];
    let [thread] = &rank.structure.threads[..] else { return starts };
    let anchors = anchors(rank, thread, stored);
    for &(index, position) in &anchors {
        starts[index] = Some(position);
    }
    for pair in anchors.windows(2) {
        let ((first, from), (last, until)) = (pair[0], pair[1]);
        let mut at = from;
        let mut between = Vec::with_capacity(last - first);
        let known = windows[first..last].iter().all(|window| {
            between.push(at);
            counted(window, calls).is_some_and(|calls| {
                at = at.saturating_add(calls);
                at <= until
            })
        });
        let in_turn = windows[first..last].windows(2).all(|pair| pair[0].window + 1 == pair[1].window);
        if known && in_turn && at == until {
            between.into_iter().enumerate().for_each(|(step, at)| starts[first + step] = Some(at));
        }
    }
    starts
}

/// Calls of a window, where its summary has them; `calls` is the metric's place.
fn counted(window: &WindowSummary, calls: Option<usize>) -> Option<u64> {
    let cell = window.cells.get(calls?)?;
    (cell.sum >= 0.0 && cell.sum.is_finite()).then_some(cell.sum as u64)
}

/// Places that are known: by index of the window, ascending, with what begins there.
fn anchors(rank: &Rank<'_>, thread: &ThreadStructure, stored: &[(usize, Range<u64>)]) -> Vec<(usize, u64)> {
    let windows = rank.trace.windows.entries();
    let mut anchors: Vec<(usize, u64)> = Vec::new();
    if windows.first().is_some_and(|first| first.window == 0) {
        anchors.extend(behind_init(thread).map(|position| (0, position)));
    }
    // A gap at a window's end is not among the calls that are stored.
    let whole = !thread.signatures.iter().any(|signature| signature.function == GAP);
    for (index, calls) in stored {
        anchors.push((*index, calls.start));
        let next = windows.get(index + 1).is_none_or(|next| next.window == windows[*index].window + 1);
        if whole && next {
            anchors.push((index + 1, calls.end));
        }
    }
    if rank.trace.process.finalized && last_function(thread).is_some_and(is("MPI_Finalize")) {
        anchors.extend(thread.grammar.len().checked_sub(1).map(|position| (windows.len(), position)));
    }
    anchors.sort_unstable();
    // Two places for one window contradict each other.
    let twice =
        |pair: &[(usize, u64)]| (pair[0].0 == pair[1].0 && pair[0].1 != pair[1].1).then_some(pair[0].0);
    let wrong: Vec<usize> = anchors.windows(2).filter_map(twice).collect();
    anchors.retain(|(index, _)| !wrong.contains(index));
    anchors.dedup();
    anchors
}

fn is(name: &'static str) -> impl Fn(u16) -> bool {
    move |function| usize::from(function) < FUNCTION_COUNT && Function(function).name() == name
}

/// Position behind the call that has begun MPI.
fn behind_init(thread: &ThreadStructure) -> Option<u64> {
    let mut position = 0u64;
    for (terminal, count) in thread.grammar.runs().take(MOST_BEFORE_INIT) {
        position = position.saturating_add(count);
        let function = thread.signatures.get(terminal as usize)?.function;
        if is("MPI_Init")(function) || is("MPI_Init_thread")(function) {
            return Some(position);
        }
    }
    None
}

/// Function of the last call.
fn last_function(thread: &ThreadStructure) -> Option<u16> {
    let rules = &thread.grammar.rules;
    let mut rule = rules.get(0)?;
    for _ in 0..=rules.len() {
        let symbol = rule.last()?.symbol;
        match symbol.as_rule() {
            Some(inner) => rule = rules.get(inner)?,
            None => return Some(thread.signatures.get(symbol.as_terminal()? as usize)?.function),
        }
    }
    None
}
