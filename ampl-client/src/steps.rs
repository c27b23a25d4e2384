//! Decision from when on windows follow the program's steps (`window.marker = "auto"`).
//!
//! Ranks name in their summaries the calls that they make once in each step, or equally often where there is no such
//! call, and how often they have made each. When all
//! ranks of a window name the same call, a visit of it is announced that no rank has reached when the announcement
//! comes down: two rounds of the tree ahead of the furthest rank. From that visit on the number of a window follows
//! from the number of visits, so that it means the same step on every rank.
//!
//! Ranks at the edges of a grid may have no call in common. A rank that makes the calls of two others tells how many
//! visits of one belong to as many steps as visits of the other. Where shared calls so join all ranks, all of them are
//! announced, each with its own visit of the same step.
//!
//! A loop inside of a long first step looks like steps until the second one has come. Where all ranks name other calls
//! than those that were announced, these are announced instead, once.

use ampl_core::config::Marker;
use ampl_core::message::{CensusWindow, NamedCall, StepAnnouncement, StepSums};
use ampl_core::plan::Plan;
use ampl_core::units::WindowId;
use ampl_core::window_growth::WindowGrowth;

use crate::tree::{ARITY, Topology};

/// Shortest useful window, nanoseconds: shorter steps are taken several at a time.
pub const SHORTEST_NS: u64 = 20_000_000;

/// Fewest seconds without a visit after which the clock ends windows again.
const LEAST_TIMEOUT_S: f64 = 10.0;

/// The same in windows.
const TIMEOUT_WINDOWS: f64 = 16.0;

/// Finds the call that all ranks name, or those that join all ranks.
#[derive(Clone, Debug)]
pub struct StepFinder {
    ranks: u64,
    /// Windows in which a message goes up the tree, and another down.
    round: u64,
    /// Fewest steps from the furthest one reported to the one announced. Ranks without a call for windows take and pass on a
    /// message once a step.
    least_ahead: u64,
    /// Steps that the configuration asks for in a window.
    every: u64,
    growth: WindowGrowth,
    announced: Option<Announced>,
    seen: Naming,
}

/// An announcement that has been made.
#[derive(Clone, Debug)]
struct Announced {
    steps: StepAnnouncement,
    /// Periods that its windows last.
    periods: f64,
    /// True where it replaced another.
    is_last: bool,
}

/// Numbers of ranks that name calls of their steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Naming {
    /// Ranks that reported the latest window.
    pub reported: u64,
    /// Ranks of them that name a call.
    pub naming: u64,
    /// Ranks of them that name the call that most name.
    pub agreeing: u64,
}

impl StepFinder {
    /// The finder of a job; `None` where windows do not follow steps that are found.
    pub fn new(plan: &Plan) -> Option<Self> {
        let root = plan.config.agent.client;
        let height = Topology::new(plan.ranks, root, ARITY).height(root);
        (plan.config.window.marker == Marker::Auto).then(|| Self {
            ranks: plan.ranks.into(),
            // Ranks take and pass on messages once a window at least, unless they are late.
            round: 2 * (u64::from(height) + 1),
            least_ahead: u64::from(height) + 2,
            every: plan.config.window.every.max(1).into(),
            growth: WindowGrowth::new(plan.config.window.max),
            announced: None,
            seen: Naming::default(),
        })
    }

    /// Takes the next window; returns what is to be announced.
    pub fn end_window(&mut self, census: &CensusWindow) -> Option<StepAnnouncement> {
        let (windows, steps) = (census.windows(), &census.partial.steps);
        if census.reported > 0 && self.announced.is_none() {
            let most = steps.named.first().map_or(0, |named| named.reports);
            let [reported, naming, agreeing] =
                [census.reported, steps.naming, most].map(|number| number.div_ceil(windows));
            self.seen = Naming { reported, naming, agreeing };
        }
        let is_whole = !census.late && Some(census.reported) == self.ranks.checked_mul(windows);
        let is_open = match &self.announced {
            None => true,
            // Some rank still names those of before.
            Some(before) => {
                let is_known = |named: &NamedCall| before.steps.calls.iter().any(|of| of.0 == named.call);
                !before.is_last && !steps.named.iter().any(is_known)
            }
        };
        if !(is_whole && is_open) {
            return None;
        }
        let announced = self.announcement(census, steps)?;
        self.announced = Some(announced.clone());
        Some(announced.steps)
    }

