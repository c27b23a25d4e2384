//! Shares of time by function, of ranks or of ranks alike, pixel by pixel.
//!
//! Time whose calls are not stored is a share of its own: nothing is put in its place.

use ampl_core::mpi::FUNCTIONS;
use ampl_core::units::RankSet;
use ampl_reader::Run;
use ampl_reader::selection::Selection;
use ampl_trace::model::WindowSummary;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::part::{Extent, Facts, RankPart, absent, has_untimed, touched};
use super::spans::Event;
use super::stored::Stored;

/// Most pixels of a timeline.
pub const MOST_PIXELS: u32 = 1 << 16;
/// Most ranks that have rows of their own unless they are asked for.
pub const MOST_ROWS: usize = 256;

/// Name of time outside MPI.
pub const COMPUTE: &str = "compute";
/// Name of time outside MPI, or in calls without times, where there are such.
pub const COMPUTE_OR_UNTIMED: &str = "compute or untimed";
/// Name of time whose calls are not stored.
pub const UNSAMPLED: &str = "unsampled";

/// Share of a pixel's time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The function; [`COMPUTE`], [`COMPUTE_OR_UNTIMED`] or [`UNSAMPLED`].
    pub function: &'static str,
    /// Its share of the pixel, in (0, 1].
    pub share: f64,
}

/// A rank, or ranks that make the same calls.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The rank, or the lowest of them.
    pub rank: u32,
    /// The ranks, `0-3,8`, where there are several: shares are their mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<String>,
    /// Shares by pixel, largest first. Time at which the rank had no window is in none of them.
    pub shares: Vec<Vec<Share>>,
}

/// Shares of time by row and pixel.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Timeline {
    /// Start of the first pixel, nanoseconds since T0.
    pub t0_ns: i64,
    /// Length of a pixel, nanoseconds.
    pub pixel_ns: f64,
    /// The rows, by rank.
    pub rows: Vec<Row>,
    /// Extent to which the part is known.
    #[serde(skip)]
    pub extent: Extent,
}

/// Time of one row in one pixel by function, nanoseconds.
type Pixel = FxHashMap<&'static str, f64>;

/// Pixels of a stretch of time.
#[derive(Clone, Copy, Debug)]
struct Grid {
    t0_ns: i64,
    pixel_ns: f64,
    width: usize,
}

/// Place of a span that lies in one pixel, or in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    In(usize),
    Outside,
}

impl Grid {
    /// The only pixel that a span touches; `None` where it may touch several.
    fn pixel_of(self, start_ns: i64, end_ns: i64) -> Option<Place> {
        let since = |at: i64| at.saturating_sub(self.t0_ns) as f64;
        let (from, until, end) = (since(start_ns), since(end_ns), self.pixel_ns * self.width as f64);
        if until <= 0.0 || from >= end {
            return Some(Place::Outside);
        }
        let pixel = |at: f64| ((at / self.pixel_ns) as usize).min(self.width - 1);
        (from >= 0.0 && until <= end && pixel(from) == pixel(until)).then(|| Place::In(pixel(from)))
    }

    /// Passes each pixel that a span touches, and how much of it, nanoseconds.
    fn spread(self, start_ns: i64, end_ns: i64, mut each: impl FnMut(usize, f64)) {
        let since = |at: i64| at.saturating_sub(self.t0_ns) as f64;
        let (from, until) = (since(start_ns).max(0.0), since(end_ns).min(self.pixel_ns * self.width as f64));
        if from >= until {
            return;
        }
        let pixel = |at: f64| ((at / self.pixel_ns) as usize).min(self.width - 1);
        for pixel in pixel(from)..=pixel(until) {
            let (begin, end) = (self.pixel_ns * pixel as f64, self.pixel_ns * (pixel + 1) as f64);
            let inside = until.min(end) - from.max(begin);
            if inside > 0.0 {
                each(pixel, inside);
            }
        }
    }
}

