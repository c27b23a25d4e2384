//! One rank's part of the reduction tree, without its transport.

use std::collections::VecDeque;

use ampl_core::message::{
    CensusWindow, Directive, DownMessage, MessageLayout, MetricSummary, OwnSteps, Reference,
    RetrospectiveDecision, StepAnnouncement, Summary, UpMessage,
};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};

use super::error::TreeError;
use super::fits::fits;
use super::retrospective::{RetrospectivePass, WindowDecision, waiting};
use super::stratification::NodeStrata;
use super::window_reduction::WindowReduction;
use super::{ARITY, Topology, ring};

/// Directives held for windows that this rank has not reached.
const EARLY: usize = 8;

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
    shape: MessageLayout,
    cell: usize,
    windows_per_update: u64,
    /// Own totals over the windows of this update interval that were kept; with `interval` shapes.
    totals: Vec<MetricSummary>,
    /// `true` if there were any such windows, even with nothing in them.
    sampled: bool,
    children: Vec<Child>,
    /// Sums of windows.
    census: WindowReduction,
    /// Second pass, for retrospective decisions: ranks by bin, and the state of the decisions.
    binned: Option<(WindowReduction, RetrospectivePass)>,
    /// The pass of the last message for the parent.
    passed: u8,
    /// State of stratification, where groups are divided.
    divide: Option<Box<NodeStrata>>,
    dropped: u64,
    /// The directive in force at the last window asked about, then later ones, oldest first.
    directives: VecDeque<Directive>,
    /// Calls that this rank makes once in each step.
    steps: Option<OwnSteps>,
    /// The program's steps, which windows follow.
    marker: Option<StepAnnouncement>,
    done: bool,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Child {
    rank: Rank,
    directive_due: bool,
    marker_due: bool,
    done_sent: bool,
}

impl Node {
    /// The node of `rank` in a tree of [`ARITY`] below the client's rank.
    pub fn new(plan: &Plan, rank: Rank) -> Self {
        Self::with_topology(plan, rank, Topology::new(plan.ranks, plan.config.agent.client, ARITY))
    }

    /// The node of `rank` in another tree.
    pub fn with_topology(plan: &Plan, rank: Rank, topology: Topology) -> Self {
        let shape = MessageLayout::of(plan);
        let children: Vec<Child> = topology
            .children(rank)
            .map(|rank| Child { rank, directive_due: false, marker_due: false, done_sent: false })
            .collect();
        let sources = topology.contributors(rank);
        let census = ring::capacity(&shape, sources.len());
        let height = u64::from(topology.height(rank));
        let retrospective = RetrospectivePass::new(plan, &shape, rank, &sources);
        let binned = retrospective.zip(shape.retrospective.as_ref()).map(|(retrospective, bins)| {
            let capacity = ring::capacity_binned(bins, &sources);
            (WindowReduction::new(sources.clone(), height, capacity), retrospective)
        });
        Self {
            rank,
            topology,
            cell: shape.cell_of(plan, rank),
            census: WindowReduction::new(sources, height, census),
            binned,
            passed: 1,
            divide: NodeStrata::new(plan, &shape, rank).map(Box::new),
            shape,
            windows_per_update: u64::from(plan.config.sampling.windows_per_update.max(1)),
            totals: vec![MetricSummary::default(); plan.metrics.len()],
            sampled: false,
            children,
            dropped: 0,
            directives: VecDeque::new(),
            steps: None,
            marker: None,
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

    /// Bytes of messages to and from the parent, at most: up, down.
    pub fn message_bytes(&self) -> (usize, usize) {
        (UpMessage::encoded_len(&self.shape), DownMessage::encoded_len(&self.shape))
    }

    /// Windows that may gather between two polls of the tree by a rank, where decisions are retrospective. `None` where
    /// other decisions wait for them: predictive sizes, or how a group is to be divided.
    ///
    /// The number is what the root, with the most ranks below it, has room for; it is the same in all ranks.
    pub fn gathers(&self) -> Option<usize> {
        let shape = &self.shape;
        let retrospective = shape
            .retrospective
            .as_ref()
            .filter(|retrospective| retrospective.until.is_none() && self.divide.is_none())?;
        let root = self.topology.root();
        let sources = self.topology.contributors(root);
        let levels = self.topology.height(root) as usize;
        // A window may take two polls per level, and what others bring must have room until the last is there.
        let room = ring::capacity(shape, sources.len()).min(ring::capacity_binned(retrospective, &sources));
        // Its sums go up, a reference comes down, its bins go up, the decision comes down. In low trees some to spare.
        let looks = (4 * levels).max(8);
        let remembered = waiting(shape, retrospective, &sources) / looks;
        Some((room / (2 * levels + 1)).min(remembered).max(1))
    }

    /// Takes this rank's own summary of the windows `first`..=`last`, in ascending order.
    ///
    /// A summary of several windows holds their totals.
    pub fn local(&mut self, first: WindowId, last: WindowId, summary: &Summary) {
        let partial = self.census.spares.empty(|| self.shape.partial());
        let mut window = CensusWindow { partial, ..CensusWindow::of(first, last) };
        window.reported = window.windows();
        window.partial.add(&self.shape, self.cell, window.reported, summary);
        if let Some(steps) = self.steps.as_ref().filter(|_| self.shape.steps) {
            window.partial.steps.add(steps, window.reported);
        }
        if self.shape.interval {
            self.add_totals(&mut window, summary);
        }
        if let Some(divide) = &mut self.divide {
            divide.local(first, last, summary, &mut window.partial);
        }
        self.dropped = self.dropped.saturating_add(self.census.push(0, window));
        if let Some((_, retrospective)) = &mut self.binned {
            retrospective.local(first, last, Some(summary));
        }
        self.advance();
    }

    /// Reports that this rank has no summary of the windows from `first` to `last`: no node waits for it, and it does
    /// not count as reported.
    pub fn local_unmeasured(&mut self, first: WindowId, last: WindowId) {
        self.census.push(0, CensusWindow::new(&self.shape, first, last));
        if let Some((_, retrospective)) = &mut self.binned {
            retrospective.local(first, last, None);
        }
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
                window.partial.add_interval(&self.shape, self.cell, &self.totals);
            }
            self.totals.fill(MetricSummary::default());
        }
    }

