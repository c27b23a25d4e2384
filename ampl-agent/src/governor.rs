//! Holds the agent's own time under the shares of the job's time that it may take.
//!
//! There are two limits. `agent.max_overhead` is for the times of calls, and for summaries. `agent.max_structure_overhead`
//! is for the sequence of calls: a share of a thread's processor time, below which it is never given up.
//!
//! Each thread checks its own cost from time to time. Where the share of its last stretch is too large, the process
//! steps down: it stops storing times of calls, then calls, then it only counts them. Summaries go on as long as calls are
//! recorded. States that cannot fit are passed over: trying each would disturb the job longer. The cost of a call in each
//! state is remembered. So the governor can predict when the dearer state fits again, and a quiet time after a busy
//! beginning is recorded as usual.

use ampl_core::config::Config;
use ampl_trace::model::Level as Detail;

/// How much is done for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    /// Calls are recorded, those of kept windows with their times.
    Kept = 0,
    /// Calls are recorded, none with its times.
    Structure = 1,
    /// Windows are summarised, no call is recorded.
    Summaries = 2,
    /// Calls are counted only.
    Off = 3,
}

impl Level {
    /// The same in a record.
    pub fn detail(self) -> Detail {
        match self {
            Self::Kept => Detail::Kept,
            Self::Structure => Detail::Structure,
            Self::Summaries => Detail::Summaries,
            Self::Off => Detail::Off,
        }
    }
}

/// Work of a thread since its last overhead check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Its length, nanoseconds.
    pub elapsed_ns: f64,
    /// Processor time that the thread has had in it, nanoseconds.
    pub processor_ns: f64,
    /// The agent's part of that, nanoseconds.
    pub own_ns: f64,
    /// Work that these calls leave for the agent at the job's end, nanoseconds: it does not grow with the rate of
    /// calls.
    pub owed_ns: f64,
    /// Calls made.
    pub calls: u64,
    /// True where calls were stored in any part of it.
    pub stored: bool,
}

/// Shares of the time that the agent may take; infinite where it may take all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Share of the job's time, for everything.
    pub overall: f64,
    /// Share of a thread's processor time up to which calls are recorded whatever the other limit is.
    pub structure: f64,
}

impl Limits {
    /// The limits that `config` asks for.
    pub fn of(config: &Config) -> Self {
        let overall = config.max_overhead().unwrap_or(f64::INFINITY);
        Self { overall, structure: config.agent.max_structure_overhead }
    }
}

/// The limits that a level is held under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Overall = 0,
    Structure = 1,
}

impl Stretch {
    /// Time that a limit is a share of, nanoseconds.
    fn time(&self, of: Of) -> f64 {
        match of {
            Of::Overall => self.elapsed_ns,
            Of::Structure => self.processor_ns,
        }
    }

    fn share(&self, of: Of) -> f64 {
        if self.time(of) > 0.0 { self.own_ns / self.time(of) } else { 0.0 }
    }
}

/// The state in force, and what is known of the others.
#[derive(Clone, Debug)]
pub struct Governor {
    /// By [`Of`].
    allowed: [f64; 2],
    level: Level,
    /// True where calls are recorded without their times: [`Level::Structure`] is of use.
    structured: bool,
    /// Nanoseconds per call at each level but the last.
    cost: [Option<f64>; 3],
    /// Time that the agent may still take before it has taken too much, nanoseconds, by [`Of`].
    credit_ns: [f64; 2],
    /// The thread that stepped down; stretches of idle threads must not bring it back.
    by: u32,
    /// Lowest level that is given up, whatever it costs.
    floor: Level,
}

/// Shortest stretch worth a decision, nanoseconds: long against being descheduled once.
pub const SHORTEST_NS: f64 = 50e6;
/// Shortest length that a job is taken to have, nanoseconds: a burst of calls that ends sooner disturbs nobody.
const BRIEF_NS: f64 = 2e9;
/// Time over which excess is paid back, nanoseconds.
const REGRET_NS: f64 = 1e9;
/// Longest time over which the share must hold, nanoseconds: quiet hours do not pay for a disturbed minute.
const HORIZON_NS: f64 = 10e9;
/// Lowest cost of a call in each state, relative to the first; the measured ratios are more than twice as large.
const LEAST: [f64; 4] = [1.0, 0.25, 0.125, 0.0];
/// Part of the allowance that the dearer state may be expected to need, and that must be saved before: otherwise steps
/// would follow each other.
const MARGIN: f64 = 0.5;

