//! Conversion of a journal to the parts of a trace file that store its rank.
//!
//! A journal is read where it lies, twice: once for everything but the times of calls, and once for these. The windows
//! whose times are stored may be decided at the journal's end. Memory is needed for the result only.

mod buffers;
mod clock;
mod gaps;
mod late_decisions;
mod paths;
mod pending;
mod process;
mod sequence;
mod threads;
mod times;
mod within;

use std::collections::BTreeMap;

use ampl_core::config::Quantity;
use ampl_core::message::Decision;
use ampl_core::mpi::FUNCTION_COUNT;
use ampl_core::value::ObjectKind;

use crate::cells::Cells;
use crate::error::ReadError;
use crate::gaps::Reason;
use crate::journal::{self, Block, BlockKind, SITE_WORDS, flag, word};
use crate::model::{
    Aggregate, FollowedSteps, LASTING_STRATA, LeftOutRegion, Level, Limit, RankTrace, RunInfo, Step,
    WindowSummary, call_path,
};
use crate::record::{
    Kind, OBJECT_HANDLE, Record, Records, TEXT_DECISION, TEXT_LEFT_OUT, TEXT_METADATA, TEXT_RUN, TEXT_STEP,
    TEXT_TIMESTEP, WINDOW_BUFFERED, WINDOW_DRAWN, WINDOW_FIXED_WORDS, WINDOW_INCLUSION, WINDOW_KEPT,
    WINDOW_PARTIAL, WINDOW_PARTNER, WINDOW_RUN, WINDOW_STRATUM, Word, get_text,
};
use crate::structure::{Comm, RankStructure, Signature, ThreadStructure};
use crate::timestep::TimestepRecord;
use crate::timing::{Encoder, Settings};
use crate::totals::{MOST_CALLERS, SEVERAL, Totals, Way};
use clock::Clock;
use late_decisions::LateDecisions;
use paths::Paths;
use process::process;
use rustc_hash::FxHashMap;
use threads::{Handles, Line};
pub use within::Within;

/// Everything a journal holds, in a trace's terms.
#[derive(Debug, Default)]
pub struct Compacted {
    /// The rank's own part.
    pub rank: RankTrace,
    /// The rank's calls.
    pub structure: RankStructure,
    /// Exact totals by call site, function and thread; sites are those of the structure.
    pub aggregates: Vec<Aggregate>,
    /// Functions on the way to sites, by function and site.
    pub ways: Vec<(u16, u32, Way)>,
    /// Run information, in the client's journal only.
    pub run: Option<RunInfo>,
    /// Decisions, in the client's journal only.
    pub decisions: Vec<Decision>,
    /// Parts that could not be read.
    pub damage: Vec<String>,
}

impl Compacted {
    /// The rank's totals, as the run's are made of.
    pub fn totals(&self) -> Totals {
        let structure = &self.structure;
        let mut totals = Totals::of(structure.rank, &structure.modules, &structure.sites, &self.aggregates);
        for &(function, site, ref way) in &self.ways {
            let path = call_path(&structure.sites, site).map(|site| (site.module, site.offset)).collect();
            totals.add_way(function, path, way.clone());
        }
        totals
    }
}

/// The journal in `bytes`, as a trace stores it, with times by `settings`.
///
/// # Errors
/// [`ReadError`] when the header cannot be read; anything wrong behind it is reported as damage
/// beside what is left.
pub fn compact(bytes: &[u8], settings: Settings) -> Result<Compacted, ReadError> {
    compact_within(bytes, settings, Within::default())
}