    /// Reports that this rank will report no further window.
    pub fn local_finished(&mut self) {
        // Its last windows may still have to be binned, for which others wait no longer than for what is binned.
        self.census.sources[0].finished = 1;
        if let Some((_, retrospective)) = &mut self.binned {
            retrospective.ended = true;
        }
        self.advance();
    }

    /// Takes a message from a child.
    ///
    /// # Errors
    /// [`TreeError`]; the node is as before then.
    pub fn receive_up(&mut self, child: Rank, bytes: &[u8]) -> Result<(), TreeError> {
        self.take_up(child, bytes)?;
        self.advance();
        Ok(())
    }

    /// As [`receive_up`](Self::receive_up) for one of several messages: [`Node::advance`] is to follow the last.
    ///
    /// # Errors
    /// The same as of [`receive_up`](Self::receive_up).
    pub fn take_up(&mut self, child: Rank, bytes: &[u8]) -> Result<(), TreeError> {
        let position = self.children.iter().position(|known| known.rank == child);
        let source = position.ok_or(TreeError::NotAChild(child))? + 1;
        if bytes.len() > UpMessage::encoded_len(&self.shape) || !UpMessage::fits(bytes, &self.shape) {
            return Err(TreeError::MessageLayout);
        }
        let pass = UpMessage::pass(bytes).unwrap_or_default();
        if lane(&mut self.census, &mut self.binned, pass).is_some_and(|lane| lane.is_full(source)) {
            // What could be passed on must not be merged for want of room.
            self.advance();
        }
        let lane = lane(&mut self.census, &mut self.binned, pass).ok_or(TreeError::MessageLayout)?;
        let message = UpMessage::decode_into(bytes, lane.spares.take())?;
        if message.window.as_ref().is_some_and(|window| !fits(&self.shape, message.pass, window)) {
            return Err(TreeError::MessageLayout);
        }
        if let Some(window) = message.window {
            let late = lane.push(source, window);
            // What is late for the bins only is in the sums.
            self.dropped = self.dropped.saturating_add(if message.pass == 0 { late } else { 0 });
        }
        // Only ever more, whichever copy of a message comes last.
        let from = &mut lane.sources[source];
        from.finished = from.finished.max(message.finished.min(from.ranks));
        if from.is_finished() {
            // A child that reports its end again has not got the message that the job is done.
            self.children[source - 1].done_sent = false;
        }
        Ok(())
    }

