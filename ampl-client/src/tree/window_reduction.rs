//! One pass over the windows, at one node: what its contributors bring is added up and passed on in order.

use std::collections::VecDeque;

use ampl_core::message::CensusWindow;
use ampl_core::units::WindowId;

use super::ring;
use super::source::{Pushed, Source};
use super::spares::Spares;

/// Windows that a node just above the leaves must have seen after the one it waits for, before it
/// gives stragglers up; every level above wants one more, so that a late rank costs its own summary
/// and not that of its whole subtree.
const MOST_BEHIND: u64 = 4;

/// Nanoseconds that they must be behind besides, per level below. Where windows are shorter than a
/// message's way, being some windows behind says nothing: an edge carries one message at a time.
const GRACE_NS: u64 = 1_000_000_000;

/// Windows on their way up.
#[derive(Debug)]
pub(super) struct WindowReduction {
    /// The node's own rank, then its children.
    pub sources: Vec<Source>,
    /// Complete windows, oldest first: for the parent, or for the client at the root.
    pub ring: VecDeque<CensusWindow>,
    /// Memory of windows that have been added up, or passed on.
    pub spares: Spares,
    /// Records that the ring and every source may hold.
    pub capacity: usize,
    /// Levels below the node.
    height: u64,
    /// First window that is not complete.
    next: u64,
    /// Stragglers that hold up `next`.
    overdue: Option<Overdue>,
    /// `true` if the end has been sent to the parent: nothing follows.
    pub end_sent: bool,
}

/// Observer of windows as they are added up.
pub(super) trait ReductionObserver {
    /// Called for each part that a contributor brings, contributors in their order.
    fn contribution(&mut self, _contributor: usize, _part: &CensusWindow) {}
    /// Called after each contributor with the sum so far; `None` where no contributor has brought anything.
    fn added(&mut self, _so_far: Option<&CensusWindow>) {}
    /// Called after the last contributor, with the sum of all.
    fn complete(&mut self, _window: &CensusWindow) {}
}

/// Observes nothing.
impl ReductionObserver for () {}

/// `true` if the first part can be used as the sum: it covers all the windows, and has no stratum sums, which know
/// their capacity only where they were made.
fn is_sum(part: &CensusWindow, first: WindowId, last: WindowId) -> bool {
    (part.first_window, part.last_window) == (first, last) && part.partial.divided.is_empty()
}

/// Time at which stragglers were seen to hold up a window, and their backlog then.
#[derive(Clone, Copy, Debug)]
struct Overdue {
    since_ns: u64,
    /// The newest window known.
    newest: u64,
    /// Windows that the stragglers were behind it.
    behind: u64,
}

impl WindowReduction {
    /// A reduction of contributors that stand for so many ranks each, `height` levels above the leaves.
    pub fn new(ranks: impl IntoIterator<Item = u32>, height: u64, capacity: usize) -> Self {
        Self {
            sources: ranks.into_iter().map(Source::new).collect(),
            ring: VecDeque::new(),
            spares: Spares::new(capacity),
            capacity,
            height,
            next: 0,
            overdue: None,
            end_sent: false,
        }
    }

    /// Takes windows from a contributor; returns how many rank-windows came too late.
    pub fn push(&mut self, source: usize, window: CensusWindow) -> u64 {
        let reported = window.reported;
        match self.sources[source].push(window, self.next, self.capacity) {
            Pushed::Late => reported,
            Pushed::Taken | Pushed::Known => 0,
        }
    }

    /// `true` if a contributor has as many records waiting for others as it may.
    pub fn is_full(&self, source: usize) -> bool {
        self.sources[source].waiting() >= self.capacity
    }