/// Timeline of the part of `run` that `selection` asks for, in `width` pixels; `rank_done` is called behind each rank.
/// Without ranks asked for, those of a job of more than [`MOST_ROWS`] that make the same calls share a row. `None` where
/// no window of these ranks lies in that time.
pub fn timeline(
    run: &Run,
    selection: &Selection,
    width: u32,
    mut rank_done: impl FnMut(),
) -> Option<Timeline> {
    let width = width.clamp(1, MOST_PIXELS) as usize;
    let ranks: Vec<u32> = run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)).collect();
    let grid = grid(run, selection, &ranks, width)?;
    let alike = selection.takes_all(run.info().ranks) && ranks.len() > MOST_ROWS;
    let groups: Vec<Vec<u32>> = match alike {
        true => run.structure().groups().map(|group| group.ranks().collect()).collect(),
        false => ranks.iter().map(|&rank| vec![rank]).collect(),
    };
    let facts = Facts::of(run);
    let mut extent = Extent::default();
    let row = |members: &Vec<u32>| {
        let (mut pixels, mut extent) = (vec![Pixel::default(); width], Extent::default());
        let mut found = 0usize;
        let stored = |&number: &u32| Stored::for_sums(run, number, selection, facts);
        for rank in members.iter().filter_map(stored) {
            add(&mut pixels, &rank, selection, facts, grid, &mut extent);
            found += 1;
        }
        let scale = grid.pixel_ns * found.max(1) as f64;
        let row = Row {
            rank: members.first().copied().unwrap_or(0),
            ranks: (members.len() > 1).then(|| RankSet::from_iter(members.iter().copied()).to_string()),
            shares: pixels.into_iter().map(|pixel| shares(pixel, scale)).collect(),
        };
        (row, extent)
    };
    let mut rows = Vec::with_capacity(groups.len());
    // As many ranks as there are threads are in memory.
    for groups in groups.chunks(rayon::current_num_threads()) {
        let found: Vec<(Row, Extent)> = groups.par_iter().map(row).collect();
        for (row, own) in found {
            extent.join(own);
            rows.push(row);
        }
        groups.iter().flatten().for_each(|_| rank_done());
    }
    rows.sort_by_key(|row| row.rank);
    extent.missing_ranks = absent(run, selection);
    // Of a timeline nothing but times is asked.
    (extent.untold, extent.unrecorded) = (0, 0);
    Some(Timeline { t0_ns: grid.t0_ns, pixel_ns: grid.pixel_ns, rows, extent })
}

/// The stretch of time that is asked for; of an open end, as far as these ranks have windows.
fn grid(run: &Run, selection: &Selection, ranks: &[u32], width: usize) -> Option<Grid> {
    let (mut from, mut until) = (i64::MAX, i64::MIN);
    for rank in ranks.iter().filter_map(|&rank| run.rank_windows(rank)) {
        for window in rank.windows.iter().filter(|window| selection.takes_window(window)) {
            (from, until) = (from.min(window.start_ns), until.max(window.end_ns));
        }
    }
    if from >= until {
        return None;
    }
    let (from, until) = (selection.from_ns().unwrap_or(from), selection.until_ns().unwrap_or(until));
    let length = until.checked_sub(from).filter(|&length| length > 0)?;
    Some(Grid { t0_ns: from, pixel_ns: length as f64 / width as f64, width })
}

/// Time of a rank in functions, by pixel.
struct Times {
    width: usize,
    /// By function, where it has a row.
    rows: Vec<Option<usize>>,
    /// Functions, and their nanoseconds by pixel.
    of: Vec<(&'static str, Vec<f64>)>,
}

impl Times {
    fn new(width: usize) -> Self {
        Self { width, rows: vec![None; FUNCTIONS.len()], of: Vec::new() }
    }

