//! One seed's run: who is drawn, what is estimated from them, what the policy makes of it.

use std::ops::Range;

use ampl_core::draw::kept;
use ampl_core::message::{CensusWindow, Decision, Directive, MetricSummary};
use ampl_core::stats::Moments;
use ampl_core::units::{Rank, WindowId};

use super::{Census, Job, Window};
use crate::policy::Policy;

/// One seed's policy and what it has in force.
#[derive(Clone, Debug)]
pub struct Run {
    seed: u64,
    policy: Policy,
    directive: Directive,
    /// Totals over the update interval of every guide and rank, for `ampl-2008` only.
    totals: Vec<Vec<MetricSummary>>,
    /// Which ranks kept any window of it.
    sampled: Vec<bool>,
}

/// The ranks that keep a window.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Kept ranks per cell of the shape.
    kept: Vec<u64>,
    /// Their unweighted moments, per cell and guide.
    moments: Vec<Vec<Moments>>,
    /// Their weighted sums, per group.
    sums: Vec<GroupDraws>,
    /// Who they are, where interval totals need it.
    ranks: Vec<u32>,
}

/// The kept ranks of a group.
#[derive(Clone, Debug)]
pub(super) struct GroupDraws {
    /// How many.
    pub(super) size: u64,
    /// How many of them are there with certainty.
    certain: u64,
    /// Σ 1/p over the others.
    inverse: f64,
    /// Per guide: Σ n and Σ y of the certain ones, Σ n/p and Σ y/p of the others.
    guides: Vec<[f64; 4]>,
}

impl GroupDraws {
    fn add(&mut self, probability: f64, guide: usize, summary: &MetricSummary) {
        if summary.n == 0 {
            return;
        }
        let sums = &mut self.guides[guide];
        let (n, y) = (summary.n as f64, summary.sum);
        if probability >= 1.0 {
            sums[0] += n;
            sums[1] += y;
        } else {
            sums[2] += n / probability;
            sums[3] += y / probability;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.size += other.size;
        self.certain += other.certain;
        self.inverse += other.inverse;
        for (sums, more) in self.guides.iter_mut().zip(&other.guides) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
    }

    /// Estimated totals n and y of the whole group, `population` ranks; none where nobody stands for the
    /// ranks that are missing.
    ///
    /// The ratio of the two is [`ampl_core::stats::estimate::ratio_estimate`]'s mean: Hájek weights, which
    /// sum to the number of ranks that are not certain.
    pub(super) fn totals(&self, guide: usize, population: u64) -> Option<(f64, f64)> {
        let [n, y, drawn_n, drawn_y] = self.guides[guide];
        let others = population.saturating_sub(self.certain) as f64;
        if others == 0.0 {
            return Some((n, y));
        }
        let scale = others / self.inverse;
        (self.inverse > 0.0).then_some((n + scale * drawn_n, y + scale * drawn_y))
    }
}

impl Run {
    /// A run of `job` with that seed, before its first window.
    pub fn new(job: &Job, seed: u64) -> (Self, Vec<Decision>) {
        let mut plan = job.plan.clone();
        plan.config.sampling.seed = seed;
        // What a kept window takes is not in a population.
        plan.config.sampling.budget = None;
        let mut policy = Policy::new(&plan);
        let (directive, decisions) = policy.first_directive();
        let ranks = if job.shape.interval { job.plan.ranks as usize } else { 0 };
        let totals = vec![vec![MetricSummary::default(); ranks]; job.guides.len()];
        (Self { seed, policy, directive, totals, sampled: vec![false; ranks] }, decisions)
    }

    /// The run's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Who of `ranks` keeps `window`.
    pub fn draw(&self, job: &Job, window: &Window, ranks: Range<u32>) -> Draws {
        let mut draws = Draws::none(job);
        for rank in ranks {
            let keep = kept(&job.plan, Rank(rank), WindowId(window.number), &self.directive);
            if !keep.kept {
                continue;
            }
            let cell = usize::from(job.cells[rank as usize]);
            let group = &mut draws.sums[usize::from(job.shape.cells[cell].group)];
            group.size += 1;
            match keep.probability {
                certain if certain >= 1.0 => group.certain += 1,
                probability => group.inverse += 1.0 / probability,
            }
            draws.kept[cell] += 1;
            for (guide, summaries) in window.guides.iter().enumerate() {
                let summary = &summaries[rank as usize];
                group.add(keep.probability, guide, summary);
                let rank = Moments::of_rank(summary.n, summary.sum, summary.sum_sq, summary.min, summary.max);
                draws.moments[cell][guide].merge(&rank);
            }
            if job.shape.interval {
                draws.ranks.push(rank);
            }
        }
        draws
    }

