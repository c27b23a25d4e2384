//! Cost of watching as the agents measured it, their steps down, and the clocks of the ranks.

use std::cmp::Reverse;

use ampl_trace::Trace;
use ampl_trace::model::{Level, Limit};
use serde::Serialize;

use crate::own_time::OwnTime;

/// Clocks that are not rank 0's.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Clocks {
    /// Ranks that have one.
    pub ranks: u64,
    /// Greatest error of a rank's times, nanoseconds.
    pub error_ns: u64,
    /// The rank that is worst.
    pub rank: u32,
    /// Drift of the greatest magnitude, which is corrected; none where that of a rank was not measured.
    pub drift_ppm: Option<f64>,
}

impl Clocks {
    /// Clocks of `trace`; `None` where all ranks read rank 0's.
    pub fn of(trace: &Trace) -> Option<Self> {
        let others = || {
            trace.ranks.iter().filter_map(|rank| rank.process.clock.map(|clock| (rank.process.rank, clock)))
        };
        let (rank, worst) = others().max_by_key(|(rank, clock)| (clock.error_ns, Reverse(*rank)))?;
        let drifts: Option<Vec<f64>> = others().map(|(_, clock)| clock.drift_ppm).collect();
        let drift_ppm = drifts.and_then(|all| all.into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs())));
        Some(Self { ranks: others().count() as u64, error_ns: worst.error_ns, rank, drift_ppm })
    }
}

/// The agent's own time, as it measured.
#[derive(Clone, Debug, Serialize)]
pub struct Overhead {
    /// Its processor time, start and end included, summed over ranks, nanoseconds.
    pub agent_ns: u64,
    /// `agent_ns` as a share of the ranks' summed run time, start and end included.
    pub share: Option<f64>,
    /// `calls_ns` less `polling_ns` as a share of the ranks' run time between `MPI_Init` and `MPI_Finalize`.
    pub windows_share: Option<f64>,
    /// `calls_ns` per call of the application, nanoseconds.
    pub per_call_ns: Option<f64>,
    /// Parts of the agent's time, and its share of the job's processor time.
    #[serde(flatten)]
    pub own: OwnTime,
    /// Steps down and up of ranks, to stay within `agent.max_overhead`; or changes to windows that end by the clock.
    pub steps: Vec<RankStep>,
}

/// A step of one rank.
#[derive(Clone, Debug, Serialize)]
pub struct RankStep {
    /// The rank.
    pub rank: u32,
    /// The window open then.
    pub window: u64,
    /// Time, nanoseconds since the start.
    pub at_ns: u64,
    /// Level from then on.
    pub level: Level,
    /// The agent's share of the time that made it step down, or that is expected after a step up.
    pub share: f64,
    /// Reason of the step.
    pub reason: StepReason,
    /// Limit of the configuration that was reached; none of other reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
}

/// Reason of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StepReason {
    /// The agent took more than it may.
    Overhead,
    /// A step up: more can be afforded again.
    Recovered,
    /// The journal had no room for calls.
    Journal,
    /// A limit of the configuration was reached.
    Limit,
    /// The program did not name the region of the marker.
    Marker,
}

impl Overhead {
    /// Overhead of a run with `calls` calls.
    pub fn of(trace: &Trace, calls: u64) -> Self {
        let own = OwnTime::of(trace);
        let elapsed: u64 =
            trace.ranks.iter().map(|rank| rank.process.elapsed_ns).fold(0, u64::saturating_add);
        let over = |part: u64, total: u64| (total > 0).then(|| part as f64 / total as f64);
        let whole = elapsed.saturating_add(own.start_ns).saturating_add(own.end_ns);
        let steps = trace.ranks.iter().flat_map(|rank| {
            let mut before = Level::Kept.depth();
            rank.process.steps.iter().map(move |step| {
                let clock = step.level == Level::Clock;
                let depth = step.level.depth().or(before);
                let down = depth > std::mem::replace(&mut before, depth);
                RankStep {
                    rank: rank.process.rank,
                    window: step.window,
                    at_ns: step.at,
                    level: step.level,
                    share: step.share,
                    reason: match (down, step.share > 0.0) {
                        _ if clock => StepReason::Marker,
                        (false, _) => StepReason::Recovered,
                        (true, true) => StepReason::Overhead,
                        (true, false) if step.limit.is_some() => StepReason::Limit,
                        (true, false) => StepReason::Journal,
                    },
                    limit: step.limit,
                }
            })
        });
        Self {
            agent_ns: own.all_ns(),
            share: over(own.all_ns(), whole),
            windows_share: over(own.calls_ns - own.polling_ns, elapsed),
            per_call_ns: over(own.calls_ns, calls),
            steps: steps.collect(),
            own,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ampl_trace::RankTrace;
    use ampl_trace::model::{ClockFit, Step};

    #[test]
    fn the_worst_clock_is_told() {
        let clock = |offset_ns, error_ns, drift_ppm| Some(ClockFit { offset_ns, error_ns, drift_ppm });
        let clocks = [None, clock(70, 5, Some(1.0)), clock(7, 9, Some(-3.0)), clock(7, 9, Some(2.0))];
        let ranks = (0..).zip(clocks).map(|(number, clock)| {
            let mut rank = RankTrace::default();
            (rank.process.rank, rank.process.clock) = (number, clock);
            rank
        });
        let mut trace = Trace { ranks: ranks.collect(), ..Trace::default() };
        let told = Clocks { ranks: 3, error_ns: 9, rank: 2, drift_ppm: Some(-3.0) };
        assert_eq!(Clocks::of(&trace), Some(told));
        // A rank that did not finalize.
        trace.ranks[1].process.clock = clock(7, 1, None);
        assert_eq!(Clocks::of(&trace), Some(Clocks { drift_ppm: None, ..told }));
        assert_eq!(Clocks::of(&Trace::default()), None);
    }

    #[test]
    fn steps_have_their_reasons() {
        let mut rank = RankTrace::default();
        let step = |(level, share)| Step { level, share, ..Step::default() };
        rank.process.steps = [
            (Level::Drawn, 0.04),
            (Level::Clock, 0.0),
            (Level::Structure, 0.035),
            (Level::Summaries, 0.03),
            (Level::Off, 0.02),
            (Level::Summaries, 0.0),
            (Level::Kept, 0.001),
            (Level::Summaries, 0.0),
        ]
        .map(step)
        .into();
        let steps = Overhead::of(&Trace { ranks: vec![rank], ..Trace::default() }, 0).steps;
        let reasons: Vec<StepReason> = steps.iter().map(|step| step.reason).collect();
        assert_eq!(
            reasons,
            [
                StepReason::Overhead,
                StepReason::Marker,
                StepReason::Overhead,
                StepReason::Overhead,
                StepReason::Overhead,
                StepReason::Recovered,
                StepReason::Recovered,
                StepReason::Journal
            ]
        );
    }
}
