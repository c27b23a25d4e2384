//! From a journal to what a trace file stores of that rank.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ampl_core::message::Decision;

use crate::error::ReadError;
use crate::journal::{self, BlockKind, Journal, SITE_WORDS, flag, word};
use crate::model::{Aggregate, Cell, Process, RankTrace, RunInfo, Site, WindowSummary};
use crate::record::{
    CELL_WORDS, Kind, Record, TEXT_DECISION, TEXT_RUN, WINDOW_DRAWN, WINDOW_FIXED_WORDS, WINDOW_KEPT,
    WINDOW_PARTIAL, get_text, records,
};
use crate::varint;

/// Everything a journal holds, in a trace's terms.
#[derive(Debug, Default)]
pub struct Compacted {
    /// The rank's own part.
    pub rank: RankTrace,
    /// Run information, in the client's journal only.
    pub run: Option<RunInfo>,
    /// Decisions, in the client's journal only.
    pub decisions: Vec<Decision>,
    /// What could not be read.
    pub damage: Vec<String>,
}

/// Ticks to nanoseconds since T0, through a journal's two clock pairs.
#[derive(Clone, Copy, Debug)]
struct Clock {
    ticks: u64,
    nanos: i64,
    per_tick: f64,
}

impl Clock {
    fn new(header: &[u64]) -> Self {
        let ticks = header[word::TICKS_LAST].wrapping_sub(header[word::TICKS_FIRST]);
        let nanos = header[word::NANOS_LAST].wrapping_sub(header[word::NANOS_FIRST]) as i64;
        let per_tick = if ticks == 0 { 1.0 } else { nanos as f64 / ticks as f64 };
        Self { ticks: header[word::TICKS_FIRST], nanos: header[word::NANOS_FIRST] as i64, per_tick }
    }

    fn duration(self, ticks: u64) -> f64 {
        ticks as f64 * self.per_tick
    }

    fn instant(self, ticks: u64) -> i64 {
        let since = (ticks.wrapping_sub(self.ticks) as i64 as f64 * self.per_tick).round() as i64;
        // Words of a damaged journal may be anything.
        self.nanos.saturating_add(since)
    }
}

/// The journal in `bytes`, as a trace stores it.
///
/// # Errors
/// [`ReadError`] when the header cannot be read; anything wrong behind it is reported as damage
/// beside what is left.
pub fn compact(bytes: &[u8]) -> Result<Compacted, ReadError> {
    let journal = journal::read(bytes)?;
    let clock = Clock::new(&journal.header);
    let mut out = Compacted::default();
    if let Some(at) = journal.cut_at {
        out.damage.push(format!("the journal cannot be read past word {at}"));
    }
    out.rank.process = process(&journal, clock);

    let mut site_numbers = BTreeMap::new();
    let mut streams = Vec::new();
    let threads: BTreeSet<u32> = journal.blocks.iter().map(|block| block.thread).collect();
    for thread in threads {
        let mut stream = Stream::default();
        for block in journal.blocks.iter().filter(|b| b.thread == thread && b.kind == BlockKind::Stream) {
            let (found, bad) = records(&block.words);
            if let Some(at) = bad {
                out.damage.push(format!("thread {thread}: a record at word {at} of a block is malformed"));
            }
            for record in found {
                if stream.take(record, clock, &mut out).is_none() {
                    out.damage.push(format!("thread {thread}: a {:?} record is too short", record.kind));
                }
            }
        }
        let sites: BTreeMap<u32, u32> = stream
            .sites
            .iter()
            .map(|&(index, site)| {
                let next = site_numbers.len() as u32;
                (index, *site_numbers.entry(site).or_insert(next))
            })
            .collect();
        for block in journal.blocks.iter().filter(|b| b.thread == thread && b.kind == BlockKind::Sites) {
            out.rank.aggregates.extend(aggregates(&block.words, &sites, clock));
        }
        streams.push(Lane { thread, sites, events: stream.events.into() });
    }
    out.rank.sites = vec![Site { module: 0, offset: 0 }; site_numbers.len()];
    for (site, number) in site_numbers {
        out.rank.sites[number as usize] = site;
    }
    fold_windows(&mut out.rank.windows);
    write_calls(streams, &mut out.rank);
    Ok(out)
}

