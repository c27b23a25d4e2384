//! The program's steps: what this process names, and what windows follow.

use std::sync::PoisonError;

use ampl_core::message::{OwnSteps, StepAnnouncement, StepCall, StepMarker};

use super::Shared;
use crate::window::Boundary;

impl Shared {
    /// True where windows are to follow the program's steps.
    pub(crate) fn finds_steps(&self) -> bool {
        matches!(self.boundary, Some(Boundary::Steps { .. }))
    }

    /// Calls that this process makes once in each step, as its summaries name them; `None` while it knows of none.
    pub fn named_steps(&self) -> Option<OwnSteps> {
        self.named_steps.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Names these calls from here on.
    pub(crate) fn name_steps(&self, steps: Option<OwnSteps>) {
        *self.named_steps.lock().unwrap_or_else(PoisonError::into_inner) = steps;
    }

    /// Takes an announcement at `now`: from the window before its first one on the clock ends no window. One that begins
    /// later replaces another, whose steps were parts of longer ones: then the clock ends none from now on.
    pub fn announce_steps(&self, announced: impl Into<StepAnnouncement>, now: u64) {
        let announced = announced.into();
        let mut open = self.lock();
        let is_newer = open.steps.is_none_or(|before| announced.window > before.window);
        // The last window, which `MPI_Finalize` has ended, has no end either.
        if self.finds_steps() && is_newer && open.until != u64::MAX {
            open.replaced = open.steps.is_some();
            open.fallen_back = false;
            open.steps = announced.markers().next();
            *self.announced_steps.lock().unwrap_or_else(PoisonError::into_inner) = Some(announced);
            // The open window may have begun long ago: the time for a step to come is from now on.
            open.until = u64::MAX;
            self.open_next(&mut open, now);
        }
    }

    /// The steps that windows are to follow, by the first of the announced calls that is among `named`.
    pub(crate) fn announced_steps(&self, named: &[StepCall]) -> Option<StepMarker> {
        let announced = self.announced_steps.lock().unwrap_or_else(PoisonError::into_inner);
        // A call of all ranks needs no choice.
        let is_own = |marker: &StepMarker, all: usize| all == 1 || named.contains(&marker.call);
        announced.as_ref().and_then(|all| all.markers().find(|marker| is_own(marker, all.calls.len())))
    }
}
