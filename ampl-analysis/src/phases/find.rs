//! Limits of the repeated part of a run.
//!
//! 1. For each place that calls MPI, find the span of windows in which it calls at least a tenth as often as on
//!    average: the span in which its calls exceed that tenth by most. A few calls long before or after do not widen
//!    it.
//! 2. The *body* has the spans of places that call in many windows: all spans that are at least half as long as the
//!    longest, without places that call rarely where busier ones do. So solvers that take turns are one body.
//! 3. A few calls of the body's places, such as a helper's, may lie in the start-up. The body begins after them where
//!    this keeps more calls of places together that call there alone.
//! 4. Before its first call the body computes. So it begins earlier by up to its usual silence, but not before the
//!    last calls of places that call there alone.
//! 5. Windows before it are the start-up if places call there alone, or if a silence is much longer than any in the
//!    body. Otherwise they belong to the body. They also do where a place calls there all the time, far more often
//!    than the body's, and not for a short time: that is another solver.
//!
//! The wind-down is the start-up of the run with its windows in reverse.

use std::ops::Range;

use super::activity::{Activity, Place};

/// Share of its mean rate from which a place is active.
const ACTIVE: f64 = 0.1;
/// Fewest windows with calls of a place of the body.
const LEAST_ACTIVE: usize = 8;
/// Least share of the run that the body takes.
const LEAST_BODY: f64 = 0.25;
/// Share of the longest span from which other spans are the body's, too.
const ALSO: f64 = 0.5;
/// Share of a busier place's calls below which a place is ignored where the busier one calls most of the time.
const RARE: f64 = 0.25;
/// Least share of the run that start-up or wind-down takes.
const LEAST: f64 = 0.02;
/// Fewest windows of start-up or wind-down. A window that the program ends may be all of it if it is longer than this
/// many usual ones.
const LEAST_WINDOWS: usize = 2;
/// Share of the run from which it may be another solver.
const SHORT: f64 = 0.1;
/// Multiple of the rate of the body's busiest place from which it is another solver.
const BUSIER: f64 = 5.0;
/// Share of a place's calls that decides where it belongs.
const OWN: f64 = 0.9;
/// The same for places before the body, where it may begin later.
const HALF: f64 = 0.5;
/// Share of the calls of a place of the body that may lie before it.
const FEW: f64 = 0.03;
/// Greatest rate of these calls, as a share of the body's rate.
const SPARSE: f64 = 0.25;
/// Least number of windows in which it is expected to call in that time.
const EXPECTED: f64 = 3.0;
/// Multiple of the body's longest silence beyond which a silence is not the body's.
const SILENT: f64 = 3.0;

/// The repeated part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Its windows.
    pub windows: Range<usize>,
    /// Usual longest time without calls, in the unit of the windows' lengths.
    pub silence: f64,
}

/// The body of a run; `None` where nothing precedes or follows it.
pub fn body(activity: &Activity) -> Option<Body> {
    let clock = Clock::of(&activity.lengths);
    let windows = activity.lengths.len();
    let all = clock.between(0, windows);
    if windows <= LEAST_ACTIVE || all <= 0.0 {
        return None;
    }
    let spans = activity.places.iter().enumerate();
    let spans = spans.filter_map(|(index, place)| Some((index, active(place, &clock, all)?))).collect();
    let kept = repeated(activity, spans, &clock);
    let first = kept.iter().map(|(_, span)| span.start).min()?;
    let last = kept.iter().map(|(_, span)| span.end).max()?;
    if clock.between(first, last) < LEAST_BODY * all {
        return None;
    }
    let is_kept = |index: usize| kept.iter().any(|&(of, _)| of == index);
    let begin = begin(activity, is_kept, first..last);
    let end = self::begin(&reversed(activity), is_kept, windows - last..windows - first);
    let body = Body { windows: begin.0..windows - end.0, silence: begin.1.max(end.1) };
    (begin.0 > 0 || end.0 > 0).then_some(body)
}

