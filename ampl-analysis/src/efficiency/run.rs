//! Times of the whole run, and their bounds where not all were measured.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use ampl_core::config::SiteTrace;
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, RankSet};
use ampl_core::window_set::WindowSet;
use ampl_reader::directory;
use ampl_trace::model::End;
use ampl_trace::{RankTrace, Trace};

use super::bounds::{Bounds, Rest};
use super::rows::Basis;
use crate::counted::{counted_spans, in_counted_span, is_counted, is_only_counted};
use crate::coverage::{Coverage, Extent};
use crate::pauses;
use crate::uncovered;
use crate::window_times::{Columns, Observed, RankColumns, Times};

/// Times of the whole run.
#[derive(Clone, Debug)]
pub struct RunTimes {
    /// Times of every rank that left something, in windows that all ranks measured.
    pub times: Vec<Times>,
    /// Data that `times` rest on.
    pub basis: Basis,
    /// Windows that are left out: not all ranks measured them.
    pub lacking: WindowSet,
    /// Share of the ranks' time that `times` cover, without the program's pauses.
    pub coverage: Coverage,
    /// The ranks' time, nanoseconds.
    pub run_ns: f64,
    /// The time of the rank that ran longest, nanoseconds.
    pub longest_ns: f64,
    /// Bounds of the run's numbers, where `times` are not of all of it.
    pub bounds: Option<Bounds>,
    /// Share of time in MPI if calls that were only counted took the mean time of their function.
    pub mpi_at_mean_cost: Option<f64>,
    /// Most threads of a rank over which time in MPI is a mean.
    pub threads: u64,
    /// True where it is that of the main thread, on any rank of which others are in MPI, too.
    pub of_main: bool,
    /// Time in MPI of all threads over that of their ranks, the mean over the ranks' time; at least 1.
    pub over_threads: f64,
}

impl RunTimes {
    /// Ranks of the job that left nothing.
    pub fn absent(&self) -> u64 {
        self.coverage.of_ranks - self.coverage.ranks
    }

    /// Extent to which the times stand for the run.
    pub fn extent(&self) -> Extent {
        self.coverage.extent()
    }
}

/// All windows.
const RUN: Range<u64> = 0..u64::MAX;

/// Times of the whole run of every rank that left something.
pub fn run_times(trace: &Trace) -> RunTimes {
    let plan = directory::plan(&trace.run);
    whole_run(&Job::of(trace), plan.as_ref(), plan.as_ref())
}

/// Times of the whole run of those of `ranks` that left something; windows that only others lack are no gap.
pub fn run_times_of(trace: &Trace, ranks: &RankSet) -> RunTimes {
    let plan = directory::plan(&trace.run);
    let is_own = |rank: &&RankTrace| ranks.contains(Rank(rank.process.rank));
    let ranks = trace.ranks.iter().filter(is_own).collect();
    whole_run(&Job { trace, ranks, absent: 0 }, plan.as_ref(), None)
}

/// Ranks of a job that are taken together.
struct Job<'a> {
    trace: &'a Trace,
    ranks: Vec<&'a RankTrace>,
    /// Ranks of them that left nothing.
    absent: u64,
}

impl<'a> Job<'a> {
    /// All ranks of `trace`.
    fn of(trace: &'a Trace) -> Self {
        let absent = u64::from(trace.run.ranks).saturating_sub(trace.ranks.len() as u64);
        Self { trace, ranks: trace.ranks.iter().collect(), absent }
    }
}

/// With a `costs` plan, time in MPI is also estimated where calls were only counted.
fn whole_run(job: &Job<'_>, plan: Option<&Plan>, costs: Option<&Plan>) -> RunTimes {
    let columns = Columns::of(job.trace);
    let has_all = has_all(&job.ranks, columns, &RUN);
    let stores_all = plan.is_none_or(|plan| plan.stores_summary(false));
    if !has_all && !stores_all && pauses::of(job.trace).is_empty() {
        return of_ranks(job, costs, from_totals(job, columns), Basis::Totals, &RUN);
    }
    let basis = match (has_all, stores_all) {
        (true, _) => Basis::Census,
        (false, true) => Basis::Measured,
        (false, false) => Basis::Totals,
    };
    of_ranks(job, costs, by_windows(job, columns, &RUN), basis, &RUN)
}

