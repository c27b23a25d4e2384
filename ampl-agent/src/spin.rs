//! Polls in a row that find nothing.
//!
//! A rank in them waits. What the agent does for a poll that finds nothing keeps nobody waiting, for the next poll finds what
//! has come meanwhile. So it is no cost to the job, but that of the first such poll and of the one that finds something: a message
//! that comes while the agent is at work is met that much later. Work of the program's between polls takes them out of a row.

/// Longest time between two polls of a row beside the agent's own, ticks: that of the earlier poll in MPI, or about 100 ns.
const NEAR: u64 = 300;

/// A thread's row of polls that find nothing.
#[derive(Debug, Default)]
pub struct Spin {
    /// Ticks at which the next poll of the row begins at the latest; 0 where there is no row.
    until: u64,
    harmless: u64,
    taken: u64,
}

impl Spin {
    /// A call led from `start` to `end`, and took the agent `own` ticks beside; `missed` where it is a poll that found
    /// nothing.
    #[inline(always)]
    pub fn add(&mut self, missed: bool, start: u64, end: u64, own: u64) {
        if !missed {
            self.until = 0;
            return;
        }
        if start <= self.until {
            self.harmless += own;
        }
        self.until = end + own + end.saturating_sub(start).max(NEAR);
    }

    /// The part of [`Spin::harmless`] since this was last called.
    pub fn take(&mut self) -> u64 {
        self.harmless - std::mem::replace(&mut self.taken, self.harmless)
    }

    /// The agent's own time so far that has kept nobody waiting, ticks.
    pub fn harmless(&self) -> u64 {
        self.harmless
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Own time that is harmless of polls of 200 ticks that take the agent 500, in loops of so many, with so much of the
    /// program's work before each.
    fn harmless(polls: u64, work: u64) -> u64 {
        let (mut spin, mut now) = (Spin::default(), 1000);
        for _loop in 0..3 {
            for poll in 0..polls {
                now += work;
                spin.add(poll + 1 < polls, now, now + 200, 500);
                now += 200 + 500;
            }
        }
        spin.harmless()
    }

    #[test]
    fn polls_in_a_row_are_harmless_but_for_the_first_and_the_last() {
        assert_eq!(harmless(10, 20), 3 * 8 * 500);
        assert_eq!((harmless(2, 20), harmless(1, 20)), (0, 0));
    }

    #[test]
    fn work_between_polls_is_kept_waiting() {
        assert_eq!(harmless(10, 2000), 0);
    }
}