    fn announcement(&self, census: &CensusWindow, steps: &StepSums) -> Option<Announced> {
        let of_all = |named: &&NamedCall| named.reports == census.reported && named.per_step > 0;
        let common = steps.named.iter().find(of_all).map(std::slice::from_ref);
        let is_joined = steps.naming == census.reported
            && steps.sets() == 1
            && !(steps.is_cut || steps.disagree)
            && steps.named.iter().all(|named| named.per_step == 1);
        let named = common.or(is_joined.then_some(&steps.named[..]))?;
        let rate = f64::from(steps.rate);
        let (per_step, phase) = named.first().map(|of| (of.per_step.max(1), i128::from(of.phase)))?;
        let last = census.last_window;
        let periods = match &self.announced {
            None => self.growth.units(last.0) as f64,
            Some(before) => before.periods,
        };
        // Windows that follow steps may be shorter than ranks poll the tree.
        let ahead = (2.0 * self.round as f64 * periods.max(1.0) * rate).ceil() as u64;
        // Visits that the set's first call has, or would have, on the rank that is furthest.
        let furthest = named.iter().map(|of| i128::from(of.visits) - i128::from(of.lead)).max()?;
        let ahead_of = furthest + i128::from(ahead.max(self.least_ahead)) * i128::from(per_step);
        // The first visit of a step.
        let first = ahead_of + (phase + 1 - ahead_of).rem_euclid(per_step.into());
        let visit = |of: &NamedCall| u64::try_from(first + i128::from(of.lead)).ok();
        let steps_of_shortest = SHORTEST_NS as f64 / Marker::AUTO_PERIOD_NS as f64 * rate;
        let every = (steps_of_shortest / self.every as f64).ceil().max(1.0) as u64 * self.every;
        let every = every.min((u16::MAX / per_step).into());
        let window_s = every as f64 / rate * Marker::AUTO_PERIOD_NS as f64 * 1e-9;
        // The clock ends windows up to there: one round leaves the numbers of most windows without a hole. Steps that are
        // replaced end windows on ranks that have not heard of it: as many as fit before the first visit.
        let next = match &self.announced {
            None => last.0.saturating_add(1 + self.round),
            Some(before) => {
                let between = ahead.max(self.least_ahead) as f64 / rate / before.periods;
                let more = 1 + self.round + between.ceil() as u64;
                last.max(before.steps.window).0.saturating_add(more)
            }
        };
        let steps = StepAnnouncement {
            calls: named.iter().map(|of| Some((of.call, visit(of)?))).collect::<Option<_>>()?,
            window: WindowId(next),
            every: every as u16 * per_step,
            per_step,
            timeout_s: (TIMEOUT_WINDOWS * window_s).max(LEAST_TIMEOUT_S).ceil().min(u16::MAX.into()) as u16,
        };
        Some(Announced { steps, periods: every as f64 / rate, is_last: self.announced.is_some() })
    }

    /// Ranks that named calls when nothing was announced; `None` after an announcement.
    pub fn unannounced(&self) -> Option<Naming> {
        self.announced.is_none().then_some(self.seen)
    }
}

#[cfg(test)]
mod tests {
    use ampl_core::config::Config;
    use ampl_core::message::{MessageLayout, OwnCall, OwnSteps, StepCall, StepMarker};

    use super::*;

    const SUM: StepCall = StepCall { function: 3, path: 77 };
    const SEND: StepCall = StepCall { function: 5, path: 78 };

    fn plan(ranks: u32, every: u32) -> Plan {
        let text = format!("[window]\nmarker = \"auto\"\nevery = {every}\n");
        Plan::new(Config::parse(&text).expect("a sound configuration").0, ranks).expect("a job")
    }

    /// Window `number`, in which ranks name these calls; `None` of one that reports nothing.
    fn census(plan: &Plan, number: u64, ranks: &[Option<OwnSteps>]) -> CensusWindow {
        let mut census = CensusWindow::new(&MessageLayout::of(plan), WindowId(number), WindowId(number));
        for own in ranks.iter().flatten() {
            census.reported += 1;
            if !own.calls.is_empty() {
                census.partial.steps.add(own, 1);
            }
        }
        census
    }

