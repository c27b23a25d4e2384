//! Accuracy of the estimates of windows and intervals, and their cost.

use ampl_core::config::ErrorBound;

use super::{Census, Draws, Job};

/// One window of one group and guide under one seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// The window.
    pub window: u64,
    /// R over all ranks, in the guide's unit per observation.
    pub truth: f64,
    /// The weighted estimate from the kept ranks; `None` where no rank with an observation was kept.
    pub estimate: Option<f64>,
    /// Ranks kept.
    pub size: u64,
    /// Ranks of the smallest simple random sample that would do; none for a static size.
    pub oracle: Option<u64>,
    /// `true` if the estimate lies within the bound of the truth; `None` for a static size.
    pub covered: Option<bool>,
}

/// One group and guide under one seed, window after window.
#[derive(Clone, Debug)]
pub struct Score {
    group: usize,
    guide: usize,
    /// Windows of the first update interval that has an observation: not scored, listed all the same.
    pub first: Vec<Scored>,
    /// The windows after it.
    pub windows: Vec<Scored>,
    /// Per update interval after the first, `true` if it was estimated within the bound.
    pub intervals: Vec<bool>,
    first_interval: Option<u64>,
    open: Option<Interval>,
}

/// An update interval under way: totals n and y of all ranks, and estimated ones.
#[derive(Clone, Copy, Debug)]
struct Interval {
    number: u64,
    truth: (f64, f64),
    /// Estimated totals; `None` as soon as a window had no estimate.
    estimate: Option<(f64, f64)>,
    everyone: bool,
}

impl Score {
    /// The score of a group and a guide, indices into the plan's groups and [`Job::guides`].
    pub fn new(group: usize, guide: usize) -> Self {
        Self {
            group,
            guide,
            first: Vec::new(),
            windows: Vec::new(),
            intervals: Vec::new(),
            first_interval: None,
            open: None,
        }
    }

    /// Scores of every group and guide of `job`, groups outermost.
    pub fn of_all(job: &Job) -> Vec<Self> {
        let groups = 0..job.plan.groups.len();
        groups.flat_map(|group| (0..job.guides.len()).map(move |guide| Self::new(group, guide))).collect()
    }

    /// Takes the next window.
    pub fn window(&mut self, job: &Job, number: u64, census: &Census, draws: &Draws) {
        let interval = number / job.interval();
        if self.open.is_some_and(|open| open.number != interval) {
            self.end_interval(job);
        }
        let all = census.group(job, self.group, self.guide);
        // Nothing happened, so there is nothing to be estimated.
        let Some(truth) = all.ratio() else { return };
        let first = *self.first_interval.get_or_insert(interval);
        let population = job.plan.groups[self.group].members.len();
        let drawn = draws.group(self.group);
        let everyone = drawn.size == population;
        let totals = drawn.totals(self.guide, population);
        let estimate = totals.filter(|&(n, _)| n > 0.0).map(|(n, y)| y / n);
        let scored = Scored {
            window: number,
            truth,
            estimate,
            size: drawn.size,
            oracle: job.oracle(self.group, self.guide, &all),
            covered: self.covers(job, truth, estimate, everyone),
        };
        if interval == first {
            self.first.push(scored);
            return;
        }
        self.windows.push(scored);
        let empty =
            Interval { number: interval, truth: (0.0, 0.0), estimate: Some((0.0, 0.0)), everyone: true };
        let open = self.open.get_or_insert(empty);
        let add = |a: (f64, f64), b: (f64, f64)| (a.0 + b.0, a.1 + b.1);
        open.truth = add(open.truth, (all.n as f64, all.y));
        open.estimate = open.estimate.zip(totals).map(|(sum, more)| add(sum, more));
        open.everyone &= everyone;
    }

    /// Ends the last interval; no window follows.
    pub fn end(&mut self, job: &Job) {
        self.end_interval(job);
    }

    fn end_interval(&mut self, job: &Job) {
        let Some(open) = self.open.take() else { return };
        let mean = |(n, y): (f64, f64)| (n > 0.0).then(|| y / n);
        let Some(truth) = mean(open.truth) else { return };
        let estimate = open.estimate.and_then(mean);
        self.intervals.extend(self.covers(job, truth, estimate, open.everyone));
    }

    /// `Some(true)` if an estimate is within the bound; an estimate from every rank is the truth, rounding aside.
    fn covers(&self, job: &Job, truth: f64, estimate: Option<f64>, everyone: bool) -> Option<bool> {
        let (_, error) = job.bound(self.group, self.guide)?;
        let allowed = match error {
            ErrorBound::Relative(error) => error * truth.abs(),
            ErrorBound::Absolute(error) => error,
        };
        // An infinite sum counts as a miss.
        let known = truth.is_finite();
        Some(known && (everyone || estimate.is_some_and(|estimate| (estimate - truth).abs() <= allowed)))
    }
}
