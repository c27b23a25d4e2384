//! A run as actions of its ranks, for simulators: computing, messages with the receiver that they had, collectives.
//!
//! Messages are matched, so each has a tag of its own between its two ranks, and no receive is from any source.
//! Collectives of all ranks may stay; others are messages in a pattern that waits for the same ranks.

mod expanded;

use std::collections::BTreeMap;

use ampl_core::mpi::{Class, Kind};
use ampl_trace::Trace;
use ampl_trace::communicators::Communicators;
use rustc_hash::FxHashMap;

use crate::ideal_network::compute::{Compute, Gaps};
use crate::matching::{
    At, Collective, Half, Instance, Job, Joined, Lost, Mode, Needs, Root, Terminal, Visitor, play,
};
use crate::waits::places::Places;

/// An end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The other rank.
    pub peer: u32,
    /// Number of the message among those from the one to the other.
    pub tag: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A collective that simulators have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// A wait of all for all.
    Barrier,
    /// From the root to all.
    Bcast,
    /// From all to the root, summed.
    Reduce,
    /// From all to all, summed.
    Allreduce,
    /// From each to each.
    Alltoall,
    /// From each to all.
    Allgather,
    /// From all to the root.
    Gather,
    /// From the root to each.
    Scatter,
}

/// A collective of all ranks of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Together {
    /// The collective.
    pub function: Function,
    /// The root; 0 where there is none.
    pub root: u32,
    /// Bytes of a block that is sent.
    pub sends: u64,
    /// Bytes of a block that is received.
    pub receives: u64,
}

/// One action of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Computing, nanoseconds.
    Compute(u64),
    /// A send begins.
    BeginSend(End),
    /// A receive begins.
    BeginReceive(End),
    /// Waits for the end of a send.
    EndSend(End),
    /// Waits for a message.
    EndReceive(End),
    /// A collective.
    Together(Together),
}

/// Reason for which a run has no actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Calls of these ranks are not all recorded: rank, number of the call, reason.
    NotWhole(Vec<(u32, u64, Lost)>),
    /// Sends, receives and collectives that cannot be matched.
    Unmatched(u64),
    /// Several threads of a rank call MPI.
    Threads,
    /// A function that has no actions.
    Function(&'static str),
    /// A message or a collective of this function whose bytes are not known.
    Bytes(&'static str),
}

/// Actions of all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actions {
    /// Actions of each rank in its order.
    pub ranks: Vec<Vec<Action>>,
    /// Messages of the program's own.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Collectives of the program.
    pub collectives: u64,
    /// Computing that is modelled from the ranks' sums, nanoseconds.
    pub modelled_ns: u64,
}

/// Place of an action among those of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Compute,
    Receives,
    Sends,
    Received,
    Sent,
    Together,
}

/// Actions of the run `trace`; collectives of all ranks stay where `keeps_collectives`.
///
/// # Errors
/// A [`Refusal`] where the actions would not be those of the run.
pub fn actions(trace: &Trace, keeps_collectives: bool) -> Result<Actions, Refusal> {
    let comms = Communicators::of(trace);
    let job = Job::of(trace);
    let sources = job.sources();
    let mut places = Places::new(&sources);
    let compute = Compute::of(trace, &sources, &mut places);
    let mut reader = Reader {
        keeps_collectives,
        places,
        compute,
        gaps: FxHashMap::default(),
        tags: FxHashMap::default(),
        events: vec![Vec::new(); job.ranks as usize],
        actions: Actions::default(),
        refusal: None,
    };
    let outcome = play(job.ranks, &sources, &comms, &mut reader);
    let Reader { events, mut actions, refusal, .. } = reader;
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    if !outcome.lost.is_empty() {
        return Err(Refusal::NotWhole(outcome.lost));
    }
    let stopped: u64 = outcome.stopped.iter().map(|&(_, number)| number).sum();
    let unmatched = stopped + outcome.unmatched.len() as u64 + outcome.stuck.len() as u64;
    if unmatched > 0 {
        return Err(Refusal::Unmatched(unmatched));
    }
    actions.ranks = events
        .into_iter()
        .map(|mut own| {
            // Those of one call keep their order.
            own.sort_by_key(|&(seq, part, _)| (seq, part));
            own.into_iter().map(|(_, _, action)| action).collect()
        })
        .collect();
    Ok(actions)
}

struct Reader<'a> {
    keeps_collectives: bool,
    places: Places<'a>,
    compute: Compute,
    gaps: FxHashMap<u32, Gaps>,
    /// Number of messages from one rank to another.
    tags: FxHashMap<(u32, u32), u32>,
    events: Vec<Vec<(u64, Part, Action)>>,
    actions: Actions,
    refusal: Option<Refusal>,
}

