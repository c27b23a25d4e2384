//! Calls of each place in each window, over the ranks.
//!
//! A trace has the sequence of a rank's calls, and the number of calls in each of its windows: together they give the
//! window of each call, without its time.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use ampl_core::config::{Marker, Quantity};
use ampl_core::mpi::{FUNCTION_COUNT, Function, ids};
use ampl_core::plan::Plan;
use ampl_trace::model::{Level, call_path};
use ampl_trace::record::{CALL_MISS, GAP};
use ampl_trace::structure::{RankStructure, Signature};
use ampl_trace::{RankTrace, Trace};

use super::walk::{self, Span};

/// Most windows that are examined.
const MOST_WINDOWS: u64 = 1 << 20;
/// Most ranks that are examined; of more, every second, third, … is.
const MOST_RANKS: u32 = 256;
/// Limit of the work: words and positions of structures, and steps of walks through sequences.
const MOST_WORK: u64 = 1 << 26;

/// Function, then module and offset of each frame from the call outwards.
pub type Key = (u16, Vec<(String, u64)>);

/// The calls of a place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The function.
    pub function: u16,
    /// Windows with calls, each with the number of calls that ended in it.
    pub windows: Vec<(usize, u64)>,
    /// Number of calls up to and with each of these windows.
    sums: Vec<u64>,
}

impl Place {
    /// Calls of `function` by window; windows ascend, and each has a call.
    pub fn new(function: u16, windows: Vec<(usize, u64)>) -> Self {
        let sum = |sum: &mut u64, &(_, calls): &(usize, u64)| {
            *sum = sum.saturating_add(calls);
            Some(*sum)
        };
        let sums = windows.iter().scan(0, sum).collect();
        Self { function, windows, sums }
    }

    /// Calls in all windows.
    pub fn calls(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// Calls that ended in `windows`.
    pub fn calls_in(&self, windows: Range<usize>) -> u64 {
        let before = |end: usize| {
            let count = self.windows.partition_point(|&(window, _)| window < end);
            count.checked_sub(1).map_or(0, |last| self.sums[last])
        };
        before(windows.end).saturating_sub(before(windows.start))
    }

    /// Share of all calls of the place that ended in `windows`.
    pub fn part(&self, windows: Range<usize>) -> f64 {
        self.calls_in(windows) as f64 / self.calls().max(1) as f64
    }
}

/// Calls by place and window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activity {
    /// Time in each window, nanoseconds, of ranks whose calls in it are known.
    pub lengths: Vec<f64>,
    /// Places by function and path, without those that only query or poll.
    pub places: Vec<Place>,
    /// True where windows end by the clock, not by what the program does.
    pub is_clock: bool,
}

/// Calls of a trace by place and window, with their places and ranks.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// The calls.
    pub activity: Activity,
    /// Keys of its places, in their order.
    pub keys: Vec<Key>,
    /// Number of ranks with known calls.
    pub ranks: u64,
}

/// Stride of the ranks that are examined.
fn every(trace: &Trace) -> u32 {
    trace.run.ranks.div_ceil(MOST_RANKS).max(1)
}

/// Number of ranks to examine where all left something.
pub fn to_be_looked_at(trace: &Trace) -> u64 {
    trace.run.ranks.div_ceil(every(trace)).into()
}

/// The calls of `trace`, which `plan` describes; `None` where no rank's calls are known.
pub fn of(trace: &Trace, plan: &Plan) -> Option<Known> {
    let windows = usize::try_from(trace.windows()).ok().filter(|_| trace.windows() <= MOST_WINDOWS)?;
    let calls = Quantity::Calls.name();
    let slot = trace.run.metrics.iter().position(|metric| metric.name == calls && metric.event == "*")?;
    let every = every(trace);
    let mut sums = Sums { lengths: vec![0.0; windows], ..Sums::default() };
    let (mut extent, mut steps, mut ranks) = (0u64, MOST_WORK, 0);
    for selected in trace.structure.select(|_| true).filter(|of| of.rank % every == 0) {
        extent = extent.saturating_add(selected.extent);
        if extent > MOST_WORK {
            break;
        }
        let (Some(rank), Some(structure)) = (trace.rank(selected.rank), selected.structure()) else {
            continue;
        };
        ranks += u64::from(sums.add(rank, &structure, slot, &mut steps).is_some());
    }
    let by_clock = |rank: &RankTrace| rank.process.steps.iter().any(|step| step.level == Level::Clock);
    let marker = &plan.config.window.marker;
    let is_clock = matches!(marker, Marker::Period(_) | Marker::Auto) || trace.ranks.iter().any(by_clock);
    let mut places: Vec<(Key, u32)> = sums.numbers.into_iter().collect();
    // Independent of the order in which ranks are examined.
    places.sort();
    let mut found: Vec<BTreeMap<usize, u64>> = sums.counts;
    let of_place = |(key, number): &(Key, u32)| {
        let windows = std::mem::take(&mut found[*number as usize]);
        Place::new(key.0, windows.into_iter().collect())
    };
    let known = places.iter().map(of_place).collect();
    (ranks > 0).then(|| Known {
        activity: Activity { lengths: sums.lengths, places: known, is_clock },
        keys: places.into_iter().map(|(key, _)| key).collect(),
        ranks,
    })
}