/// Times of some windows of the run alone, by their summaries.
pub fn times_in(trace: &Trace, windows: &Range<u64>) -> RunTimes {
    let columns = Columns::of(trace);
    let job = Job::of(trace);
    let basis = if has_all(&job.ranks, columns, windows) { Basis::Census } else { Basis::Measured };
    of_ranks(&job, None, by_windows(&job, columns, windows), basis, windows)
}

fn has_all(ranks: &[&RankTrace], columns: Columns, windows: &Range<u64>) -> bool {
    ranks.iter().all(|rank| {
        let columns = columns.of_rank(rank);
        let mut own = rank.windows.iter_known().filter(|window| has_any(windows, &window.numbers()));
        own.all(|window| columns.times(&window).is_some())
    })
}

/// True where some of `numbers` are in `windows`.
fn has_any(windows: &Range<u64>, numbers: &Range<u64>) -> bool {
    windows.start < numbers.end && numbers.start < windows.end
}

fn by_windows(job: &Job<'_>, columns: Columns, windows: &Range<u64>) -> (Vec<RankTime>, Lacking) {
    let mut lacking = Lacking::new();
    let end = job.trace.run.end;
    let time =
        |rank: &&RankTrace| RankTime::of_windows(rank, columns.of_rank(rank), windows, end, &mut lacking);
    (job.ranks.iter().map(time).collect(), lacking)
}

/// With a `plan`, time in MPI is also estimated where calls were only counted.
fn of_ranks(
    &Job { trace, absent, .. }: &Job<'_>,
    plan: Option<&Plan>,
    (ranks, lacking): (Vec<RankTime>, Lacking),
    basis: Basis,
    of: &Range<u64>,
) -> RunTimes {
    let lacking: WindowSet = lacking.into_iter().map(|(first, end)| first..end).collect();
    let times: Vec<Times> = ranks.iter().map(|rank| rank.sum(&lacking)).collect();
    let longest = ranks.iter().map(|rank| rank.run_ns).fold(0.0, f64::max);
    let all: f64 = ranks.iter().map(|rank| rank.run_ns).sum::<f64>() + absent as f64 * longest;
    // A sum of nothing is -0.
    let used = 0.0 + ranks.iter().map(|rank| rank.used_ns(&lacking)).sum::<f64>();
    let paused: f64 = ranks.iter().map(|rank| rank.paused_ns).sum();
    // Without sight of some functions, only time in the others is known.
    let unseen = uncovered::take_time(&uncovered::functions(trace));
    let used = if unseen { times.iter().map(|times| times.mpi).sum() } else { used };
    let end = trace.windows().min(of.end);
    let windows = end.saturating_sub(of.start);
    let coverage = Coverage {
        // Old or made-up runs may lack all lengths.
        share: if all > 0.0 { (used / all).min(1.0) } else { 1.0 },
        observed: if paused > 0.0 { all / (all + paused) } else { 1.0 },
        windows: windows - lacking.below(end),
        of_windows: windows,
        ranks: ranks.len() as u64,
        of_ranks: ranks.len() as u64 + absent,
        unseen,
    };
    let rest = |rank: &RankTime| {
        let none = WindowSet::default();
        let Times { wall, mpi, compute, .. } = rank.sum(&none);
        let hides = if unseen { compute } else { 0.0 };
        let (mpi, wall) = (mpi + rank.inside_ns, wall + rank.inside_ns - hides);
        let times = Times { rank: rank.rank, wall, mpi, compute: compute - hides, weight: 1.0 };
        let used_ns = rank.used_ns(&none) + rank.inside_ns - hides;
        Rest { times, unknown_ns: (rank.run_ns - used_ns).max(0.0), own_ns: rank.own_ns }
    };
    let rests: Vec<Rest> = ranks.iter().map(rest).collect();
    let whole = coverage.extent() == Extent::Whole;
    let known = rests.iter().map(|rest| rest.times.wall).sum::<f64>() > 0.0;
    let bounds = (!whole && known).then(|| Bounds::of(&rests, absent)).flatten();
    let counts_all = plan
        .is_some_and(|plan| plan.config.sites.iter().all(|site| site.trace != SiteTrace::Off))
        && absent == 0
        && !unseen
        && is_only_counted(trace)
        && pauses::of(trace).is_empty();
    let mpi_at_mean_cost = bounds.filter(|_| counts_all).and_then(|bounds| {
        let unknown: f64 = rests.iter().map(|rest| rest.unknown_ns).sum();
        let program: f64 = rests.iter().map(|rest| rest.times.of_program()).sum();
        let measured: f64 = rests.iter().map(|rest| rest.times.mpi).sum();
        let costs = Costs::of(trace);
        let more = |(rank, rest): (&RankTime, &Rest)| {
            let counted = trace.rank(rank.rank).map_or(0.0, |of| costs.only_counted(of));
            (counted / rank.threads).min(rest.unknown_ns)
        };
        let more: f64 = ranks.iter().zip(&rests).map(more).sum();
        let share = (measured + more) / (program + unknown);
        share.is_finite().then(|| share.clamp(bounds.mpi[0], bounds.mpi[1]))
    });
    let is_main = |rank: &RankTime| trace.rank(rank.rank).is_some_and(|of| of.process.main_share.is_some());
    let several = ranks.iter().filter(|rank| !is_main(rank)).map(|rank| rank.threads as u64);
    let threads = several.max().unwrap_or(1).max(1);
    let weighted: f64 = ranks.iter().map(|rank| rank.threads * rank.run_ns).sum();
    let over_threads = if all > 0.0 { (weighted / all).max(1.0) } else { 1.0 };
    RunTimes {
        times,
        basis,
        lacking,
        coverage,
        run_ns: all,
        longest_ns: longest,
        bounds,
        mpi_at_mean_cost,
        threads,
        of_main: ranks.iter().any(is_main),
        over_threads,
    }
}

