//! Calls, time and bytes by function, region and call site, of any ranks and any time.

use std::collections::{BTreeMap, BTreeSet};

use ampl_core::mpi::{FUNCTIONS, Traffic};
use ampl_reader::Run;
use ampl_reader::selection::Selection;
use ampl_reader::sites::Symbols;
use ampl_trace::model::Level;
use ampl_trace::totals::SEVERAL;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::estimated::{Sample, Total};
use super::keys::Keys;
use super::part::{Extent, Facts, RankPart, Summed, absent, read_sums};
use super::regions::{Visits, regions};
use super::stored::Stored;

/// Data that times rest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// All ranks' calls were timed and summed up.
    Census,
    /// Times of calls, of all rank-windows or of a sample that stands for them.
    Trace,
}

/// A function at a call site; the order of fields is part of the format. What is not known is `None`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The function; none for calls beyond the table of sites.
    pub function: Option<&'static str>,
    /// Call site; none where sites were not told apart.
    pub site: Option<String>,
    /// The region, in the row of a region: of its visits, without function and site.
    pub region: Option<String>,
    /// Number of calls.
    pub calls: Option<u64>,
    /// Time in them, nanoseconds, as far as it lies in the part.
    pub inclusive_ns: Option<f64>,
    /// The same without the calls and regions in them.
    pub exclusive_ns: Option<f64>,
    /// Bytes that they sent, or received where they sent none.
    pub bytes: Option<u64>,
    /// Half of the interval of `inclusive_ns`; 0 where all calls were timed.
    pub half_width: Option<f64>,
    /// Data that the times rest on.
    pub basis: Option<Basis>,
    /// Half of the interval of `calls`; 0 where they were counted.
    pub calls_half_width: Option<f64>,
    /// Calls that are known to be in the part: all of them, unless some windows' calls are not told.
    pub known_calls: u64,
    /// Largest error of `inclusive_ns` by the precision of stored times, nanoseconds.
    pub error_ns: f64,
}

/// The rows of a part, most time first, then most calls.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The rows of functions.
    pub rows: Vec<Row>,
    /// The rows of regions: calls are visits.
    pub regions: Vec<Row>,
    /// Extent to which the part is known.
    pub extent: Extent,
    /// Confidence of intervals.
    pub confidence: f64,
    /// True where times are those of the sampled windows, which stand for the others.
    pub is_estimated: bool,
    /// True where calls and times are those of the census.
    pub from_census: bool,
}

/// Sums of a key.
#[derive(Clone, Debug, Default)]
struct Sums {
    calls: u64,
    /// `None` once bytes of a call are not known.
    bytes: Option<u64>,
    /// By number of the rank-window: time and calls.
    windows: Vec<(u32, f64, f64)>,
    /// Time outside of any window.
    elsewhere_ns: f64,
    /// Calls there.
    elsewhere_calls: f64,
    /// Calls whose end is not known.
    unfinished: u64,
    error_ns: f64,
}

/// Keys by thread and terminal.
type Names = Vec<Vec<Option<u32>>>;

/// Sums of a rank.
struct RankSums {
    part: RankPart,
    /// By key and window.
    own: BTreeMap<(u32, Option<usize>), Timed>,
}

/// Times of a key in a window, added up.
#[derive(Default)]
struct Timed {
    ns: f64,
    calls: f64,
    unfinished: u64,
    error_ns: f64,
}

impl RankSums {
    fn of(stored: &Stored<'_>, names: &Names, selection: &Selection, facts: Facts, times: bool) -> Self {
        let mut own: BTreeMap<_, Timed> = BTreeMap::new();
        let part = read_sums(stored, selection, facts, times, |call| {
            let Some(key) = names[call.thread].get(call.terminal as usize).copied().flatten() else { return };
            if call.inside_ns == 0 && !call.belongs && call.unfinished == 0 {
                return;
            }
            let sum = own.entry((key, call.window)).or_default();
            sum.unfinished += call.unfinished;
            if call.inside_ns > 0 || call.belongs {
                sum.ns += call.inside_ns as f64;
                sum.calls += if call.belongs { call.calls as f64 } else { 0.0 };
                sum.error_ns += call.error_ns;
            }
        });
        Self { part, own }
    }

