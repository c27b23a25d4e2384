//! Totals over rank-windows of which only a sample has times.

use ampl_core::config::Target;
use ampl_core::plan::Plan;
use ampl_core::units::Rank;
use ampl_trace::model::WindowSummary;

use crate::estimate::pool::{Point, pooled};

/// A total over all rank-windows of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Total {
    /// The total.
    pub total: f64,
    /// Half of its interval, 0 where every window has its times; `None` where the sample does not give any.
    pub half_width: Option<f64>,
}

/// The rank-windows of a part, whose totals are asked for.
pub struct Sample<'a> {
    plan: Option<&'a Plan>,
    /// Rank-windows by group, each with its number.
    groups: Vec<Vec<(u32, Point)>>,
    windows: u32,
    timed: u32,
    /// True where a rank-window is in no group.
    ungrouped: bool,
}

impl<'a> Sample<'a> {
    /// A part without rank-windows yet, of a job with that plan.
    pub fn new(plan: Option<&'a Plan>) -> Self {
        let groups = plan.map_or(0, |plan| plan.groups.len());
        Self { plan, groups: vec![Vec::new(); groups], windows: 0, timed: 0, ungrouped: false }
    }

    /// Adds a window of `rank`; gives its number.
    pub fn add(&mut self, rank: u32, window: &WindowSummary, timed: bool) -> u32 {
        let number = self.windows;
        self.windows += 1;
        self.timed += u32::from(timed);
        let groups = self.plan.map_or(&[][..], |plan| &plan.groups);
        match groups.iter().position(|group| group.members.contains(Rank(rank))) {
            Some(group) => self.groups[group].push((
                number,
                Point {
                    rank,
                    window: window.window,
                    update: window.update,
                    stratum: window.stratum,
                    drawn: window.drawn && timed,
                    probability: window.probability,
                    value: None,
                },
            )),
            None => self.ungrouped = true,
        }
        number
    }

    /// True where every rank-window has its times, and there is one.
    pub fn is_whole(&self) -> bool {
        self.windows == self.timed
    }

    /// Confidence of intervals, in (0, 1): the least of any group's.
    pub fn confidence(&self) -> f64 {
        let of = |target: Target| match target {
            Target::Bound { confidence, .. } => confidence,
            Target::Static { .. } => 0.90,
        };
        let groups = self.plan.map_or(&[][..], |plan| &plan.groups);
        groups.iter().map(|group| of(group.target)).reduce(f64::min).unwrap_or(0.90)
    }

    /// The total of `values`, by number of the rank-window and ascending; windows that are not among them have 0.
    /// `None` where no rank stands for those without times.
    ///
    /// Exact where every window has its times. Otherwise the mean of each group's windows, weighted by the inverse of
    /// their keep probabilities, times their number; groups are drawn independently, and their variances add up.
    pub fn total(&self, values: &[(u32, f64)]) -> Option<Total> {
        if self.is_whole() {
            return Some(Total { total: values.iter().map(|value| value.1).sum(), half_width: Some(0.0) });
        }
        let plan = self.plan.filter(|_| !self.ungrouped)?;
        let confidence = self.confidence();
        let (mut total, mut squares) = (0.0, Some(0.0));
        for group in self.groups.iter().filter(|group| !group.is_empty()) {
            let points: Vec<Point> = group
                .iter()
                .map(|(number, point)| {
                    let value = values.binary_search_by_key(number, |value| value.0);
                    let y = value.map_or(0.0, |at| values[at].1);
                    Point { value: point.drawn.then_some((1, y)), ..*point }
                })
                .collect();
            let found = pooled(&points, plan.config.sampling.update_mechanism, confidence, false)?;
            let count = points.len() as f64;
            total += found.mean * count;
            squares = squares.filter(|_| found.half_width.is_finite()).map(|sum: f64| {
                let own = found.half_width * count;
                own.mul_add(own, sum)
            });
        }
        // Windows without times have some value: an interval without any width would deny it.
        Some(Total { total, half_width: squares.map(f64::sqrt).filter(|&half_width| half_width > 0.0) })
    }
}