    /// Who keeps `window`.
    pub fn draw_all(&self, job: &Job, window: &Window) -> Draws {
        let mut draws = Draws::none(job);
        job.chunks().for_each(|ranks| draws.merge(self.draw(job, window, ranks)));
        draws
    }

    /// Tells the policy of the window; what it decided, at the end of an interval.
    pub fn end_window(
        &mut self,
        job: &Job,
        window: &Window,
        census: &Census,
        draws: &Draws,
    ) -> Vec<Decision> {
        let mut told = job.census_window(window.number);
        told.reported = u64::from(job.plan.ranks);
        for (cell, part) in told.partial.cells.iter_mut().enumerate() {
            part.reported = census.reported[cell];
            part.kept = draws.kept[cell];
            for (guide, &metric) in job.guides.iter().enumerate() {
                let slot = &mut part.metrics[metric];
                if job.shape.census {
                    slot.census = census.moments[cell][guide];
                }
                slot.kept = draws.moments[cell][guide];
            }
        }
        if job.shape.interval {
            self.add_totals(job, window, draws, &mut told);
        }
        match self.policy.end_window(&told) {
            Some((directive, decisions)) => {
                self.directive = directive;
                decisions
            }
            None => Vec::new(),
        }
    }

    /// What every rank of a live job does for itself: its totals over the windows of the interval that it
    /// kept go into the last of them.
    fn add_totals(&mut self, job: &Job, window: &Window, draws: &Draws, told: &mut CensusWindow) {
        draws.ranks.iter().for_each(|&rank| self.sampled[rank as usize] = true);
        for (totals, summaries) in self.totals.iter_mut().zip(&window.guides) {
            for &rank in &draws.ranks {
                totals[rank as usize].merge(&summaries[rank as usize]);
            }
        }
        if !(window.number + 1).is_multiple_of(job.interval()) {
            return;
        }
        // A rank that kept nothing is not in the sample; one that kept a window in which nothing happened is.
        for rank in (0..job.plan.ranks).filter(|&rank| self.sampled[rank as usize]) {
            let cell = &mut told.partial.cells[usize::from(job.cells[rank as usize])];
            for (totals, &metric) in self.totals.iter().zip(&job.guides) {
                let total = &totals[rank as usize];
                let own = Moments::of_rank(total.n, total.sum, total.sum_sq, total.min, total.max);
                cell.metrics[metric].interval.merge(&own);
            }
        }
        self.totals.iter_mut().for_each(|totals| totals.fill(MetricSummary::default()));
        self.sampled.fill(false);
    }
}

impl Draws {
    /// Nobody.
    pub fn none(job: &Job) -> Self {
        let cells = job.shape.cells.len();
        let guides = job.guides.len();
        let nobody = GroupDraws { size: 0, certain: 0, inverse: 0.0, guides: vec![[0.0; 4]; guides] };
        Self {
            kept: vec![0; cells],
            moments: vec![vec![Moments::default(); guides]; cells],
            sums: vec![nobody; job.plan.groups.len()],
            ranks: Vec::new(),
        }
    }

    /// Adds the ranks of `other`, all of them larger.
    pub fn merge(&mut self, other: Self) {
        self.kept.iter_mut().zip(&other.kept).for_each(|(sum, more)| *sum += more);
        for (sums, more) in self.moments.iter_mut().zip(&other.moments) {
            sums.iter_mut().zip(more).for_each(|(sum, more)| sum.merge(more));
        }
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, more)| sum.merge(more));
        self.ranks.extend(other.ranks);
    }

    /// Kept ranks of a group.
    pub fn size(&self, group: usize) -> u64 {
        self.sums[group].size
    }

    pub(super) fn group(&self, group: usize) -> &GroupDraws {
        &self.sums[group]
    }
}