/// One rank in the run.
#[derive(Clone, Debug)]
struct RankTime {
    rank: u32,
    threads: f64,
    /// Run time without the program's pauses, nanoseconds.
    run_ns: f64,
    /// Time of the program's pauses, nanoseconds.
    paused_ns: f64,
    /// Time that ampl took of it, nanoseconds.
    own_ns: f64,
    /// Time in a call that has not returned, behind the last window, nanoseconds.
    inside_ns: f64,
    /// Window number, times, and length without pauses; a single entry where there are totals only.
    windows: Vec<(u64, Times, f64)>,
}

/// Windows that some ranks did not measure: the first, and one more than the last. Equal ones of many ranks are one.
type Lacking = BTreeSet<(u64, u64)>;

impl RankTime {
    /// Times of `rank` in the windows `of` its run; adds those that it did not measure to `lacking`.
    fn of_windows(
        rank: &RankTrace,
        columns: RankColumns,
        of: &Range<u64>,
        end: Option<End>,
        lacking: &mut Lacking,
    ) -> Self {
        let mut windows = Vec::new();
        let (mut lengths, mut paused_ns, mut own_ns, mut before_ns) = (0.0, 0.0, 0.0, 0.0);
        for window in rank.windows.iter_known() {
            let length = columns.length(&window);
            if !has_any(of, &window.numbers()) {
                before_ns += if window.window < of.start { length } else { 0.0 };
                continue;
            }
            let numbers = window.numbers();
            let numbers = (numbers.start.max(of.start), numbers.end.min(of.end));
            lengths += length;
            own_ns += window.own_ns as f64;
            match columns.observed(&window) {
                Observed::Measured(times, paused) => {
                    paused_ns += paused;
                    // Where the window's ends are not stored its times give its length.
                    let measured = if length > 0.0 { length - paused } else { times.wall };
                    lengths += if length > 0.0 { 0.0 } else { measured };
                    windows.push((window.window, times, measured));
                }
                Observed::Paused => {
                    paused_ns += length;
                    _ = lacking.insert(numbers);
                }
                Observed::Nothing => _ = lacking.insert(numbers),
            }
        }
        let own_end = rank.windows.end();
        // Where summaries are left out of the trace windows have no length.
        let whole = rank.process.finalized && own_end == rank.windows.count() && rank.process.windows == 0;
        let to_the_end = of.end > own_end;
        if !rank.process.finalized && to_the_end {
            // The window that was open when it stopped is not in the trace, nor are those that others closed later.
            lacking.insert((own_end.max(of.start), of.end));
        }
        let elapsed = rank.process.elapsed_ns as f64 - before_ns;
        let run_ns = if whole || !to_the_end { lengths } else { lengths.max(elapsed) };
        // Windows close where calls begin and end: the call has begun since the last one did.
        let inside = end
            .filter(|_| to_the_end && !rank.process.finalized)
            .map_or(0.0, |end| inside_ns(rank, end, columns.threads));
        let inside_ns = inside.clamp(0.0, (run_ns - lengths).max(0.0));
        let rank = rank.process.rank;
        let run_ns = run_ns - paused_ns;
        Self { rank, threads: columns.threads, run_ns, paused_ns, own_ns, inside_ns, windows }
    }