    /// Adds them to those of all ranks.
    fn add_to(
        self,
        sums: &mut [Sums],
        sample: &mut Sample<'_>,
        stored: &Stored<'_>,
        names: &Names,
        moved: &[Vec<Option<u64>>],
    ) {
        let mut numbers: FxHashMap<usize, u32> = FxHashMap::default();
        let windows = stored.rank.trace.windows.entries();
        for &(index, timed) in &self.part.windows {
            numbers.insert(index, sample.add(stored.rank.trace.process.rank, &windows[index], timed));
        }
        for ((key, window), Timed { ns, calls, unfinished, error_ns }) in self.own {
            let sums = &mut sums[key as usize];
            sums.unfinished += unfinished;
            sums.error_ns += error_ns;
            match window.and_then(|window| numbers.get(&window)) {
                Some(&number) => sums.windows.push((number, ns, calls)),
                // A call that ends behind the part.
                None => {
                    sums.elsewhere_ns += ns;
                    sums.elsewhere_calls += calls;
                }
            }
        }
        for ((counts, names), moved) in self.part.counts.iter().zip(names).zip(moved) {
            for ((&count, name), &moved) in counts.iter().zip(names).zip(moved) {
                let Some(key) = name.filter(|_| count > 0) else { continue };
                sums[key as usize].add(count, moved.map(|moved| moved.saturating_mul(count)));
            }
        }
        for &Summed { thread, terminal, calls, bytes } in &self.part.summed {
            let Some(key) = names[thread].get(terminal as usize).copied().flatten() else { continue };
            sums[key as usize].add(calls, bytes);
        }
    }
}

impl Sums {
    /// Adds calls, and the bytes that they move where these are known.
    fn add(&mut self, calls: u64, bytes: Option<u64>) {
        self.calls = self.calls.saturating_add(calls);
        self.bytes = self.bytes.zip(bytes).map(|(sum, bytes)| sum.saturating_add(bytes));
    }
}

/// Calls and time of a key over the whole run, by the census.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    calls: u64,
    time_ns: u64,
}

/// Summary of the part of `run` that `selection` asks for. `with_regions` has the ranks
/// [with regions](super::ranks_with_regions); `rank_done` is called behind each rank.
pub fn summary(
    run: &Run,
    selection: &Selection,
    with_regions: &BTreeSet<u32>,
    mut rank_done: impl FnMut(),
) -> Summary {
    let facts = Facts::of(run);
    let plan = run.plan();
    let ranks = run.info().ranks;
    let cuts = selection.cuts_time();
    let mut keys = Keys::default();
    let mut sums: Vec<Sums> = Vec::new();
    let mut sample = Sample::new(plan.as_ref());
    let mut extent = Extent::default();
    let counted = match !cuts && selection.takes_all(ranks) {
        true => counted(run, &mut keys),
        false => FxHashMap::default(),
    };
    let from_census = !counted.is_empty();
    let numbers: Vec<u32> = run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)).collect();
    // As many ranks as there are threads are in memory.
    for numbers in numbers.chunks(rayon::current_num_threads()) {
        let stored = numbers.par_iter().map(|&number| Stored::for_sums(run, number, selection, facts));
        let stored: Vec<Stored<'_>> = stored.collect::<Vec<_>>().into_iter().flatten().collect();
        let names: Vec<Names> = stored.iter().map(|stored| keys.of_rank(&stored.rank)).collect();
        sums.resize(keys.all().len(), Sums { bytes: Some(0), ..Sums::default() });
        let found = stored.par_iter().zip(&names);
        let found = found.map(|(stored, names)| RankSums::of(stored, names, selection, facts, !from_census));
        for ((stored, names), found) in stored.iter().zip(&names).zip(found.collect::<Vec<_>>()) {
            extent.add(stored, &found.part, cuts);
            found.add_to(&mut sums, &mut sample, stored, names, &stored.bytes(ranks));
            rank_done();
        }
    }
    extent.missing_ranks = absent(run, selection);
    sums.resize(keys.all().len(), Sums { bytes: Some(0), ..Sums::default() });
    let from = Source { sample: &sample, extent, counted: &counted, measured: measured(run) };
    let rows = keys.all().iter().zip(&sums).zip(0..);
    let mut rows: Vec<Row> = rows.filter_map(|((key, sums), number)| from.row(key, sums, number)).collect();
    if !cuts {
        add_unplaced(&mut rows, run, selection);
    }
    rows.sort_by(|a, b| {
        let time = |row: &Row| row.inclusive_ns.unwrap_or(0.0);
        let order = time(b).total_cmp(&time(a)).then(b.calls.cmp(&a.calls));
        order.then_with(|| (a.function, &a.site).cmp(&(b.function, &b.site)))
    });
    let is_estimated = !from_census && !sample.is_whole();
    let regions = region_rows(run, with_regions, selection);
    Summary { rows, regions, extent, confidence: sample.confidence(), is_estimated, from_census }
}

