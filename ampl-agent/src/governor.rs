//! Holds the agent's own time under the share of the job's time that it may take.
//!
//! Each thread checks its own cost from time to time. Where the share of its last stretch is too large, the process
//! steps down: it stops storing times of calls, then calls, then it only counts them. States that cannot fit are passed
//! over: trying each would disturb the job longer. The cost of a call in each state is remembered. So the governor can
//! predict when the dearer state fits again, and a quiet time after a busy beginning is recorded as usual.

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
    /// The name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Structure => "structure",
            Self::Summaries => "summaries",
            Self::Off => "off",
        }
    }
}

/// Work of a thread since its last overhead check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stretch {
    /// Its length, nanoseconds.
    pub elapsed_ns: f64,
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

impl Stretch {
    fn share(&self) -> f64 {
        if self.elapsed_ns > 0.0 { self.own_ns / self.elapsed_ns } else { 0.0 }
    }
}

/// The state in force, and what is known of the others.
#[derive(Clone, Debug)]
pub struct Governor {
    allowed: f64,
    level: Level,
    /// True where calls are recorded without their times: [`Level::Structure`] is of use.
    structured: bool,
    /// Nanoseconds per call at each level but the last.
    cost: [Option<f64>; 3],
    /// Time that the agent may still take before it has taken too much, nanoseconds.
    credit_ns: f64,
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
    /// A governor that lets the agent take the share `allowed` of the job's time; infinite: it never steps down.
    /// `structured` where calls are recorded whether their times are stored or not.
    pub fn new(allowed: f64, structured: bool) -> Self {
        let credit_ns = allowed * BRIEF_NS;
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
        let earned = self.allowed * stretch.elapsed_ns - stretch.own_ns - stretch.owed_ns;
        self.credit_ns =
            (self.credit_ns + earned).clamp(-self.allowed * REGRET_NS, self.allowed * HORIZON_NS);
        let share = stretch.share();
        let was = self.was(stretch);
        if let Some(cost) = self.cost.get_mut(was as usize).filter(|_| stretch.calls > 0) {
            *cost = Some(stretch.own_ns / stretch.calls as f64);
        }
        let (next, share) = if was < Level::Off && share > self.allowed {
            (self.fitting(was, stretch), share)
        } else {
            let next = self.above().filter(|&next| next >= self.floor)?;
            (next, self.expected(next, stretch)?)
        };
        let fits = match next > self.level {
            true => self.credit_ns < 0.0,
            false => {
                let saved = self.credit_ns >= MARGIN * self.allowed * REGRET_NS;
                saved && share <= MARGIN * self.allowed && thread == self.by
            }
        };
        if !fits {
            return None;
        }
        self.by = thread;
        self.level = next;
        self.guess(was);
        Some((next, share))
    }

    /// Level of work done for the calls of `stretch`: where no window was stored, at most the level below.
    fn was(&self, stretch: Stretch) -> Level {
        match self.level {
            Level::Kept | Level::Structure if stretch.stored => Level::Kept,
            Level::Kept | Level::Structure => self.below(Level::Kept),
            level => level,
        }
    }

