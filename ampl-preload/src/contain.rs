//! Containment of failures: a panic in a hook ends the agent, not the job.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use ampl_agent::floating::Environment;
use ampl_agent::journal::Journal;
use ampl_trace::model::GaveUp;

use crate::hot_state;

/// The agent's journal, which notes why the agent has ended early.
static JOURNAL: OnceLock<Arc<Journal>> = OnceLock::new();

/// Has failures noted in `journal` from now on.
pub fn note_in(journal: &Arc<Journal>) {
    let _ = JOURNAL.set(journal.clone());
}

/// Runs a hook; if it panics, the agent ends and the job goes on.
#[inline(always)]
pub fn contained<T>(hook: impl FnOnce() -> T) -> Option<T> {
    let _as_it_was = Environment::begin();
    contained_counting(hook)
}

/// Runs a hook as [`contained`], without saving MXCSR: the hook must do no floating-point arithmetic outside of an
/// [`Environment`] of its own.
#[inline(always)]
pub fn contained_counting<T>(hook: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(hook)) {
        Ok(value) => Some(value),
        Err(_) => {
            disable(GaveUp::Failed);
            None
        }
    }
}

/// Ends the agent before its time; the journal notes the reason.
#[cold]
pub fn disable(why: GaveUp) {
    hot_state::deactivate();
    if let Some(journal) = JOURNAL.get() {
        if why == GaveUp::Failed {
            journal.count_failure();
        }
        journal.mark_disabled(why);
    }
}
