//! One seed's run: draws, estimates and the policy's decisions.

use std::ops::Range;

use ampl_core::draw::{Keep, kept_as};
use ampl_core::message::{CensusWindow, Decision, Directive, MetricSummary};
use ampl_core::stats::Moments;
use ampl_core::units::{Rank, WindowId};

use super::draws::Draws;
use super::retrospective::{Binned, RetrospectivePass};
use super::stratification::Stratifications;
use super::{Census, Job, Window};
use crate::policy::Policy;

/// One seed's policy and what it has in force.
#[derive(Clone, Debug)]
pub struct Run {
    seed: u64,
    policy: Policy,
    directive: Directive,
    /// State of retrospective decisions, where windows have them, or the first interval's.
    retrospective: Option<RetrospectivePass>,
    /// State of the ranks' divisions, where groups are divided.
    divisions: Option<Stratifications>,
    /// Decision of the policy for the windows after the one under way, made before that was drawn.
    answer: Option<(Directive, Vec<Decision>)>,
    /// Totals over the update interval of every guide and rank, for `ampl-2008` only.
    totals: Vec<Vec<MetricSummary>>,
    /// Per rank, `true` if it kept any window of the interval.
    sampled: Vec<bool>,
}

impl Run {
    /// A run of `job` with that seed, before its first window.
    pub fn new(job: &Job, seed: u64) -> (Self, Vec<Decision>) {
        let mut plan = job.plan.clone();
        plan.config.sampling.seed = seed;
        let mut policy = Policy::new(&plan);
        let (directive, decisions) = policy.first_directive();
        let ranks = if job.shape.interval { job.plan.ranks as usize } else { 0 };
        let totals = vec![vec![MetricSummary::default(); ranks]; job.guides.len()];
        let retrospective = job.shape.retrospective.as_ref().map(|_| RetrospectivePass::default());
        let sampled = vec![false; ranks];
        let divisions = Stratifications::new(job, seed);
        (Self { seed, policy, directive, retrospective, divisions, answer: None, totals, sampled }, decisions)
    }

    /// The run's seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Gives the policy a window in which no rank has been drawn yet, where decisions are retrospective; to be called
    /// before the ranks are binned.
    pub fn begin_window(&mut self, job: &Job, window: &Window, census: &Census) {
        let Some(retrospective) = self.retrospective.as_mut().filter(|_| decides_after(job, window)) else {
            return;
        };
        let mut reported = reported(job, window, census, &Draws::none(job));
        if let Some(divisions) = &mut self.divisions {
            divisions.report(job, window, census, &mut reported);
        }
        // What is decided now holds from the next window on.
        self.answer = self.policy.end_window(&reported);
        retrospective.refer(self.policy.reference(), window.number);
    }

    /// Some ranks of `window` by bin, one of [`Job::chunks`]; `None` where decisions are predictive.
    pub fn bin(&self, job: &Job, window: &Window, ranks: Range<u32>) -> Option<Binned> {
        self.after(job, window).map(|retrospective| retrospective.bin(job, window, ranks))
    }

    /// Decides `window` by the bins of all its ranks, in their order.
    pub fn judge(&mut self, job: &Job, window: &Window, pieces: Vec<Binned>) -> Vec<Decision> {
        match self.retrospective.as_mut().filter(|_| decides_after(job, window)) {
            Some(retrospective) => retrospective.judge(job, &mut self.policy, window.number, pieces),
            None => Vec::new(),
        }
    }

    /// State of retrospective decisions, if `window` is decided so.
    fn after(&self, job: &Job, window: &Window) -> Option<&RetrospectivePass> {
        self.retrospective.as_ref().filter(|_| decides_after(job, window))
    }

    /// Draws of `ranks`, one of [`Job::chunks`]: those that keep `window`.
    pub fn draw(&self, job: &Job, window: &Window, ranks: Range<u32>) -> Draws {
        let mut draws = Draws::none(job);
        if let Some(retrospective) = self.after(job, window) {
            retrospective.report(job, &mut draws);
        } else {
            Stratifications::stand_for(&self.directive, &mut draws);
        }
        self.each_kept(job, window, ranks, |rank, keep, stratum| {
            let seen = window.guides.iter().map(|guide| &guide[rank as usize]);
            draws.add(job, rank, keep, stratum, seen);
        });
        draws
    }