    /// Completes every window that can be.
    pub fn advance(&mut self) {
        let shape = &self.shape;
        let empty = |first, last| CensusWindow::new(shape, first, last);
        match &mut self.divide {
            None => self.census.advance(empty, &mut ()),
            Some(divide) => self.census.advance(empty, divide.as_mut()),
        }
        let Some((lane, retrospective)) = &mut self.binned else { return };
        while let Some(part) = retrospective.next_binned(|| lane.spares.empty(|| shape.binned())) {
            lane.push(0, part);
        }
        if retrospective.is_finished() {
            lane.sources[0].finished = 1;
        }
        lane.advance(|first, last| CensusWindow::binned(shape, first, last), retrospective);
    }

    /// Sets the time, on any clock in nanoseconds that does not run backwards: stragglers are given up only by and by.
    /// Without it, all ranks are waited for for ever.
    pub fn tick(&mut self, now_ns: u64) {
        let mut given_up = self.census.tick(now_ns);
        if let Some((lane, _)) = &mut self.binned {
            given_up |= lane.tick(now_ns);
        }
        if given_up {
            self.advance();
        }
    }

    /// The next message for the parent, if there is one; call it when the edge is free.
    pub fn next_up(&mut self) -> Option<&[u8]> {
        self.parent()?;
        let ranks = self.topology.subtree(self.rank);
        let front = |lane: &WindowReduction| lane.ring.front().map(|window| window.first_window);
        // The older of the two, so that neither waits for the other for long; ends in turn, as both may be repeated.
        let binned_first = self.binned.as_ref().is_some_and(|(lane, _)| match front(lane) {
            Some(own) => front(&self.census).is_none_or(|other| own < other),
            None => front(&self.census).is_none() && self.passed == 0 && !lane.end_sent && lane.is_finished(),
        });
        let first = if binned_first { None } else { self.census.next_up(ranks) };
        let (pass, (window, finished)) = match (first, &mut self.binned) {
            (Some(message), _) => (0, message),
            (None, Some((lane, _))) => (1, lane.next_up(ranks)?),
            (None, None) => return None,
        };
        self.passed = pass;
        self.bytes.clear();
        let message = UpMessage { pass, finished, window };
        message.encode(&self.shape, &mut self.bytes);
        if let Some((lane, window)) = lane(&mut self.census, &mut self.binned, pass).zip(message.window) {
            lane.spares.keep(window.partial);
        }
        Some(&self.bytes)
    }

    /// At the root: the next complete window, for the client.
    pub fn next_census(&mut self) -> Option<CensusWindow> {
        let ring = self.parent().is_none().then_some(&mut self.census.ring)?;
        ring.pop_front().map(|census| census.reached(self.steps.as_ref()))
    }

    /// At the root: the next window whose ranks have been binned, for the client, which has its census already.
    pub fn next_binned(&mut self) -> Option<CensusWindow> {
        let (lane, _) = self.binned.as_mut().filter(|_| self.topology.parent(self.rank).is_none())?;
        lane.ring.pop_front()
    }

    /// At the root: hands the reference for windows to come to the tree.
    pub fn refer(&mut self, reference: Reference) {
        if let Some((_, retrospective)) = &mut self.binned {
            retrospective.refer(reference);
            self.advance();
        }
    }

    /// At the root: hands the client's decision on a window to the tree.
    pub fn judge(&mut self, decision: &RetrospectiveDecision) {
        if let Some((_, retrospective)) = &mut self.binned {
            retrospective.judge(decision);
        }
    }

    /// Retrospective decision about a window of this rank, oldest first. None follows for windows that are passed over,
    /// nor for any when the job [is done](Node::is_done).
    pub fn next_judged(&mut self) -> Option<WindowDecision> {
        self.binned.as_mut()?.1.next_judged()
    }

    /// `true` if nothing more is to come from this subtree, and all that came is on its way.
    fn is_spent(&self) -> bool {
        self.census.is_finished() && self.binned.as_ref().is_none_or(|(lane, _)| lane.is_finished())
    }

    /// Makes the last message for the parent again, unless its end has been answered. A transport that loses messages
    /// calls it when it has waited in vain. Every other message is made up for by the next of its kind.
    pub fn repeat_end(&mut self) {
        let done = self.is_done();
        let lanes = self.binned.iter_mut().map(|(lane, _)| lane).chain([&mut self.census]);
        lanes.for_each(|lane| lane.end_sent &= done);
    }

