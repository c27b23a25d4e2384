//! Regions that a thread is in, as the program has them and as the trace does.
//!
//! Both agree while entries and exits are recorded. In a gap they are not: then the trace's stack stays as it was, and the
//! exits and entries that lead from it to the program's are recorded behind the gap.

/// Regions that a thread may be in at once: a program that enters and never leaves must not fill the memory.
const DEEPEST: usize = 1 << 12;

/// An entry or exit that the trace lacks.
pub type Missed = (ampl_trace::regions::Edge, u32);

/// The regions that a thread is in, by number, outermost first.
#[derive(Debug, Default)]
pub struct RegionStack {
    open: Vec<(u32, u64)>,
    /// Regions that the trace has, while entries or exits are missing in it.
    traced: Vec<u32>,
    /// How many of them the thread has not left since.
    common: usize,
    behind: bool,
    /// Visits beyond the deepest.
    deeper: u64,
}

impl RegionStack {
    /// True where the trace lacks entries or exits.
    #[inline(always)]
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    /// The thread enters `region` at `now`; `recorded` where the trace has it. Returns false where the region is too
    /// deep for that.
    #[inline]
    pub fn enter(&mut self, region: u32, now: u64, recorded: bool) -> bool {
        if self.open.len() >= DEEPEST {
            self.deeper += 1;
            return false;
        }
        if !recorded {
            self.interrupt();
        }
        self.open.push((region, now));
        true
    }

    /// The thread leaves `region`, and with it the regions that it has entered there and not left; `recorded` where the
    /// trace has it. Returns when it was entered: `Some(None)` where it was not, `None` where it was too deep.
    #[inline]
    pub fn exit(&mut self, region: u32, recorded: bool) -> Option<Option<u64>> {
        if self.deeper > 0 {
            self.deeper -= 1;
            return None;
        }
        if !recorded {
            self.interrupt();
        }
        let Some(at) = self.open.iter().rposition(|open| open.0 == region) else { return Some(None) };
        let since = self.open[at].1;
        self.open.truncate(at);
        self.common = self.common.min(at);
        Some(Some(since))
    }

    /// True where the thread is in `region`.
    pub fn holds(&self, region: u32) -> bool {
        self.open.iter().any(|open| open.0 == region)
    }

    /// The thread has been in `region` since it is known.
    pub fn begin_inside(&mut self, region: u32, now: u64) {
        self.enter(region, now, false);
    }

    /// Another thread takes its place, which is in no region.
    pub fn restart(&mut self) {
        if !self.open.is_empty() {
            self.interrupt();
        }
        self.open.clear();
        (self.common, self.deeper) = (0, 0);
    }

    #[inline]
    fn interrupt(&mut self) {
        if !self.behind {
            self.behind = true;
            self.traced.clear();
            self.traced.extend(self.open.iter().map(|open| open.0));
            self.common = self.traced.len();
        }
    }

    /// The next exit or entry that the trace lacks.
    pub fn next_missed(&mut self) -> Option<Missed> {
        use ampl_trace::regions::Edge;
        if !self.behind {
            return None;
        }
        if self.traced.len() > self.common {
            return self.traced.pop().map(|region| (Edge::Exit, region));
        }
        let Some(&(region, _)) = self.open.get(self.common) else {
            self.behind = false;
            return None;
        };
        self.traced.push(region);
        self.common += 1;
        Some((Edge::Enter, region))
    }
}

#[cfg(test)]
mod tests {
    use ampl_trace::regions::Edge;
    use proptest::prelude::*;

    use super::*;

    /// Stack that a reader has after `edge` of `region`.
    fn step(stack: &mut Vec<u32>, (edge, region): Missed) {
        match edge {
            Edge::Enter => stack.push(region),
            Edge::Exit => {
                let at = stack.iter().rposition(|&open| open == region);
                stack.truncate(at.unwrap_or(stack.len()));
            }
        }
    }

    proptest! {
        /// Regions nest or not; recording stops and goes on at any event.
        #[test]
        fn a_reader_is_in_the_same_regions_behind_a_gap(
            events in prop::collection::vec((any::<bool>(), 0u32..4, prop::bool::weighted(0.7)), 0..60)
        ) {
            let (mut stack, mut program, mut reader) = (RegionStack::default(), Vec::new(), Vec::new());
            for (enters, region, recorded) in events {
                let event = (if enters { Edge::Enter } else { Edge::Exit }, region);
                if recorded {
                    while let Some(missed) = stack.next_missed() {
                        step(&mut reader, missed);
                    }
                    prop_assert!(!stack.is_behind());
                    prop_assert_eq!(&reader, &program);
                    step(&mut reader, event);
                }
                match event.0 {
                    Edge::Enter => prop_assert!(stack.enter(region, 0, recorded)),
                    Edge::Exit => drop(stack.exit(region, recorded)),
                }
                step(&mut program, event);
            }
        }
    }

    #[test]
    fn what_is_too_deep_is_left_first() {
        let mut stack = RegionStack::default();
        for at in 0..DEEPEST as u64 + 5 {
            assert_eq!(stack.enter(7, at, true), at < DEEPEST as u64);
        }
        assert!((0..5).all(|_| stack.exit(7, true).is_none()));
        assert_eq!(stack.exit(7, true), Some(Some(DEEPEST as u64 - 1)));
        stack.restart();
        let exits = std::iter::from_fn(|| stack.next_missed()).filter(|missed| *missed == (Edge::Exit, 7));
        assert_eq!(exits.count(), DEEPEST - 1);
    }
}
