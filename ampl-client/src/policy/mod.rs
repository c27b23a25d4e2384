//! The client's decisions as a state machine: windows in, directives out.
//!
//! Sizes are decided at the last window of every update interval, for the next one. Where every rank's summary is
//! known, they are decided again at every window of it, and sent when they have changed enough. Equal plans and equal
//! windows give equal decisions, bit for bit.

mod bound;
mod budget;
mod census;
mod guide;
mod retrospective;
mod sampled;
mod stratification;
mod stratum;

use ampl_core::config::{Mechanism, Selection};
use ampl_core::message::{
    CensusWindow, Decision, DecisionLimit, Directive, MessageLayout, Reference, RetrospectiveDecision,
    StratumDirective,
};
use ampl_core::plan::Plan;
use ampl_core::units::WindowId;

use budget::{Budget, Pressure};
use retrospective::Retrospective;
use stratum::StratumState;

/// Decides which ranks keep their windows.
#[derive(Clone, Debug)]
pub struct Policy {
    seed: u64,
    mechanism: Mechanism,
    windows_per_update: u64,
    update: u64,
    policy: u32,
    late: bool,
    /// Windows of this interval that came as ranges.
    merged: u64,
    budget: Option<Budget>,
    strata: Vec<StratumState>,
    retrospective: Option<Retrospective>,
}

impl Policy {
    /// A policy before the first window.
    pub fn new(plan: &Plan) -> Self {
        let sampling = &plan.config.sampling;
        let MessageLayout { retrospective, divisions, .. } = MessageLayout::of(plan);
        let always = retrospective.as_ref().filter(|retrospective| retrospective.until.is_none());
        let buffered = always.map_or_else(Vec::new, |retrospective| retrospective.groups.clone());
        let state = |group: usize| {
            StratumState::new(plan, group, buffered.contains(&(group as u16)), divisions.as_ref())
        };
        Self {
            seed: sampling.seed,
            mechanism: sampling.update_mechanism,
            windows_per_update: u64::from(sampling.windows_per_update.max(1)),
            update: 0,
            policy: 0,
            late: false,
            merged: 0,
            strata: (0..plan.groups.len()).map(state).collect(),
            budget: sampling.budget.map(|rate| Budget::new(rate, buffered)),
            retrospective: retrospective.map(|retrospective| Retrospective::new(plan, &retrospective)),
        }
    }

    /// The directive in force from window 0, before anything is known: a static size as it is,
    /// otherwise every rank, for an unbounded mean has no worst case to size for. With a budget, no more than
    /// the floors before it is known what keeping takes.
    pub fn first_directive(&mut self) -> (Directive, Vec<Decision>) {
        if self.budget.is_some() {
            self.strata.iter_mut().for_each(|stratum| stratum.limit(Pressure::FLOORS));
        }
        self.directive(0, 0)
    }

    /// Takes the next window, or range of windows, in ascending order. At the end of an update interval, returns the
    /// directive for the next one; within it, a directive from the next window on, if sizes have changed enough.
    ///
    /// A range counts as one window and may end several intervals at once: there is one directive
    /// then, for the interval after them.
    pub fn end_window(&mut self, window: &CensusWindow) -> Option<(Directive, Vec<Decision>)> {
        self.late |= window.late;
        self.merged = self.merged.saturating_add(window.merged());
        for stratum in &mut self.strata {
            stratum.observe(window);
        }
        if let Some(budget) = &mut self.budget {
            budget.observe(window);
        }
        if let Some(retrospective) = &mut self.retrospective {
            retrospective.observe(window);
        }
        let next = window.last_window.0.saturating_add(1) / self.windows_per_update;
        if next <= self.update {
            return self.amend(window);
        }
        for stratum in &mut self.strata {
            stratum.end_interval(next);
        }
        if let Some(budget) = &mut self.budget {
            budget.cut(&mut self.strata, self.windows_per_update);
        }
        let directive = self.directive(next, next.saturating_mul(self.windows_per_update));
        self.strata.iter_mut().for_each(StratumState::begin_interval);
        self.late = false;
        self.merged = 0;
        Some(directive)
    }

