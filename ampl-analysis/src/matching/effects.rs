//! Effects of a call: what it begins, waits for and ends.

use super::acts::{Act, Completed, Mode};
use super::collectives::Needs;
use super::engine::Engine;
use super::operations::{OpId, State};
use super::post::Origin;
use super::requests::{Pending, Prepared, Request};
use super::{At, Lost, Stop, Visitor};

impl<V: Visitor> Engine<'_, V> {
    /// Carries out a call; false where the thread ends with it.
    pub fn act(&mut self, number: u32, at: &At, act: &Act) -> bool {
        let source = self.actors[number as usize].source;
        let own = Origin {
            actor: number,
            terminal: at.terminal,
            comm: None,
            ordinal: 0,
            start: 0,
            blocking: matches!(act, Act::Blocking(_)),
        };
        match act {
            Act::Nothing => {}
            Act::Finalize => return false,
            Act::Unknown => {
                self.lose(at.rank, at.seq, Lost::Arguments);
                return false;
            }
            Act::Blocking(begin) => {
                for pending in self.begin(own, at, begin) {
                    self.wait(number, pending, at);
                }
            }
            Act::Immediate(begin, request) => {
                let pending = self.begin(own, at, begin);
                self.insert(source, *request, Request { made: *at, prepared: None, pending, active: true });
            }
            Act::Prepare(begin, request) => {
                let prepared = Some(self.prepare(own, at, begin));
                let pending = Vec::new();
                self.insert(source, *request, Request { made: *at, prepared, pending, active: false });
            }
            Act::Start(requests) => requests.iter().for_each(|&request| self.start(source, request, at)),
            Act::Complete(requests) => requests.iter().for_each(|one| self.complete(number, source, one, at)),
            Act::Take(receive) => {
                if let Some(op) = self.receive(own, at, receive, receive.told) {
                    self.wait(number, Pending::Op(op), at);
                }
            }
            Act::TakeInto(request) => {
                let pending = Vec::new();
                self.insert(source, *request, Request { made: *at, prepared: None, pending, active: true });
            }
            Act::Free(request) => {
                if let Some(freed) = self.requests[source].remove(request) {
                    freed.pending.into_iter().for_each(|pending| self.leave(pending, None));
                }
            }
            Act::Cancel(request) => {
                let pending = self.requests[source].get(request).map(|own| own.pending.clone());
                for pending in pending.unwrap_or_default() {
                    if let Pending::Op(op) = pending {
                        self.cancel(op);
                    }
                }
            }
        }
        true
    }

    fn insert(&mut self, source: usize, number: u64, request: Request) {
        if let Some(before) = self.requests[source].insert(number, request) {
            before.pending.into_iter().for_each(|pending| self.leave(pending, None));
        }
    }

    fn start(&mut self, source: usize, number: u64, at: &At) {
        let Some(request) = self.requests[source].get_mut(&number) else { return };
        let Some(prepared) = &mut request.prepared else { return };
        prepared.starts += 1;
        let Prepared { actor, terminal, comm, ordinal, starts } = *prepared;
        let begin = match &self.actors[actor as usize].terminals[terminal as usize].act {
            Act::Prepare(begin, _) => begin,
            _ => return,
        };
        let origin = Origin { actor, terminal, comm: Some(comm), ordinal, start: starts, blocking: false };
        let begun = self.begin(origin, at, begin);
        if let Some(request) = self.requests[source].get_mut(&number) {
            let before = std::mem::replace(&mut request.pending, begun);
            request.active = true;
            before.into_iter().for_each(|pending| self.leave(pending, None));
        }
    }

    fn complete(&mut self, number: u32, source: usize, one: &Completed, at: &At) {
        let Some(request) = self.requests[source].get_mut(&one.request) else { return };
        request.active = false;
        let pending = std::mem::take(&mut request.pending);
        if request.prepared.is_none() {
            self.requests[source].remove(&one.request);
        }
        pending.into_iter().for_each(|pending| self.wait(number, pending, at));
    }

    /// The thread waits for `pending`, or goes on where it need not wait.
    fn wait(&mut self, number: u32, pending: Pending, at: &At) {
        if let Pending::Op(op) = pending {
            let half = &self.ops.get(op).half;
            if !half.receives && half.mode != Mode::Synchronous {
                self.leave(pending, Some(*at));
                return;
            }
        }
        self.actors[number as usize].waits.push((pending, *at));
    }

    /// True where the thread waits for nothing any more.
    pub fn go_on(&mut self, number: u32) -> bool {
        if self.actors[number as usize].waits.is_empty() {
            return true;
        }
        let waits = std::mem::take(&mut self.actors[number as usize].waits);
        let open = waits.iter().position(|(pending, _)| !self.lets_go(number, *pending));
        if let Some(open) = open {
            match waits[open].0 {
                Pending::Op(op) => {
                    self.waiters.insert(op, number);
                }
                Pending::Instance(id, _) => {
                    let waiting = &mut self.instances.get_mut(id).waiting;
                    if !waiting.contains(&number) {
                        waiting.push(number);
                    }
                }
            }
            self.actors[number as usize].waits = waits;
            return false;
        }
        for (pending, at) in waits {
            self.join(number, pending, &at);
            self.leave(pending, Some(at));
        }
        true
    }

    fn lets_go(&self, number: u32, pending: Pending) -> bool {
        match pending {
            Pending::Op(op) => !self.ops.is_open(op),
            Pending::Instance(id, needs) => {
                let instance = self.instances.get(id);
                let joined = &self.comms[self.places[&instance.key.0]];
                let lower = |own: u32| {
                    let place = joined.place(own).unwrap_or(0);
                    (0..place).all(|below| {
                        let world = joined.world(below.into());
                        world.is_none_or(|world| instance.has(world) || self.lost[world as usize])
                    })
                };
                let own = self.actors[number as usize].rank;
                instance.lets_go(own, needs, lower, &self.lost)
            }
        }
    }

    /// Passes on the stamps that the thread has waited for.
    fn join(&mut self, number: u32, pending: Pending, at: &At) {
        match pending {
            Pending::Op(op) => {
                if let State::Matched(other) = self.ops.get(op).state {
                    let (own, other) = (&self.ops.get(op).half, &self.ops.get(other).half);
                    self.visitor.completed(own, other, at);
                    self.visitor.join(number, &other.stamp);
                }
            }
            Pending::Instance(id, needs) => {
                let own = self.actors[number as usize].rank;
                let instance = self.instances.get(id);
                let root = instance.root;
                self.visitor.ended(number, at, instance, needs);
                match needs {
                    Needs::All => self.visitor.join(number, &instance.latest),
                    Needs::RootNeedsAll if root == Some(own) => self.visitor.join(number, &instance.latest),
                    Needs::Root if root != Some(own) => {
                        let of = instance.arrivals.iter().find(|arrival| Some(arrival.at.rank) == root);
                        if let Some(arrival) = of {
                            self.visitor.join(number, &arrival.stamp);
                        }
                    }
                    Needs::Lower => {
                        let joined = &self.comms[self.places[&instance.key.0]];
                        let place = joined.place(own);
                        for arrival in &instance.arrivals {
                            if joined.place(arrival.at.rank) < place {
                                self.visitor.join(number, &arrival.stamp);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// The program names it no more: `done` has completed it.
    fn leave(&mut self, pending: Pending, done: Option<At>) {
        match pending {
            Pending::Op(op) => {
                let own = self.ops.get_mut(op);
                (own.finished, own.half.done) = (true, done);
                self.emit(op);
            }
            Pending::Instance(id, _) => self.instances.leave(id),
        }
    }

    /// Passes on a message both of whose sides have ended, and forgets it.
    pub fn emit(&mut self, op: OpId) {
        let own = self.ops.get(op);
        match own.state {
            State::Unknown if own.finished => {
                self.ops.remove(op);
            }
            State::Matched(other) if own.finished && self.ops.get(other).finished => {
                let pair = (self.ops.remove(op), self.ops.remove(other));
                if let (Some(one), Some(two)) = pair {
                    let (send, receive) =
                        if one.half.receives { (two.half, one.half) } else { (one.half, two.half) };
                    self.outcome.messages += 1;
                    self.visitor.message(&send, &receive);
                }
            }
            _ => {}
        }
    }

    /// Operations that have no counterpart that can be known.
    pub fn give_up(&mut self, ops: Vec<OpId>, reason: Stop) {
        *self.stops.entry(reason).or_default() += ops.len() as u64;
        for op in ops {
            self.resolved(op);
            self.emit(op);
        }
    }

    /// The operation has its counterpart, or will have none.
    pub fn resolved(&mut self, op: OpId) {
        let actor = self.ops.get(op).half.actor;
        let own = &mut self.actors[actor as usize];
        own.outstanding = own.outstanding.saturating_sub(1);
        if own.outstanding == self.limit / 2 {
            self.wake(actor);
        }
        if let Some(waiter) = self.waiters.remove(&op) {
            self.wake(waiter);
        }
    }

    fn cancel(&mut self, op: OpId) {
        let own = self.ops.get(op);
        let channel = own.half.channel;
        if let State::Matched(other) = own.state {
            self.ops.get_mut(op).state = State::Unknown;
            self.ops.get_mut(other).state = State::Unknown;
            *self.stops.entry(Stop::Cancelled).or_default() += 2;
            self.emit(other);
        }
        let waiting = self.ops.stop(channel);
        self.give_up(waiting, Stop::Cancelled);
    }
}