#[derive(Debug, Default)]
struct Sums {
    lengths: Vec<f64>,
    numbers: HashMap<Key, u32>,
    /// Calls by window, for each place.
    counts: Vec<BTreeMap<usize, u64>>,
}

impl Sums {
    /// Adds the calls of `rank`; `None` where their windows are not known.
    fn add(
        &mut self,
        rank: &RankTrace,
        structure: &RankStructure,
        slot: usize,
        steps: &mut u64,
    ) -> Option<()> {
        // A window has the calls of all threads together.
        let [thread] = &structure.threads[..] else { return None };
        let is_region =
            |terminal: u32| thread.signatures.get(terminal as usize).is_some_and(Signature::is_region);
        // Windows count calls alone.
        let grammar = thread.grammar.without(is_region);
        let spans = spans(rank, &thread.signatures, grammar.runs(), grammar.len(), slot)?;
        let places: Vec<Option<u32>> =
            thread.signatures.iter().map(|signature| self.place(structure, signature)).collect();
        let mut counts: BTreeMap<(u32, usize), u64> = BTreeMap::new();
        let add = |window, place, calls| *counts.entry((place, window)).or_default() += calls;
        walk::count(&grammar, &places, &spans, steps, add)?;
        for ((place, window), calls) in counts {
            if window < self.lengths.len() {
                let sum = self.counts[place as usize].entry(window).or_default();
                *sum = sum.saturating_add(calls);
            }
        }
        let known: Vec<usize> = spans.iter().filter_map(|span| span.window).collect();
        for window in &rank.windows {
            let length = window.end_ns.saturating_sub(window.start_ns).max(0) as f64;
            let number = window.window as usize;
            if let (Some(sum), true) = (self.lengths.get_mut(number), known.binary_search(&number).is_ok()) {
                *sum += length;
            }
        }
        Some(())
    }

    /// Number of the place that calls `signature`; `None` for queries, for polls that found nothing, and for init and
    /// finalize.
    fn place(&mut self, structure: &RankStructure, signature: &Signature) -> Option<u32> {
        let is_call = signature.flags & CALL_MISS == 0 && usize::from(signature.function) < FUNCTION_COUNT;
        if !is_call {
            return None;
        }
        if !Function(signature.function).spec().class.is_work() {
            return None;
        }
        let site = signature.site.checked_sub(1);
        let frames = site.into_iter().flat_map(|site| call_path(&structure.sites, site));
        let name = |module: u32| structure.modules.get(module as usize).cloned().unwrap_or_default();
        let path = frames.map(|frame| (name(frame.module), frame.offset)).collect();
        let next = self.counts.len() as u32;
        let number = *self.numbers.entry((signature.function, path)).or_insert(next);
        if number == next {
            self.counts.push(BTreeMap::new());
        }
        Some(number)
    }
}

/// Windows of `rank` as spans of its sequence of `length` calls; `None` where the numbers do not add up.
///
/// Windows are known from the beginning up to the first one that was not measured, and from the end back to the last
/// one.
fn spans(
    rank: &RankTrace,
    signatures: &[Signature],
    mut runs: impl Iterator<Item = (u32, u64)>,
    length: u64,
    slot: usize,
) -> Option<Vec<Span>> {
    let function = |terminal: u32| signatures.get(terminal as usize).map(|signature| signature.function);
    // Calls before window 0 began.
    let (terminal, count) = runs.next()?;
    let before = if function(terminal) == Some(GAP) { count } else { 0 };
    // The call that ends the last window is in none.
    let finalize = signatures.iter().any(|of| of.function == ids::MPI_FINALIZE.0);
    let after = u64::from(finalize && rank.process.finalized);
    let inside = length.checked_sub(before)?.checked_sub(after)?;
    let calls = |window: &ampl_trace::model::WindowSummary| -> Option<(usize, u64)> {
        let calls = window.cells.get(slot)?.sum;
        let is_count = calls >= 0.0 && calls.fract() == 0.0 && window.repeat <= 1;
        Some((usize::try_from(window.window).ok()?, calls as u64)).filter(|_| is_count)
    };
    let span = |(window, calls)| Span { calls, window: Some(window) };
    let mut spans: Vec<Span> = rank.windows.iter().map_while(|window| calls(&window)).map(span).collect();
    let front: u64 = spans.iter().map(|span| span.calls).fold(0, u64::saturating_add);
    if spans.len() as u64 == rank.windows.count() {
        let open = !rank.process.finalized;
        let adds_up = front == inside || open && front < inside;
        spans.insert(0, Span { calls: before, window: None });
        return adds_up.then_some(spans);
    }
    let mut back: Vec<Span> = Vec::new();
    if rank.process.finalized {
        back.extend(rank.windows.iter().rev().map_while(|window| calls(&window)).map(span));
        back.reverse();
    }
    let behind: u64 = back.iter().map(|span| span.calls).fold(0, u64::saturating_add);
    let between = inside.checked_sub(front)?.checked_sub(behind)?;
    spans.insert(0, Span { calls: before, window: None });
    spans.push(Span { calls: between, window: None });
    spans.extend(back);
    Some(spans)
}