    fn of(&mut self, function: u16) -> &mut [f64] {
        let at = *self.rows[usize::from(function)].get_or_insert_with(|| {
            self.of.push((FUNCTIONS[usize::from(function)].name, vec![0.0; self.width]));
            self.of.len() - 1
        });
        &mut self.of[at].1
    }
}

/// Adds the time of a rank by function.
fn add(
    pixels: &mut [Pixel],
    stored: &Stored<'_>,
    selection: &Selection,
    facts: Facts,
    grid: Grid,
    extent: &mut Extent,
) {
    let rank = &stored.rank;
    let windows = rank.trace.windows.entries();
    let mut own = Times::new(grid.width);
    // Calls that began before the window that they end in.
    let mut early: Vec<(i64, i64)> = Vec::new();
    let mut threads = vec![false; rank.structure.threads.len()];
    let mut timed_calls = vec![0u64; windows.len()];
    let in_one = |start_ns, end_ns, begin| start_ns >= begin && grid.pixel_of(start_ns, end_ns).is_some();
    let read = stored.spans(in_one, |event| match event {
        Event::Calls { window, thread, calls } => {
            threads[thread] = true;
            if let Some(sum) = window.and_then(|window| timed_calls.get_mut(window)) {
                *sum = sum.saturating_add(calls);
            }
        }
        Event::Time(window, span) => {
            let of = own.of(span.function);
            match span.several_ns.zip(grid.pixel_of(span.start_ns, span.end_ns)) {
                Some((nanos, Place::In(pixel))) => of[pixel] += nanos as f64,
                Some((_, Place::Outside)) => {}
                None => grid.spread(span.start_ns, span.end_ns, |pixel, nanos| of[pixel] += nanos),
            }
            let begin = window.map_or(i64::MAX, |window| windows[window].start_ns);
            if span.start_ns < begin {
                early.push((span.start_ns, span.end_ns.min(begin)));
            }
        }
    });
    let part = RankPart {
        windows: touched(rank, selection, facts, read.is_err()),
        damaged: read.is_err(),
        ..RankPart::default()
    };
    extent.add(stored, &part, selection.cuts_time());
    let rest = match has_untimed(rank, facts, &part.windows, &timed_calls) {
        true => COMPUTE_OR_UNTIMED,
        false => COMPUTE,
    };
    // Calls of several threads overlap: each is one thread's part of the rank's time.
    let threads = threads.into_iter().filter(|&thread| thread).count().max(1) as f64;
    for (function, own) in own.of {
        for (pixel, nanos) in pixels.iter_mut().zip(own).filter(|(_, nanos)| *nanos > 0.0) {
            *pixel.entry(function).or_default() += nanos / threads;
            *pixel.entry(rest).or_default() -= nanos / threads;
        }
    }
    let mut put = |start_ns, end_ns, function, weight: f64| {
        grid.spread(start_ns, end_ns, |pixel, nanos| {
            *pixels[pixel].entry(function).or_default() += weight * nanos;
        });
    };
    // A rank whose MPI_Init returned late has windows of before, which it did not spend in the program.
    let begin = windows.first().map_or(i64::MIN, |window| window.start_ns);
    for &(index, timed) in &part.windows {
        let function = if timed { rest } else { UNSAMPLED };
        put(windows[index].start_ns.max(begin), windows[index].end_ns, function, 1.0);
    }
    let timed = |at: usize| part.windows.binary_search(&(at, true)).is_ok();
    for (start_ns, end_ns) in early {
        for (from, until) in untimed(windows, timed, start_ns.max(begin), end_ns) {
            put(from, until, UNSAMPLED, -1.0 / threads);
            put(from, until, rest, 1.0 / threads);
        }
        // Before all windows there is no time to be shared out but the call's.
        put(start_ns, end_ns.min(begin), rest, 1.0 / threads);
    }
}

/// Parts of a span that lie in windows without times.
fn untimed(
    windows: &[WindowSummary],
    timed: impl Fn(usize) -> bool,
    start_ns: i64,
    end_ns: i64,
) -> Vec<(i64, i64)> {
    let first = windows.partition_point(|window| window.end_ns <= start_ns);
    let inside = windows.iter().enumerate().skip(first).take_while(|(_, window)| window.start_ns < end_ns);
    inside
        .filter(|(at, _)| !timed(*at))
        .map(|(_, window)| (start_ns.max(window.start_ns), end_ns.min(window.end_ns)))
        .collect()
}

fn shares(pixel: Pixel, scale: f64) -> Vec<Share> {
    let share = |(function, nanos): (&'static str, f64)| Share { function, share: (nanos / scale).min(1.0) };
    // Rounding leaves next to nothing where there was nothing.
    let mut shares: Vec<Share> = pixel.into_iter().map(share).filter(|share| share.share > 1e-9).collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.function.cmp(b.function)));
    shares
}