    /// Directive from the next window on, where sizes have changed enough within the interval.
    fn amend(&mut self, window: &CensusWindow) -> Option<(Directive, Vec<Decision>)> {
        // Nothing is drawn in the first interval, and a budget is spent by the interval.
        if self.update == 0 || self.budget.is_some() {
            return None;
        }
        let changed = self.strata.iter_mut().fold(false, |changed, stratum| stratum.amend() | changed);
        changed.then(|| self.directive(self.update, window.last_window.0.saturating_add(1)))
    }

    /// Reference by which ranks bin themselves in windows to come, for retrospective decisions. To be called after
    /// every [`Policy::end_window`]: after the first one it is for the windows of the first two update intervals, at
    /// the end of every interval for the one after the next. Where only the first interval's decisions are
    /// retrospective, there is one.
    pub fn reference(&mut self) -> Option<Reference> {
        self.retrospective.as_mut()?.reference()
    }

    /// Retrospective decision about a window, from its retrospective pass; [`Policy::end_window`] has seen its first. Where
    /// there is none, the directive in force holds: for ranges of windows, for windows that are no longer remembered,
    /// and for groups about which nothing was known.
    ///
    /// The decision covers the ranks that are in the bins. It is the root's: no ranks come before.
    pub fn judge(&mut self, binned: &CensusWindow) -> Option<(RetrospectiveDecision, Vec<Decision>)> {
        self.retrospective.as_mut()?.judge(binned)
    }

    fn directive(&mut self, update: u64, first_window: u64) -> (Directive, Vec<Decision>) {
        self.update = update;
        let first_window = WindowId(first_window);
        let mut strata = Vec::with_capacity(self.strata.len());
        let mut decisions = Vec::with_capacity(self.strata.len());
        let mut divided = Vec::new();
        for state in &mut self.strata {
            divided.extend(state.divided());
            let reason = state.reason.as_ref();
            let limit = state.limited.then_some(DecisionLimit::Budget);
            let mut add = |part: StratumDirective, population: u64, reported: u64, variance: Option<f64>| {
                strata.push(part);
                decisions.push(Decision {
                    update,
                    window: first_window.0,
                    group: state.name.clone(),
                    stratum: part.stratum,
                    mechanism: self.mechanism,
                    population,
                    reported,
                    late: self.late,
                    size: part.size,
                    probability: part.probability,
                    guide: reason.map(|reason| reason.guide.clone()).or_else(|| state.first_guide()),
                    policy: self.policy,
                    event: reason.map(|reason| reason.event.clone()),
                    mean: reason.map(|reason| reason.mean),
                    variance: variance.filter(|value| value.is_finite()),
                    error_required: reason.map(|reason| reason.error),
                    // Where no rank reported, the error is unknown.
                    error_attained: reason.filter(|_| reported > 0).and_then(|reason| state.attained(reason)),
                    limit,
                    merged_windows: self.merged,
                    selection: Some(Selection::Predictive),
                });
            };
            let part = |stratum, size: u64, probability| StratumDirective {
                group: state.group,
                stratum,
                size: size as u32,
                probability,
                policy: self.policy,
            };
            match state.strata() {
                None => {
                    let population = state.population();
                    let reported = state.reported.unwrap_or(population);
                    let variance = reason.map(|reason| reason.variance);
                    add(
                        part(state.single(), state.size, state.probability()),
                        population,
                        reported,
                        variance,
                    );
                }
                Some(set) => {
                    for stratum in &set.strata {
                        let population = stratum.ranks + stratum.pinned;
                        let reported = stratum.reported.unwrap_or(population);
                        let variance = state.leading().map(|guide| stratum.variance(guide));
                        let size = stratum.size + stratum.pinned;
                        add(part(stratum.id, size, stratum.probability()), population, reported, variance);
                    }
                }
            }
        }
        self.policy += 1;
        let directive =
            Directive { update, first_window, seed: self.seed, mechanism: self.mechanism, strata, divided };
        (directive, decisions)
    }
}
