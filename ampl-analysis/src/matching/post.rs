//! Communication that a call begins: its communicator, its channel, its counterpart.

use super::acts::{Act, Begin, Mode, Receive, Send};
use super::call::Peer;
use super::collectives::{Collective, Needs, Root};
use super::engine::Engine;
use super::instances::{Arrival, InstanceId, Key};
use super::operations::{Channel, Half, OpId, State};
use super::requests::{Pending, Prepared};
use super::{At, Stop, Visitor};

/// Origin of communication: the thread and terminal that have its arguments, and its request's state.
#[derive(Clone, Copy)]
pub(super) struct Origin {
    /// Thread.
    pub actor: u32,
    /// Terminal.
    pub terminal: u32,
    /// Place of its communicator, where it has been found before.
    pub comm: Option<Option<usize>>,
    /// Of a persistent collective or a partitioned message one more than its constructor's ordinal.
    pub ordinal: u64,
    /// Number of the start of a persistent one, from 1.
    pub start: u64,
    /// True where the call that begins it also ends it.
    pub blocking: bool,
}

impl<V: Visitor> Engine<'_, V> {
    /// Place in the list of communicators of the one that a call names.
    fn comm(&mut self, origin: Origin, word: u64) -> Option<usize> {
        if let Some(known) = origin.comm {
            return known;
        }
        let actor = &mut self.actors[origin.actor as usize];
        let (epoch, known) = actor.joined[origin.terminal as usize];
        if epoch == actor.epoch {
            return known;
        }
        let joined = self.table.joined(actor.rank, word, &actor.follower);
        let place = joined.map(|joined| {
            // Two groups name different ranks.
            let known = self.places.get(&joined.number).copied().filter(|_| !joined.is_between());
            known.unwrap_or_else(|| {
                self.comms.push(joined);
                self.places.entry(joined.number).or_insert(self.comms.len() - 1);
                self.comms.len() - 1
            })
        });
        actor.joined[origin.terminal as usize] = (actor.epoch, place);
        place
    }

    /// Begins communication; returns what is under way.
    pub fn begin(&mut self, origin: Origin, at: &At, begin: &Begin) -> Vec<Pending> {
        let told = |engine: &mut Self, receive: &Receive| {
            if origin.blocking || !receive.is_open() {
                return receive.told;
            }
            let actor = &mut engine.actors[origin.actor as usize];
            actor.ahead.as_mut().and_then(|ahead| ahead.next(actor.terminals))
        };
        let pending = match begin {
            Begin::Send(send) | Begin::PartSend(send) => [self.send(origin, at, send), None],
            Begin::Receive(receive) | Begin::PartReceive(receive) => {
                let told = told(self, receive);
                [self.receive(origin, at, receive, told), None]
            }
            Begin::Both(send, receive) => {
                let told = told(self, receive);
                [self.send(origin, at, send), self.receive(origin, at, receive, told)]
            }
            Begin::Collective(own) => {
                let key = |comm: u32, ordinal: u64| match origin.start {
                    0 => (comm, 0, ordinal),
                    start => (comm, origin.ordinal, start),
                };
                let id = self.collective(origin, at, own, key);
                return id.map(|id| Pending::Instance(id, own.needs)).into_iter().collect();
            }
            Begin::Other => [None, None],
        };
        pending.into_iter().flatten().map(Pending::Op).collect()
    }

    /// Prepares persistent communication.
    pub fn prepare(&mut self, origin: Origin, at: &At, begin: &Begin) -> Prepared {
        let mut prepared =
            Prepared { actor: origin.actor, terminal: origin.terminal, comm: None, ordinal: 0, starts: 0 };
        match begin {
            Begin::Send(send) => prepared.comm = self.comm(origin, send.comm),
            Begin::Receive(receive) => prepared.comm = self.comm(origin, receive.comm),
            Begin::PartSend(send) => {
                prepared.comm = self.comm(origin, send.comm);
                let channel = self.channel(at.rank, prepared.comm, send.to, Some(send.tag), true);
                prepared.ordinal = channel.map_or(0, |channel| self.part(channel, false));
            }
            Begin::PartReceive(receive) => {
                prepared.comm = self.comm(origin, receive.comm);
                let channel = self.channel(at.rank, prepared.comm, receive.from, receive.tag, false);
                prepared.ordinal = channel.map_or(0, |channel| self.part(channel, true));
            }
            Begin::Collective(own) => {
                prepared.comm = self.comm(origin, own.comm);
                // Ranks call constructors in one order, too; they wait for nobody.
                let mut number = 0;
                let id = self.collective(origin, at, own, |comm, ordinal| {
                    number = ordinal;
                    (comm, 0, ordinal)
                });
                prepared.ordinal = number + 1;
                if let Some(id) = id {
                    self.instances.leave(id);
                }
            }
            Begin::Both(..) | Begin::Other => {}
        }
        prepared
    }

    fn part(&mut self, channel: Channel, receives: bool) -> u64 {
        let count = self.parts.entry((channel, receives)).or_default();
        *count += 1;
        u64::from(*count)
    }

    /// The channel between `own` and a peer; `None` where it is not known.
    fn channel(
        &self,
        own: u32,
        comm: Option<usize>,
        peer: Peer,
        tag: Option<i64>,
        sends: bool,
    ) -> Option<Channel> {
        let joined = &self.comms[comm?];
        let Peer::Rank(rank) = peer else { return None };
        let other = joined.world(rank)?;
        let (from, to) = if sends { (own, other) } else { (other, own) };
        Some(Channel { from, to, comm: joined.number, tag: tag?, part: 0 })
    }

    fn send(&mut self, origin: Origin, at: &At, send: &Send) -> Option<OpId> {
        if send.to == Peer::Nobody {
            return None;
        }
        let comm = self.comm(origin, send.comm);
        let channel = self.channel(at.rank, comm, send.to, Some(send.tag), true);
        let Some(channel) = channel else {
            return self.unclear(at.rank);
        };
        let half = Half {
            actor: origin.actor,
            posted: *at,
            done: None,
            payload: send.payload,
            mode: send.mode,
            receives: false,
            channel: Channel { part: origin.ordinal as u32, ..channel },
            stamp: self.stamp(origin.actor)?,
        };
        self.post(origin, half)
    }

    /// Posts a receive of a message whose source and tag are `told` where it names none.
    pub fn receive(
        &mut self,
        origin: Origin,
        at: &At,
        receive: &Receive,
        told: Option<(i64, i64)>,
    ) -> Option<OpId> {
        if receive.from == Peer::Nobody {
            return None;
        }
        let comm = self.comm(origin, receive.comm);
        let (from, tag) = match (told, receive.is_open()) {
            (Some((source, tag)), true) => (Peer::Rank(source), Some(tag)),
            (None, true) => {
                // Any of its messages may be in any channel to the rank.
                if let Some(place) = comm {
                    let waiting = self.ops.blind(at.rank, self.comms[place].number);
                    self.give_up(waiting, Stop::Source);
                }
                return self.nowhere(Stop::Source);
            }
            _ => (receive.from, receive.tag),
        };
        let channel = self.channel(at.rank, comm, from, tag, false);
        let Some(channel) = channel else {
            return self.unclear(at.rank);
        };
        let half = Half {
            actor: origin.actor,
            posted: *at,
            done: None,
            payload: receive.payload,
            mode: Mode::Standard,
            receives: true,
            channel: Channel { part: origin.ordinal as u32, ..channel },
            stamp: self.stamp(origin.actor)?,
        };
        self.post(origin, half)
    }

    fn stamp(&self, actor: u32) -> Option<V::Stamp> {
        self.actors[actor as usize].stamp.clone()
    }

    /// A rank uses a communicator that is not known: nothing is said of those that it may be.
    fn unclear(&mut self, rank: u32) -> Option<OpId> {
        self.unclear[rank as usize] = true;
        self.nowhere(Stop::Communicator)
    }

    fn nowhere(&mut self, reason: Stop) -> Option<OpId> {
        *self.stops.entry(reason).or_default() += 1;
        None
    }

    fn post(&mut self, origin: Origin, half: Half<V::Stamp>) -> Option<OpId> {
        let Channel { from, to, .. } = half.channel;
        if self.actors[origin.actor as usize].contested[origin.terminal as usize] {
            let waiting = self.ops.stop(half.channel);
            self.give_up(waiting, Stop::Threads);
        }
        let (actor, channel, receives) = (half.actor, half.channel, half.receives);
        let (op, other) = self.ops.post(half);
        match other {
            Some(other) => {
                self.resolved(other);
                self.emit(other);
            }
            None if self.ops.get(op).state == State::Unknown => {}
            None => {
                self.actors[actor as usize].outstanding += 1;
                let awaited = if receives { from } else { to };
                if self.lost[awaited as usize] {
                    let waiting = self.ops.stop(channel);
                    self.give_up(waiting, Stop::Rank);
                }
            }
        }
        Some(op)
    }

    /// Ends the matching of a communicator's collectives.
    pub fn stop_comm(&mut self, comm: u32, reason: Stop) {
        if !self.stopped_comms.insert(comm) {
            return;
        }
        let open: Vec<InstanceId> =
            self.instances.incomplete().filter(|(_, own)| own.key.0 == comm).map(|(id, _)| id).collect();
        *self.stops.entry(reason).or_default() += open.len() as u64;
        open.into_iter().for_each(|id| self.let_all_go(id));
    }

    fn let_all_go(&mut self, id: InstanceId) {
        let instance = self.instances.get_mut(id);
        let waiting = std::mem::take(&mut instance.waiting);
        let arrived: Vec<u32> = instance.arrivals.iter().map(|arrival| arrival.actor).collect();
        self.instances.complete(id);
        for actor in arrived {
            let own = &mut self.actors[actor as usize];
            own.outstanding = own.outstanding.saturating_sub(1);
            if own.outstanding == self.limit / 2 {
                self.wake(actor);
            }
        }
        waiting.into_iter().for_each(|actor| self.wake(actor));
    }

    /// Completes an instance if nobody else can arrive; `also` where only lost ranks are missing.
    pub fn settle(&mut self, id: InstanceId, also: bool) {
        let instance = self.instances.get(id);
        let comm = instance.key.0;
        let joined = self.comms[self.places[&comm]];
        let mut here = instance.arrivals.len() as u32;
        if here < instance.size && (also || !self.lost_ranks.is_empty()) {
            let absent = |rank: &&u32| joined.has(**rank) && !instance.has(**rank);
            here += self.lost_ranks.iter().filter(absent).count() as u32;
        }
        if here < instance.size {
            return;
        }
        let actors = &self.actors;
        let call = |arrival: &Arrival<V::Stamp>| {
            collective_of(&actors[arrival.actor as usize].terminals[arrival.arguments as usize].act)
        };
        let calls: Vec<&Collective> = instance.arrivals.iter().filter_map(call).collect();
        self.outcome.collectives += 1;
        let goes_on = self.visitor.collective(instance, &calls, &joined);
        self.let_all_go(id);
        if !goes_on {
            self.stop_comm(comm, Stop::Contradiction);
        }
    }

    fn collective(
        &mut self,
        origin: Origin,
        at: &At,
        own: &Collective,
        key: impl FnOnce(u32, u64) -> Key,
    ) -> Option<InstanceId> {
        let place = self.comm(origin, own.comm);
        let Some(place) = place else {
            self.unclear(at.rank);
            return None;
        };
        let joined = self.comms[place];
        if self.actors[origin.actor as usize].contested[origin.terminal as usize] {
            self.stop_comm(joined.number, Stop::Threads);
        }
        if self.stopped_comms.contains(&joined.number) {
            self.nowhere(Stop::Contradiction);
            return None;
        }
        let ordinal = if origin.start == 0 { self.instances.ordinal(at.rank, joined.number) } else { 0 };
        let arrival = Arrival {
            actor: origin.actor,
            at: *at,
            arguments: origin.terminal,
            stamp: self.stamp(origin.actor)?,
            blocking: origin.blocking,
        };
        let id = self.instances.arrive(key(joined.number, ordinal), joined.size(), arrival, V::latest);
        self.actors[origin.actor as usize].outstanding += 1;
        let root = match own.root {
            Some(Root::Rank(root)) => joined.world(root),
            _ => None,
        };
        let instance = self.instances.get_mut(id);
        instance.root = instance.root.or(root);
        if root == Some(at.rank) || own.needs == Needs::Lower {
            let waiting = std::mem::take(&mut instance.waiting);
            waiting.into_iter().for_each(|actor| self.wake(actor));
        }
        self.settle(id, false);
        Some(id)
    }
}

/// The collective that a call begins or prepares.
fn collective_of(act: &Act) -> Option<&Collective> {
    match act {
        Act::Blocking(Begin::Collective(own))
        | Act::Immediate(Begin::Collective(own), _)
        | Act::Prepare(Begin::Collective(own), _) => Some(own),
        _ => None,
    }
}
