//! Spans in which calls were only counted, because more would have cost too much.

use ampl_trace::model::{Level, Step, WindowSummary};
use ampl_trace::{RankTrace, Trace};

/// True where calls of some rank were only counted for a while, because more would have cost too much.
pub fn is_only_counted(trace: &Trace) -> bool {
    trace.ranks.iter().any(is_counted)
}

/// True where calls of `rank` were only counted for a while.
pub fn is_counted(rank: &RankTrace) -> bool {
    rank.process.steps.iter().any(|step| step.level == Level::Off)
}

/// Spans in which calls of `rank` were only counted, nanoseconds since its start.
pub fn counted_spans(rank: &RankTrace) -> Vec<(f64, f64)> {
    spans(rank).into_iter().map(|span| span.time).collect()
}

/// Test of a window of `rank`: true where its calls were only counted for some time. A window without a length goes
/// by its number. `None` where calls were never only counted.
pub fn in_counted_span(rank: &RankTrace) -> Option<impl Fn(&WindowSummary) -> bool + use<>> {
    let spans = spans(rank);
    let is_any = !spans.is_empty();
    let is_in = |spans: &[Span], window: &WindowSummary| {
        let (start, end) = (window.start_ns as f64, window.end_ns as f64);
        spans.iter().any(|span| match end > start {
            true => start < span.time.1 && end > span.time.0,
            false => (span.windows.0..=span.windows.1).contains(&window.window),
        })
    };
    let test = move |window: &WindowSummary| is_in(&spans, window);
    is_any.then_some(test)
}

/// A time in which calls were only counted.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// From, to: nanoseconds since T0.
    time: (f64, f64),
    /// The windows that were open then: the first and the last.
    windows: (u64, u64),
}

fn spans(rank: &RankTrace) -> Vec<Span> {
    let start = rank.windows.entries().first().map_or(0, |window| window.start_ns);
    let end = start as f64 + rank.process.elapsed_ns as f64;
    let (mut spans, mut since) = (Vec::new(), None);
    let mut steps: Vec<&Step> = rank.process.steps.iter().filter(|step| step.level != Level::Clock).collect();
    // One that had no room for a record is listed last.
    steps.sort_by_key(|step| step.at);
    for step in steps {
        let at = (step.at as f64).min(end);
        match (since, step.level == Level::Off) {
            (None, true) => since = Some((at, step.window)),
            (Some((from, first)), false) => {
                spans.push(Span { time: (from, at), windows: (first, step.window) });
                since = None;
            }
            _ => {}
        }
    }
    spans.extend(since.map(|(from, first)| Span { time: (from, end), windows: (first, u64::MAX) }));
    spans
}