    fn own(calls: &[(StepCall, u64)], rate: f32) -> Option<OwnSteps> {
        let own = |&(call, visits): &(StepCall, u64)| OwnCall { call, visits, before: 0, per_step: 1 };
        Some(OwnSteps { calls: calls.iter().map(own).collect(), rate })
    }

    #[test]
    fn a_visit_two_rounds_ahead_of_the_furthest_rank_is_announced_once() {
        let plan = plan(3, 1);
        let mut finder = StepFinder::new(&plan).unwrap();
        let ranks =
            [own(&[(SEND, 31), (SUM, 40)], 5.0), own(&[(SUM, 42)], 4.5), own(&[(SUM, 39), (SEND, 30)], 5.5)];
        let marker = finder.end_window(&census(&plan, 8, &ranks)).expect("all name the sum");
        // A level below the root: 4 windows up and down, 8 for two rounds, 5.5 steps each.
        let visit = 42 + 44;
        let expected =
            StepMarker { call: SUM, visit, window: WindowId(13), every: 1, per_step: 1, timeout_s: 10 };
        assert_eq!(marker, expected.into());
        assert_eq!(finder.end_window(&census(&plan, 9, &ranks)), None);
        assert_eq!(finder.unannounced(), None);
    }

    #[test]
    fn steps_that_turn_out_to_be_parts_of_others_are_replaced_once() {
        const LONG: StepCall = StepCall { function: 7, path: 79 };
        let plan = plan(2, 1);
        let mut finder = StepFinder::new(&plan).unwrap();
        let both = |call: StepCall, visits: u64, rate: f32| {
            [own(&[(call, visits)], rate), own(&[(call, visits)], rate)]
        };
        let first = finder.end_window(&census(&plan, 8, &both(SUM, 40, 5.0))).expect("all name the sum");
        assert_eq!(first.window, WindowId(13));
        let mixed = [own(&[(SUM, 90)], 5.0), own(&[(LONG, 4)], 0.5)];
        for ranks in [&mixed[..], &both(SUM, 91, 5.0), &[own(&[], 0.0), own(&[(LONG, 4)], 0.5)]] {
            assert_eq!(finder.end_window(&census(&plan, 20, ranks)), None, "{ranks:?}");
        }
        // Half a step in a period, and four windows for a round. Until the visit there is time for 40 of the others.
        let second = finder.end_window(&census(&plan, 30, &both(LONG, 5, 0.5))).expect("all name the other");
        let expected =
            StepMarker { call: LONG, visit: 9, window: WindowId(75), every: 1, per_step: 1, timeout_s: 10 };
        assert_eq!(second, expected.into());
        assert_eq!(finder.end_window(&census(&plan, 50, &both(SEND, 9, 0.5))), None, "once");
        // Those of before may not have begun.
        let mut finder = StepFinder::new(&plan).unwrap();
        finder.end_window(&census(&plan, 8, &both(SUM, 40, 5.0))).unwrap();
        let second = finder.end_window(&census(&plan, 9, &both(LONG, 2, 0.5))).unwrap();
        assert_eq!(second.window, WindowId(58));
    }

    #[test]
    fn short_steps_are_taken_several_at_a_time() {
        for (rate, every, expected) in
            [(12.5, 1, 1), (13.0, 1, 2), (250.0, 1, 20), (250.0, 8, 24), (1.0 / 128.0, 3, 3)]
        {
            let plan = plan(1, every);
            let mut finder = StepFinder::new(&plan).unwrap();
            let marker = finder.end_window(&census(&plan, 3, &[own(&[(SUM, 9)], rate)])).unwrap();
            assert_eq!(marker.every, expected, "{rate} {every}");
            assert!(marker.calls[0].1 >= 9 + 2);
            // Steps of 32 s, three in a window.
            assert_eq!(marker.timeout_s, if rate < 1.0 { 16 * 96 } else { 10 });
        }
    }