    /// At the root: hands the client's decision to the tree.
    ///
    /// A directive that is not newer than the newest is a copy, or was overtaken: nothing changes.
    pub fn direct(&mut self, mut directive: Directive) {
        let number = |directive: &Directive| (directive.update, directive.first_window);
        if self.directives.back().is_some_and(|newest| number(newest) >= number(&directive)) {
            return;
        }
        if let Some(divide) = &mut self.divide {
            divide.direct(&mut directive);
        }
        if let Some((_, retrospective)) = &mut self.binned {
            retrospective.directed(directive.update);
        }
        // More than one is early only at a rank far behind; of many, the newest matter.
        if self.directives.len() >= EARLY {
            self.directives.remove(1);
        }
        self.directives.push_back(directive);
        self.children.iter_mut().for_each(|child| child.directive_due = true);
        self.advance();
    }

    /// This rank's later summaries name these calls of its steps.
    pub fn name_steps(&mut self, steps: Option<OwnSteps>) {
        self.steps = steps;
    }

    /// At the root: announces to the tree that windows follow steps. The one that begins latest counts.
    pub fn announce(&mut self, marker: StepAnnouncement) {
        if self.marker.as_ref().is_none_or(|known| known.window < marker.window) {
            self.marker = Some(marker);
            self.children.iter_mut().for_each(|child| child.marker_due = true);
        }
    }

    /// The steps that windows follow, once they are announced.
    pub fn announced(&self) -> Option<&StepAnnouncement> {
        self.marker.as_ref()
    }

    /// Takes a message from the parent.
    ///
    /// # Errors
    /// [`TreeError`]; the node is as before then.
    pub fn receive_down(&mut self, bytes: &[u8]) -> Result<(), TreeError> {
        if bytes.len() != DownMessage::encoded_len(&self.shape) {
            return Err(TreeError::MessageLayout);
        }
        match DownMessage::decode(bytes)? {
            DownMessage::Directive(directive) => self.direct(directive),
            DownMessage::Reference(reference) => self.refer(reference),
            DownMessage::Retrospective(decision) => self.judge(&decision),
            DownMessage::Steps(marker) => self.announce(marker),
            DownMessage::Done => self.done = true,
        }
        Ok(())
    }

    /// The next message for a child, if there is one: the newest directive that it has not got, every
    /// reference and decision, and at the end that the job is done.
    pub fn next_down(&mut self, child: Rank) -> Option<&[u8]> {
        let done = self.is_done();
        let number = self.children.iter().position(|known| known.rank == child)?;
        let child = &mut self.children[number];
        self.bytes.clear();
        // Before all others: each of them that it waits for is one more visit that it may come too late for.
        let due = std::mem::take(&mut child.marker_due) && !done;
        if let Some(marker) = self.marker.as_ref().filter(|_| due) {
            DownMessage::Steps(marker.clone()).encode(&self.shape, &mut self.bytes);
            return Some(&self.bytes);
        }
        let directive_due = child.directive_due && !done;
        let binned = self.binned.as_mut();
        let next = binned.and_then(|(_, retrospective)| retrospective.next_down(number, directive_due));
        if let Some(message) = next {
            message.encode(&self.shape, &mut self.bytes);
        } else if done {
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
            let mut directive = self.directives.back().cloned()?;
            if let Some(divide) = &self.divide {
                divide.part(&mut directive, number + 1);
            }
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

    /// `true` if every rank of the subtree has finished and all they reported is on its way (at the root: with the
    /// client).
    pub fn finished(&self) -> bool {
        let told = self.census.end_sent && self.binned.as_ref().is_none_or(|(lane, _)| lane.end_sent);
        self.is_spent() && (told || self.parent().is_none())
    }

    /// `true` if the whole job has finished, by the root's message or, at the root, by all ranks' reports.
    pub fn is_done(&self) -> bool {
        self.done || (self.parent().is_none() && self.finished())
    }

    /// `true` if no message is to be sent or expected any more, on any edge.
    pub fn closed(&self) -> bool {
        self.is_done() && self.children.iter().all(|child| child.done_sent)
    }

    /// Rank-windows that came after their window had been passed on, and were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Reduction that messages of that pass go by; `None` where there is no such pass.
fn lane<'a>(
    census: &'a mut WindowReduction,
    binned: &'a mut Option<(WindowReduction, RetrospectivePass)>,
    pass: u8,
) -> Option<&'a mut WindowReduction> {
    match pass {
        0 => Some(census),
        1 => binned.as_mut().map(|(lane, _)| lane),
        _ => None,
    }
}
