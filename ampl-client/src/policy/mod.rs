//! The client's decisions as a state machine: windows in, directives out.
//!
//! Sizes are decided once per update interval, at its last window, for the next one. Equal plans
//! and equal windows give equal decisions, bit for bit: nothing else enters.

mod bound;
mod budget;
mod census;
mod sampled;
mod stratum;

use ampl_core::config::Mechanism;
use ampl_core::message::{CensusWindow, Decision, Directive, StratumDirective};
use ampl_core::plan::Plan;
use ampl_core::units::WindowId;

use budget::{Budget, Pressure};
use stratum::StratumState;

/// Decides who is kept.
#[derive(Clone, Debug)]
pub struct Policy {
    seed: u64,
    mechanism: Mechanism,
    windows_per_update: u64,
    update: u64,
    policy: u32,
    late: bool,
    budget: Option<Budget>,
    strata: Vec<StratumState>,
}

impl Policy {
    /// A policy before the first window.
    pub fn new(plan: &Plan) -> Self {
        let sampling = &plan.config.sampling;
        Self {
            seed: sampling.seed,
            mechanism: sampling.update_mechanism,
            windows_per_update: u64::from(sampling.windows_per_update.max(1)),
            update: 0,
            policy: 0,
            late: false,
            budget: sampling.budget.map(Budget::new),
            strata: (0..plan.groups.len()).map(|group| StratumState::new(plan, group)).collect(),
        }
    }

    /// The directive in force from window 0, before anything is known: a static size as it is,
    /// otherwise every rank, for an unbounded mean has no worst case to size for. With a budget, no more than
    /// the floors before it is known what keeping takes.
    pub fn first_directive(&mut self) -> (Directive, Vec<Decision>) {
        if self.budget.is_some() {
            self.strata.iter_mut().for_each(|stratum| stratum.limit(Pressure::FLOORS));
        }
        self.directive(0)
    }

    /// Takes the next window, or range of windows, in ascending order; at the end of an update
    /// interval, what holds from the next one on.
    ///
    /// A range counts as one window and may end several intervals at once: there is one directive
    /// then, for the interval after them.
    pub fn end_window(&mut self, window: &CensusWindow) -> Option<(Directive, Vec<Decision>)> {
        self.late |= window.late;
        for stratum in &mut self.strata {
            stratum.observe(window);
        }
        if let Some(budget) = &mut self.budget {
            budget.observe(window);
        }
        let next = window.last_window.0.saturating_add(1) / self.windows_per_update;
        if next <= self.update {
            return None;
        }
        for stratum in &mut self.strata {
            stratum.end_interval();
        }
        if let Some(budget) = &mut self.budget {
            budget.cut(&mut self.strata, self.windows_per_update);
        }
        Some(self.directive(next))
    }

    fn directive(&mut self, update: u64) -> (Directive, Vec<Decision>) {
        self.update = update;
        let first_window = WindowId(update.saturating_mul(self.windows_per_update));
        let mut strata = Vec::with_capacity(self.strata.len());
        let mut decisions = Vec::with_capacity(self.strata.len());
        for state in &mut self.strata {
            let part = StratumDirective {
                group: state.group,
                stratum: 0,
                size: state.size as u32,
                probability: state.probability(),
                policy: self.policy,
            };
            strata.push(part);
            let reported = state.reported.take();
            let reason = state.reason.as_ref();
            decisions.push(Decision {
                update,
                window: first_window.0,
                group: state.name.clone(),
                stratum: part.stratum,
                mechanism: match self.mechanism {
                    Mechanism::Subset => "subset".into(),
                    Mechanism::Global => "global".into(),
                },
                population: state.population(),
                reported: reported.unwrap_or(state.population()),
                late: self.late,
                size: part.size,
                probability: part.probability,
                guide: reason.map(|reason| reason.guide.clone()).or_else(|| state.first_guide()),
                policy: self.policy,
                event: reason.map(|reason| reason.event.clone()),
                mean: reason.map(|reason| reason.mean),
                variance: reason.map(|reason| reason.variance).filter(|value| value.is_finite()),
                error_required: reason.map(|reason| reason.error),
                error_attained: reason.and_then(|reason| state.attained(reason)),
                limit: state.limited.then(|| "budget".into()),
            });
        }
        self.late = false;
        self.policy += 1;
        let directive =
            Directive { pass: 0, update, first_window, seed: self.seed, mechanism: self.mechanism, strata };
        (directive, decisions)
    }
}