fn reversed(activity: &Activity) -> Activity {
    let windows = activity.lengths.len();
    let place = |place: &Place| {
        let back = place.windows.iter().rev().map(|&(window, calls)| (windows - 1 - window, calls));
        Place::new(place.function, back.collect())
    };
    Activity {
        lengths: activity.lengths.iter().rev().copied().collect(),
        places: activity.places.iter().map(place).collect(),
        is_clock: activity.is_clock,
    }
}

/// First window of the body, which lies in `span` by its places, and its usual silence; window 0 where nothing
/// precedes the body.
fn begin(activity: &Activity, is_kept: impl Fn(usize) -> bool, span: Range<usize>) -> (usize, f64) {
    let clock = Clock::of(&activity.lengths);
    let all = clock.between(0, activity.lengths.len());
    let places = activity.places.iter().enumerate();
    let (kept, others): (Vec<_>, Vec<_>) = places.partition(|&(index, _)| is_kept(index));
    let [kept, others] = [kept, others].map(|of| of.into_iter().map(|(_, place)| place).collect::<Vec<_>>());
    let called = |places: &[&Place], within: Range<usize>| {
        let windows = places.iter().flat_map(|place| place.windows.iter().map(|&(window, _)| window));
        let mut windows: Vec<usize> = windows.filter(|window| within.contains(window)).collect();
        windows.sort_unstable();
        windows.dedup();
        windows
    };
    let (first, most) = sharpened(&kept, &others, &called(&kept, span.clone()), &clock);
    let calling = called(&kept, most..span.end);
    let mut silences: Vec<f64> = calling.windows(2).map(|pair| clock.between(pair[0] + 1, pair[1])).collect();
    silences.sort_by(f64::total_cmp);
    let longest = silences.last().copied().unwrap_or(0.0);
    let usual = silences.get(silences.len() * 95 / 100).copied().unwrap_or(0.0);
    if clock.between(0, first) <= 2.0 * usual {
        return (0, usual); // A step is not shorter.
    }
    let own: Vec<&Place> = others.iter().copied().filter(|place| place.part(0..most + 1) >= OWN).collect();
    let blocked = called(&own, 0..first).last().map_or(0, |window| window + 1);
    let mut start = first;
    while start > blocked && clock.between(start - 1, first) <= usual {
        start -= 1;
    }
    let length = clock.between(0, start);
    let has_windows = match activity.is_clock {
        true => start >= LEAST_WINDOWS,
        false => length > LEAST_WINDOWS as f64 * clock.usual,
    };
    // A place that calls all the time, and far more often than the body, is another solver, if it is not short.
    let busiest = |places: &[&Place], within: Range<usize>| {
        let most = places.iter().map(|place| place.calls_in(within.clone())).max().unwrap_or(0);
        most as f64 / clock.between(within.start, within.end)
    };
    let steady = own.iter().copied().filter(|place| {
        let calling = called(&[place], 0..start).len();
        calling >= LEAST_ACTIVE && calling as f64 >= HALF * start as f64
    });
    let often = busiest(&steady.collect::<Vec<_>>(), 0..start) >= BUSIER * busiest(&kept, most..span.end);
    if often && length >= SHORT * all {
        return (0, usual);
    }
    let any: Vec<&Place> = activity.places.iter().collect();
    let spoke = called(&any, 0..first).last().map_or(0, |window| window + 1);
    let is_silent = clock.between(spoke, first) > SILENT * longest + clock.usual;
    // Some ranks may have finished it in the window in which the body begins.
    let is_shown = |place: &&Place| place.calls_in(0..start) > 0 && place.part(0..first + 1) >= HALF;
    let shows = own.iter().any(is_shown) || is_silent;
    (if has_windows && length >= LEAST * all && shows { start } else { 0 }, usual)
}

