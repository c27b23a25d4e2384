//! Times of polls of the tree.

/// Fewest ticks between two polls: about 100 µs at any clock rate of today.
const SHORTEST: u64 = 300_000;
/// Most of them, where nothing has been on its way for a while: a poll costs what MPI's own progress costs.
const IDLE: u64 = 64 * SHORTEST;

/// Where windows wait for their decision, a thread spends at most one part in `SHARE` of its processor time on polls.
/// Batched windows amortise the cache misses of one poll. A thread that shares its processor, or sleeps, polls
/// accordingly rarely.
const SHARE: u64 = 100;
/// Longest rest, about 250 ms. A window takes several rests until it is decided, and a resting rank must not be [taken
/// for late](ampl_client::tree).
const LONGEST: u64 = 2500 * SHORTEST;
/// [`IDLE`] where windows gather: no rank waits for what comes down, and a poll among much work takes some 20 µs.
const IDLE_GATHERING: u64 = 640 * SHORTEST;

/// Distance of polls where windows do not wait, or lack room to: this many times the last poll's length, at most so
/// many ticks, some 6 ms. For times when nothing is to be reported.
const QUIET: (u64, u64) = (20, IDLE);
/// The same where a window is over, at most 2 ms: the next interval's size waits for its interval's end. Windows may be
/// as short as calls are.
const WANTED: (u64, u64) = (10, 20 * SHORTEST);

/// Schedule of a thread's polls of the tree.
#[derive(Clone, Copy, Debug)]
pub struct ProgressTimer {
    /// Most windows that gather, where they wait for their decision.
    gathers: Option<usize>,
    /// Ticks at which the last poll was over.
    last: u64,
    took: u64,
    /// The thread's processor time then, nanoseconds.
    cpu: u64,
    /// Ticks until the thread can afford another poll.
    rest: u64,
    /// Ticks until another poll is worthwhile: more and more while nothing is on its way.
    pause: u64,
    /// Windows that have ended since.
    gathered: usize,
    /// Ticks of the next poll.
    next: u64,
}

/// A poll of the tree: ticks of the clock, and nanoseconds of the thread's processor time.
#[derive(Clone, Copy, Debug)]
pub struct Poll {
    /// When it began, ticks.
    pub from: u64,
    /// When it was over.
    pub to: u64,
    /// The thread's processor time when it began, nanoseconds.
    pub cpu_from: u64,
    /// The same when it was over.
    pub cpu_to: u64,
    /// True where anything was on its way.
    pub moved: bool,
}

impl ProgressTimer {
    /// Schedule of a thread where so many windows [may gather](ampl_client::Node::gathers).
    pub fn new(gathers: Option<usize>) -> Self {
        Self { gathers, last: 0, took: 0, cpu: 0, rest: 0, pause: 0, gathered: 0, next: 0 }
    }

    /// Notes that `windows` windows are over; `crowded`: there is hardly room for others to wait with them.
    pub fn windows_closed(&mut self, windows: usize, crowded: bool) {
        self.pause = SHORTEST;
        self.gathered = self.gathered.saturating_add(windows);
        let hurries = crowded || self.gathers.is_none_or(|most| self.gathered >= most);
        self.next = if hurries { self.after(WANTED) } else { self.rested() };
    }

    /// Notes that a poll is over.
    pub fn poll_done(&mut self, poll: Poll) {
        let Poll { from, to, cpu_from, cpu_to, moved } = poll;
        // No previous poll, or another thread adopted this state: elapsed time is unknown.
        let passed = if self.last == 0 || cpu_from < self.cpu { 0 } else { to.saturating_sub(self.last) };
        let (spent, got) = (cpu_to.saturating_sub(cpu_from), cpu_to.saturating_sub(self.cpu).max(1));
        let rest = u128::from(SHARE) * u128::from(passed) * u128::from(spent) / u128::from(got);
        self.rest = u64::try_from(rest).unwrap_or(LONGEST).min(LONGEST);
        (self.last, self.took, self.cpu, self.gathered) = (to, to - from, cpu_to, 0);
        let gathers = self.gathers.is_some();
        // Less than a rest would be no pause.
        let (least, most) = if gathers { (self.rest, IDLE_GATHERING) } else { (0, IDLE) };
        self.pause = if moved { SHORTEST } else { (2 * self.pause.max(least)).clamp(SHORTEST, most) };
        self.next = if gathers { self.rested() } else { self.after(QUIET) };
    }

    fn rested(&self) -> u64 {
        self.last + self.rest.max(self.pause)
    }

    fn after(&self, (times, most): (u64, u64)) -> u64 {
        self.last + self.took.saturating_mul(times).min(most).max(self.pause)
    }