fn process(journal: &Journal, clock: Clock) -> Process {
    let header = &journal.header;
    let mut calls = BTreeMap::new();
    for block in journal.blocks.iter().filter(|block| block.kind == BlockKind::Counters) {
        for (function, &count) in block.words.iter().take(ampl_core::mpi::FUNCTION_COUNT).enumerate() {
            if count > 0 {
                let total: &mut u64 = calls.entry(function as u16).or_insert(0);
                *total = total.saturating_add(count);
            }
        }
    }
    let mut texts = &header[word::TEXTS..];
    let mut text = || {
        let (text, used) = get_text(texts).unwrap_or_default();
        texts = &texts[used.min(texts.len())..];
        text
    };
    Process {
        rank: header[word::RANK] as u32,
        host: text(),
        cpus: text(),
        pid: header[word::PID] as u32,
        finalized: header[word::FLAGS] & flag::FINALIZED != 0,
        agent_failures: header[word::FAILURES],
        own_ns: clock.duration(header[word::OWN_TICKS]) as u64,
        elapsed_ns: header[word::NANOS_LAST].wrapping_sub(header[word::NANOS_FIRST]),
        calls: calls.into_iter().collect(),
    }
}

/// A record that has a place in the stored call sequence.
#[derive(Debug)]
enum Event {
    Open { window: u64, start: i64, calls_before: u64 },
    Call { function: u16, flags: u8, start: i64, duration: u64, site: u32, count: u32, words: Vec<u64> },
}

impl Event {
    fn start(&self) -> i64 {
        match self {
            Self::Open { start, .. } | Self::Call { start, .. } => *start,
        }
    }
}

/// One thread's events in program order.
#[derive(Debug)]
struct Lane {
    thread: u32,
    sites: BTreeMap<u32, u32>,
    events: VecDeque<Event>,
}

#[derive(Debug, Default)]
struct Stream {
    events: Vec<Event>,
    sites: Vec<(u32, Site)>,
}

