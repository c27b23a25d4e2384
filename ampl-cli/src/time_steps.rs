//! JSON view of the windows that follow time steps.

use ampl_analysis::followed_steps::followed;
use ampl_core::plan::Plan;
use ampl_reader::{Symbols, Trace};
use ampl_report::summary::not_followed;
use serde::Serialize;
use serde_json::{Value, json};

/// Time steps that windows follow with `window.marker = "auto"`.
#[derive(Debug, Default, Serialize)]
pub struct TimeSteps {
    /// Function and place of the call that begins windows, on the first rank; null where they follow no steps.
    function: Option<Value>,
    site: Option<Value>,
    /// Such calls with their visits and ranks: several where none is common to all ranks.
    calls: Vec<Value>,
    /// Steps per window.
    every: Option<u64>,
    /// The visit of the call from which on windows follow steps, and the window that it begins.
    visit: Option<u64>,
    window: Option<u64>,
    /// The first window that the clock ends again, as no step came.
    until: Option<u64>,
    /// Ranks that follow them from a later window on, and those that never did.
    late: String,
    without: String,
    /// Reason for which windows follow no steps.
    reason: Option<&'static str>,
}

impl TimeSteps {
    /// The view of `trace`; `None` with another marker.
    pub fn of(trace: &Trace, plan: &Plan, symbols: &mut Symbols) -> Option<Self> {
        let following = match followed(trace, plan)? {
            Ok(following) => following,
            Err(why) => return Some(Self { reason: Some(not_followed(why)), ..Self::default() }),
        };
        let steps = following.steps;
        let calls = following.calls.iter().map(|(own, ranks)| {
            let site = (!own.module.is_empty()).then(|| symbols.name(&own.module, own.offset));
            json!({"function": own.function, "site": site, "visit": own.visit, "ranks": ranks.to_string()})
        });
        let calls: Vec<Value> = calls.collect();
        Some(Self {
            function: calls.first().map(|first| first["function"].clone()),
            site: calls.first().map(|first| first["site"].clone()),
            calls,
            every: Some(steps.every),
            visit: Some(steps.visit),
            window: Some(steps.window),
            until: following.until,
            late: following.late.to_string(),
            without: following.without.to_string(),
            reason: None,
        })
    }
}
