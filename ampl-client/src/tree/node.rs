//! One rank's part of the reduction tree, without its transport.

use std::collections::VecDeque;

use ampl_core::message::{
    CensusWindow, Directive, DownMessage, MessageError, MetricSummary, Shape, Summary, UpMessage,
};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

use super::source::{Pushed, Source};
use super::{ARITY, Topology, ring};

/// Windows that a node just above the leaves must have seen after the one it waits for, before it
/// gives stragglers up; every level above wants one more, so that a late rank costs its own summary
/// and not that of its whole subtree.
const PATIENCE: u64 = 4;

/// Nanoseconds that they must be behind besides, per level below. Where windows are shorter than a
/// message's way, being some windows behind says nothing: an edge carries one message at a time.
const GRACE_NS: u64 = 1_000_000_000;

/// Directives held for windows that this rank has not reached.
const EARLY: usize = 8;

/// Why a message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeError {
    /// Its bytes are no message.
    Message(MessageError),
    /// It was made for another plan.
    Shape,
    /// The sender is not a child of this node.
    NotAChild(Rank),
}

impl std::fmt::Display for TreeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Message(error) => error.fmt(f),
            Self::Shape => f.write_str("message made for another plan"),
            Self::NotAChild(rank) => write!(f, "message from rank {}, not a child", rank.0),
        }
    }
}

impl std::error::Error for TreeError {}

impl From<MessageError> for TreeError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}

/// A rank's place in the tree: it adds up its subtree's windows and hands directives down.
///
/// The transport moves bytes: [`Node::next_up`] when the edge to the parent is free,
/// [`Node::next_down`] when a child's is. Sums are added in the order of the children, never in
/// that of arrival, so they repeat bit for bit. Memory is bounded whatever happens above: windows
/// beyond [`RING`](super::RING), or a megabyte in all, merge into ranges.
#[derive(Debug)]
pub struct Node {
    rank: Rank,
    topology: Topology,
    shape: Shape,
    cell: usize,
    windows_per_update: u64,
    /// Own totals over the windows of this update interval that were kept; with `interval` shapes.
    totals: Vec<MetricSummary>,
    /// Whether there were any such windows, even with nothing in them.
    sampled: bool,
    /// Itself, then the children.
    sources: Vec<Source>,
    children: Vec<Child>,
    /// Complete windows, oldest first: for the parent, or for the client at the root.
    ring: VecDeque<CensusWindow>,
    /// Records that the ring and every source may hold.
    capacity: usize,
    /// First window that is not complete.
    next: u64,
    /// Stragglers that hold up `next`.
    overdue: Option<Overdue>,
    dropped: u64,
    end_sent: bool,
    /// The directive in force at the last window asked about, then later ones, oldest first.
    directives: VecDeque<Directive>,
    done: bool,
    bytes: Vec<u8>,
}

/// When stragglers were seen to hold up a window, and how things stood then.
#[derive(Clone, Copy, Debug)]
struct Overdue {
    since_ns: u64,
    /// The newest window known.
    newest: u64,
    /// By how many windows the stragglers were behind it.
    behind: u64,
}

#[derive(Debug)]
struct Child {
    rank: Rank,
    directive_due: bool,
    done_sent: bool,
}

impl Node {
    /// The node of `rank` in a tree of [`ARITY`] below the client's rank.
    pub fn new(plan: &Plan, rank: Rank) -> Self {
        Self::with_topology(plan, rank, Topology::new(plan.ranks, plan.config.agent.client, ARITY))
    }

    /// The node of `rank` in another tree.
    pub fn with_topology(plan: &Plan, rank: Rank, topology: Topology) -> Self {
        let shape = Shape::of(plan);
        let children: Vec<Child> = topology
            .children(rank)
            .map(|rank| Child { rank, directive_due: false, done_sent: false })
            .collect();
        let mut sources = vec![Source::new(1)];
        sources.extend(children.iter().map(|child| Source::new(topology.subtree(child.rank))));
        Self {
            rank,
            topology,
            cell: shape.cell_of(plan, rank),
            capacity: ring::capacity(&shape, sources.len() + 1),
            shape,
            windows_per_update: u64::from(plan.config.sampling.windows_per_update.max(1)),
            totals: vec![MetricSummary::default(); plan.metrics.len()],
            sampled: false,
            sources,
            children,
            ring: VecDeque::new(),
            next: 0,
            overdue: None,
            dropped: 0,
            end_sent: false,
            directives: VecDeque::new(),
            done: false,
            bytes: Vec::new(),
        }
    }

    /// The rank above; none at the root.
    pub fn parent(&self) -> Option<Rank> {
        self.topology.parent(self.rank)
    }