/// Adds the calls that every process has counted by function and that have no site: they were not recorded, or are of
/// functions that are only ever counted.
fn add_unplaced(rows: &mut Vec<Row>, run: &Run, selection: &Selection) {
    let mut missing: BTreeMap<u16, u64> = BTreeMap::new();
    for rank in run.ranks().into_iter().filter(|&rank| selection.takes_rank(rank)) {
        for &(function, calls) in run.process(rank).map_or(&[][..], |process| &process.calls) {
            let sum = missing.entry(function).or_default();
            *sum = sum.saturating_add(calls);
        }
    }
    // Calls beyond the table of sites are among these, by function.
    for row in rows.iter_mut().filter(|row| row.function.is_none()) {
        (row.calls, row.calls_half_width, row.known_calls) = (None, None, 0);
    }
    for (function, calls) in missing {
        let Some(spec) = FUNCTIONS.get(usize::from(function)) else { continue };
        let own = rows.iter().filter(|row| row.function == Some(spec.name));
        let placed = own.filter_map(|row| row.calls).fold(0u64, u64::saturating_add);
        let Some(calls) = calls.checked_sub(placed).filter(|&calls| calls > 0) else { continue };
        match rows.iter_mut().find(|row| row.function == Some(spec.name) && row.site.is_none()) {
            Some(row) => {
                row.calls = row.calls.map(|own| own.saturating_add(calls));
                row.known_calls = row.known_calls.saturating_add(calls);
                (row.bytes, row.half_width) = (None, None);
            }
            None => rows.push(Row {
                function: Some(spec.name),
                site: None,
                region: None,
                calls: Some(calls),
                inclusive_ns: None,
                exclusive_ns: None,
                bytes: (spec.traffic == Traffic::None).then_some(0),
                half_width: None,
                basis: None,
                calls_half_width: Some(0.0),
                known_calls: calls,
                error_ns: 0.0,
            }),
        }
    }
}

/// A row for each region of the part. A visit without times leaves its region's time unknown.
fn region_rows(run: &Run, with: &BTreeSet<u32>, selection: &Selection) -> Vec<Row> {
    let found = regions(run, with, selection, &mut Symbols::default());
    if found.is_empty() {
        return Vec::new();
    }
    let settings = run.ranks().into_iter().find_map(|rank| Stored::of(run, rank)?.settings());
    let error = settings.map_or(0.0, |settings| settings.error);
    let row = |(name, own): (std::sync::Arc<str>, Visits)| {
        let inclusive_ns = (own.untimed == 0).then_some(own.inclusive_ns as f64);
        let is_whole = own.untimed == 0 && own.partly_timed == 0;
        let are_counted = own.untimed == 0 || !selection.cuts_time();
        Row {
            function: None,
            site: None,
            region: Some(name.to_string()),
            calls: are_counted.then_some(own.visits),
            inclusive_ns,
            exclusive_ns: is_whole.then_some(own.exclusive_ns as f64),
            bytes: None,
            half_width: inclusive_ns.map(|_| 0.0),
            basis: inclusive_ns.map(|_| Basis::Trace),
            calls_half_width: are_counted.then_some(0.0),
            known_calls: own.visits,
            error_ns: inclusive_ns.map_or(0.0, |ns| error * ns),
        }
    };
    let mut rows: Vec<Row> = found.into_iter().map(row).collect();
    rows.retain(|row| row.calls != Some(0) || row.inclusive_ns.is_some_and(|ns| ns > 0.0));
    rows.sort_by(|a, b| {
        let time = |row: &Row| row.inclusive_ns.unwrap_or(0.0);
        time(b).total_cmp(&time(a)).then_with(|| a.region.cmp(&b.region))
    });
    rows
}