impl Governor {
    /// A governor with these `limits`. `structured` where calls are recorded whether their times are stored or not.
    pub fn new(limits: Limits, structured: bool) -> Self {
        let allowed = [limits.overall, limits.structure.max(limits.overall)];
        let credit_ns = allowed.map(|allowed| allowed * BRIEF_NS);
        let (level, floor) = (Level::Kept, Level::Kept);
        Self { allowed, level, structured, cost: [None; 3], credit_ns, by: 0, floor }
    }

    /// The state in force.
    pub fn level(&self) -> Level {
        self.level
    }

    /// From the next stretch on `level` is the most that is done for calls: there is no room for more.
    pub fn give_up(&mut self, level: Level) {
        let level = if level == Level::Structure && !self.structured { Level::Summaries } else { level };
        self.floor = self.floor.max(level);
    }

    /// Goes on with `level` after all, at least until the next stretch: something else has been given up.
    pub fn hold(&mut self, level: Level) {
        self.level = level.max(self.floor);
    }

    /// Takes a stretch of `thread`, of [`SHORTEST_NS`] or more; returns the new state if it changes, and the
    /// share that made it change: measured for a step down, 0 where nothing but the [room](Self::give_up) made it,
    /// expected for a step up.
    pub fn take(&mut self, thread: u32, stretch: Stretch) -> Option<(Level, f64)> {
        if self.level < self.floor {
            self.level = self.floor;
            return Some((self.level, 0.0));
        }
        // What has gone wrong is made up for by the job's time, whichever limit it was: a thread that sleeps has no other.
        let lowest = -self.allowed[Of::Overall as usize] * REGRET_NS;
        for of in [Of::Overall, Of::Structure] {
            let earned = self.allowance(of, &stretch) - stretch.own_ns - stretch.owed_ns;
            let credit = &mut self.credit_ns[of as usize];
            *credit = (*credit + earned).clamp(lowest, self.allowed[of as usize] * HORIZON_NS);
        }
        let was = self.was(stretch);
        if let Some(cost) = self.cost.get_mut(was as usize).filter(|_| stretch.calls > 0) {
            *cost = Some(stretch.own_ns / stretch.calls as f64);
        }
        let (next, share) = self.down(was, stretch).or_else(|| self.up(thread, stretch))?;
        self.by = thread;
        self.level = next;
        self.guess(was);
        Some((next, share))
    }

    /// Time that the agent may take of `stretch`, nanoseconds. What it may take of the job's time calls may take, too.
    fn allowance(&self, of: Of, stretch: &Stretch) -> f64 {
        let overall = self.allowed[Of::Overall as usize] * stretch.elapsed_ns;
        match of {
            Of::Overall => overall,
            Of::Structure => overall.max(self.allowed[Of::Structure as usize] * stretch.processor_ns),
        }
    }

    /// A lower state, if the one in force has taken too much, and the share that it took.
    fn down(&self, was: Level, stretch: Stretch) -> Option<(Level, f64)> {
        let of = limit_of(self.level);
        let too_much = self.level < Level::Off && stretch.own_ns > self.allowance(of, &stretch);
        let spent = self.credit_ns[of as usize] < 0.0;
        (too_much && spent).then(|| {
            let next = self.fitting(was, stretch);
            // Structure is given up at its own limit.
            let gives_up_structure =
                self.structured && self.level <= Level::Structure && next > Level::Structure;
            let of = if gives_up_structure { limit_of(Level::Structure) } else { of };
            (next, stretch.share(of))
        })
    }

    /// A higher state, if one is expected to fit after what the lower one has saved, and the share that it would take.
    fn up(&self, thread: u32, stretch: Stretch) -> Option<(Level, f64)> {
        let above: &[Level] = match (self.level, self.structured) {
            (Level::Off, true) => &[Level::Structure, Level::Summaries],
            (Level::Off, false) => &[Level::Summaries],
            (Level::Summaries, true) => &[Level::Structure],
            (Level::Summaries, false) | (Level::Structure, _) => &[Level::Kept],
            (Level::Kept, _) => &[],
        };
        let candidates = above.iter().filter(|&&next| thread == self.by && next >= self.floor);
        let expected = candidates.filter_map(|&next| Some((next, self.expected(next, stretch)?)));
        let fits = |&(next, share): &(Level, f64)| {
            let of = limit_of(next);
            let least = MARGIN * self.allowed[Of::Overall as usize] * REGRET_NS;
            let cost = share * stretch.time(of);
            self.credit_ns[of as usize] >= least && cost <= MARGIN * self.allowance(of, &stretch)
        };
        expected.into_iter().find(fits)
    }

