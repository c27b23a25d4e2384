//! Windows that follow the program's steps (`window.marker = "auto"`), and the reason where they do not.

use std::fmt;

use ampl_core::config::{Keep, Marker};
use ampl_core::plan::Plan;
use ampl_core::units::RankSet;
use ampl_reader::sites::Symbols;
use ampl_trace::Trace;
use ampl_trace::model::{FollowedSteps, Level, RankTrace, UnannouncedSteps};
use serde::{Serialize, Serializer};

/// Windows of a run that follow steps.
#[derive(Clone, Debug)]
pub struct Following<'a> {
    /// The steps, as the first rank that follows them has noted it.
    pub steps: &'a FollowedSteps,
    /// Calls that begin windows, with the ranks where they do: several where no call is common to all ranks.
    pub calls: Vec<(&'a FollowedSteps, RankSet)>,
    /// Ranks that follow them from their first window on.
    pub on_time: RankSet,
    /// Ranks that follow them from a later window on: they were past the visit that was announced.
    pub late: RankSet,
    /// The first window that follows them on all these ranks.
    pub from: u64,
    /// Ranks that do not follow them: they ended before.
    pub without: RankSet,
    /// The first window that was to follow other steps before: parts of these, or of a loop that was over.
    pub replaces: Option<u64>,
    /// The first window that the clock ends again on some rank, as steps did not go on.
    pub until: Option<u64>,
    /// The first window that is none of these on some rank: other steps were to follow it, and had not begun at the end.
    pub left: Option<u64>,
    /// Steps begun when the loop was found, and when it was named to the client, on the ranks where these were most.
    pub known_after: [Option<u64>; 2],
}

/// Reason why the windows of a run follow no steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFollowed {
    /// Not all calls were recorded.
    NotRecorded,
    /// The run, or what is known of it, ended before a rank had followed them.
    EndedBefore,
    /// The loop that was announced was over before.
    LoopEnded,
    /// No rank found any.
    NoLoop,
    /// Some ranks found none.
    SomeWithout(UnannouncedSteps),
    /// Ranks make no call in common equally often in each step.
    Disagreement(UnannouncedSteps),
}

impl fmt::Display for NotFollowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotRecorded => "not all calls are recorded",
            Self::EndedBefore => "the run ended before windows could follow steps",
            Self::LoopEnded => "the loop that was found ended before windows could follow it",
            Self::NoLoop => "the calls of no rank repeat as a loop over time",
            Self::SomeWithout(_) => "the calls of some ranks do not repeat as a loop over time",
            Self::Disagreement(_) => "no call is made equally often in each step on all ranks",
        })
    }
}

impl Serialize for NotFollowed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A call that begins windows on some ranks.
#[derive(Clone, Debug, Serialize)]
pub struct StepCall {
    /// Its function.
    pub function: String,
    /// Its place; `None` where that is not known.
    pub site: Option<String>,
    /// The visit from which on windows follow steps.
    pub visit: u64,
    /// The ranks.
    pub ranks: String,
    /// Steps begun when the run's ranks had found the loop: the most of any.
    pub found_after: Option<u64>,
    /// The same when they had named it to the client.
    pub named_after: Option<u64>,
}

impl Following<'_> {
    /// The calls that begin windows, with the names of their places.
    pub fn named_calls(&self, symbols: &mut Symbols) -> Vec<StepCall> {
        let call = |(own, ranks): &(&FollowedSteps, RankSet)| StepCall {
            function: own.function.clone(),
            site: (!own.module.is_empty()).then(|| symbols.name(&own.module, own.offset)),
            visit: own.visit,
            ranks: ranks.to_string(),
            found_after: self.known_after[0],
            named_after: self.known_after[1],
        };
        self.calls.iter().map(call).collect()
    }
}

/// Steps that the windows of `trace` follow; `None` where they were not to follow any that are found.
pub fn followed<'a>(trace: &'a Trace, plan: &Plan) -> Option<Result<Following<'a>, NotFollowed>> {
    if plan.config.window.marker != Marker::Auto {
        return None;
    }
    let own = |rank: &'a RankTrace| Some((rank.process.rank, rank.process.followed.as_deref()?));
    let mut all: Vec<(u32, &FollowedSteps)> = trace.ranks.iter().filter_map(own).collect();
    // A rank may have ended before it followed those that replaced others.
    let latest = all.iter().map(|of| of.1.window).max();
    all.retain(|of| Some(of.1.window) == latest);
    let Some(&(_, steps)) = all.first() else { return Some(Err(reason(trace, plan))) };
    let is_late = |own: &FollowedSteps| own.first_window > own.window;
    let ranks = |late: bool| RankSet::from_iter(all.iter().filter(|of| is_late(of.1) == late).map(|of| of.0));
    let place = |own: &'a FollowedSteps| (own.function.as_str(), own.module.as_str(), own.offset);
    let mut calls: Vec<(&FollowedSteps, Vec<u32>)> = Vec::new();
    for &(rank, own) in &all {
        match calls.iter_mut().find(|known| place(known.0) == place(own)) {
            Some(known) => known.1.push(rank),
            None => calls.push((own, vec![rank])),
        }
    }
    let follows = |rank: &RankTrace| rank.process.followed.as_ref().map(|own| own.window) == latest;
    let without = trace.ranks.iter().filter(|rank| !follows(rank));
    // What the clock ended before is of those that were replaced.
    let is_of_these = |window: &u64| steps.replaces.is_none() || *window >= steps.window;
    Some(Ok(Following {
        steps,
        calls: calls.into_iter().map(|(own, ranks)| (own, RankSet::from_iter(ranks))).collect(),
        on_time: ranks(false),
        late: ranks(true),
        from: all.iter().map(|of| of.1.first_window).max().unwrap_or(steps.window),
        without: RankSet::from_iter(without.map(|rank| rank.process.rank)),
        replaces: all.iter().filter_map(|of| of.1.replaces).min(),
        known_after: [|of: &FollowedSteps| of.found_after, |of: &FollowedSteps| of.named_after]
            .map(|after| all.iter().filter_map(|of| after(of.1)).max()),
        left: all.iter().filter_map(|of| of.1.left).min(),
        until: trace.ranks.iter().flat_map(by_clock).filter(is_of_these).min(),
    }))
}

/// Windows from which on the clock has ended those of `rank` for want of steps.
fn by_clock(rank: &RankTrace) -> impl Iterator<Item = u64> {
    rank.process.steps.iter().filter(|step| step.level == Level::Clock).map(|step| step.window)
}

fn reason(trace: &Trace, plan: &Plan) -> NotFollowed {
    if plan.config.trace.structure != Keep::All {
        return NotFollowed::NotRecorded;
    }
    if trace.ranks.iter().any(|rank| by_clock(rank).next().is_some()) {
        return NotFollowed::LoopEnded;
    }
    let named = trace.ranks.iter().find_map(|rank| rank.process.unannounced.as_deref().copied());
    match named.filter(|named| named.reported > 0) {
        None => NotFollowed::EndedBefore,
        Some(named) if named.naming == 0 => NotFollowed::NoLoop,
        Some(named) if named.naming < named.reported => NotFollowed::SomeWithout(named),
        Some(named) if named.agreeing < named.naming => NotFollowed::Disagreement(named),
        Some(_) => NotFollowed::EndedBefore,
    }
}
