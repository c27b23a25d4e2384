//! A node's part in retrospective decisions.
//!
//! Its rank's windows wait for a reference to be binned by, then go up in the retrospective pass. The counts of every
//! contributor are remembered for a while. When the decision comes down, they give the places of a stratum that each of
//! them has, so that every rank finds its own without a list being sent.

use std::collections::VecDeque;
use std::sync::Arc;

use ampl_core::config::Mechanism;
use ampl_core::draw::{Keep, kept_after};
use ampl_core::message::{
    CensusWindow, DownMessage, MOST_STRATA, MessageLayout, PartialSums, Reference, RetrospectiveDecision,
    RetrospectiveShape, Summary,
};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

use super::window_reduction::ReductionObserver;

/// Most windows that wait for a reference, counts of windows that wait for a decision, and messages for a child. A rank
/// keeps no more windows undecided than fit in its buffer anyway.
const WAITING: usize = 64;

/// Most bytes that these take: where messages and counts are large, fewer of them wait.
const MEMORY: usize = 1 << 20;

/// Lower limit of [`waiting()`], whatever the message size.
const LEAST: usize = 32;

/// Retrospective decision about a window of this rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WindowDecision {
    /// The window. Older ones that are undecided will stay so.
    pub window: WindowId,
    /// Draw and stratum (0: kept in full); `None` where the predictive draw holds.
    pub keep: Option<(Keep, u16)>,
}

/// State of a node for retrospective decisions.
#[derive(Debug)]
pub(super) struct RetrospectivePass {
    mechanism: Mechanism,
    rank: Rank,
    /// Index of the rank's group in [`RetrospectiveShape::groups`], and in the plan; `None` for pinned ranks and other groups.
    group: Option<(usize, u16)>,
    retrospective: RetrospectiveShape,
    /// Most that may wait at the node, from [`LEAST`] to [`WAITING`].
    waiting: usize,
    references: VecDeque<Reference>,
    /// Own windows that have not gone up yet.
    unbinned: VecDeque<Unbinned>,
    /// `true` if no window of this rank follows.
    pub ended: bool,
    /// `true` if no reference follows: one that has not come is lost.
    referred: bool,
    /// Own bins, oldest first.
    bins: VecDeque<(WindowId, usize)>,
    /// Ranks by contributor and bin in the window that is being added up.
    adding: Vec<Count>,
    /// Ranks by contributor and bin in windows that have gone up, oldest first.
    counts: VecDeque<(WindowId, Vec<Count>)>,
    /// Room for what [`RetrospectivePass::judge`] counts.
    before: Vec<[u32; MOST_STRATA]>,
    judged: VecDeque<WindowDecision>,
    /// Per child: messages that it has not got, oldest first.
    down: Vec<VecDeque<Arc<DownMessage>>>,
}

#[derive(Debug)]
struct Unbinned {
    first: WindowId,
    last: WindowId,
    /// n and y of every guide; none where the window cannot be decided by its values.
    seen: Option<Vec<(u64, f64)>>,
}

/// Ranks that a contributor has in a bin of a group.
#[derive(Clone, Copy, Debug)]
struct Count {
    contributor: u32,
    /// Index of the group in [`RetrospectiveShape::groups`].
    place: u16,
    bin: u16,
    ranks: u32,
}

impl RetrospectivePass {
    /// State of a node whose own rank and children stand for that many ranks each, in this order.
    pub fn new(plan: &Plan, shape: &MessageLayout, rank: Rank, contributors: &[u32]) -> Option<Self> {
        let retrospective = shape.retrospective.clone()?;
        let group = plan.group_of(rank);
        let pinned = plan.groups[group].pinned.contains(rank);
        let waiting = waiting(shape, &retrospective, contributors);
        Some(Self {
            mechanism: plan.config.sampling.update_mechanism,
            rank,
            group: retrospective.group(group).filter(|_| !pinned).map(|place| (place, group as u16)),
            retrospective,
            waiting,
            references: VecDeque::new(),
            unbinned: VecDeque::new(),
            ended: false,
            referred: false,
            bins: VecDeque::new(),
            adding: Vec::new(),
            counts: VecDeque::new(),
            before: Vec::new(),
            judged: VecDeque::new(),
            down: vec![VecDeque::new(); contributors.len() - 1],
        })
    }

