//! Where this rank's agent meets the tree, and on the client rank the policy.

use ampl_agent::Thread;
use ampl_agent::closed::ClosedWindow;
use ampl_agent::transport::{Transport, TransportError};
use ampl_client::steps::{Naming, StepFinder};
use ampl_client::tree::WindowDecision;
use ampl_client::{Node, Policy};
use ampl_core::message::{Decision, Directive, MetricSummary, Summary};
use ampl_core::plan::Plan;
use ampl_core::units::{Rank, WindowId};
use ampl_trace::record::{TEXT_DECISION, TEXT_TIMESTEP};
use ampl_trace::timestep::{TimestepRecord, UnannouncedSteps};

use crate::backoff::Backoff;
use crate::transport::MpiTransport;

/// This rank's node, its edges and, on top, the policy.
#[derive(Debug)]
pub struct Tree {
    node: Node,
    policy: Option<Policy>,
    /// Decision from when on windows follow steps, on top, where they are to.
    finder: Option<StepFinder>,
    transport: Option<MpiTransport>,
    /// Memory for the summary of a window of this rank.
    summary: Summary,
    parent: Option<Rank>,
    children: Vec<Rank>,
    /// Update and first window of the directive that this rank has.
    applied: Option<(u64, WindowId)>,
    /// First window of the announcement of the program's steps that this rank has.
    announced: Option<WindowId>,
    finished: bool,
}

impl Tree {
    /// The tree as seen from `rank`; `transport` is `None` where MPI refused one.
    pub fn new(plan: &Plan, rank: Rank, transport: impl FnOnce(&Node) -> Option<MpiTransport>) -> Self {
        let node = Node::new(plan, rank);
        let parent = node.parent();
        let policy = parent.is_none().then(|| {
            let mut policy = Policy::new(plan);
            policy.first_directive();
            policy
        });
        let finder = StepFinder::new(plan).filter(|_| parent.is_none());
        let transport = transport(&node);
        let children = node.children().collect();
        let summary = Summary::empty(plan);
        Self {
            parent,
            children,
            policy,
            finder,
            transport,
            summary,
            node,
            applied: None,
            announced: None,
            finished: false,
        }
    }

    /// Most windows that gather, as in [`Node::gathers`].
    pub fn gathers(&self) -> Option<usize> {
        self.node.gathers()
    }

    /// Sends this rank's windows, takes what has arrived, sends what can be sent. Never waits.
    ///
    /// Returns true if anything was on its way.
    pub fn progress(&mut self, thread: &mut Thread) -> bool {
        self.node.name_steps(thread.shared().named_steps());
        while let Some(closed) = thread.shared().take_closed() {
            match closed.measured {
                true => {
                    fill(&mut self.summary, &closed);
                    self.node.local(closed.window, closed.last, &self.summary);
                }
                false => self.node.local_unmeasured(closed.window, closed.last),
            }
        }
        self.exchange(Some(thread)).unwrap_or_else(|_| {
            // The job goes on without the tree; journals and the directive in force stay.
            self.give_up();
            thread.shared().journal.count_failure();
            false
        })
    }

    fn give_up(&mut self) {
        if let Some(transport) = self.transport.take() {
            transport.announce_departure();
        }
    }

    /// `thread` is the one whose journal takes decisions and whose draws follow directives; `None` on a rank whose
    /// agent has ended early, which still does its part for the others.
    fn exchange(&mut self, mut thread: Option<&mut Thread>) -> Result<bool, TransportError> {
        self.node.tick(crate::clock::monotonic_ns() as u64);
        let mut moved = self.receive()?;
        self.decide(thread.as_deref_mut());
        moved |= self.send()?;
        let Some(thread) = thread else { return Ok(moved) };
        let known = self.announced;
        if let Some(marker) = self.node.announced().filter(|new| Some(new.window) > known).cloned() {
            self.announced = Some(marker.window);
            thread.shared().announce_steps(marker, crate::hot_state::now());
        }
        while let Some(WindowDecision { window, keep }) = self.node.next_judged() {
            thread.judged(window, keep);
        }
        let next = thread.shared().window().next();
        let number = |directive: &Directive| Some((directive.update, directive.first_window));
        let applied = self.applied;
        if let Some(directive) = self.node.directive(next).filter(|new| number(new) != applied) {
            self.applied = number(directive);
            thread.shared().direct(directive.clone());
        }
        thread.draw_late();
        Ok(moved)
    }

    fn receive(&mut self) -> Result<bool, TransportError> {
        let Some(transport) = &mut self.transport else { return Ok(false) };
        let (node, parent) = (&mut self.node, self.parent);
        let mut broken = None;
        let moved = transport.receive(&mut |from, bytes| {
            let taken =
                if Some(from) == parent { node.receive_down(bytes) } else { node.take_up(from, bytes) };
            if let Err(error) = taken {
                broken = Some(TransportError(format!("{error:?}")));
            }
        })?;
        // Many come at a time.
        self.node.advance();
        broken.map_or(Ok(moved), Err)
    }