    /// The ranks below.
    pub fn children(&self) -> impl Iterator<Item = Rank> + '_ {
        self.children.iter().map(|child| child.rank)
    }

    /// Bytes of every message to and from the parent: up, down.
    pub fn message_bytes(&self) -> (usize, usize) {
        (UpMessage::encoded_len(&self.shape), DownMessage::encoded_len(&self.shape))
    }

    /// Takes this rank's own summary of the windows `first`..=`last`, in ascending order.
    ///
    /// A summary of several windows holds their totals.
    pub fn local(&mut self, first: WindowId, last: WindowId, summary: &Summary) {
        let mut window = CensusWindow::new(&self.shape, first, last);
        window.reported = window.windows();
        window.partial.add(&self.shape, self.cell, window.reported, summary);
        if self.shape.interval {
            self.add_totals(&mut window, summary);
        }
        self.push(0, window);
        self.advance();
    }

    /// Says that this rank has nothing to report of the windows from `first` to `last`: nobody waits for it, and
    /// it is not among those that reported.
    pub fn local_unmeasured(&mut self, first: WindowId, last: WindowId) {
        self.push(0, CensusWindow::new(&self.shape, first, last));
        self.advance();
    }

    /// Own totals over the update interval, put into the last window of it.
    fn add_totals(&mut self, window: &mut CensusWindow, summary: &Summary) {
        if summary.kept {
            self.sampled = true;
            for (total, metric) in self.totals.iter_mut().zip(&summary.metrics) {
                total.merge(metric);
            }
        }
        let update = |window: u64| window / self.windows_per_update;
        let after = window.last_window.0.saturating_add(1);
        if update(after) > update(window.first_window.0) {
            // A rank that kept nothing is not in the sample; one that kept a window in which
            // nothing happened is.
            if std::mem::take(&mut self.sampled) {
                window.partial.add_interval(self.cell, &self.totals);
            }
            self.totals.fill(MetricSummary::default());
        }
    }

    /// Says that this rank will report no further window.
    pub fn local_finished(&mut self) {
        self.sources[0].finished = 1;
        self.advance();
    }

    /// Takes a message from a child.
    ///
    /// # Errors
    /// [`TreeError`]; the node is as before then.
    pub fn receive_up(&mut self, child: Rank, bytes: &[u8]) -> Result<(), TreeError> {
        let position = self.children.iter().position(|known| known.rank == child);
        let source = position.ok_or(TreeError::NotAChild(child))? + 1;
        if bytes.len() != UpMessage::encoded_len(&self.shape) {
            return Err(TreeError::Shape);
        }
        let message = UpMessage::decode(bytes)?;
        if let Some(window) = message.window {
            let metrics = usize::from(self.shape.metrics);
            let cells = &window.partial.cells;
            if !cells.iter().map(|cell| cell.key).eq(self.shape.cells.iter().copied())
                || cells.iter().any(|cell| cell.metrics.len() != metrics)
            {
                return Err(TreeError::Shape);
            }
            self.push(source, window);
        }
        // Only ever more, whichever copy of a message comes last.
        let from = &mut self.sources[source];
        from.finished = from.finished.max(message.finished.min(from.ranks));
        if from.is_finished() {
            // A child that says so again has not heard that the job is done.
            self.children[source - 1].done_sent = false;
        }
        self.advance();
        Ok(())
    }

    fn push(&mut self, source: usize, window: CensusWindow) {
        let reported = window.reported;
        if self.sources[source].push(window, self.next, self.capacity) == Pushed::Late {
            self.dropped = self.dropped.saturating_add(reported);
        }
    }

    /// Completes every window that can be.
    fn advance(&mut self) {
        while let Some(last) = self.complete() {
            let mut window = CensusWindow::new(&self.shape, WindowId(self.next), WindowId(last));
            for source in &mut self.sources {
                let whole = source.take(self.next, last, &mut window);
                window.late |= !whole;
            }
            self.next = last.saturating_add(1);
            ring::push(&mut self.ring, window, self.capacity);
        }
    }

    /// The last of the next windows to pass on together; `None` while nobody has reported any.
    fn boundary(&self) -> Option<u64> {
        let earliest = self.sources.iter().filter_map(Source::first).min()?;
        let mut last = self.next;
        if earliest > self.next {
            return Some(earliest - 1); // windows that nobody who is here reported
        }
        // Ranges of different contributors may overlap: go on until nobody's is cut.
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
        let patience = PATIENCE - 1 + self.height();
        self.newest().is_some_and(|newest| newest >= last.saturating_add(patience))
    }

    fn height(&self) -> u64 {
        u64::from(self.topology.height(self.rank))
    }

    /// Says what time it is, on any clock in nanoseconds that does not run backwards: stragglers
    /// are given up only by and by. Without it, everyone is waited for for ever.
    ///
    /// They have their time again when what they lacked is there, or when they are catching up. To come
    /// along at half the others' pace is neither: such a rank would hold up the job by more and more.
    pub fn tick(&mut self, now_ns: u64) {
        let last = self.boundary().filter(|&last| self.is_overdue(last));
        let (Some(last), Some(newest)) = (last, self.newest()) else {
            self.overdue = None;
            return;
        };
        let now = Overdue { since_ns: now_ns, newest, behind: newest - last };
        let grace = GRACE_NS.saturating_mul(self.height());
        let then = *self.overdue.get_or_insert(now);
        let is_over = now_ns.saturating_sub(then.since_ns) >= grace;
        if self.next > then.newest || (is_over && now.behind < then.behind) {
            self.overdue = Some(now);
        } else if is_over {
            for source in self.sources.iter_mut().filter(|source| !source.is_past(last)) {
                source.silent = true;
            }
            self.advance();
        }
    }

    /// The next message for the parent, if there is one; call it when the edge is free.
    pub fn next_up(&mut self) -> Option<&[u8]> {
        if self.parent().is_none() || self.end_sent {
            return None;
        }
        let window = self.ring.pop_front();
        let ended = self.ring.is_empty() && self.sources.iter().all(Source::is_finished);
        if window.is_none() && !ended {
            return None;
        }
        self.end_sent = ended;
        let finished: u32 = self.sources.iter().map(|source| source.finished).sum();
        // All of them only with the last window, or the parent would not wait for the rest.
        let finished = finished.min(self.topology.subtree(self.rank) - u32::from(!ended));
        self.bytes.clear();
        UpMessage { pass: 0, finished, window }.encode(&self.shape, &mut self.bytes);
        Some(&self.bytes)
    }

    /// At the root: the next complete window, for the client.
    pub fn next_census(&mut self) -> Option<CensusWindow> {
        if self.parent().is_some() { None } else { self.ring.pop_front() }
    }

    /// Has the last message for the parent made again, unless its end has been answered: what a transport
    /// that loses messages asks for when it has waited in vain. Every other message is made up for by the
    /// next of its kind.
    pub fn repeat_end(&mut self) {
        self.end_sent &= self.is_done();
    }

    /// At the root: hands the client's decision to the tree.
    ///
    /// One that is not newer than what is known is a copy, or was overtaken: nothing changes.
    pub fn direct(&mut self, directive: Directive) {
        if self.directives.back().is_some_and(|newest| newest.update >= directive.update) {
            return;
        }
        // More than one is early only at a rank far behind; of many, the newest matter.
        if self.directives.len() >= EARLY {
            self.directives.remove(1);
        }
        self.directives.push_back(directive);
        for child in &mut self.children {
            child.directive_due = true;
        }
    }

    /// Takes a message from the parent.
    ///
    /// # Errors
    /// [`TreeError`]; the node is as before then.
    pub fn receive_down(&mut self, bytes: &[u8]) -> Result<(), TreeError> {
        if bytes.len() != DownMessage::encoded_len(&self.shape) {
            return Err(TreeError::Shape);
        }
        match DownMessage::decode(bytes)? {
            DownMessage::Directive(directive) => self.direct(directive),
            DownMessage::Done => self.done = true,
        }
        Ok(())
    }

    /// The next message for a child, if there is one: the newest directive that it has not got,
    /// and at the end that the job is done.
    pub fn next_down(&mut self, child: Rank) -> Option<&[u8]> {
        let done = self.is_done();
        let child = self.children.iter_mut().find(|known| known.rank == child)?;
        self.bytes.clear();
        if done {
            if child.done_sent {
                return None;
            }
            child.done_sent = true;
            DownMessage::Done.encode(&self.shape, &mut self.bytes);
        } else {
            if !child.directive_due {
                return None;
            }
            child.directive_due = false;
            let directive = self.directives.back().cloned()?;
            DownMessage::Directive(directive).encode(&self.shape, &mut self.bytes);
        }
        Some(&self.bytes)
    }

    /// The directive in force for `window`, for windows asked about in ascending order: the newest
    /// one that has arrived and does not begin later. `None` before the first.
    pub fn directive(&mut self, window: WindowId) -> Option<&Directive> {
        while self.directives.get(1).is_some_and(|next| next.first_window <= window) {
            self.directives.pop_front();
        }
        self.directives.front().filter(|directive| directive.first_window <= window)
    }

    /// Whether every rank of the subtree has finished and all they reported is on its way (at the
    /// root: with the client).
    pub fn finished(&self) -> bool {
        let all = self.sources.iter().all(Source::is_finished) && self.ring.is_empty();
        all && (self.end_sent || self.parent().is_none())
    }

    /// Whether the root has said, or at the root knows, that the whole job has finished.
    pub fn is_done(&self) -> bool {
        self.done || (self.parent().is_none() && self.finished())
    }

    /// Whether no message is to be sent or expected any more, on any edge.
    pub fn closed(&self) -> bool {
        self.is_done() && self.children.iter().all(|child| child.done_sent)
    }

    /// Rank-windows that came after their window had been passed on, and were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}
