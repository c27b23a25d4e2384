//! Series over time: efficiencies, estimates with their intervals, sizes of samples.

use std::collections::BTreeMap;

use ampl_analysis::decisions::in_force;
use ampl_analysis::efficiency;
use ampl_analysis::estimate::{self, Scope};
use ampl_core::config::{ErrorBound, Target};
use ampl_core::message::Decision;
use ampl_core::plan::Plan;
use ampl_reader::Trace;
use ampl_report::human::{Unit, of_event, percent};
use serde::Serialize;

use crate::pooling::parts;

/// Most windows of a series; neighbours are joined beyond.
const MOST: usize = 1500;
/// Most series of estimates.
const SERIES: usize = 12;

/// Efficiencies by window; of several that are joined the least.
#[derive(Debug, Default, Serialize)]
pub struct Strip {
    /// First window of each point.
    pub windows: Vec<u64>,
    /// Windows of a point.
    pub joined: usize,
    /// Parallel efficiency; null where not known.
    pub parallel: Vec<Option<f64>>,
    /// Load balance.
    pub balance: Vec<Option<f64>>,
    /// Communication efficiency.
    pub communication: Vec<Option<f64>>,
}

/// Four significant digits of a share.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

impl Strip {
    /// Efficiencies of the windows that `rows` has.
    pub fn of(rows: &[efficiency::Row]) -> Self {
        let rows: Vec<&efficiency::Row> = rows.iter().filter(|row| row.window.is_some()).collect();
        let parts = parts(rows.len(), MOST);
        let least = |of: fn(&efficiency::Row) -> Option<f64>| -> Vec<Option<f64>> {
            let part = |part: &std::ops::Range<usize>| {
                let values = rows[part.clone()].iter().filter_map(|row| of(row));
                values.reduce(f64::min).map(rounded)
            };
            parts.iter().map(part).collect()
        };
        Self {
            windows: parts.iter().filter_map(|part| rows[part.start].window).collect(),
            joined: parts.iter().map(ExactSizeIterator::len).max().unwrap_or(1),
            parallel: least(|row| row.parallel),
            balance: least(|row| row.load_balance),
            communication: least(|row| row.communication),
        }
    }
}

/// Means of a guide by window, with the half-width of the interval and the one that was asked for.
#[derive(Debug, Serialize)]
pub struct Series {
    /// Guide and group.
    pub name: String,
    /// `ns`, `B`, or nothing.
    pub unit: &'static str,
    /// Words about confidence, bound and basis.
    pub about: String,
    /// Window of each point.
    pub windows: Vec<u64>,
    /// The mean of an observation.
    pub mean: Vec<Option<f64>>,
    /// Half of its interval.
    pub half: Vec<Option<f64>>,
    /// Half of the interval that was asked for.
    pub bound: Vec<Option<f64>>,
}

/// A series for each guide of each group with a bound.
pub fn estimates(trace: &Trace, plan: &Plan) -> Vec<Series> {
    let rows = estimate::rows(trace, plan);
    let mut by_guide: BTreeMap<(usize, usize), Vec<&estimate::Row>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.scope == Scope::Window) {
        let group = plan.groups.iter().position(|group| group.name == row.group);
        let is_it = |metric: &ampl_core::config::Metric| {
            metric.guide && metric.name() == row.metric && metric.event.name() == row.event
        };
        if let (Some(group), Some(metric)) = (group, plan.metrics.iter().position(is_it)) {
            by_guide.entry((group, metric)).or_default().push(row);
        }
    }
    by_guide
        .into_iter()
        .take(SERIES)
        .filter_map(|((group, metric), rows)| series(plan, group, metric, &rows))
        .collect()
}