    /// Ranks among `ranks`, one of [`Job::chunks`], that keep `window`, each with its keep probability: enough to
    /// estimate anything else from the same ranks.
    pub fn kept(&self, job: &Job, window: &Window, ranks: Range<u32>) -> Vec<(u32, f64)> {
        let mut found = Vec::new();
        self.each_kept(job, window, ranks, |rank, keep, _| found.push((rank, keep.probability)));
        found
    }

    fn each_kept(
        &self,
        job: &Job,
        window: &Window,
        ranks: Range<u32>,
        mut each: impl FnMut(u32, Keep, Option<usize>),
    ) {
        let own = |rank: Rank| {
            let divisions = self.divisions.as_ref()?;
            let divided = self.directive.divided(job.plan.group_of(rank) as u16)?;
            divisions.own(rank, divided)
        };
        let number = WindowId(window.number);
        let keep = |rank: Rank, own| kept_as(&job.plan, rank, number, &self.directive, own);
        if let Some(retrospective) = self.after(job, window) {
            return retrospective.kept(job, ranks, |rank| keep(rank, own(rank)), each);
        }
        for rank in ranks {
            let own = own(Rank(rank));
            let keep = keep(Rank(rank), own);
            if keep.kept {
                each(rank, keep, own.map(|own| usize::from(own.stratum)));
            }
        }
    }

    /// Ranks that keep `window`, and the decisions about it if they were retrospective.
    pub fn draw_all(&mut self, job: &Job, window: &Window, census: &Census) -> (Draws, Vec<Decision>) {
        self.begin_window(job, window, census);
        let pieces: Option<Vec<Binned>> = job.chunks().map(|ranks| self.bin(job, window, ranks)).collect();
        let decisions = pieces.map_or_else(Vec::new, |pieces| self.judge(job, window, pieces));
        let mut draws = Draws::none(job);
        job.chunks().for_each(|ranks| draws.merge(self.draw(job, window, ranks)));
        (draws, decisions)
    }

    /// Gives the policy the window, unless it has it; returns the decisions for windows to come, at the end of an
    /// interval.
    pub fn end_window(
        &mut self,
        job: &Job,
        window: &Window,
        census: &Census,
        draws: &Draws,
    ) -> Vec<Decision> {
        let decided = match decides_after(job, window) {
            true => self.answer.take(),
            false => {
                let mut reported = reported(job, window, census, draws);
                if job.shape.interval {
                    self.add_totals(job, window, draws, &mut reported);
                }
                if let Some(divisions) = &mut self.divisions {
                    divisions.report(job, window, census, &mut reported);
                }
                self.policy.end_window(&reported)
            }
        };
        match decided {
            Some((directive, decisions)) => {
                if let Some(divisions) = &mut self.divisions {
                    divisions.learn(job, &directive);
                }
                self.directive = directive;
                decisions
            }
            None => Vec::new(),
        }
    }

    /// Adds the totals that every rank of a live job keeps for itself: those over the windows of the interval that it
    /// kept go into the last of them.
    fn add_totals(&mut self, job: &Job, window: &Window, draws: &Draws, reported: &mut CensusWindow) {
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
            let cell = &mut reported.partial.cells[usize::from(job.cells[rank as usize])];
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

/// `true` if `window` is decided retrospectively.
fn decides_after(job: &Job, window: &Window) -> bool {
    job.shape
        .retrospective
        .as_ref()
        .is_some_and(|retrospective| retrospective.decides(WindowId(window.number)))
}

/// Census of a window as the tree would have reported it.
fn reported(job: &Job, window: &Window, census: &Census, draws: &Draws) -> CensusWindow {
    let mut sums = job.census_window(window.number);
    sums.reported = u64::from(job.plan.ranks);
    for (cell, part) in sums.partial.cells.iter_mut().enumerate() {
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
    sums
}
