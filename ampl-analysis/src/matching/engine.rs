//! Plays the calls of all ranks, each until it needs another rank's call.

use std::collections::VecDeque;

use ampl_trace::communicators::{Communicators, Follower};
use ampl_trace::decode::Timed;
use ampl_trace::steps::{Step, Steps};
use ampl_trace::structure::Signature;
use rustc_hash::{FxHashMap, FxHashSet};

use super::acts::{Act, Terminal, gap_matters, terminals};
use super::ahead::{Ahead, is_needed};
use super::comms::{Joined, Table};
use super::instances::Instances;
use super::operations::{Channel, Operations, State};
use super::requests::{Pending, Requests};
use super::threads::contested;
use super::{At, Leak, Lost, Outcome, Source, Stop, Stuck, Visitor, Waiting};
use crate::calls::Objects;
use crate::messages::Comm;

/// Calls of a thread before it is another's turn.
const SLICE: u32 = 512;
/// Most ranks that are matched: a damaged file must not ask for memory.
const MOST_RANKS: u32 = 1 << 22;
/// Communication of a thread without a counterpart at which it waits until the others come after it.
const LEAD: u32 = 1 << 12;

/// State of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It is queued, or it is its turn.
    Queued,
    /// It needs another's call.
    Blocked,
    /// It is far ahead.
    Ahead,
    /// It has no more calls.
    Ended,
}

/// A thread.
pub(super) struct Actor<'a, S> {
    pub source: usize,
    pub rank: u32,
    pub thread: u32,
    pub terminals: &'a [Terminal],
    pub contested: &'a [bool],
    signatures: &'a [Signature],
    steps: Steps<'a>,
    /// Calls of a run that are left: number, terminal, how many.
    run: (u64, u32, u64),
    pub follower: Follower<'a>,
    /// Number of changes of names of communicators.
    pub epoch: u64,
    /// Communicator of each terminal, as of an epoch.
    pub joined: Vec<(u64, Option<usize>)>,
    pub ahead: Option<Ahead<'a>>,
    /// Communication that the call under way waits for.
    pub waits: Vec<(Pending, At)>,
    pub progress: Progress,
    pub outstanding: u32,
    pub stamp: Option<S>,
}

/// All threads, and what is under way between them.
pub(super) struct Engine<'a, V: Visitor> {
    pub ranks: u32,
    pub visitor: &'a mut V,
    pub actors: Vec<Actor<'a, V::Stamp>>,
    pub table: Table<'a>,
    pub comms: Vec<Joined<'a>>,
    /// Place in `comms` by number.
    pub places: FxHashMap<u32, usize>,
    pub ops: Operations<V::Stamp>,
    pub waiters: FxHashMap<u32, u32>,
    pub instances: Instances<V::Stamp>,
    pub requests: Vec<Requests>,
    pub lost: Vec<bool>,
    pub lost_ranks: Vec<u32>,
    /// Ranks that use communicators which are not known.
    pub unclear: Vec<bool>,
    pub stopped_comms: FxHashSet<u32>,
    pub parts: FxHashMap<(Channel, bool), u32>,
    pub queue: VecDeque<u32>,
    pub limit: u32,
    pub stops: FxHashMap<Stop, u64>,
    pub outcome: Outcome<V::Stamp>,
}

/// Matches the calls of a job of `ranks` ranks, of which `sources` left something; `visitor` is passed what is matched.
pub fn play<V: Visitor>(
    ranks: u32,
    sources: &[Source<'_>],
    comms: &Communicators,
    visitor: &mut V,
) -> Outcome<V::Stamp> {
    let ranks = ranks.min(MOST_RANKS);
    let read = |source: &Source<'_>| -> Vec<Vec<Terminal>> {
        let mut objects = Objects::of(source.structure, ranks);
        source.structure.threads.iter().map(|thread| terminals(thread, &mut objects)).collect()
    };
    let all: Vec<Vec<Vec<Terminal>>> = sources.iter().map(read).collect();
    let contested: Vec<Vec<Vec<bool>>> = all.iter().map(|threads| contested(threads)).collect();
    let mut engine = Engine {
        ranks,
        visitor,
        actors: Vec::new(),
        table: Table::new(comms, ranks),
        comms: Vec::new(),
        places: FxHashMap::default(),
        ops: Operations::default(),
        waiters: FxHashMap::default(),
        instances: Instances::default(),
        requests: vec![Requests::default(); sources.len()],
        lost: vec![true; ranks as usize],
        lost_ranks: Vec::new(),
        unclear: vec![false; ranks as usize],
        stopped_comms: FxHashSet::default(),
        parts: FxHashMap::default(),
        queue: VecDeque::new(),
        limit: LEAD,
        stops: FxHashMap::default(),
        outcome: Outcome::default(),
    };
    for (number, source) in sources.iter().enumerate() {
        let rank = source.structure.rank;
        if rank >= ranks {
            continue;
        }
        for (index, thread) in source.structure.threads.iter().enumerate() {
            let timed = engine.visitor.wants_times();
            let Some(steps) = Steps::new(source.structure, index, source.trace, timed) else { continue };
            let terminals = &all[number][index][..];
            let ahead =
                is_needed(terminals).then(|| Steps::new(source.structure, index, source.trace, false));
            let mut follower = comms.follow(rank);
            follower.thread(thread.thread);
            engine.queue.push_back(engine.actors.len() as u32);
            engine.actors.push(Actor {
                source: number,
                rank,
                thread: thread.thread,
                terminals,
                contested: &contested[number][index],
                signatures: &thread.signatures,
                steps,
                run: (0, 0, 0),
                follower,
                epoch: 1,
                joined: vec![(0, None); terminals.len()],
                ahead: ahead.flatten().map(Ahead::new),
                waits: Vec::new(),
                progress: Progress::Queued,
                outstanding: 0,
                stamp: None,
            });
            if let Some(lost) = engine.lost.get_mut(rank as usize) {
                *lost = false;
            }
        }
    }
    for (rank, lost) in (0..).zip(&engine.lost) {
        if *lost {
            engine.lost_ranks.push(rank);
            engine.outcome.lost.push((rank, 0, Lost::Missing));
        }
    }
    engine.run();
    engine.outcome.comms = engine.table.met();
    engine.finish_all()
}