    /// Steps of three visits each begin behind visits of which two belong to no step.
    #[test]
    fn of_several_visits_in_a_step_the_first_is_announced() {
        let plan = plan(2, 1);
        let rank = |visits: u64, before: u64, per_step: u16| {
            let calls = vec![OwnCall { call: SUM, visits, before, per_step }];
            Some(OwnSteps { calls, rate: 20.0 })
        };
        let announced =
            |ranks: &[Option<OwnSteps>]| StepFinder::new(&plan).unwrap().end_window(&census(&plan, 8, ranks));
        for visits in 30..40 {
            let found = announced(&[rank(visits, 5, 3), rank(visits - 9, 8, 3)]).expect("both name it");
            let [(call, visit)] = found.calls[..] else { panic!("{found:?}") };
            // Two rounds of four windows at 20 steps; two steps of 12.5 ms in a window.
            let ahead = visits + 8 * 20 * 3;
            assert!(call == SUM && visit % 3 == 0 && (ahead..ahead + 3).contains(&visit), "{found:?}");
            assert_eq!((found.every, found.per_step), (6, 3));
        }
        // Steps that begin with other visits, or have more of them, are not the same.
        assert_eq!(announced(&[rank(40, 5, 3), rank(40, 6, 3)]), None);
        assert_eq!(announced(&[rank(40, 5, 3), rank(40, 5, 1)]), None);
    }

    #[test]
    fn shared_calls_join_ranks_that_have_none_in_common() {
        let plan = plan(3, 1);
        let [left, right] = [SEND, SUM];
        let rank = |calls: &[(StepCall, u64, u64)]| {
            let own = |&(call, visits, before): &(StepCall, u64, u64)| OwnCall {
                call,
                visits,
                before,
                per_step: 1,
            };
            Some(OwnSteps { calls: calls.iter().map(own).collect(), rate: 2.0 })
        };
        // The middle one has made three visits of `left` more before its first step.
        let ranks = [rank(&[(left, 43, 3)]), rank(&[(left, 42, 3), (right, 39, 0)]), rank(&[(right, 41, 0)])];
        let mut finder = StepFinder::new(&plan).unwrap();
        let announced = finder.end_window(&census(&plan, 8, &ranks)).expect("the middle one joins them");
        let ahead = 16;
        assert_eq!(announced.calls, [(left, 41 + 3 + ahead), (right, 41 + ahead)]);
        // A second one that joins them must find the same.
        let other = rank(&[(left, 40, 2), (right, 39, 0)]);
        let [one, _, two] = ranks.clone();
        let more = self::plan(4, 1);
        let four = [&ranks[..], &[other]].concat();
        assert_eq!(StepFinder::new(&more).unwrap().end_window(&census(&more, 8, &four)), None);
        let mut finder = StepFinder::new(&plan).unwrap();
        // None joins them, or a rank names nothing.
        for last in [two.clone(), rank(&[])] {
            assert_eq!(finder.end_window(&census(&plan, 9, &[one.clone(), last, two.clone()])), None);
        }
        assert_eq!(finder.unannounced(), Some(Naming { reported: 3, naming: 2, agreeing: 1 }));
    }

    #[test]
    fn nothing_is_announced_unless_all_ranks_name_one_call() {
        let plan = plan(3, 1);
        let mut finder = StepFinder::new(&plan).unwrap();
        let (sum, send, none) = (own(&[(SUM, 9)], 1.0), own(&[(SEND, 9)], 1.0), own(&[], 0.0));
        for (ranks, naming, agreeing) in [
            ([none.clone(), none.clone(), none.clone()], 0, 0),
            ([sum.clone(), sum.clone(), none.clone()], 2, 2),
            ([sum.clone(), send.clone(), sum.clone()], 3, 2),
            ([sum.clone(), None, sum.clone()], 2, 2),
        ] {
            let reported = ranks.iter().flatten().count() as u64;
            assert_eq!(finder.end_window(&census(&plan, 4, &ranks)), None, "{ranks:?}");
            assert_eq!(finder.unannounced(), Some(Naming { reported, naming, agreeing }));
        }
        let mut late = census(&plan, 5, &[sum.clone(), sum.clone(), sum.clone()]);
        late.late = true;
        assert_eq!(finder.end_window(&late), None);
        late.late = false;
        assert!(finder.end_window(&late).is_some());
        let periods = Plan::new(Config::default(), 3).unwrap();
        assert!(StepFinder::new(&periods).is_none());
    }
}
