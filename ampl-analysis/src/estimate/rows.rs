//! The rows of `ampl estimate`.

use std::ops::RangeInclusive;

use ampl_core::config::{ErrorBound, Event, Keep, Metric, Quantity, Sizing, Summaries, Target};
use ampl_core::plan::{GroupPlan, Plan};
use ampl_core::stats::Basis;
use ampl_core::stats::estimate::{Item, ratio_estimate};
use ampl_core::window_set::WindowSet;
use ampl_trace::Trace;
use serde::{Serialize, Serializer};

use super::coverage::{Covered, Ledger};
use super::observed::{Point, moments, mpi_share_points, points, ranks, windows_per_update};
use super::pool::{Pooled, pooled};
use super::verify::{self, Check};
use crate::coverage::{Coverage, Extent};
use crate::pauses;
use crate::window_times::Columns;

/// Span that a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One window.
    Window,
    /// The windows between two directives.
    Update,
    /// The whole run.
    Run,
}

impl Scope {
    /// Its name, as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Window => "window",
            Self::Update => "update",
            Self::Run => "run",
        }
    }
}

/// One estimate; serialised, one element of what `--json` prints.
///
/// `population` is the group's size. `kept` counts the ranks that it was computed from. For a sample these are the
/// ranks in it, over several windows in that of any of them. For the mean of all summaries these are the ranks that
/// reported all they did.
///
/// The basis is `census` if every rank reported. Otherwise the missing ranks were not chosen by chance, and it is
/// `sampled`: the mean is that of windows with a summary, `missing_windows` counts the others, and the distance to
/// the mean of all is not known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The window, or the first of the update interval; none for the run.
    pub window: Option<u64>,
    /// The group.
    pub group: String,
    /// Its stratum: always 0, for estimates are of whole groups.
    pub stratum: u16,
    /// The metric.
    pub metric: String,
    /// Event that the metric observes.
    pub event: String,
    /// Ranks that it is about.
    pub population: u64,
    /// Ranks that it was computed from.
    pub kept: u64,
    /// The mean per observation, in the metric's unit; none without observations, or where too little was summarised.
    pub mean: Option<f64>,
    /// Half of its interval; none where one rank stands for many, or no rank for windows without a summary.
    pub half_width: Option<f64>,
    /// Least possible mean over all windows, for built-in times where windows have no summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Greatest possible mean, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Share of the ranks' time that was summarised.
    pub coverage: f64,
    /// Windows that all ranks summarised, and all windows.
    #[serde(skip)]
    pub windows: [u64; 2],
    /// Confidence of the interval, in (0, 1).
    pub confidence: f64,
    /// `half_width` relative to the mean; none for a mean of 0.
    pub error: Option<f64>,
    /// Span that the row is about.
    pub scope: Scope,
    /// Data that the row was computed from.
    #[serde(serialize_with = "basis")]
    pub basis: Basis,
    /// True where it was estimated from the drawn ranks alone, and is not the mean of all summaries.
    #[serde(skip)]
    pub drawn: bool,
    /// True where the bound asked for holds by design.
    pub guaranteed: bool,
    /// True where the end of the run cut the window off on any rank of the group; windows only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partial: Option<bool>,
    /// Rank-windows that have no summary, though they were to have one.
    pub missing_windows: u64,
    /// Estimate from the sample alone, checked against everything; under `output.verify`.
    #[serde(flatten)]
    pub check: Option<Check>,
}

fn basis<S: Serializer>(basis: &Basis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(basis.name())
}

/// Every row of `trace`, which `plan` describes: windows, then update intervals, then the run.
pub fn rows(trace: &Trace, plan: &Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    // Rows without a number would mean that nothing was observed.
    let groups = plan.groups.iter().filter(|_| plan.stores_summary(true));
    for group in groups {
        let ledger = Ledger::new(trace, plan, group);
        for metric in 0..plan.metrics.len() {
            let source = Source { trace, plan, group, ledger: &ledger, metric };
            let points = points(trace, plan, group, metric);
            for window in points.chunk_by(|a, b| a.window == b.window) {
                source.rows(Scope::Window, Some(window[0].window), window, &mut rows);
            }
            let windows = windows_per_update(plan);
            for update in points.chunk_by(|a, b| a.window / windows == b.window / windows) {
                source.rows(Scope::Update, Some(update[0].window / windows * windows), update, &mut rows);
            }
            if !points.is_empty() {
                let windows = rows.len();
                source.rows(Scope::Run, None, &points, &mut rows);
                if plan.verifies() {
                    let (windows, run) = rows.split_at_mut(windows);
                    verify::sum_up(run, windows, &verify::lengths(trace, &group.members));
                }
            }
        }
    }
    // Stable: groups and metrics keep their order within a window.
    rows.sort_by_key(|row| (row.scope, row.window));
    rows
}