impl Reader<'_> {
    fn add(&mut self, at: &At, part: Part, action: Action) {
        if let Some(own) = self.events.get_mut(at.rank as usize) {
            own.push((at.seq, part, action));
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.refusal.get_or_insert(refusal);
    }

    fn tag(&mut self, from: u32, to: u32) -> u32 {
        let next = self.tags.entry((from, to)).or_default();
        *next += 1;
        *next
    }

    /// The collective as simulators have it; `None` where they lack it.
    fn together(&self, calls: &[&Collective], members: &[u32]) -> Option<Together> {
        let world = members.len() == self.events.len() && members.iter().copied().eq(0..members.len() as u32);
        let first = calls.first().filter(|_| world && self.keeps_collectives)?;
        let function = match first.function.name() {
            "MPI_Barrier" => Function::Barrier,
            "MPI_Bcast" => Function::Bcast,
            "MPI_Reduce" => Function::Reduce,
            "MPI_Allreduce" => Function::Allreduce,
            "MPI_Alltoall" => Function::Alltoall,
            "MPI_Allgather" => Function::Allgather,
            "MPI_Gather" => Function::Gather,
            "MPI_Scatter" => Function::Scatter,
            _ => return None,
        };
        let root = match first.root {
            Some(Root::Rank(root)) => u32::try_from(root).ok()?,
            Some(Root::Group) => return None,
            None => 0,
        };
        if function == Function::Barrier {
            return Some(Together { function, root, sends: 0, receives: 0 });
        }
        // Where one rank's side is in place the others have it.
        let sends = calls.iter().find_map(|call| call.sends.at(0))?;
        let receives = calls.iter().find_map(|call| call.receives.at(0))?;
        Some(Together { function, root, sends, receives })
    }
}

impl Visitor for Reader<'_> {
    type Stamp = ();

    fn wants_times(&self) -> bool {
        true
    }

    fn enter(&mut self, _: u32, at: &At, count: u64, terminal: &Terminal) {
        if at.thread != 0 {
            self.refuse(Refusal::Threads);
        }
        let spec = terminal.function.spec();
        let touches = |kind: Kind| spec.params.iter().any(|param| param.kind == kind);
        if spec.class != Class::Local && (touches(Kind::Win) || touches(Kind::File)) {
            self.refuse(Refusal::Function(spec.name));
        }
        let place = self.places.number(at);
        let gaps = self.gaps.entry(at.rank).or_default();
        let ns = match at.timed {
            Some(timed) => gaps.measured(&self.compute, at, &timed, terminal.function),
            None => {
                let ns = self.compute.modelled(at.rank, place).saturating_mul(count);
                self.actions.modelled_ns += ns;
                ns
            }
        };
        gaps.pass(at);
        if ns > 0 {
            self.add(at, Part::Compute, Action::Compute(ns));
        }
    }

    fn message(&mut self, send: &Half<()>, receive: &Half<()>) {
        if send.mode == Mode::Synchronous {
            self.refuse(Refusal::Function("MPI_Ssend"));
        }
        let (from, to) = (send.posted.rank, receive.posted.rank);
        let Some(bytes) = send.payload.bytes else { return self.refuse(Refusal::Bytes("a send")) };
        let tag = self.tag(from, to);
        self.actions.messages += 1;
        self.actions.bytes = self.actions.bytes.saturating_add(bytes);
        let (sent, received) = (End { peer: to, tag, bytes }, End { peer: from, tag, bytes });
        self.add(&send.posted, Part::Sends, Action::BeginSend(sent));
        self.add(&receive.posted, Part::Receives, Action::BeginReceive(received));
        if let Some(done) = &send.done {
            self.add(done, Part::Sent, Action::EndSend(sent));
        }
        if let Some(done) = &receive.done {
            self.add(done, Part::Received, Action::EndReceive(received));
        }
    }

    fn collective(&mut self, instance: &Instance<()>, calls: &[&Collective], comm: &Joined<'_>) -> bool {
        let Some(first) = calls.first() else { return true };
        let name = first.function.name();
        let waits = instance.arrivals.iter().all(|arrival| arrival.blocking);
        if first.needs == Needs::Others || comm.is_between() || !waits {
            self.refuse(Refusal::Function(name));
            return true;
        }
        self.actions.collectives += 1;
        let mut members = BTreeMap::new();
        for (arrival, call) in instance.arrivals.iter().zip(calls) {
            let Some(place) = comm.place(arrival.at.rank) else { continue };
            members.insert(place, (arrival.at, *call));
        }
        let (ats, calls): (Vec<At>, Vec<&Collective>) = members.into_values().unzip();
        let ranks: Vec<u32> = ats.iter().map(|at| at.rank).collect();
        if let Some(together) = self.together(&calls, &ranks) {
            ats.iter().for_each(|at| self.add(at, Part::Together, Action::Together(together)));
            return true;
        }
        match expanded::messages(&calls) {
            Some(rounds) => rounds.iter().for_each(|round| self.exchange(&ats, round)),
            None => self.refuse(Refusal::Bytes(name)),
        }
        true
    }
}

impl Reader<'_> {
    /// Adds messages between members that begin together, after those before.
    fn exchange(&mut self, ats: &[At], round: &[expanded::Message]) {
        let mut ends = Vec::new();
        for message in round {
            let (from, to) = (&ats[message.from], &ats[message.to]);
            let tag = self.tag(from.rank, to.rank);
            let sent = End { peer: to.rank, tag, bytes: message.bytes };
            let received = End { peer: from.rank, tag, bytes: message.bytes };
            self.add(from, Part::Together, Action::BeginSend(sent));
            self.add(to, Part::Together, Action::BeginReceive(received));
            ends.push((*to, Action::EndReceive(received)));
            ends.push((*from, Action::EndSend(sent)));
        }
        ends.into_iter().for_each(|(at, action)| self.add(&at, Part::Together, action));
    }
}