    /// Takes a window of this rank that is over, or several that were closed together. Windows that are decided
    /// predictively have no retrospective pass: nothing follows then.
    pub fn local(&mut self, first: WindowId, last: WindowId, summary: Option<&Summary>) {
        if !self.retrospective.decides(first) {
            self.ended = true;
            return;
        }
        let seen = |&guide: &u16| {
            summary.and_then(|summary| summary.metrics.get(usize::from(guide))).map(|seen| (seen.n, seen.sum))
        };
        let seen = self.retrospective.guides.iter().map(seen).collect::<Option<Vec<_>>>();
        self.unbinned.push_back(Unbinned { first, last, seen: seen.filter(|_| first == last) });
        self.ended |= !self.retrospective.decides(last.next());
    }

    /// Next of this rank's windows that can be binned, as its part of the retrospective pass. `empty` makes sums over no rank.
    pub fn next_binned(&mut self, empty: impl FnOnce() -> PartialSums) -> Option<CensusWindow> {
        let waiting = self.unbinned.len();
        let &Unbinned { first, last, .. } = self.unbinned.front()?;
        while self.references.front().is_some_and(|reference| reference.last_window < first) {
            self.references.pop_front();
        }
        let reference = self.references.front().filter(|reference| reference.first_window <= first);
        // A reference that is only for later windows means that none will come for this one.
        let awaited = reference.is_none() && self.references.is_empty() && waiting <= self.waiting;
        if awaited && !self.referred && self.unbinned.front().is_some_and(|window| window.seen.is_some()) {
            return None;
        }
        let mut part = CensusWindow { partial: empty(), ..CensusWindow::of(first, last) };
        let seen = self.unbinned.pop_front()?.seen;
        if let (Some(seen), Some(reference), Some((place, _))) = (seen, reference, self.group)
            && let Some(how) = reference.groups.get(place).and_then(Option::as_ref)
        {
            let (bin, points) = how.stand(self.retrospective.bins, seen);
            part.reported = 1;
            part.partial.binned[place].add(bin, &points);
            self.bins.push_back((first, bin));
            if self.bins.len() > self.waiting {
                self.bins.pop_front();
            }
        }
        Some(part)
    }

    /// `true` if every window of this rank has gone up.
    pub fn is_finished(&self) -> bool {
        self.ended && self.unbinned.is_empty()
    }

    /// Takes the update of a directive that has come. Where only the first interval has a reference, that goes before
    /// any directive that follows from what was reported.
    pub fn directed(&mut self, update: u64) {
        self.referred |= update > 0 && self.retrospective.until.is_some();
    }

    /// Takes a reference.
    pub fn refer(&mut self, reference: Reference) {
        if self.references.back().is_some_and(|newest| newest.last_window >= reference.last_window) {
            return; // a copy, or overtaken
        }
        self.references.push_back(reference.clone());
        let message = Arc::new(DownMessage::Reference(reference));
        for child in 0..self.down.len() {
            self.send(child, message.clone());
        }
    }

    /// Next message for a child, unless a directive is due and must be sent first. Only a reference goes before it, as
    /// windows before the directive are decided by that.
    pub fn next_down(&mut self, child: usize, directive_due: bool) -> Option<Arc<DownMessage>> {
        let queue = &mut self.down[child];
        let first = matches!(queue.front().map(Arc::as_ref), Some(DownMessage::Reference(_)));
        if directive_due && !first { None } else { queue.pop_front() }
    }

    fn send(&mut self, child: usize, message: Arc<DownMessage>) {
        let queue = &mut self.down[child];
        queue.push_back(message);
        if queue.len() > self.waiting {
            // A lost decision costs a window; without a reference windows would wait for ever.
            let decision =
                queue.iter().position(|waiting| matches!(**waiting, DownMessage::Retrospective(_)));
            queue.remove(decision.unwrap_or(0));
        }
    }

    /// Takes a decision: this rank's part of it, and the children's.
    pub fn judge(&mut self, decision: &RetrospectiveDecision) {
        if self.judged.back().is_some_and(|newest| newest.window >= decision.window) {
            return;
        }
        let counts = pop(&mut self.counts, |&(window, _)| window, decision.window);
        let counts = counts.map(|(_, counts)| counts).unwrap_or_default();
        let mut parts = counts.chunk_by(|one, other| one.contributor == other.contributor).peekable();
        let mut next = |contributor: usize| {
            let is_its = |part: &&[Count]| part[0].contributor as usize == contributor;
            parts.next_if(is_its).unwrap_or_default()
        };
        // Ranks of every stratum among those of the contributors before.
        let mut before = std::mem::take(&mut self.before);
        before.clear();
        before.resize(decision.groups.len(), [0; MOST_STRATA]);
        let own = next(0);
        let keep = self.own(decision, own);
        pass(decision, own, &mut before);
        for child in 0..self.down.len() {
            let counts = next(child + 1);
            self.send(child, Arc::new(DownMessage::Retrospective(part(decision, counts, &before))));
            pass(decision, counts, &mut before);
        }
        self.before = before;
        self.judged.push_back(WindowDecision { window: decision.window, keep });
        if self.judged.len() > self.waiting {
            self.judged.pop_front();
        }
    }