    /// The first state below `was`, in which `stretch` took too much, that may fit.
    fn fitting(&self, was: Level, stretch: Stretch) -> Level {
        let least = |level: Level| stretch.share() * LEAST[level as usize] / LEAST[was as usize];
        let fits = |level: Level| match self.cost.get(level as usize).copied().flatten() {
            Some(_) => self.expected(level, stretch).is_none_or(|share| share <= self.allowed),
            None => least(level) <= self.allowed,
        };
        let mut next = self.below(was);
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

    fn above(&self) -> Option<Level> {
        match self.level {
            Level::Off => Some(Level::Summaries),
            Level::Summaries if self.structured => Some(Level::Structure),
            Level::Summaries | Level::Structure => Some(Level::Kept),
            Level::Kept => None,
        }
    }

    /// The share that the calls of `stretch` would have cost at `level`.
    fn expected(&self, level: Level, stretch: Stretch) -> Option<f64> {
        let cost = self.cost.get(level as usize).copied().flatten().unwrap_or(0.0);
        (stretch.elapsed_ns > 0.0).then(|| cost * stretch.calls as f64 / stretch.elapsed_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program whose calls cost 400 ns stored, 300 recorded, 200 summarised, 5 counted.
    struct Program {
        governor: Governor,
        own_ns: f64,
        elapsed_ns: f64,
    }

    impl Program {
        fn new(allowed: f64) -> Self {
            Self::of(allowed, true)
        }

        fn of(allowed: f64, structured: bool) -> Self {
            Self { governor: Governor::new(allowed, structured), own_ns: 0.0, elapsed_ns: 0.0 }
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
    fn the_allowance_holds_at_any_rate() {
        for rate in [1e3, 1e4, 3e4, 7e4, 2e5, 1e6] {
            let mut program = Program::new(0.01);
            program.run(1000, rate, true);
            // Counting has its cost; the first stretches are the cost of finding out.
            let counting = 5e-9 * rate;
            let share = program.own_ns / program.elapsed_ns;
            let brief = 0.01 * BRIEF_NS / program.elapsed_ns;
            assert!(share <= 0.01 + counting + brief + 0.001, "{rate}: {share}");
        }
    }

    #[test]
    fn each_state_is_tried_in_turn() {
        let mut program = Program::new(0.01);
        assert_eq!(program.run(100, 1e4, true), []); // 0.4 %
        assert_eq!(program.run(600, 3.2e4, true), [Level::Structure]); // 1.3 %, then 1.0 %
        assert_eq!(program.run(300, 4e4, true), [Level::Summaries]); // 1.2 %, then 0.8 %
        assert_eq!(program.run(300, 8e4, true), [Level::Off]); // 1.6 % summarised
        // Back step by step once it is expected to fit, and the job has made up for the excess.
        assert_eq!(program.run(100, 1e4, true), [Level::Summaries, Level::Structure, Level::Kept]);
    }

    #[test]
    fn what_is_not_recorded_is_not_given_up() {
        let mut program = Program::of(0.01, false);
        assert_eq!(program.run(300, 4e4, true), [Level::Summaries]); // 1.6 %, then 0.8 %
        assert_eq!(program.run(300, 8e4, true), [Level::Off]);
        assert_eq!(program.run(100, 1e4, true), [Level::Summaries, Level::Kept]);
        program.governor.give_up(Level::Structure);
        assert_eq!(program.run(100, 1e4, true), [Level::Summaries]);
    }

    #[test]
    fn windows_that_are_not_drawn_cost_less() {
        let mut program = Program::new(0.01);
        assert_eq!(program.run(100, 3e4, false), []); // 0.9 %
        assert_eq!(program.run(300, 4e4, false), [Level::Summaries]); // 1.2 %, then 0.8 %
        assert_eq!(program.run(300, 8e4, false), [Level::Off]);
    }

    #[test]
    fn a_brief_job_is_recorded_whole() {
        let mut program = Program::new(0.01);
        assert_eq!(program.run(4, 1e5, true), []); // 4 %, for less than half a second
        assert_eq!(program.run(8, 1e5, true), [Level::Structure, Level::Off]); // summaries are 2 %
    }

    #[test]
    fn what_cannot_fit_is_not_tried() {
        let mut program = Program::new(0.01);
        // 40 %: were summaries eight times as cheap, they would still be too much.
        assert_eq!(program.run(2, 1e6, true), [Level::Off]);
        assert_eq!(program.run(600, 2e5, true), []);
        // At half of that they might fit; they are found not to, once.
        assert_eq!(program.run(600, 1e5, true), [Level::Summaries, Level::Off]);
        assert_eq!(program.run(100, 1e4, true), [Level::Summaries, Level::Structure, Level::Kept]);
    }

    #[test]
    fn what_is_owed_is_spent() {
        let first = |own_ns: f64, owed_ns: f64| {
            let mut governor = Governor::new(0.01, true);
            let stretch = Stretch { elapsed_ns: 1e8, own_ns, owed_ns, calls: 10_000, stored: true };
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
        assert_eq!(Program::new(f64::INFINITY).run(1000, 1e7, true), []);
    }

    #[test]
    fn what_has_no_room_does_not_come_back() {
        let mut governor = Governor::new(0.01, false);
        let quiet = Stretch { elapsed_ns: 1e9, own_ns: 1.0, calls: 10, stored: true, ..Stretch::default() };
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
        let mut everything = Governor::new(f64::INFINITY, true);
        everything.give_up(Level::Summaries);
        assert_eq!(everything.take(0, busy), Some((Level::Summaries, 0.0)));
        assert_eq!(everything.take(0, busy), None);
    }

    #[test]
    fn an_idle_thread_does_not_speak_for_a_busy_one() {
        let mut governor = Governor::new(0.01, false);
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