impl<V: Visitor> Engine<'_, V> {
    fn run(&mut self) {
        loop {
            while let Some(actor) = self.queue.pop_front() {
                self.turn(actor);
            }
            let ahead: Vec<u32> = self.numbers(Progress::Ahead);
            if !ahead.is_empty() {
                self.limit = self.limit.saturating_mul(2);
                for actor in ahead {
                    self.actors[actor as usize].progress = Progress::Queued;
                    self.queue.push_back(actor);
                }
                continue;
            }
            if !self.release() {
                return;
            }
        }
    }

    fn numbers(&self, progress: Progress) -> Vec<u32> {
        let of = (0..).zip(&self.actors).filter(|(_, actor)| actor.progress == progress);
        of.map(|(number, _)| number).collect()
    }

    /// Queues a thread that may go on.
    pub fn wake(&mut self, number: u32) {
        let actor = &mut self.actors[number as usize];
        if matches!(actor.progress, Progress::Blocked | Progress::Ahead) {
            actor.progress = Progress::Queued;
            self.queue.push_back(number);
        }
    }

    fn turn(&mut self, number: u32) {
        if self.actors[number as usize].progress == Progress::Ended {
            return;
        }
        for _ in 0..SLICE {
            if !self.go_on(number) {
                self.actors[number as usize].progress = Progress::Blocked;
                return;
            }
            if self.actors[number as usize].outstanding > self.limit {
                self.actors[number as usize].progress = Progress::Ahead;
                return;
            }
            if !self.step(number) {
                self.end(number);
                return;
            }
        }
        self.queue.push_back(number);
    }

    /// Makes the next call of a thread; false at its end.
    fn step(&mut self, number: u32) -> bool {
        let actor = &mut self.actors[number as usize];
        if actor.progress == Progress::Ended {
            return false;
        }
        let mut time: Option<Timed> = None;
        if actor.run.2 == 0 {
            match actor.steps.next() {
                None => return false,
                Some(Step::Gap(gap)) => {
                    actor.epoch += 1;
                    if let Some(signature) =
                        actor.signatures.iter().find(|own| own.function == ampl_trace::record::GAP)
                    {
                        actor.follower.made(signature);
                    }
                    if gap_matters(&gap) {
                        let rank = actor.rank;
                        self.lose(rank, gap.seq, Lost::Gap);
                        return false;
                    }
                    return true;
                }
                Some(Step::Calls { seq, terminal, count, time: stored }) => {
                    actor.run = (seq, terminal, count);
                    time = stored.map(|(window, time)| Timed {
                        window,
                        start_ns: time.start_ns,
                        duration_ns: Some(time.duration_ns),
                    });
                }
            }
        }
        let (seq, terminal, left) = actor.run;
        let (of, signature) = (&actor.terminals[terminal as usize], &actor.signatures[terminal as usize]);
        let at = At { rank: actor.rank, thread: actor.thread, seq, terminal, timed: time };
        if of.names {
            actor.follower.made(signature);
            actor.epoch += 1;
        }
        let count = if of.act == Act::Nothing && !of.names { left } else { 1 };
        actor.run = (seq.saturating_add(count), terminal, left - count);
        let stamp = self.visitor.enter(number, &at, count, of);
        self.actors[number as usize].stamp = Some(stamp);
        let goes_on = self.act(number, &at, &of.act);
        let actor = &mut self.actors[number as usize];
        if of.names {
            actor.follower.freed(signature);
            actor.epoch += 1;
        }
        goes_on
    }

    /// Ends a thread; without `MPI_Finalize` its rank is lost once all of its threads have ended.
    fn end(&mut self, number: u32) {
        let actor = &mut self.actors[number as usize];
        actor.progress = Progress::Ended;
        let rank = actor.rank;
        let (seq, source) = (actor.run.0, actor.source);
        // Threads of a rank follow each other.
        let first = self.actors.partition_point(|actor| actor.source < source);
        let threads = self.actors[first..].iter().take_while(|actor| actor.source == source);
        let mut finalizes = false;
        for other in threads {
            if other.progress != Progress::Ended {
                return;
            }
            finalizes |= other.terminals.iter().any(|terminal| terminal.act == Act::Finalize);
        }
        if !finalizes && !self.lost[rank as usize] {
            self.lose(rank, seq, Lost::End);
        }
    }

    /// Gives up a rank: what it does from now on is not known.
    pub fn lose(&mut self, rank: u32, seq: u64, reason: Lost) {
        let Some(lost) = self.lost.get_mut(rank as usize).filter(|lost| !**lost) else { return };
        *lost = true;
        self.lost_ranks.push(rank);
        self.outcome.lost.push((rank, seq, reason));
        for number in 0..self.actors.len() as u32 {
            let actor = &mut self.actors[number as usize];
            if actor.rank == rank {
                actor.progress = Progress::Ended;
                actor.waits.clear();
            }
        }
        let waiting = self.ops.lose(rank);
        self.give_up(waiting, Stop::Rank);
        let open: Vec<u32> = self.instances.incomplete().map(|(id, _)| id).collect();
        for id in open {
            self.settle(id, true);
        }
    }

    /// Lets go those that wait for what never comes; false where nobody waits.
    fn release(&mut self) -> bool {
        let blocked = self.numbers(Progress::Blocked);
        let (mut released, mut any) = (Vec::new(), false);
        for &number in &blocked {
            let waits = self.actors[number as usize].waits.clone();
            for (pending, at) in waits {
                let Pending::Op(op) = pending else { continue };
                if !self.ops.is_open(op) {
                    continue;
                }
                let half = &self.ops.get(op).half;
                let (channel, receives, posted) = (half.channel, half.receives, half.posted);
                if self.is_clear(channel) {
                    self.outcome.stuck.push(Stuck { at, on: Waiting::Message { channel, receives, posted } });
                }
                released.push(channel);
            }
        }
        for channel in released {
            any = true;
            let waiting = self.ops.stop(channel);
            self.give_up(waiting, Stop::Contradiction);
        }
        if any {
            return true;
        }
        let mut stuck: Vec<u32> = Vec::new();
        for &number in &blocked {
            let waits = self.actors[number as usize].waits.clone();
            for (pending, at) in waits {
                let Pending::Instance(id, _) = pending else { continue };
                let instance = self.instances.get(id);
                if instance.complete {
                    continue;
                }
                let comm = instance.key.0;
                if !stuck.contains(&id) {
                    stuck.push(id);
                }
                let joined = self.comms[self.places[&comm]];
                let absent =
                    |&rank: &u32| joined.has(rank) && !instance.has(rank) && !self.lost[rank as usize];
                let missing: Vec<u32> = (0..self.ranks).filter(absent).collect();
                if missing.iter().all(|&rank| !self.unclear[rank as usize]) {
                    self.outcome.stuck.push(Stuck { at, on: Waiting::Collective { comm, missing } });
                }
            }
        }
        for &id in &stuck {
            let comm = self.instances.get(id).key.0;
            self.stop_comm(comm, Stop::Contradiction);
        }
        if stuck.is_empty() {
            // Nothing explains them: they go on.
            for &number in &blocked {
                self.actors[number as usize].waits.clear();
                self.wake(number);
            }
        }
        !blocked.is_empty()
    }

    /// True unless a rank of the channel uses communicators that are not known, and this may be one of them.
    fn is_clear(&self, channel: Channel) -> bool {
        let comm = self.comms[self.places[&channel.comm]].comm();
        let unclear = self.unclear[channel.from as usize] || self.unclear[channel.to as usize];
        !unclear || !matches!(comm, Comm::Made(_))
    }

    /// Puts what is left into the outcome.
    fn finish_all(mut self) -> Outcome<V::Stamp> {
        for op in self.ops.iter().filter(|op| op.state == State::Open) {
            let channel = op.half.channel;
            let known = |rank: u32| !self.lost[rank as usize];
            if known(channel.from) && known(channel.to) && self.is_clear(channel) {
                self.outcome.unmatched.push(op.half.clone());
            }
        }
        self.outcome.unmatched.sort_by_key(|half| (half.posted.rank, half.posted.thread, half.posted.seq));
        for (number, requests) in self.requests.iter().enumerate() {
            let rank = self.actors.iter().find(|actor| actor.source == number).map(|actor| actor.rank);
            if rank.is_none_or(|rank| self.lost[rank as usize]) {
                continue;
            }
            let leak =
                |request: &super::requests::Request| Leak { made: request.made, inactive: !request.active };
            self.outcome.leaks.extend(requests.values().map(leak));
        }
        self.outcome.leaks.sort_by_key(|leak| (leak.made.rank, leak.made.thread, leak.made.seq));
        self.outcome.lost.sort_unstable();
        self.outcome.stopped = self.stops.into_iter().collect();
        self.outcome.stopped.sort_unstable();
        self.outcome
    }
}