fn series(plan: &Plan, group: usize, metric: usize, rows: &[&estimate::Row]) -> Option<Series> {
    let (group, metric) = (&plan.groups[group], &plan.metrics[metric]);
    let (mut rows, checked) = one_a_window(rows);
    // Of less time than others: it would look like a collapse.
    let is_whole = |row: &&estimate::Row| row.partial != Some(true);
    let has_short = rows.iter().any(|row| !is_whole(row)) && rows.iter().any(is_whole);
    if has_short {
        rows.retain(is_whole);
    }
    let Target::Bound { confidence, error } = plan.target(group, metric) else { return None };
    let parts = parts(rows.len(), MOST);
    let shown: Vec<&&estimate::Row> = parts.iter().map(|part| &rows[part.start]).collect();
    let bound = |row: &&&estimate::Row| match error {
        ErrorBound::Relative(error) => row.mean.map(|mean| mean.abs() * error),
        ErrorBound::Absolute(error) => Some(error),
    };
    let asked = match error {
        ErrorBound::Relative(error) => format!("± {} of the mean", percent(error)),
        ErrorBound::Absolute(error) => format!("± {}", Unit::of(&metric.name()).text(error)),
    };
    let census = rows.iter().filter(|row| row.basis == ampl_core::stats::Basis::Census).count();
    let basis = match (census, checked) {
        (_, Some((within, all))) => format!(
            "estimated from sampled ranks; all ranks reported {all} of {} windows, and their mean lies within the interval in {within}",
            rows.len()
        ),
        (all, None) if all == rows.len() => "census: the mean of all ranks, without an error".to_owned(),
        (0, None) => "estimated from sampled ranks".into(),
        (some, None) => {
            format!("census in {some} of {} windows, elsewhere estimated from sampled ranks", rows.len())
        }
    };
    let skipped = if shown.len() < rows.len() { "; some windows are left out of the picture" } else { "" };
    let short =
        if has_short { "; the end of the run cut its last window short, which is left out" } else { "" };
    Some(Series {
        name: format!("{} of group {}", of_event(&metric.name(), &metric.event.name()), group.name),
        unit: match Unit::of(&metric.name()) {
            Unit::Time => "ns",
            Unit::Bytes => "B",
            Unit::Plain => "",
        },
        about: format!("asked for: {asked} at {} confidence; {basis}{skipped}{short}", percent(confidence)),
        windows: shown.iter().filter_map(|row| row.window).collect(),
        mean: shown.iter().map(|row| row.mean).collect(),
        half: shown.iter().map(|row| row.half_width).collect(),
        bound: shown.iter().map(bound).collect(),
    })
}

/// One row for each window, the estimate where all ranks reported it, too; and of how many of these the exact mean lies
/// within the interval, and their number, if there are any.
fn one_a_window<'a>(rows: &[&'a estimate::Row]) -> (Vec<&'a estimate::Row>, Option<(usize, usize)>) {
    let (mut shown, mut within, mut both) = (Vec::new(), 0, 0);
    for of_window in rows.chunk_by(|one, next| one.window == next.window) {
        let is_census = |row: &&&estimate::Row| row.basis == ampl_core::stats::Basis::Census;
        let (exact, drawn) = (of_window.iter().find(is_census), of_window.iter().find(|row| !is_census(row)));
        shown.extend(drawn.or(exact).copied());
        if let (Some(exact), Some(drawn)) = (exact, drawn)
            && let (Some(exact), Some(mean), Some(half)) = (exact.mean, drawn.mean, drawn.half_width)
        {
            both += 1;
            within += usize::from((mean - exact).abs() <= half);
        }
    }
    (shown, (both > 0).then_some((within, both)))
}

/// Sizes of samples of a group's stratum.
#[derive(Debug, Serialize)]
pub struct Sizes {
    /// Group, and stratum where it has several.
    pub name: String,
    /// Ranks of the stratum, the most.
    pub population: u64,
    /// Window from which on each size holds.
    pub windows: Vec<u64>,
    /// Ranks kept.
    pub sizes: Vec<u32>,
}

/// Size of one sample, from a window on.
#[derive(Clone, Copy)]
struct Point {
    window: u64,
    size: u32,
    population: u64,
}

/// A group, and one of its strata.
type Drawn<'a> = (&'a str, u16);

/// Sizes of the samples over time, as they were decided.
pub fn sizes(trace: &Trace, plan: &Plan) -> Vec<Sizes> {
    let per_update = plan.config.sampling.windows_per_update.into();
    let decisions = in_force(trace.decisions.clone(), per_update, trace.windows());
    let mut by_stratum: BTreeMap<Drawn<'_>, Vec<Point>> = BTreeMap::new();
    for decision in &decisions {
        let of = by_stratum.entry((&decision.group, decision.stratum)).or_default();
        let Decision { window, size, population, .. } = *decision;
        of.push(Point { window, size, population });
    }
    let several = |name: &str| by_stratum.keys().filter(|key| key.0 == name).count() > 1;
    let name = |&(group, stratum): &Drawn<'_>| match several(group) {
        true => format!("{group}, part {stratum}"),
        false => group.to_owned(),
    };
    by_stratum.iter().map(|(key, points)| Sizes::of(name(key), points)).collect()
}

impl Sizes {
    fn of(name: String, points: &[Point]) -> Self {
        let mut points = points.to_vec();
        points.sort_by_key(|point| point.window);
        points.dedup_by_key(|point| point.window);
        let shown = || parts(points.len(), MOST).into_iter().map(|part| points[part.start]);
        Self {
            name,
            population: points.iter().map(|point| point.population).max().unwrap_or(0),
            windows: shown().map(|point| point.window).collect(),
            sizes: shown().map(|point| point.size).collect(),
        }
    }
}