    /// Level of work done for the calls of `stretch`: where no window was stored, at most the level below.
    fn was(&self, stretch: Stretch) -> Level {
        match self.level {
            Level::Kept | Level::Structure if stretch.stored => Level::Kept,
            Level::Kept | Level::Structure => self.below(Level::Kept),
            level => level,
        }
    }

    /// The first state below the one in force that may fit; in `stretch`, at the work of `was`, that took too much.
    fn fitting(&self, was: Level, stretch: Stretch) -> Level {
        let least = |level: Level| stretch.own_ns * LEAST[level as usize] / LEAST[was as usize];
        let fits = |level: Level| {
            let cost = self.cost.get(level as usize).copied().flatten();
            let cost = cost.map_or_else(|| least(level), |cost| cost * stretch.calls as f64);
            cost <= self.allowance(limit_of(level), &stretch)
        };
        let mut next = self.below(self.level);
        while next < Level::Off && !fits(next) {
            next = self.below(next);
        }
        next
    }

    /// Assumes that states between `was` and the one in force, whose costs are unknown, have their lowest cost.
    fn guess(&mut self, was: Level) {
        let passed = was as usize + 1..self.level as usize;
        let Some(cost) = self.cost.get(was as usize).copied().flatten() else { return };
        for level in passed {
            self.cost[level].get_or_insert(cost * LEAST[level] / LEAST[was as usize]);
        }
    }

    /// The state that comes after `level`.
    pub(crate) fn below(&self, level: Level) -> Level {
        match level {
            Level::Kept if self.structured => Level::Structure,
            Level::Kept | Level::Structure => Level::Summaries,
            Level::Summaries | Level::Off => Level::Off,
        }
    }

    /// The share that the calls of `stretch` would have cost at `level`.
    fn expected(&self, level: Level, stretch: Stretch) -> Option<f64> {
        let cost = self.cost.get(level as usize).copied().flatten().unwrap_or(0.0);
        let time = stretch.time(limit_of(level));
        (time > 0.0).then(|| cost * stretch.calls as f64 / time)
    }
}

