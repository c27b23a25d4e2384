//! How often the tree is looked after.

/// Fewest ticks between two looks: about 100 µs at any clock rate of today.
const SHORTEST: u64 = 300_000;
/// Most of them, where nothing has been on its way for a while: a look costs what MPI's own progress costs.
const IDLE: u64 = 64 * SHORTEST;
/// Where ranks share processors MPI gives its own away when it finds nothing, and gets it back when others have had
/// theirs. So looks are so many times as far apart as the last one took, and no further than so many ticks: some 6 ms
/// where nothing waits to be said ...
const QUIET: (u64, u64) = (20, IDLE);
/// ... and 2 ms where a window is over, for its interval's end is what the next one's size waits for.
const WANTED: (u64, u64) = (10, 20 * SHORTEST);

/// When a thread looks after the tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Ticks at which the last look was over, and how long it took.
    last: u64,
    took: u64,
    /// Ticks until it is worth another: more and more while nothing is on its way.
    pause: u64,
    /// Ticks of the next look.
    next: u64,
}

impl Pace {
    /// Something is to be said.
    pub fn soon(&mut self) {
        self.pause = SHORTEST;
        self.next = self.after(WANTED);
    }

    /// A look from `from` to `to` is over; `moved` if anything was on its way.
    pub fn done(&mut self, from: u64, to: u64, moved: bool) {
        (self.last, self.took) = (to, to - from);
        self.pause = if moved { SHORTEST } else { (self.pause * 2).clamp(SHORTEST, IDLE) };
        self.next = self.after(QUIET);
    }

    fn after(&self, (times, most): (u64, u64)) -> u64 {
        self.last + self.took.saturating_mul(times).min(most).max(self.pause)
    }

    /// Whether it is time to look.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        now >= self.next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_comes_soon_where_something_is_said_and_late_where_it_took_long() {
        let mut pace = Pace::default();
        assert!(pace.is_due(0));
        pace.done(0, 1000, true);
        assert_eq!(pace.next, 1000 + SHORTEST);
        for _ in 0..10 {
            pace.done(0, 1000, false);
        }
        assert_eq!(pace.next, 1000 + IDLE);
        pace.soon();
        assert_eq!(pace.next, 1000 + SHORTEST);
        // However often something is said, most of the time is the program's.
        pace.done(0, SHORTEST, false);
        assert_eq!(pace.next, SHORTEST + 20 * SHORTEST);
        pace.soon();
        assert_eq!(pace.next, SHORTEST + 10 * SHORTEST);
        pace.done(0, 1 << 40, true);
        assert_eq!(pace.next, (1 << 40) + QUIET.1);
        pace.soon();
        assert_eq!(pace.next, (1 << 40) + WANTED.1);
    }
}