/// As [`compact`], of a part of the journal.
///
/// # Errors
/// As [`compact`].
pub fn compact_within(bytes: &[u8], settings: Settings, within: Within) -> Result<Compacted, ReadError> {
    let journal = journal::read(bytes)?;
    let clock = Clock::new(&journal.header);
    let mut out = Compacted::default();
    if let Some(at) = journal.cut_at {
        out.damage.push(format!("the journal cannot be read past word {at}"));
    }
    out.rank.process = process(&journal, clock);
    out.structure.rank = out.rank.process.rank;

    // Records of a dead process that its file had no room for are gone.
    let without_memory =
        journal.header[word::SPILLED] > 0 && bytes.len() as u64 <= journal.header[word::FILE_BYTES];
    let mut scan = Scan {
        after: LateDecisions::new(out.rank.process.finalized),
        out,
        clock,
        paths: Paths::default(),
        modules: Vec::new(),
        comms: BTreeMap::new(),
        without_memory,
        handles: Handles::new(),
        lines: Vec::new(),
        calls: vec![0; FUNCTION_COUNT],
        otherwise: match within.cuts_calls() {
            true => Reason::Limit,
            false => reason_otherwise(&journal.header, without_memory),
        },
        within,
        latest: journal.header[word::TICKS_LAST],
    };
    let mut threads: BTreeMap<u32, Vec<Block<'_>>> = BTreeMap::new();
    for &block in &journal.blocks {
        threads.entry(block.thread).or_default().push(block);
    }
    for (&thread, blocks) in &threads {
        let structure = scan.thread(thread, blocks);
        scan.out.structure.threads.push(structure);
    }
    let Scan { mut out, paths, modules, comms, handles, lines, after, calls, .. } = scan;
    let counted = (0..).zip(calls).filter(|&(_, calls)| calls > 0);
    out.rank.process.calls = counted.collect();
    let missing =
        [journal.header[word::FULL], if without_memory { journal.header[word::SPILLED] } else { 0 }];
    let limited = journal.header[word::FLAGS] & flag::MAX_MEMORY != 0;
    let step = lacking(missing, clock, &out.rank);
    let limit = limited.then_some(Limit::MaxMemory);
    out.rank.process.steps.extend(step.map(|step| Step { limit, ..step }));
    if let Some(ran_ns) = ran_ns(&journal.header, out.rank.windows.entries()) {
        out.rank.process.elapsed_ns = ran_ns;
    }
    after.decide(out.rank.windows.entries_mut());
    within.apply(Quantity::Calls.slot(), &mut out.rank);
    let mut encoder = Encoder::new(settings);
    for (blocks, structure) in threads.values().zip(&out.structure.threads) {
        let pending = after.pending(blocks, out.rank.windows.entries());
        let words = words_of(blocks, BlockKind::Stream).chain(pending);
        times::encode(structure, words, clock, within.times_before, &mut encoder);
    }
    // Settings alone are no times.
    out.rank.times = if encoder.is_empty() { Vec::new() } else { encoder.finish() };
    out.structure.comms = comms.into_values().collect();
    out.structure.modules = modules;
    out.structure.sites = paths.sites();
    fold_windows(out.rank.windows.entries_mut());
    let places = lines.iter().map(|line| line.read(&out, &handles, &journal.header, clock)).collect();
    out.rank.process.threads = places;
    Ok(out)
}

/// Time from the start of the first of `windows` to the last reading of the clock, nanoseconds; `None` without windows. The
/// first reading is older: `MPI_Init` comes between.
fn ran_ns(header: &[u64], windows: &[WindowSummary]) -> Option<u64> {
    let (first, last) = windows.first().zip(windows.last())?;
    let read_ns = header[word::NANOS_LAST] as i64;
    u64::try_from(read_ns.max(last.end_ns).saturating_sub(first.start_ns)).ok()
}

/// Step to calls that are not stored, from the first of these `ticks` that is not 0: there was no room for more calls,
/// nor for a record of the step.
fn lacking(ticks: [u64; 2], clock: Clock, rank: &RankTrace) -> Option<Step> {
    let ticks = ticks.into_iter().filter(|&ticks| ticks > 0).min()?;
    let is_told = |step: &Step| step.level == Level::Summaries && step.share == 0.0;
    (!rank.process.steps.iter().any(is_told)).then(|| Step {
        window: rank.windows.entries().iter().map(|window| window.window).max().unwrap_or(0),
        at: clock.instant(ticks).max(0) as u64,
        level: Level::Summaries,
        share: 0.0,
        limit: None,
    })
}