    /// On top of the tree: asks the policy about every window that is complete.
    fn decide(&mut self, mut thread: Option<&mut Thread>) {
        let Some(policy) = &mut self.policy else { return };
        while let Some(census) = self.node.next_census() {
            if let Some(marker) = self.finder.as_mut().and_then(|finder| finder.end_window(&census)) {
                self.node.announce(marker);
            }
            let decided = policy.end_window(&census);
            while let Some(reference) = policy.reference() {
                self.node.refer(reference);
            }
            if let Some((directive, decisions)) = decided {
                if let Some(thread) = thread.as_deref_mut() {
                    record(thread, &decisions);
                }
                self.node.direct(directive);
            }
        }
        while let Some(binned) = self.node.next_binned() {
            if let Some((decision, decisions)) = policy.judge(&binned) {
                if let Some(thread) = thread.as_deref_mut() {
                    record(thread, &decisions);
                }
                self.node.judge(&decision);
            }
        }
    }

    fn send(&mut self) -> Result<bool, TransportError> {
        let Some(transport) = &mut self.transport else { return Ok(false) };
        if let Some(parent) = self.parent {
            while transport.is_free(parent)?
                && let Some(message) = self.node.next_up()
            {
                transport.send(parent, message)?;
            }
        }
        for &child in &self.children {
            while transport.is_free(child)?
                && let Some(message) = self.node.next_down(child)
            {
                transport.send(child, message)?;
            }
        }
        transport.flush()
    }

    /// Ends this rank's reports: no window follows.
    pub fn finish(&mut self, thread: &mut Thread) {
        self.progress(thread);
        if let Some(naming) = self.finder.as_ref().and_then(StepFinder::unannounced) {
            record_unannounced(thread, naming);
        }
        self.node.local_finished();
        self.finished = true;
    }

    /// Waits until every rank has finished and everything reported has arrived.
    ///
    /// # Errors
    /// [`TransportError`] when the transport is broken or nothing moves any more.
    pub fn drain(&mut self, mut thread: Option<&mut Thread>) -> Result<(), TransportError> {
        if !self.finished {
            self.node.local_finished(); // the agent ended before the job did
        }
        let mut backoff = Backoff::for_running_ranks();
        while !self.node.closed() {
            let alone = self.parent.is_none() && self.children.is_empty();
            if self.transport.is_none() && !alone {
                return Err(TransportError("it was given up during the run".into()));
            }
            if let Some(gone) = self.transport.as_ref().and_then(MpiTransport::lost) {
                // Its part will not come, so that the parts cannot be joined.
                return Err(TransportError(format!("rank {} takes no further part", gone.0)));
            }
            if self.exchange(thread.as_deref_mut())? {
                backoff.reset();
            } else {
                backoff.pause()?;
            }
        }
        // The last messages may still be on their way; their memory must stay until then.
        if let Some(transport) = &mut self.transport {
            for peer in self.children.iter().copied().chain(self.parent) {
                while !transport.is_free(peer)? {
                    // All messages with news are taken: later ones repeat them.
                    transport.receive(&mut |_, _| {})?;
                    if transport.lost().is_some() {
                        break;
                    }
                    backoff.pause()?;
                }
            }
        }
        Ok(())
    }

    /// Takes the edges down: `drained`: nothing is under way on them.
    pub fn close(&mut self, drained: bool) {
        match self.transport.take() {
            Some(transport) if drained => transport.close(),
            Some(transport) => transport.announce_departure(),
            None => {}
        }
    }
}

/// Writes decisions into the client's journal.
pub fn record(thread: &mut Thread, decisions: &[Decision]) {
    for decision in decisions {
        if let Ok(text) = serde_json::to_string(decision) {
            thread.text(TEXT_DECISION, &text);
        }
    }
}

/// Writes into the client's journal that windows do not follow steps.
fn record_unannounced(thread: &mut Thread, Naming { reported, naming, agreeing }: Naming) {
    let record = TimestepRecord::Unannounced(UnannouncedSteps { reported, naming, agreeing });
    if let Ok(text) = serde_json::to_string(&record) {
        thread.text(TEXT_TIMESTEP, &text);
    }
}

/// Makes `summary` that of a window.
fn fill(summary: &mut Summary, closed: &ClosedWindow) {
    let metric = |cell: &ampl_trace::cells::Cell| MetricSummary {
        n: cell.n as u64,
        sum: cell.sum,
        sum_sq: cell.sum_sq,
        min: if cell.n > 0.0 { cell.min } else { f64::INFINITY },
        max: if cell.n > 0.0 { cell.max } else { f64::NEG_INFINITY },
    };
    summary.metrics.clear();
    summary.metrics.extend(closed.cells.iter().map(metric));
    summary.kept = closed.keep.kept;
    summary.probability = closed.keep.probability;
    summary.bytes = closed.bytes;
    summary.spent = closed.spent;
}