    /// Draw of this rank by the decision; it comes before all others of its subtree, and `counts` are its own.
    fn own(&mut self, decision: &RetrospectiveDecision, counts: &[Count]) -> Option<(Keep, u16)> {
        let (_, bin) = pop(&mut self.bins, |&(window, _)| window, decision.window)?;
        let (place, group) = self.group?;
        let found = decision.groups.get(place)?.as_ref().filter(|_| !counts.is_empty())?;
        let Some(index) = found.stratum(bin) else { return Some((Keep::ALWAYS, 0)) };
        let stratum = found.strata[index];
        let at = u64::from(stratum.before);
        let keep = kept_after(self.mechanism, self.rank, group, (index, stratum), at, decision);
        Some((keep, index as u16 + 1))
    }

    /// A decision about a window of this rank, oldest first.
    pub fn next_judged(&mut self) -> Option<WindowDecision> {
        self.judged.pop_front()
    }
}

impl ReductionObserver for RetrospectivePass {
    fn contribution(&mut self, contributor: usize, part: &CensusWindow) {
        for (place, group) in part.partial.binned.iter().enumerate() {
            self.adding.extend(group.occupied().map(|occupied| Count {
                contributor: contributor as u32,
                place: place as u16,
                bin: occupied.bin as u16,
                ranks: u32::try_from(occupied.ranks).unwrap_or(u32::MAX),
            }));
        }
    }

    fn complete(&mut self, window: &CensusWindow) {
        let counts = std::mem::take(&mut self.adding);
        // Positions are unknown for merged windows.
        if window.first_window < window.last_window {
            return;
        }
        self.counts.push_back((window.first_window, counts));
        if self.counts.len() > self.waiting {
            self.counts.pop_front();
        }
    }
}

/// Most windows that wait at a rank with these contributors.
pub(super) fn waiting(
    shape: &MessageLayout,
    retrospective: &RetrospectiveShape,
    contributors: &[u32],
) -> usize {
    let bins = retrospective.groups.len() * usize::from(retrospective.bins);
    let bins_of: usize = contributors.iter().map(|&ranks| bins.min(ranks as usize)).sum();
    // Of many ranks a third of the bins are occupied, as a rule.
    let counts = bins_of * size_of::<Count>() / 3;
    let window = counts + (contributors.len() - 1) * DownMessage::encoded_len(shape);
    (MEMORY / window).clamp(LEAST, WAITING)
}

/// Part of a decision for a contributor with these `counts`, with ranks of every stratum `before` its own; a group that
/// none of its ranks is in has no entry.
fn part(
    decision: &RetrospectiveDecision,
    counts: &[Count],
    before: &[[u32; MOST_STRATA]],
) -> RetrospectiveDecision {
    let groups = decision.groups.iter().zip(before).enumerate().map(|(place, (group, before))| {
        let is_in = || counts.binary_search_by_key(&place, |count| count.place.into()).is_ok();
        let mut group = group.as_ref().filter(|_| is_in())?.clone();
        for (stratum, &before) in group.strata.iter_mut().zip(before) {
            stratum.before = stratum.before.saturating_add(before).min(stratum.ranks);
        }
        Some(group)
    });
    RetrospectiveDecision { groups: groups.collect(), ..*decision }
}

/// Adds a contributor's ranks to those before the next one's.
fn pass(decision: &RetrospectiveDecision, counts: &[Count], before: &mut [[u32; MOST_STRATA]]) {
    for count in counts {
        let group = decision.groups.get(usize::from(count.place)).and_then(Option::as_ref);
        if let Some(stratum) = group.and_then(|group| group.stratum(count.bin.into())) {
            let before = &mut before[usize::from(count.place)][stratum];
            *before = before.saturating_add(count.ranks);
        }
    }
}

/// Item of `window` in a queue of ascending windows; older items are dropped.
fn pop<T>(queue: &mut VecDeque<T>, of: impl Fn(&T) -> WindowId, window: WindowId) -> Option<T> {
    while queue.front().is_some_and(|item| of(item) < window) {
        queue.pop_front();
    }
    queue.front().is_some_and(|item| of(item) == window).then(|| queue.pop_front()).flatten()
}