    /// Its times in the windows that all ranks measured.
    fn sum(&self, lacking: &WindowSet) -> Times {
        let none = Times { rank: self.rank, weight: 1.0, ..Times::default() };
        let windows = self.windows.iter().filter(|&&(window, ..)| !lacking.contains(window));
        let sum = windows.fold(none, |sum, (_, times, _)| Times {
            wall: sum.wall + times.wall,
            mpi: sum.mpi + times.mpi,
            compute: sum.compute + times.compute,
            ..sum
        });
        sum.settled()
    }

    /// Length of these windows, nanoseconds.
    fn used_ns(&self, lacking: &WindowSet) -> f64 {
        let used = self.windows.iter().filter(|&&(window, ..)| !lacking.contains(window));
        used.map(|(_, _, length)| length).sum()
    }
}

/// Time of `rank` in calls that had not returned at `end`, nanoseconds: of its main thread, or the mean over `threads`.
fn inside_ns(rank: &RankTrace, end: End, threads: f64) -> f64 {
    let inside = |main: bool| {
        let of = rank.process.threads.iter().filter(|thread| !main || thread.thread == 0);
        of.map(|thread| thread.inside_ns(end) as f64).sum::<f64>()
    };
    if rank.process.main_share.is_some() { inside(true) } else { inside(false) / threads }
}

/// Time in MPI of each rank by its totals, over all its threads, nanoseconds.
fn mpi_by_rank(trace: &Trace) -> BTreeMap<u32, f64> {
    let mut mpi = BTreeMap::new();
    for (_, rank, share) in trace.totals.shares() {
        *mpi.entry(rank).or_default() += share.time_ns as f64;
    }
    mpi
}

/// Mean costs of calls by function, of each rank and of all.
struct Costs {
    /// Calls and nanoseconds.
    own: BTreeMap<(u16, u32), (f64, f64)>,
    all: BTreeMap<u16, (f64, f64)>,
}

impl Costs {
    fn of(trace: &Trace) -> Self {
        let mut costs = Self { own: BTreeMap::new(), all: BTreeMap::new() };
        for (function, rank, share) in trace.totals.shares() {
            let (calls, ns) = (share.calls as f64, share.time_ns as f64);
            costs.own.insert((function, rank), (calls, ns));
            let all = costs.all.entry(function).or_default();
            *all = (all.0 + calls, all.1 + ns);
        }
        costs
    }

    /// Estimated time in MPI of calls of `rank` that were only counted, at the mean cost of their function there, or
    /// on any rank; nanoseconds, over all threads.
    fn only_counted(&self, rank: &RankTrace) -> f64 {
        let of = |&(function, calls): &(u16, u64)| {
            let &(all_calls, all_ns) = self.all.get(&function)?;
            let own = self.own.get(&(function, rank.process.rank)).copied().unwrap_or_default();
            let mean = if own.0 > 0.0 { own.1 / own.0 } else { all_ns / all_calls.max(1.0) };
            Some((calls as f64 - own.0).max(0.0) * mean)
        };
        rank.process.calls.iter().filter_map(of).sum()
    }
}