impl Stream {
    fn take(&mut self, record: Record<'_>, clock: Clock, out: &mut Compacted) -> Option<()> {
        let body = record.body;
        match record.kind {
            Kind::Call => {
                let (&[start, duration, site], words) = body.split_first_chunk::<3>()?;
                self.events.push(Event::Call {
                    function: record.function,
                    flags: record.flags,
                    start: clock.instant(start),
                    duration: clock.duration(duration).round() as u64,
                    site: site as u32,
                    count: (site >> 32) as u32,
                    words: words.to_vec(),
                });
            }
            Kind::Open => {
                let &[window, start, _probability, _update, calls_before] = body.first_chunk::<5>()?;
                self.events.push(Event::Open { window, start: clock.instant(start), calls_before });
            }
            Kind::Window => out.rank.windows.push(window_summary(record, clock)?),
            Kind::Site => {
                let &[index, module, offset] = body.first_chunk::<3>()?;
                self.sites.push((index as u32, Site { module: module as u32, offset }));
            }
            Kind::Module => {
                let (&number, text) = body.split_first()?;
                let number = usize::try_from(number).ok().filter(|&n| n < 1 << 16)?;
                let modules = &mut out.rank.modules;
                modules.resize(modules.len().max(number + 1), String::new());
                modules[number] = get_text(text)?.0;
            }
            Kind::Object => {}
            Kind::Text => {
                let text = get_text(body)?.0;
                match record.flags {
                    TEXT_RUN => out.run = serde_json::from_str(&text).ok(),
                    TEXT_DECISION => out.decisions.push(serde_json::from_str(&text).ok()?),
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

fn window_summary(record: Record<'_>, clock: Clock) -> Option<WindowSummary> {
    let (&[window, start, end, own, probability, update, cells], rest) =
        record.body.split_first_chunk::<{ WINDOW_FIXED_WORDS - 1 }>()?;
    let cells = usize::try_from(cells).ok()?;
    let words = rest.get(..cells.checked_mul(CELL_WORDS)?)?;
    Some(WindowSummary {
        window,
        start_ns: clock.instant(start),
        end_ns: clock.instant(end),
        own_ns: clock.duration(own) as u64,
        kept: record.flags & WINDOW_KEPT != 0,
        drawn: record.flags & WINDOW_DRAWN != 0,
        partial: record.flags & WINDOW_PARTIAL != 0,
        probability: f64::from_bits(probability),
        update,
        cells: words
            .chunks_exact(CELL_WORDS)
            .map(|cell| Cell {
                n: f64::from_bits(cell[0]),
                sum: f64::from_bits(cell[1]),
                sum_sq: f64::from_bits(cell[2]),
                min: f64::from_bits(cell[3]),
                max: f64::from_bits(cell[4]),
            })
            .collect(),
    })
}

fn aggregates<'a>(
    words: &'a [u64],
    sites: &'a BTreeMap<u32, u32>,
    clock: Clock,
) -> impl Iterator<Item = Aggregate> + 'a {
    words.chunks_exact(SITE_WORDS).enumerate().filter(|(_, entry)| entry[2] > 0).map(move |(index, entry)| {
        let calls = entry[2];
        Aggregate {
            site: sites.get(&(index as u32)).copied(),
            function: entry[1] as u16,
            calls,
            time_ns: clock.duration(entry[3]),
            time_sq: f64::from_bits(entry[4]) * clock.per_tick * clock.per_tick,
            min_ns: clock.duration(entry[5]),
            max_ns: clock.duration(entry[6]),
            sent: entry[7],
            received: entry[8],
        }
    })
}

/// Several threads leave a summary each of one window: they become one, on the first.
fn fold_windows(windows: &mut Vec<WindowSummary>) {
    windows.sort_by_key(|window| window.window);
    windows.dedup_by(|later, first| {
        let same = later.window == first.window;
        if same {
            first.own_ns = first.own_ns.saturating_add(later.own_ns);
            first.kept |= later.kept;
        }
        same
    });
}

/// Merges the threads by start time; each keeps its own program order, whatever its clock says.
fn write_calls(mut lanes: Vec<Lane>, rank: &mut RankTrace) {
    let (calls, times) = (&mut rank.calls, &mut rank.times);
    let mut clock = 0i64;
    let earliest = |lanes: &[Lane]| {
        let heads = lanes.iter().enumerate().filter_map(|(i, lane)| Some((lane.events.front()?.start(), i)));
        heads.min().map(|(_, lane)| lane)
    };
    while let Some(next) = earliest(&lanes) {
        let lane = &mut lanes[next];
        let event = lane.events.pop_front().expect("it has a head");
        let start = event.start();
        match event {
            Event::Open { window, calls_before, .. } => {
                varint::put(calls, 0);
                varint::put(calls, u64::from(lane.thread));
                varint::put(calls, window);
                varint::put(calls, calls_before);
            }
            Event::Call { function, flags, duration, site, count, words, .. } => {
                varint::put(calls, u64::from(function) + 1);
                varint::put(calls, u64::from(flags));
                varint::put(calls, u64::from(lane.thread));
                varint::put(calls, lane.sites.get(&site).map_or(0, |&number| u64::from(number) + 1));
                varint::put(calls, u64::from(count));
                varint::put(calls, words.len() as u64);
                words.iter().for_each(|&word| varint::put_signed(calls, word as i64));
                varint::put_signed(times, start.wrapping_sub(clock));
                varint::put(times, duration);
                clock = start;
            }
        }
    }
}