    /// True where a poll is due.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        now >= self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GATHERED: usize = 20;

    /// A poll during which nothing else ran, of a thread whose ticks are nanoseconds.
    fn poll(from: u64, took: u64, cpu_from: u64, moved: bool) -> Poll {
        Poll { from, to: from + took, cpu_from, cpu_to: cpu_from + took, moved }
    }

    #[test]
    fn polls_come_soon_where_sizes_wait_and_late_where_one_took_long() {
        let mut timer = ProgressTimer::new(None);
        assert!(timer.is_due(0));
        timer.poll_done(poll(0, 1000, 0, true));
        assert_eq!(timer.next, 1000 + SHORTEST);
        for _ in 0..10 {
            timer.poll_done(poll(0, 1000, 0, false));
        }
        assert_eq!(timer.next, 1000 + IDLE);
        timer.windows_closed(1, false);
        assert_eq!(timer.next, 1000 + SHORTEST);
        // However often reports are due, most of the time is the program's.
        timer.poll_done(poll(0, SHORTEST, 0, false));
        assert_eq!(timer.next, SHORTEST + 20 * SHORTEST);
        timer.windows_closed(1, false);
        assert_eq!(timer.next, SHORTEST + 10 * SHORTEST);
        timer.poll_done(poll(0, 1 << 40, 0, true));
        assert_eq!(timer.next, (1 << 40) + QUIET.1);
        timer.windows_closed(1, false);
        assert_eq!(timer.next, (1 << 40) + WANTED.1);
    }

    #[test]
    fn polls_take_a_hundredth_of_the_thread_s_time_where_windows_wait() {
        let mut timer = ProgressTimer::new(Some(GATHERED));
        timer.poll_done(poll(1, 10_000, 0, true));
        assert_eq!(timer.next, 10_001 + SHORTEST, "nothing is known yet");
        // A processor of its own: 50 µs of every 5 ms.
        timer.poll_done(Poll {
            from: 10_000_000,
            to: 10_050_000,
            cpu_from: 9_999_999,
            cpu_to: 10_049_999,
            moved: true,
        });
        assert!(timer.next.abs_diff(10_050_000 + 5_000_000) < 50_000, "{timer:?}");
        timer.windows_closed(1, false);
        assert!(
            timer.next.abs_diff(10_050_000 + 5_000_000) < 50_000,
            "a window more is no reason: {timer:?}"
        );
        // Every eighth of a processor that others want, too.
        let (to, cpu) = (timer.last + 20_000_000, timer.cpu + 2_500_000);
        timer.poll_done(Poll { from: to - 400_000, to, cpu_from: cpu - 50_000, cpu_to: cpu, moved: true });
        assert_eq!(timer.next, to + 100 * 8 * 50_000);
        // Hardly any processor time: decisions come in time all the same.
        let (to, cpu) = (timer.last + 500_000_000, timer.cpu + 100_000);
        timer.poll_done(Poll { from: to - 400_000, to, cpu_from: cpu - 50_000, cpu_to: cpu, moved: true });
        assert_eq!(timer.next, to + LONGEST);
        // Nothing comes: rarer and rarer.
        for pause in [2 * LONGEST, 2 * LONGEST] {
            let to = timer.last + 500_000_000;
            let cpu = timer.cpu + 100_000;
            timer.poll_done(Poll {
                from: to - 400_000,
                to,
                cpu_from: cpu - 50_000,
                cpu_to: cpu,
                moved: false,
            });
            assert_eq!(timer.next, to + pause.min(LONGEST.max(IDLE_GATHERING)));
        }
        let to = timer.last;
        // Another thread goes on with the state.
        timer.poll_done(Poll { from: to + 1000, to: to + 2000, cpu_from: 50, cpu_to: 60, moved: true });
        assert_eq!(timer.next, to + 2000 + SHORTEST);
    }

    #[test]
    fn polls_do_not_wait_where_windows_cannot() {
        let mut rested = ProgressTimer::new(Some(GATHERED));
        rested.poll_done(poll(1, 1000, 0, true));
        rested.poll_done(Poll {
            from: 1 << 40,
            to: (1 << 40) + 1000,
            cpu_from: 2000,
            cpu_to: 3000,
            moved: true,
        });
        let (last, mut many) = (rested.last, rested);
        for _ in 1..GATHERED {
            many.windows_closed(1, false);
        }
        assert_eq!(many.next, last + LONGEST);
        many.windows_closed(1, false);
        assert_eq!(many.next, last + SHORTEST);
        rested.windows_closed(1, true);
        assert_eq!(rested.next, last + SHORTEST);
    }
}