/// Ranks by their totals by function, which all of them have where summaries are the sample's only.
fn from_totals(Job { trace, ranks, .. }: &Job<'_>, columns: Columns) -> (Vec<RankTime>, Lacking) {
    let mut lacking = Lacking::new();
    let mpi = mpi_by_rank(trace);
    let of = |rank: &&RankTrace| {
        let number = rank.process.rank;
        let (run_ns, own_ns) = (rank.process.elapsed_ns as f64, rank.process.own_ns as f64);
        let off: f64 = counted_spans(rank).iter().map(|(from, to)| to - from).sum();
        let wall = (run_ns - off).max(0.0);
        let threads = columns.of_rank(rank).threads;
        // A call that has not returned is in no total.
        let inside = trace.run.end.map_or(0.0, |end| inside_ns(rank, end, threads));
        let mpi = mpi.get(&number).copied().unwrap_or(0.0) / threads + inside;
        // ampl's own time is negligible where it counted only.
        let compute = wall - mpi - own_ns / threads;
        let times = Times { rank: number, wall, mpi, compute, weight: 1.0 };
        if let Some(is_counted) = in_counted_span(rank) {
            let counted = rank.windows.iter().filter(|window| is_counted(window));
            lacking.extend(counted.map(|window| (window.numbers().start, window.numbers().end)));
        }
        // Totals are of everything that was measured: no window of them can be left out.
        let windows = vec![(u64::MAX, times, wall)];
        RankTime { rank: number, threads, run_ns, paused_ns: 0.0, own_ns, inside_ns: 0.0, windows }
    };
    (ranks.iter().map(of).collect(), lacking)
}

/// Least share of the ranks' time in MPI that is known by call site, in [0, 1]: all of the time that was not measured
/// may have been in MPI. Calls that have not returned are known.
pub fn known_mpi_share(trace: &Trace) -> f64 {
    let columns = Columns::of(trace);
    let measured = mpi_by_rank(trace);
    let (mut known, mut unknown, mut longest) = (0.0, 0.0, 0.0f64);
    let unseen = uncovered::take_time(&uncovered::functions(trace));
    for rank in &trace.ranks {
        let threads = columns.of_rank(rank).threads;
        let run_ns = rank.process.elapsed_ns as f64;
        let mpi = measured.get(&rank.process.rank).copied().unwrap_or(0.0);
        longest = longest.max(run_ns * threads);
        known += mpi;
        let inside = trace
            .run
            .end
            .filter(|_| !rank.process.finalized)
            .map_or(0.0, |end| inside_ns(rank, end, threads));
        let inside = inside * threads;
        known += inside;
        let rest = (run_ns * threads - mpi - inside).max(0.0);
        unknown += match unseen {
            true => rest,
            false => (unmeasured_ns(trace, rank, columns) * threads).min(rest),
        };
    }
    unknown += u64::from(trace.run.ranks).saturating_sub(trace.ranks.len() as u64) as f64 * longest;
    if unknown > 0.0 { known / (known + unknown) } else { 1.0 }
}

/// Time of `rank` in which calls were only counted, nanoseconds.
fn unmeasured_ns(trace: &Trace, rank: &RankTrace, columns: Columns) -> f64 {
    if !is_counted(rank) {
        return 0.0;
    }
    let stores_all = directory::plan(&trace.run).is_none_or(|plan| plan.stores_summary(false));
    let spans: f64 = counted_spans(rank).iter().map(|(from, to)| to - from).sum();
    let end = trace.run.end;
    let time = || RankTime::of_windows(rank, columns.of_rank(rank), &RUN, end, &mut Lacking::new());
    let windows = stores_all.then(time);
    let lacks = windows.map_or(0.0, |of| of.run_ns - of.used_ns(&WindowSet::default()));
    spans.max(lacks).min(rank.process.elapsed_ns as f64)
}

/// Share of the ranks' time in which calls were measured, in any window: totals by call site rest on it.
/// The program's pauses count as measured: they are left out on purpose.
pub fn measured_share(trace: &Trace) -> f64 {
    let columns = Columns::of(trace);
    let (mut all, mut off, mut longest) = (0.0, 0.0, 0.0f64);
    for rank in &trace.ranks {
        let run_ns = rank.process.elapsed_ns as f64;
        all += run_ns;
        longest = longest.max(run_ns);
        off += unmeasured_ns(trace, rank, columns);
    }
    let absent = u64::from(trace.run.ranks).saturating_sub(trace.ranks.len() as u64);
    let whole = all + absent as f64 * longest;
    if whole > 0.0 { ((all - off) / whole).clamp(0.0, 1.0) } else { 1.0 }
}
