//! JSON view of the windows that follow time steps.

use ampl_analysis::followed_steps::{NotFollowed, StepCall, followed};
use ampl_core::plan::Plan;
use ampl_reader::{Symbols, Trace};
use serde::Serialize;

/// Time steps that windows follow with `window.marker = "auto"`.
#[derive(Debug, Default, Serialize)]
pub struct TimeSteps {
    /// Function and place of the call that begins windows, on the first rank; null where they follow no steps.
    function: Option<String>,
    site: Option<String>,
    /// These calls with their ranks: several where no call is common to all ranks.
    calls: Vec<StepCall>,
    /// Visits of it per window, and per step.
    every: Option<u64>,
    visits_per_step: Option<u64>,
    /// The visit of the call from which on windows follow steps, the window that it begins, and the first of others before.
    visit: Option<u64>,
    window: Option<u64>,
    replaces: Option<u64>,
    /// The first window that the clock ends again, as no step came.
    until: Option<u64>,
    /// The first window that lasted on, as other steps were to follow it and had not begun at the end.
    left: Option<u64>,
    /// Ranks that follow them from a later window on, and those that never did.
    late: String,
    without: String,
    reason: Option<NotFollowed>,
}

impl TimeSteps {
    /// The view of `trace`; `None` with another marker.
    pub fn of(trace: &Trace, plan: &Plan, symbols: &mut Symbols) -> Option<Self> {
        let following = match followed(trace, plan)? {
            Ok(following) => following,
            Err(why) => return Some(Self { reason: Some(why), ..Self::default() }),
        };
        let steps = following.steps;
        let calls = following.named_calls(symbols);
        Some(Self {
            function: calls.first().map(|first| first.function.clone()),
            site: calls.first().and_then(|first| first.site.clone()),
            calls,
            every: Some(steps.every),
            visits_per_step: Some(steps.per_step),
            visit: Some(steps.visit),
            window: Some(steps.window),
            replaces: following.replaces,
            until: following.until,
            left: following.left,
            late: following.late.to_string(),
            without: following.without.to_string(),
            reason: None,
        })
    }
}
