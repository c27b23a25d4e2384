//! The rows of `ampl estimate`.

use ampl_core::config::{ErrorBound, Keep, Sizing, Target};
use ampl_core::plan::{GroupPlan, Plan};
use ampl_core::stats::Basis;
use ampl_core::stats::estimate::{Item, ratio_estimate};
use ampl_trace::Trace;
use serde::{Serialize, Serializer};

use super::observed::{Point, all_reported, moments, points, ranks, windows_per_update};
use super::pool::{Pooled, pooled};

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// One window.
    Window,
    /// The windows between two directives.
    Update,
    /// The whole run.
    Run,
}

/// One estimate; serialised, one element of what `--json` prints.
///
/// `population` is the group's size. `kept` counts the ranks that it was computed from: those that reported
/// (`census`), or those in the sample; over several windows, those that did so in any of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The window, or the first of the update interval; none for the run.
    pub window: Option<u64>,
    /// The group.
    pub group: String,
    /// Its stratum; this version has one per group.
    pub stratum: u16,
    /// The metric.
    pub metric: String,
    /// What it observes.
    pub event: String,
    /// Ranks that it is about.
    pub population: u64,
    /// Ranks that it was computed from.
    pub kept: u64,
    /// The mean per observation, in the metric's unit; none without observations.
    pub mean: Option<f64>,
    /// Half of its interval; none where one rank stands for many.
    pub half_width: Option<f64>,
    /// Confidence of the interval, in (0, 1).
    pub confidence: f64,
    /// `half_width` relative to the mean; none for a mean of 0.
    pub error: Option<f64>,
    /// What it is about.
    pub scope: Scope,
    /// What it was computed from.
    #[serde(serialize_with = "basis")]
    pub basis: Basis,
    /// Whether the bound asked for holds by design.
    pub guaranteed: bool,
}

fn basis<S: Serializer>(basis: &Basis, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(basis.name())
}

/// Every row of `trace`, which `plan` describes: windows, then update intervals, then the run.
pub fn rows(trace: &Trace, plan: &Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    // Rows without a number would say that nothing was observed.
    let groups = plan.groups.iter().filter(|_| plan.stores_summary(true));
    for group in groups {
        for metric in 0..plan.metrics.len() {
            let source = Source { trace, plan, group, metric };
            let points = points(trace, plan, group, metric);
            for window in points.chunk_by(|a, b| a.window == b.window) {
                source.rows(Scope::Window, Some(window[0].window), window, &mut rows);
            }
            let windows = windows_per_update(plan);
            for update in points.chunk_by(|a, b| a.window / windows == b.window / windows) {
                source.rows(Scope::Update, Some(update[0].window / windows * windows), update, &mut rows);
            }
            if !points.is_empty() {
                source.rows(Scope::Run, None, &points, &mut rows);
            }
        }
    }
    // Stable: groups and metrics keep their order within a window.
    rows.sort_by_key(|row| (row.scope, row.window));
    rows
}

/// The run's rows of the metric of that index, all groups.
pub fn run_rows(trace: &Trace, plan: &Plan, metric: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for group in &plan.groups {
        let points = points(trace, plan, group, metric);
        if !points.is_empty() {
            Source { trace, plan, group, metric }.rows(Scope::Run, None, &points, &mut rows);
        }
    }
    rows
}

/// One metric of one group.
struct Source<'a> {
    trace: &'a Trace,
    plan: &'a Plan,
    group: &'a GroupPlan,
    metric: usize,
}

impl Source<'_> {
    /// The row of each basis that there is for `points`, which are the windows of that scope.
    fn rows(&self, scope: Scope, window: Option<u64>, points: &[Point], rows: &mut Vec<Row>) {
        let members = self.group.members.len();
        let reported = match scope {
            Scope::Window => points.len() as u64 == members,
            Scope::Update | Scope::Run => {
                all_reported(self.trace, self.plan, self.group, points, scope == Scope::Run)
            }
        };
        let config = &self.plan.config;
        let drawn = || points.iter().filter(|point| point.drawn);
        if !self.plan.stores_summary(false) {
            let found = self.sample(scope, points, false);
            rows.push(self.row(scope, window, Basis::Sampled, found, ranks(drawn()), points, reported));
            return;
        }
        let stated = || points.iter().filter(|point| point.value.is_some());
        let exact = moments(points).ratio().map(|mean| Pooled { mean, half_width: 0.0 });
        rows.push(self.row(scope, window, Basis::Census, exact, ranks(stated()), points, reported));
        if config.trace.stored() != Keep::Off {
            let found = self.sample(scope, points, true);
            rows.push(self.row(scope, window, Basis::Trace, found, ranks(drawn()), points, reported));
        }
    }

    /// The weighted estimate from the drawn ones of `points`. Ranks that did not report are not in it: nothing
    /// is known of them, not even whether they had such a window.
    fn sample(&self, scope: Scope, points: &[Point], census: bool) -> Option<Pooled> {
        let confidence = confidence(self.target());
        if scope != Scope::Window {
            return pooled(points, self.plan.config.sampling.update_mechanism, confidence, census);
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

    #[expect(clippy::too_many_arguments, reason = "what differs between rows, all of it")]
    fn row(
        &self,
        scope: Scope,
        window: Option<u64>,
        basis: Basis,
        found: Option<Pooled>,
        kept: u64,
        points: &[Point],
        reported: bool,
    ) -> Row {
        let metric = &self.plan.metrics[self.metric];
        let holds = |found: Pooled| basis == Basis::Census || self.bound_holds(scope, found, points);
        Row {
            window,
            group: self.group.name.clone(),
            stratum: 0,
            metric: metric.name().into(),
            event: metric.event.name().into(),
            population: self.group.members.len(),
            kept,
            mean: found.map(|found| found.mean).filter(|mean| mean.is_finite()),
            half_width: found.map(|found| found.half_width).filter(|half_width| half_width.is_finite()),
            confidence: confidence(self.target()),
            error: found.map(|found| found.half_width / found.mean.abs()).filter(|error| error.is_finite()),
            scope,
            basis,
            guaranteed: metric.guide && reported && found.is_some_and(holds),
        }
    }

    /// What is asked of the metric's means.
    fn target(&self) -> Target {
        self.plan.target(self.group, &self.plan.metrics[self.metric])
    }

    /// Whether the sample was sized for the bound and attains it.
    ///
    /// `ampl-2008` sizes for the mean of an update interval, which bounds neither a window nor the run
    /// (STATISTICS §3): unless everyone was kept, nothing is promised of those.
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

/// The confidence that a group asks for; static groups, which ask for none, get 90 %.
fn confidence(target: Target) -> f64 {
    match target {
        Target::Bound { confidence, .. } => confidence,
        Target::Static { .. } => 0.90,
    }
}