/// Reason for which counted calls of a process with that journal are missing, where nothing else is known of them.
fn reason_otherwise(header: &[u64], without_memory: bool) -> Reason {
    match header[word::FLAGS] {
        flags if header[word::FULL] > 0 && flags & flag::MAX_MEMORY != 0 => Reason::Limit,
        _ if header[word::FULL] > 0 || without_memory => Reason::Room,
        flags if flags & flag::NO_ROOM != 0 => Reason::Room,
        flags if flags & flag::DISABLED != 0 => Reason::Failed,
        flags if flags & flag::FINALIZED == 0 => Reason::Unfinished,
        _ => Reason::Unknown,
    }
}

/// The first reading: everything but the times of calls.
struct Scan {
    out: Compacted,
    clock: Clock,
    /// Communicators by their word.
    comms: BTreeMap<u64, Comm>,
    handles: Handles,
    lines: Vec<Line>,
    /// Call sites in the order in which the threads met them.
    paths: Paths,
    /// Paths of modules by their number.
    modules: Vec<String>,
    after: LateDecisions,
    within: Within,
    /// True where a part of the journal was in memory that is gone.
    without_memory: bool,
    /// Calls of all threads by function.
    calls: Vec<u64>,
    /// Reason for which calls are missing that nothing else is known of.
    otherwise: Reason,
    /// The latest moment that is known, ticks.
    latest: u64,
}

fn words_of<'a>(blocks: &[Block<'a>], kind: BlockKind) -> impl Iterator<Item = &'a [Word]> {
    blocks.iter().filter(move |block| block.kind == kind).map(|block| block.words)
}