/// First window of the body among those with its places `calling`, and the last window that it may be. Windows before
/// that may not be the body's, if they have far fewer calls than it has in that time.
fn sharpened(kept: &[&Place], others: &[&Place], calling: &[usize], clock: &Clock) -> (usize, usize) {
    let (Some(&first), Some(&last)) = (calling.first(), calling.last()) else { return (0, 0) };
    let lost = |window: usize| kept.iter().map(move |place| place.part(0..window));
    let is_few = |&window: &usize| lost(window).all(|part| part <= FEW);
    let candidates: Vec<usize> = calling.iter().copied().take_while(is_few).collect();
    let most = candidates.last().copied().unwrap_or(first);
    // Places that call up to there alone. A window with calls of both is the body's.
    let early: Vec<&&Place> = others.iter().filter(|place| place.part(0..most + 1) >= OWN).collect();
    let all = clock.between(first, last + 1);
    let is_sparse = |window: usize| {
        let share = clock.between(first, window) / all;
        // One or two steps are too few to judge.
        share * calling.len() as f64 >= EXPECTED
            && lost(window).sum::<f64>() / kept.len() as f64 <= SPARSE * share
    };
    let cost = |window: usize| {
        lost(window).sum::<f64>() + early.iter().map(|place| 1.0 - place.part(0..window + 1)).sum::<f64>()
    };
    let possible = candidates.into_iter().filter(|&window| window == first || is_sparse(window));
    let best = possible.map(|window| (window, cost(window)));
    let best = best.reduce(|best, other| if other.1 < best.1 { other } else { best });
    (best.map_or(first, |(window, _)| window), most)
}

/// Time since the first window's start.
struct Clock {
    /// Time of each window's start, and of the end of the last.
    at: Vec<f64>,
    /// The median of the windows' lengths.
    usual: f64,
}

impl Clock {
    fn of(lengths: &[f64]) -> Self {
        let mut at = vec![0.0];
        lengths.iter().for_each(|length| at.push(at[at.len() - 1] + length.max(0.0)));
        let mut sorted: Vec<f64> = lengths.to_vec();
        sorted.sort_by(f64::total_cmp);
        let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
        Self { at, usual }
    }

    fn between(&self, from: usize, to: usize) -> f64 {
        if to > from { self.at[to] - self.at[from] } else { 0.0 }
    }
}

/// Windows in which `place` calls at least [`ACTIVE`] times as often as on average: the span over which its calls
/// exceed most the number at that rate. `None` for a place that calls in few windows.
///
/// # Source
/// The maximum-sum segment (Bentley, *Programming Pearls*, CACM 27 (1984)), over windows with calls.
fn active(place: &Place, clock: &Clock, all: f64) -> Option<Range<usize>> {
    let rate = ACTIVE * place.calls() as f64 / all;
    let (mut best, mut found) = (0.0, 0..0);
    let (mut sum, mut start) = (0.0f64, 0);
    let mut before = 0;
    for &(window, calls) in &place.windows {
        sum -= rate * clock.between(before, window);
        if sum <= 0.0 {
            (sum, start) = (0.0, window);
        }
        sum += calls as f64 - rate * clock.between(window, window + 1);
        if sum > best {
            (best, found) = (sum, start..window + 1);
        }
        before = window + 1;
    }
    let calling = place.windows.iter().filter(|(window, _)| found.contains(window)).count();
    (calling >= LEAST_ACTIVE).then_some(found)
}

/// The places, with their spans, that make up the repeated part.
fn repeated(
    activity: &Activity,
    spans: Vec<(usize, Range<usize>)>,
    clock: &Clock,
) -> Vec<(usize, Range<usize>)> {
    let length = |span: &Range<usize>| clock.between(span.start, span.end);
    let calls = |index: usize| activity.places[index].calls() as f64;
    // A place called now and then, before and after as well, is ignored where another place calls all the time.
    let is_rare = |(index, span): &(usize, Range<usize>)| {
        spans.iter().any(|(other, busy)| {
            let both = clock.between(span.start.max(busy.start), span.end.min(busy.end));
            calls(*index) < RARE * calls(*other) && both >= ALSO * length(span)
        })
    };
    let busy: Vec<_> = spans.iter().filter(|of| !is_rare(of)).cloned().collect();
    let longest = busy.iter().map(|(_, span)| length(span)).fold(0.0, f64::max);
    busy.into_iter().filter(|(_, span)| length(span) >= ALSO * longest).collect()
}
