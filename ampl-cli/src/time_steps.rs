//! JSON view of the windows that follow time steps.

use ampl_analysis::followed_steps::{NotFollowed, followed};
use ampl_core::plan::Plan;
use ampl_core::units::RankSet;
use ampl_reader::model::FollowedSteps;
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

/// A call that begins windows on some ranks.
#[derive(Debug, Serialize)]
struct StepCall {
    function: String,
    site: Option<String>,
    /// The visit from which on windows follow steps.
    visit: u64,
    ranks: String,
}

impl TimeSteps {
    /// The view of `trace`; `None` with another marker.
    pub fn of(trace: &Trace, plan: &Plan, symbols: &mut Symbols) -> Option<Self> {
        let following = match followed(trace, plan)? {
            Ok(following) => following,
            Err(why) => return Some(Self { reason: Some(reason(why)), ..Self::default() }),
        };
        let steps = following.steps;
        let call = |(own, ranks): &(&FollowedSteps, RankSet)| StepCall {
            function: own.function.clone(),
            site: (!own.module.is_empty()).then(|| symbols.name(&own.module, own.offset)),
            visit: own.visit,
            ranks: ranks.to_string(),
        };
        let calls: Vec<StepCall> = following.calls.iter().map(call).collect();
        Some(Self {
            function: calls.first().map(|first| first.function.clone()),
            site: calls.first().and_then(|first| first.site.clone()),
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

fn reason(why: NotFollowed) -> &'static str {
    match why {
        NotFollowed::NotRecorded => "not all calls are recorded",
        NotFollowed::EndedBefore => "the run ended before windows could follow steps",
        NotFollowed::LoopEnded => "the loop that was found ended before windows could follow it",
        NotFollowed::NoLoop => "the calls of no rank repeat as a loop over time",
        NotFollowed::SomeWithout(_) => "the calls of some ranks do not repeat as a loop over time",
        NotFollowed::Disagreement(_) => "no call is made once in each step on all ranks",
    }
}