impl Scan {
    /// Reads the `blocks` of `thread`, except for the times of its calls.
    fn thread(&mut self, thread: u32, blocks: &[Block<'_>]) -> ThreadStructure {
        let entries = words_of(blocks, BlockKind::Sites).map(|words| words.len() / SITE_WORDS).max();
        let mut sites = Sites { near: vec![0; entries.unwrap_or(0)], far: BTreeMap::new() };
        let mut signatures: Vec<Signature> = Vec::new();
        // Of a site the last record counts.
        let mut ways: BTreeMap<u32, Way> = BTreeMap::new();
        // Numbers of paths by index of the site and way.
        let mut paths: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let (mut gaps, mut buffers) = (gaps::Records::default(), buffers::Records::default());
        for words in words_of(blocks, BlockKind::Stream) {
            let damage_before = self.out.damage.len();
            let mut records = Records::new(words);
            for record in records.by_ref() {
                let taken = match record.kind {
                    Kind::Signature => {
                        sequence::signature(record).map(|signature| signatures.push(signature))
                    }
                    Kind::Way => way(record).map(|(site, way)| drop(ways.insert(site, way))),
                    Kind::Path => {
                        self.paths.take_way(&record.words()).map(|(of, number)| _ = paths.insert(of, number))
                    }
                    Kind::Unrecorded => gaps.unrecorded(record),
                    Kind::Gap => gaps.span(record, self.clock),
                    Kind::Buffers => buffers.set(record),
                    Kind::Move => buffers.kind(record),
                    _ => self.take(thread, record, &mut sites),
                };
                if taken.is_none() {
                    self.out.damage.push(format!("thread {thread}: a {:?} record is too short", record.kind));
                }
            }
            if let Some(at) = records.malformed_at() {
                let what = format!("thread {thread}: a record at word {at} of a block is malformed");
                self.out.damage.insert(damage_before, what);
            }
        }
        // Sites are known once all of the thread has been read: a site's record may follow its first call's.
        for Signature { site, path, .. } in &mut signatures {
            *path = paths.get(&(*site, *path)).map_or(0, |number| number + 1);
            *site = sites.stored(*site);
        }
        let kept = [BlockKind::Snapshot, BlockKind::Log];
        let (grammar, wrong) = sequence::grammar(blocks, kept, signatures.len(), self.without_memory);
        self.out.damage.extend(wrong.map(|wrong| format!("thread {thread}: {wrong}")));
        let grammar = self.within.first(grammar, &mut signatures);
        if !self.within.buffers {
            buffers.forget(&mut signatures);
        }
        let (moved, wrong) = buffers::read(buffers, thread, blocks, self.without_memory);
        self.out.damage.extend(wrong.map(|wrong| format!("thread {thread}, its buffers: {wrong}")));
        if !moved.sequence.is_empty() {
            self.out.rank.buffers.threads.push(moved);
        }
        let line = Line::of(thread, blocks, |index| sites.stored(index));
        let structure = ThreadStructure { thread, signatures, grammar };
        self.gaps(gaps, &structure, blocks, line.as_ref().and_then(Line::inside), &sites);
        self.lines.extend(line);
        for words in words_of(blocks, BlockKind::Sites) {
            self.out.aggregates.extend(aggregates(words, &sites, self.clock));
            let entries = words.as_chunks::<SITE_WORDS>().0;
            self.out.ways.extend(std::mem::take(&mut ways).into_iter().filter_map(|(index, way)| {
                let function = u64::from_le_bytes(entries.get(index as usize)?[1]) as u16;
                Some((function, sites.stored(index).checked_sub(1)?, way))
            }));
        }
        structure
    }

    /// Reads the calls of a thread that were counted and not recorded.
    fn gaps(
        &mut self,
        records: gaps::Records,
        structure: &ThreadStructure,
        blocks: &[Block<'_>],
        inside: Option<u16>,
        sites: &Sites,
    ) {
        let (cut, otherwise, latest, clock) = (self.without_memory, self.otherwise, self.latest, self.clock);
        let source = gaps::Source { blocks, structure, inside, cut, otherwise, latest, clock };
        let (gaps, calls, wrong) = gaps::read(records, source, |index| sites.stored(index));
        let thread = structure.thread;
        self.out.damage.extend(wrong.map(|wrong| format!("thread {thread}, its gaps: {wrong}")));
        for (sum, calls) in self.calls.iter_mut().zip(calls) {
            *sum = sum.saturating_add(calls);
        }
        if !gaps.sequence.is_empty() {
            self.out.rank.gaps.threads.push(gaps);
        }
    }

    fn take(&mut self, thread: u32, record: Record<'_>, sites: &mut Sites) -> Option<()> {
        let out = &mut self.out;
        match record.kind {
            Kind::Call => return times::call(record).map(drop),
            Kind::Open => return times::open(record).map(drop),
            Kind::Retrospective => return self.after.take(record),
            _ => {}
        }
        let body = &record.words()[..];
        match record.kind {
            Kind::Object => {
                if record.flags & OBJECT_HANDLE != 0 {
                    let &[_, word, handle] = body.first_chunk()?;
                    self.handles.push((handle, word));
                    return Some(());
                }
                let &[kind, word, size, rank] = body.first_chunk()?;
                if kind == ObjectKind::Comm as u64 {
                    self.comms.entry(word).or_insert(Comm { word, size, rank });
                }
            }
            Kind::Place => {
                let &[word, address] = body.first_chunk()?;
                out.rank.places.take(thread, word, address);
            }
            Kind::Window => {
                let window = window_summary(record.flags, body, self.clock)?;
                if record.flags & WINDOW_BUFFERED != 0 {
                    self.after.buffered(window.window);
                }
                out.rank.windows.entries_mut().push(window);
            }
            Kind::Site => {
                let (index, number) = self.paths.take(body)?;
                sites.insert(index, number);
            }
            Kind::Module => {
                let (&number, text) = body.split_first()?;
                let number = usize::try_from(number).ok().filter(|&n| n < 1 << 16)?;
                let modules = &mut self.modules;
                modules.resize(modules.len().max(number + 1), String::new());
                modules[number] = get_text(text)?.0;
            }
            _ => {
                let text = get_text(body)?.0;
                match record.flags {
                    TEXT_RUN => out.run = serde_json::from_str(&text).ok(),
                    TEXT_METADATA => {
                        if let Some(run) = &mut out.run {
                            run.metadata.update(serde_json::from_str(&text).ok()?);
                        }
                    }
                    TEXT_DECISION => out.decisions.push(serde_json::from_str(&text).ok()?),
                    TEXT_LEFT_OUT => out
                        .rank
                        .process
                        .regions_left_out
                        .extend(serde_json::from_str::<Vec<LeftOutRegion>>(&text).ok()?),
                    TEXT_STEP => {
                        let step: Step = serde_json::from_str(&text).ok()?;
                        let at = self.clock.instant(step.at).max(0) as u64;
                        out.rank.process.steps.push(Step { at, ..step });
                    }
                    TEXT_TIMESTEP => match serde_json::from_str(&text).ok()? {
                        TimestepRecord::Followed(steps) => {
                            let at = self.clock.instant(steps.at).max(0) as u64;
                            out.rank.process.followed = Some(Box::new(FollowedSteps { at, ..steps }));
                        }
                        TimestepRecord::Unannounced(steps) => {
                            out.rank.process.unannounced = Some(Box::new(steps));
                        }
                    },
                    _ => return None,
                }
            }
        }
        Some(())
    }
}

/// Index of a site, and the functions on the way to it.
fn way(record: Record<'_>) -> Option<(u32, Way)> {
    let body = record.words();
    let (&[index, head], functions) = body.split_first_chunk()?;
    let functions = functions.as_chunks::<2>().0.iter().take(MOST_CALLERS);
    let functions = functions.map(|&[module, offset]| (module as u32, offset)).collect();
    Some((index as u32, Way { functions, several: head & 1 != 0 }))
}

/// Numbers in the trace of one thread's call sites, by their index in its site table.
#[derive(Debug)]
struct Sites {
    /// The number plus 1 by index, as long as the table; 0 where there is none.
    near: Vec<u32>,
    /// Entries that a damaged journal has beyond the table.
    far: BTreeMap<u32, u32>,
}

impl Sites {
    fn insert(&mut self, index: u32, number: u32) {
        match self.near.get_mut(index as usize) {
            Some(place) => *place = number + 1,
            None => drop(self.far.insert(index, number + 1)),
        }
    }

    /// The number plus 1, as calls store it; 0 for an unknown site.
    fn stored(&self, index: u32) -> u32 {
        let near = self.near.get(index as usize).copied();
        near.unwrap_or_else(|| self.far.get(&index).copied().unwrap_or(0))
    }
}

fn window_summary(flags: u8, body: &[u64], clock: Clock) -> Option<WindowSummary> {
    let (&[window, start, end, own, probability, update], rest) =
        body.split_first_chunk::<{ WINDOW_FIXED_WORDS - 1 }>()?;
    let (cells, behind) = Cells::take(rest)?;
    let mut behind = behind.iter();
    let mut word = |flag| if flags & flag != 0 { behind.next().map(Some) } else { Some(None) };
    let (repeat, inclusion, stratum) = (word(WINDOW_RUN)?, word(WINDOW_INCLUSION)?, word(WINDOW_STRATUM)?);
    let lasting = |&id: &u64| u16::try_from(id).unwrap_or(u16::MAX).saturating_add(LASTING_STRATA);
    Some(WindowSummary {
        repeat: repeat.copied().unwrap_or(1),
        partner: flags & WINDOW_PARTNER != 0,
        inclusion: inclusion.copied().map(f64::from_bits),
        window,
        start_ns: clock.instant(start),
        end_ns: clock.instant(end),
        own_ns: clock.duration(own).round() as u64,
        kept: flags & WINDOW_KEPT != 0,
        drawn: flags & WINDOW_DRAWN != 0,
        partial: flags & WINDOW_PARTIAL != 0,
        probability: f64::from_bits(probability),
        stratum: stratum.map(lasting),
        update,
        cells,
    })
}

fn aggregates(words: &[Word], sites: &Sites, clock: Clock) -> impl Iterator<Item = Aggregate> {
    let entries = words.as_chunks::<SITE_WORDS>().0.iter().map(|entry| entry.map(u64::from_le_bytes));
    entries.enumerate().filter(|(_, entry)| entry[2] > 0).map(move |(index, entry)| Aggregate {
        site: sites.stored(index as u32).checked_sub(1),
        // The entry that sites beyond the table share is of several functions.
        function: if index == 0 { SEVERAL } else { entry[1] as u16 },
        calls: entry[2],
        time_ns: clock.duration(entry[3]),
        time_sq: (u128::from(entry[9]) << 64 | u128::from(entry[4])) as f64 * clock.per_tick * clock.per_tick,
        min_ns: clock.duration(entry[5]),
        max_ns: clock.duration(entry[6]),
        sent: entry[7],
        received: entry[8],
    })
}

/// Joins the summaries that several threads leave of one window, on the first.
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