/// The run's rows of MPI's share in the program's time, all groups: windows that are not `lacking` count by their time.
pub fn mpi_shares(trace: &Trace, plan: &Plan, lacking: &WindowSet) -> Vec<Row> {
    let metric = Quantity::MpiTime.slot().expect("a built-in quantity");
    let mut rows = Vec::new();
    for group in &plan.groups {
        let points = mpi_share_points(trace, plan, group, lacking);
        if !points.is_empty() {
            let ledger = Ledger::new(trace, plan, group);
            Source { trace, plan, group, ledger: &ledger, metric }.rows(Scope::Run, None, &points, &mut rows);
        }
    }
    rows
}

/// Content of a row, but for its names.
struct Known<'a> {
    scope: Scope,
    window: Option<u64>,
    /// Basis of a sample's mean; none for the mean of all summaries.
    sample: Option<Basis>,
    found: Option<Pooled>,
    kept: u64,
    points: &'a [Point],
    covered: Covered,
}

/// One metric of one group.
struct Source<'a> {
    trace: &'a Trace,
    plan: &'a Plan,
    group: &'a GroupPlan,
    ledger: &'a Ledger,
    metric: usize,
}

impl Source<'_> {
    /// Adds the row of each basis that `points` have, which are the windows of that scope.
    fn rows(&self, scope: Scope, window: Option<u64>, points: &[Point], rows: &mut Vec<Row>) {
        let windows = match (scope, window) {
            (Scope::Window, Some(window)) => window..=window,
            (Scope::Update, Some(first)) => first..=first + (windows_per_update(self.plan) - 1),
            _ => 0..=u64::MAX,
        };
        let covered = self.ledger.coverage(windows.clone(), scope == Scope::Run);
        let of =
            |sample, kept, found| self.row(Known { scope, window, sample, found, kept, points, covered });
        let config = &self.plan.config;
        let drawn = || ranks(points.iter().filter(|point| point.drawn));
        let census = config.sampling.summaries == Summaries::Census && self.plan.stores_summary(false);
        let from = rows.len();
        if census || self.plan.verifies() {
            let exact = self.exact(windows, points).map(|mean| Pooled { mean, half_width: 0.0 });
            rows.push(of(None, covered.whole, exact));
        }
        if !census {
            rows.push(of(Some(Basis::Sampled), drawn(), self.sample(scope, points, false)));
        } else if config.trace.stored() != Keep::Off {
            rows.push(of(Some(Basis::Trace), drawn(), self.sample(scope, points, true)));
        }
        if let [exact, estimated] = &mut rows[from..]
            && self.plan.verifies()
        {
            estimated.check = Check::of(estimated, exact, self.metric(), self.target());
        }
    }

    /// The mean of all `points`, which are those of `windows`; exact where every rank's values are there, though each
    /// may be rounded.
    fn exact(&self, windows: RangeInclusive<u64>, points: &[Point]) -> Option<f64> {
        let sums = moments(points);
        let mean = sums.ratio()?;
        let group = self.plan.groups.iter().position(|group| std::ptr::eq(group, self.group));
        let whole = points.iter().all(|point| point.value.is_some());
        let lacks =
            group.filter(|_| whole).map_or(0.0, |group| self.trace.census.lacks(group, self.metric, windows));
        Some(mean + lacks / sums.n as f64)
    }

    /// The weighted estimate from the drawn ones of `points`. It leaves out ranks that did not report: it is not
    /// known that they had such a window.
    fn sample(&self, scope: Scope, points: &[Point], census: bool) -> Option<Pooled> {
        let confidence = confidence(self.target());
        let strata = points.iter().any(|point| point.stratum.is_some());
        if scope != Scope::Window || strata {
            let found = pooled(points, self.plan.config.sampling.update_mechanism, confidence, census);
            // Where a directive has reached a few ranks only, a stratum may have no drawn rank yet.
            if scope != Scope::Window || found.is_some() {
                return found;
            }
        }
        let items =
            points.iter().filter(|point| point.drawn && point.probability > 0.0).filter_map(|point| {
                let (n, y) = point.value?;
                Some(Item { n, y, probability: point.probability })
            });
        let known = census.then(|| {
            let ratio = moments(points).ratio().unwrap_or(0.0);
            moments(points.iter().filter(|point| point.by_chance())).residual_variance_about(ratio)
        });
        let found = ratio_estimate(items, points.len() as u64, confidence, known)?;
        Some(Pooled { mean: found.mean, half_width: found.half_width })
    }

    fn row(&self, known: Known<'_>) -> Row {
        let Known { scope, window, sample, found, kept, points, covered } = known;
        let metric = self.metric();
        let population = self.group.members.len();
        let whole = covered.is_whole(population);
        let extent = if whole { Extent::Whole } else { Coverage::extent_of(covered.share) };
        let basis = sample.unwrap_or(if whole { Basis::Census } else { Basis::Sampled });
        let holds = |found: Pooled| sample.is_none() || self.bound_holds(scope, found, points);
        // Infinite values of a program's own metric have no mean.
        let found = found.filter(|found| found.mean.is_finite() && extent != Extent::Little);
        let ends = if !whole && covered.missing > 0 { self.bounds(points, covered) } else { None };
        // The missing part may hold most of it: a mean of the rest is shown where that cannot change it much. Of calls
        // and bytes any number may be missing; of time no more than the part's length.
        let is_time = matches!(metric.quantity, Quantity::Wall | Quantity::MpiTime | Quantity::ComputeTime);
        let found = found.filter(|_| extent != Extent::Part || ends.map_or(is_time, is_narrow));
        // Missing windows have some value: an interval without any width would deny it.
        let known = |half_width: &f64| {
            half_width.is_finite() && (whole || *half_width > 0.0 && extent == Extent::Whole)
        };
        let half_width = found.map(|found| found.half_width).filter(known);
        let [low, high] = ends.map_or([None; 2], |ends| ends.map(Some));
        let relative = |found: Pooled| half_width.map(|half_width| half_width / found.mean.abs());
        Row {
            window,
            group: self.group.name.clone(),
            stratum: 0,
            metric: metric.name().into(),
            event: metric.event.name().into(),
            population,
            kept,
            mean: found.map(|found| found.mean),
            half_width,
            low,
            high,
            coverage: if whole { 1.0 } else { covered.share },
            windows: covered.windows,
            confidence: confidence(self.target()),
            error: found.and_then(relative).filter(|error| error.is_finite()),
            scope,
            basis,
            drawn: sample.is_some(),
            guaranteed: metric.guide && whole && half_width.is_some() && found.is_some_and(holds),
            partial: window.filter(|_| scope == Scope::Window).map(|window| self.ledger.is_partial(window)),
            missing_windows: covered.missing,
            check: None,
        }
    }

    /// Bounds of the mean of a time per rank and window, where some ranks' windows have no summary: their lengths are
    /// known, and all or none of that time may count.
    fn bounds(&self, points: &[Point], covered: Covered) -> Option<[f64; 2]> {
        let metric = self.metric();
        let (unknown, length) = covered.unknown;
        let is_time = matches!(metric.quantity, Quantity::Wall | Quantity::MpiTime | Quantity::ComputeTime);
        let census = points.iter().all(|point| point.value.is_some());
        if metric.event != Event::Window || !is_time || !census || unknown == 0 || !length.is_finite() {
            return None;
        }
        let known: f64 = points.iter().filter_map(|point| Some(point.value?.1)).sum();
        let columns = Columns::of(self.trace);
        let threads = match metric.quantity {
            Quantity::MpiTime => {
                let threads = |rank| columns.of_rank(rank).threads.max(rank.process.mpi_threads.into());
                self.trace.ranks.iter().map(threads).fold(1.0, f64::max)
            }
            _ => 1.0,
        };
        let lasts = metric.quantity == Quantity::Wall && pauses::of(self.trace).is_empty();
        let count = points.len() as f64 + unknown as f64;
        let ends = [if lasts { known + length } else { known }, known + threads * length];
        Some(ends.map(|end| end / count)).filter(|ends| ends.iter().all(|end| end.is_finite()))
    }

    fn metric(&self) -> &Metric {
        &self.plan.metrics[self.metric]
    }

    /// Target for the metric's means.
    fn target(&self) -> Target {
        self.plan.target(self.group, self.metric())
    }

    /// True where the sample was sized for the bound and attains it.
    ///
    /// `ampl-2008` sizes for the mean of an update interval, which bounds neither a window nor the run (STATISTICS
    /// §3): these have no bound unless every rank was kept.
    fn bound_holds(&self, scope: Scope, found: Pooled, points: &[Point]) -> bool {
        let Target::Bound { error, .. } = self.target() else { return false };
        let allowed = match error {
            ErrorBound::Relative(error) => error * found.mean.abs(),
            ErrorBound::Absolute(error) => error,
        };
        let by_design = self.plan.config.sampling.sizing == Sizing::Neyman || scope == Scope::Update;
        let mut updates: Vec<u64> = points.iter().map(|point| point.update).collect();
        updates.dedup();
        updates.sort_unstable();
        updates.dedup();
        let sized = |update: &u64| {
            let decisions = self.trace.decisions.iter();
            let mut ours = decisions.filter(|d| d.update == *update && d.group == self.group.name);
            ours.any(|d| d.guide.is_some() || u64::from(d.size) >= d.population)
        };
        found.half_width <= allowed && (by_design || found.half_width == 0.0) && updates.iter().all(sized)
    }
}

/// True for bounds of which the lower is at least nine tenths of the upper.
fn is_narrow([low, high]: [f64; 2]) -> bool {
    low >= 0.9 * high
}

/// The confidence that a group asks for; static groups, which ask for none, get 90 %.
fn confidence(target: Target) -> f64 {
    match target {
        Target::Bound { confidence, .. } => confidence,
        Target::Static { .. } => 0.90,
    }
}