    /// Completes every window that can be. `empty` makes a window that no rank has reported; `watch` observes every
    /// contributor's parts and the sums.
    pub fn advance(
        &mut self,
        empty: impl Fn(WindowId, WindowId) -> CensusWindow,
        watch: &mut impl ReductionObserver,
    ) {
        while let Some(last) = self.complete() {
            let (from, to) = (WindowId(self.next), WindowId(last));
            let (mut sum, mut late) = (None::<CensusWindow>, false);
            for (number, source) in self.sources.iter_mut().enumerate() {
                late |= !source.take(from.0, last, |part| {
                    watch.contribution(number, &part);
                    if sum.is_none() && is_sum(&part, from, to) {
                        sum = Some(part);
                        return;
                    }
                    sum.get_or_insert_with(|| empty(from, to)).merge(&part);
                    self.spares.keep(part.partial);
                });
                watch.added(sum.as_ref());
            }
            let mut window = sum.unwrap_or_else(|| empty(from, to));
            window.late |= late;
            watch.complete(&window);
            self.next = last.saturating_add(1);
            ring::push(&mut self.ring, window, self.capacity);
        }
    }

    /// The last of the next windows to pass on together; `None` while no contributor has reported any.
    fn boundary(&self) -> Option<u64> {
        let earliest = self.sources.iter().filter_map(Source::first).min()?;
        let mut last = self.next;
        if earliest > self.next {
            return Some(earliest - 1); // windows without a record that waits
        }
        // Ranges of different contributors may overlap: go on until none is cut.
        loop {
            let reach = self.sources.iter().map(|source| source.reach(last)).max()?;
            if reach == last {
                return Some(last);
            }
            last = reach;
        }
    }

    /// The last window to pass on now: all ranks have reported up to it, or have finished, or have
    /// been given up.
    fn complete(&self) -> Option<u64> {
        let last = self.boundary()?;
        let mut missing = self.sources.iter().filter(|source| !source.is_past(last)).peekable();
        if missing.peek().is_none() {
            return Some(last);
        }
        (self.is_overdue(last) && missing.all(|source| source.silent)).then_some(last)
    }

    fn newest(&self) -> Option<u64> {
        self.sources.iter().filter_map(Source::newest).max()
    }

    fn is_overdue(&self, last: u64) -> bool {
        let behind = MOST_BEHIND - 1 + self.height;
        self.newest().is_some_and(|newest| newest >= last.saturating_add(behind))
    }

    /// Sets the time; `true` if contributors were given up.
    ///
    /// Their time starts again when the windows that they lacked are there, or when they catch up. A rank at half the
    /// others' pace does neither: it would hold up the job by more and more.
    pub fn tick(&mut self, now_ns: u64) -> bool {
        let last = self.boundary().filter(|&last| self.is_overdue(last));
        let (Some(last), Some(newest)) = (last, self.newest()) else {
            self.overdue = None;
            return false;
        };
        let now = Overdue { since_ns: now_ns, newest, behind: newest - last };
        let grace = GRACE_NS.saturating_mul(self.height);
        let then = *self.overdue.get_or_insert(now);
        let is_over = now_ns.saturating_sub(then.since_ns) >= grace;
        if self.next > then.newest || (is_over && now.behind < then.behind) {
            self.overdue = Some(now);
        } else if is_over {
            for source in self.sources.iter_mut().filter(|source| !source.is_past(last)) {
                source.silent = true;
            }
            return true;
        }
        false
    }

    /// Next message for the parent: windows, and how many of its `ranks` ranks bring none after them.
    pub fn next_up(&mut self, ranks: u32) -> Option<(Option<CensusWindow>, u32)> {
        if self.end_sent {
            return None;
        }
        let window = self.ring.pop_front();
        let ended = self.is_finished();
        if window.is_none() && !ended {
            return None;
        }
        self.end_sent = ended;
        let finished: u32 = self.sources.iter().map(|source| source.finished).sum();
        // All of them only with the last window, or the parent would not wait for the rest.
        Some((window, finished.min(ranks - u32::from(!ended))))
    }

    /// `true` if nothing more is to come, and all that came has been passed on.
    pub fn is_finished(&self) -> bool {
        self.ring.is_empty() && self.sources.iter().all(Source::is_finished)
    }
}