/// Calls and times over the whole run, by key.
fn counted(run: &Run, keys: &mut Keys) -> FxHashMap<u32, Counted> {
    let mut counted: FxHashMap<u32, Counted> = FxHashMap::default();
    for known in run.totals().known() {
        let path = if known.function == SEVERAL { &[][..] } else { &known.path[..] };
        let sum = counted.entry(keys.of_path(known.function, path)).or_default();
        sum.calls = sum.calls.saturating_add(known.total.calls);
        sum.time_ns = sum.time_ns.saturating_add(known.total.time_ns);
    }
    counted
}

/// True where the census timed every call that it counted.
fn measured(run: &Run) -> bool {
    run.ranks().into_iter().all(|rank| {
        run.process(rank).is_some_and(|process| process.steps.iter().all(|step| step.level != Level::Off))
    })
}

struct Source<'a> {
    sample: &'a Sample<'a>,
    extent: Extent,
    counted: &'a FxHashMap<u32, Counted>,
    measured: bool,
}

impl Source<'_> {
    /// The row of a key; `None` without calls.
    fn row(&self, key: &super::keys::Key, sums: &Sums, number: u32) -> Option<Row> {
        let census = self.counted.get(&number).copied();
        let estimated = |value: fn(&(u32, f64, f64)) -> f64| {
            let values: Vec<(u32, f64)> = sums.windows.iter().map(|sum| (sum.0, value(sum))).collect();
            self.sample.total(&values)
        };
        let (calls, calls_half_width) = match census {
            Some(census) => (Some(census.calls.max(sums.calls)), Some(0.0)),
            None if self.extent.untold == 0 => (Some(sums.calls), Some(0.0)),
            None => match estimated(|sum| sum.2) {
                Some(Total { total, half_width }) => (Some(total.round() as u64), half_width),
                None => (None, None),
            },
        };
        let (time, basis) = match census {
            Some(Counted { time_ns, .. }) if time_ns > 0 && self.measured => {
                (Some(Total { total: time_ns as f64, half_width: Some(0.0) }), Basis::Census)
            }
            // Not timed, or not all of it; or made outside of windows.
            _ if !self.counted.is_empty() || self.extent.windows == 0 => (None, Basis::Trace),
            _ if self.extent.timed == 0 => (None, Basis::Trace),
            _ => {
                let found = estimated(|sum| sum.1);
                let whole = |found: Total| Total { total: found.total + sums.elsewhere_ns, ..found };
                (found.map(whole), Basis::Trace)
            }
        };
        let whole = census.map_or(self.extent.untold == 0, |census| census.calls == sums.calls);
        // A call without an end, or without a time where others have theirs, lasts for a time that is not known.
        let timed: f64 = sums.windows.iter().map(|sum| sum.2).sum::<f64>() + sums.elsewhere_calls;
        let lacks = match self.sample.is_whole() {
            true => calls.is_some_and(|calls| timed < calls as f64),
            false => timed == 0.0 && calls != Some(0),
        };
        let time = time
            .filter(|time| (time.total > 0.0 || sums.unfinished == 0) && (basis == Basis::Census || !lacks));
        let inclusive_ns = time.map(|time| time.total);
        if calls == Some(0) && inclusive_ns.unwrap_or(0.0) == 0.0 {
            return None;
        }
        Some(Row {
            function: FUNCTIONS.get(usize::from(key.function)).map(|spec| spec.name),
            site: key.site.clone(),
            region: None,
            calls,
            inclusive_ns,
            exclusive_ns: inclusive_ns,
            bytes: sums.bytes.filter(|_| whole),
            half_width: time.and_then(|time| time.half_width),
            basis: time.map(|_| basis),
            calls_half_width,
            known_calls: calls.filter(|_| self.extent.untold == 0).unwrap_or(sums.calls),
            error_ns: if basis == Basis::Trace { sums.error_ns } else { 0.0 },
        })
    }
}