/// The limit that `level` is held under.
fn limit_of(level: Level) -> Of {
    if level == Level::Structure { Of::Structure } else { Of::Overall }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits { overall: 0.01, structure: 0.01 };
    const ONE_S: Stretch =
        Stretch { elapsed_ns: 1e9, processor_ns: 1e9, own_ns: 0.0, owed_ns: 0.0, calls: 0, stored: false };

    /// A program whose calls cost 400 ns stored, 300 recorded, 200 summarised, 5 counted.
    struct Program {
        governor: Governor,
        own_ns: f64,
        elapsed_ns: f64,
        /// Processor time that the thread has of the time.
        processor: f64,
    }

    impl Program {
        fn new(overall: f64, structure: f64) -> Self {
            Self::of(Limits { overall, structure }, true)
        }

        fn of(limits: Limits, structured: bool) -> Self {
            let governor = Governor::new(limits, structured);
            Self { governor, own_ns: 0.0, elapsed_ns: 0.0, processor: 1.0 }
        }

        /// Tenths of a second at `rate` calls per second; the states entered.
        fn run(&mut self, tenths: u32, rate: f64, stored: bool) -> Vec<Level> {
            let mut entered = Vec::new();
            for _ in 0..tenths {
                let stored = stored && self.governor.level() == Level::Kept;
                let cost = match self.governor.level() {
                    Level::Off => 5.0,
                    Level::Summaries => 200.0,
                    _ if stored => 400.0,
                    _ if self.governor.structured => 300.0,
                    _ => 200.0,
                };
                let stretch = Stretch {
                    elapsed_ns: 1e8,
                    processor_ns: self.processor * 1e8,
                    own_ns: cost * rate * 0.1,
                    owed_ns: 0.0,
                    calls: (rate * 0.1) as u64,
                    stored,
                };
                self.own_ns += stretch.own_ns;
                self.elapsed_ns += stretch.elapsed_ns;
                entered.extend(self.governor.take(0, stretch).map(|(level, _)| level));
            }
            entered
        }
    }

    #[test]
    fn the_allowances_hold_at_any_rate() {
        for structure in [0.01, 0.1] {
            for rate in [1e3, 1e4, 3e4, 7e4, 2e5, 1e6] {
                let mut program = Program::new(0.01, structure);
                program.run(1000, rate, true);
                // Counting has its cost; the first stretches are the cost of finding out.
                let counting = 5e-9 * rate;
                let share = program.own_ns / program.elapsed_ns;
                let brief = structure * BRIEF_NS / program.elapsed_ns;
                assert!(share <= structure + counting + brief + 0.002, "{rate}: {share}");
                let recorded = program.governor.level() <= Level::Structure;
                assert_eq!(recorded, 300e-9 * rate <= structure, "{rate}");
            }
        }
    }

    #[test]
    fn times_go_first_and_calls_last_and_come_back_in_that_order() {
        let mut program = Program::new(0.01, 0.1);
        assert_eq!(program.run(100, 1e4, true), []); // 0.4 %
        assert_eq!(program.run(600, 3.2e4, true), [Level::Structure]); // 1.3 %, then 1.0 %
        assert_eq!(program.run(1000, 3e5, true), []); // 9 % of structure
        assert_eq!(program.run(1000, 4e5, true), [Level::Off]); // 12 %; summaries alone were 8 %
        assert_eq!(program.run(600, 1.2e5, true), [Level::Structure]); // 3.6 %
        assert_eq!(program.run(300, 1e4, true), [Level::Kept]);
    }

    /// The share that is told with a step is of the time that its limit is of, and above that limit.
    #[test]
    fn shares_of_steps_are_above_their_limits() {
        let limits = Limits { overall: 0.01, structure: 0.1 };
        let mut program = Program { processor: 0.2, ..Program::of(limits, true) };
        let stretch = Stretch { processor_ns: 0.2e9, own_ns: 40e6, calls: 100_000, stored: true, ..ONE_S };
        let steps: Vec<(Level, f64)> = (0..20).filter_map(|_| program.governor.take(0, stretch)).collect();
        // 4 % of the time is 20 % of the processor time.
        let limits = [0.01, 0.1, 0.01];
        let is_above = |(&(_, share), limit): (&(Level, f64), f64)| share > limit;
        assert_eq!(steps.len(), 3, "{steps:?}");
        assert!(steps.iter().zip(limits).all(is_above), "{steps:?}");
    }

    #[test]
    fn one_limit_for_both_is_as_if_there_were_one() {
        let mut program = Program::new(0.01, 0.0);
        assert_eq!(program.run(600, 3.2e4, true), [Level::Structure]); // 1.3 %, then 1.0 %
        assert_eq!(program.run(300, 4e4, true), [Level::Summaries]); // 1.2 %, then 0.8 %
        assert_eq!(program.run(300, 8e4, true), [Level::Off]); // 1.6 % summarised
        assert_eq!(program.run(100, 1e4, true), [Level::Structure, Level::Kept]);
    }

    /// A rank that has a fifth of a processor takes five times the share of it.
    #[test]
    fn structure_is_held_to_the_processor_time() {
        let limits = Limits { overall: 0.01, structure: 0.1 };
        for (rate, level) in [(6e4, Level::Structure), (8e4, Level::Off)] {
            let mut program = Program { processor: 0.2, ..Program::of(limits, true) };
            program.run(600, rate, true);
            assert_eq!(program.governor.level(), level, "{rate}");
        }
    }

    #[test]
    fn what_is_not_recorded_is_not_given_up() {
        let mut program = Program::of(Limits { overall: 0.01, structure: 0.1 }, false);
        assert_eq!(program.run(300, 4e4, true), [Level::Summaries]); // 1.6 %, then 0.8 %
        assert_eq!(program.run(300, 8e4, true), [Level::Off]);
        assert_eq!(program.run(100, 1e4, true), [Level::Summaries, Level::Kept]);
        program.governor.give_up(Level::Structure);
        assert_eq!(program.run(100, 1e4, true), [Level::Summaries]);
    }

    #[test]
    fn windows_that_are_not_drawn_cost_less() {
        let mut program = Program::new(0.01, 0.0);
        assert_eq!(program.run(100, 3e4, false), []); // 0.9 %
        assert_eq!(program.run(300, 4e4, false), [Level::Summaries]); // 1.2 %, then 0.8 %
        assert_eq!(program.run(300, 8e4, false), [Level::Off]);
        // Times would cost more.
        let mut program = Program::new(0.01, 0.1);
        assert_eq!(program.run(300, 4e4, false), [Level::Structure]);
    }

    #[test]
    fn a_brief_job_is_recorded_whole() {
        let mut program = Program::new(0.01, 0.1);
        assert_eq!(program.run(4, 1e5, true), []); // 4 %, for less than half a second
        assert_eq!(program.run(8, 1e5, true), [Level::Structure]);
        assert_eq!(program.run(4, 1e6, true), []); // 30 %, for another
        assert_eq!(program.run(30, 1e6, true), [Level::Off]);
    }

    #[test]
    fn what_cannot_fit_is_not_tried() {
        let mut program = Program::new(0.01, 0.1);
        // 200 %: were calls four times as cheap without their times, they would still be too much.
        assert_eq!(program.run(2, 5e6, true), [Level::Off]);
        assert_eq!(program.run(600, 6e5, true), []);
        // At less they might fit; they are found not to, once.
        assert_eq!(program.run(600, 4e5, true), [Level::Structure, Level::Off]);
        assert_eq!(program.run(300, 1e4, true), [Level::Structure, Level::Kept]);
    }

    #[test]
    fn what_is_owed_is_spent() {
        let first = |own_ns: f64, owed_ns: f64| {
            let mut governor = Governor::new(SMALL, true);
            let (elapsed_ns, processor_ns) = (1e8, 1e8);
            let stretch = Stretch { elapsed_ns, processor_ns, own_ns, owed_ns, calls: 10_000, stored: true };
            (1..=50).find(|_| governor.take(0, stretch).is_some())
        };
        // 2 %, which is paid from the first two seconds' allowance of 20 ms; the same with 9 ms owed.
        assert_eq!(first(2e6, 0.0), Some(21));
        assert_eq!(first(2e6, 9e6), Some(3));
        // It is no reason to do less by itself.
        assert_eq!(first(0.9e6, 9e6), None);
    }

    #[test]
    fn the_whole_time_may_be_allowed() {
        assert_eq!(Program::new(f64::INFINITY, 0.1).run(1000, 1e7, true), []);
    }

    #[test]
    fn what_has_no_room_does_not_come_back() {
        let mut governor = Governor::new(SMALL, false);
        let quiet = Stretch { elapsed_ns: 1e9, own_ns: 1.0, calls: 10, stored: true, ..ONE_S };
        assert_eq!(governor.take(0, quiet), None);
        governor.give_up(Level::Summaries);
        assert_eq!(governor.take(1, quiet), Some((Level::Summaries, 0.0)));
        assert!((0..20).all(|_| governor.take(0, quiet).is_none()));
        // A level that costs too much is given up all the same, and comes back as far as there is room.
        let busy = Stretch { own_ns: 4e8, calls: 1_000_000, stored: false, ..quiet };
        assert_eq!(governor.take(0, busy).map(|(level, _)| level), Some(Level::Off));
        let back: Vec<Level> = (0..50)
            .filter_map(|_| governor.take(0, Stretch { stored: false, ..quiet }))
            .map(|(level, _)| level)
            .collect();
        assert_eq!(back, [Level::Summaries]);
        // Nor for an agent that may take all the time.
        let mut everything = Governor::new(Limits { overall: f64::INFINITY, structure: 0.1 }, true);
        everything.give_up(Level::Summaries);
        assert_eq!(everything.take(0, busy), Some((Level::Summaries, 0.0)));
        assert_eq!(everything.take(0, busy), None);
    }

    #[test]
    fn an_idle_thread_does_not_speak_for_a_busy_one() {
        let mut governor = Governor::new(SMALL, false);
        let busy =
            Stretch { elapsed_ns: 1e8, own_ns: 3e7, calls: 10_000, stored: true, ..Stretch::default() };
        assert_eq!(governor.take(1, busy).map(|(level, _)| level), Some(Level::Off));
        let idle = Stretch { elapsed_ns: 1e9, own_ns: 1.0, calls: 1, ..Stretch::default() };
        for _ in 0..10 {
            assert_eq!(governor.take(0, idle), None);
        }
        assert_eq!(governor.take(1, idle).map(|(level, _)| level), Some(Level::Summaries));
    }
}
