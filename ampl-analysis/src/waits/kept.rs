//! Waits between calls whose times are kept.

use std::collections::BTreeMap;

use ampl_core::mpi::{Class, Function};
use ampl_reader::selection::Selection;
use ampl_trace::Trace;
use ampl_trace::decode::Timed;
use ampl_trace::timing::Decoder;
use rustc_hash::{FxHashMap, FxHashSet};

use super::blame::History;
use super::places::{Place, Places};
use super::polls::Row;
use super::{Kind, Matched};
use crate::matching::{
    Arrival, At, Collective, Half, Instance, Joined, Needs, Pairing, Source, Terminal, Visitor,
};

/// Duration of the rank that arrives last, in shortest calls of its function, up to which it is taken for the last
/// although other ranks' times are not kept.
const BARE: u64 = 3;

/// Communicators of a rank whose last common exit is remembered.
const MOST_EXITS: usize = 8;

/// Waits for one rank.
#[derive(Clone, Debug, Default)]
pub struct Cause {
    /// Least time waited for it, nanoseconds.
    pub ns: u64,
    /// Instances in which it is the main cause.
    pub instances: u64,
    /// Instances with the rank on the other side, whether it was late or not.
    pub met: u64,
    /// The same by waiting rank.
    pub waiting: BTreeMap<u32, u64>,
    /// Sum of the delays, nanoseconds.
    pub late_ns: u64,
    /// Sum of the times by which it came before the others, nanoseconds.
    pub early_ns: u64,
    /// Largest error of clocks.
    pub error_ns: u64,
}

/// Waits of one kind at a site.
#[derive(Clone, Debug, Default)]
pub struct Group {
    /// Causes by rank.
    pub causes: BTreeMap<u32, Cause>,
    /// Waits whose cause is not known: its times are not kept.
    pub unknown_ns: u64,
    /// Instances with times of all ranks.
    pub instances: u64,
}

/// Everything observed.
#[derive(Debug, Default)]
pub struct Observed {
    /// Waits by site and kind.
    pub groups: BTreeMap<(usize, Kind), Group>,
    /// Sites.
    pub places: Vec<Place>,
    /// Kept time in calls of each site, nanoseconds.
    pub kept_ns: FxHashMap<usize, u64>,
    /// Roots by site.
    pub roots: FxHashMap<usize, FxHashSet<u32>>,
    /// Senders of the messages that a rank waits for at a site.
    pub senders: FxHashMap<(usize, u32), FxHashSet<u32>>,
    /// Ends of collectives that do not block, where it is not known when all have begun them.
    pub unknown_ends: u64,
    /// Numbers with known times.
    pub matched: Matched,
}

/// A rank's clock and the error of its stored times.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    error_ns: u64,
    /// Relative error of stored times.
    relative: f64,
}

/// State of a thread.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    history: History,
    end_ns: i64,
    /// The longest call or time between calls of late.
    recent_ns: u64,
    /// The longest wait of the call under way: call, sender's history and rank, times.
    waits: Option<Late>,
    /// Failed polls before the call under way.
    pub(super) polls: Row,
}

#[derive(Clone, Debug)]
struct Late {
    /// The call; with polls before it, its time is from the first of them on.
    at: At,
    /// Time in the call and in these polls, nanoseconds: as much of it may be waiting.
    in_calls_ns: u64,
    sender: u32,
    history: History,
    signed_ns: i64,
    error_ns: u64,
}

/// Measures waits while calls are matched.
pub struct Observer<'a> {
    part: &'a Selection,
    places: Places<'a>,
    clocks: FxHashMap<u32, Clock>,
    shortest: FxHashMap<Function, u64>,
    states: Vec<State>,
    /// Start of the last send whose message the second rank received from the first.
    met: FxHashMap<(u32, u32), i64>,
    /// Start of a rank's last collective with a root on a communicator.
    met_all: FxHashMap<(u32, u32), i64>,
    /// Ends of a rank's last collectives that nobody leaves before all have come, by communicator.
    exits: FxHashMap<u32, Vec<(u32, i64)>>,
    pub(super) found: Observed,
}

impl<'a> Observer<'a> {
    /// An observer of the calls of `sources` in `part`.
    pub fn new(trace: &Trace, sources: &[Source<'a>], part: &'a Selection) -> Self {
        let clock = |source: &Source<'_>| {
            let settings = Decoder::new(&source.trace.times).ok().map(|decoder| decoder.settings());
            let clock = source.trace.process.clock;
            let relative = settings.map_or(0.0, |settings| settings.error);
            let floor = settings.map_or(0, |settings| settings.floor_ns);
            let error_ns = clock.map_or(0, |clock| clock.error_ns) + floor;
            (source.structure.rank, Clock { error_ns, relative })
        };
        let mut shortest: FxHashMap<Function, u64> = FxHashMap::default();
        for known in trace.totals.known().filter(|known| known.total.shortest.ns > 0) {
            let least = shortest.entry(Function(known.function)).or_insert(u64::MAX);
            *least = (*least).min(known.total.shortest.ns);
        }
        Self {
            part,
            places: Places::new(sources),
            clocks: sources.iter().map(clock).collect(),
            shortest,
            states: Vec::new(),
            met: FxHashMap::default(),
            met_all: FxHashMap::default(),
            exits: FxHashMap::default(),
            found: Observed::default(),
        }
    }

    /// All that was observed.
    pub fn finish(mut self) -> Observed {
        (0..self.states.len()).for_each(|actor| self.settle(actor));
        Observed { places: self.places.finish(), ..self.found }
    }

    pub(super) fn state(&mut self, actor: u32) -> &mut State {
        let at = actor as usize;
        if self.states.len() <= at {
            self.states.resize(at + 1, State::default());
        }
        &mut self.states[at]
    }

    fn clock(&self, rank: u32) -> Clock {
        self.clocks.get(&rank).copied().unwrap_or_default()
    }

    /// Error of a time of that thread against one of another.
    pub(super) fn error(&self, one: (u32, u32), other: (u32, u32)) -> u64 {
        let of = |(actor, rank): (u32, u32)| {
            let clock = self.clock(rank);
            let recent = self.states.get(actor as usize).map_or(0, |state| state.recent_ns);
            clock.error_ns + (clock.relative * recent as f64) as u64
        };
        if one == other { 0 } else { of(one) + of(other) }
    }

    pub(super) fn takes(&self, rank: u32, timed: &Timed) -> bool {
        self.part.takes_rank(rank) && self.part.takes_time(timed.start_ns, timed.duration_ns)
    }

    fn group(&mut self, at: &At, kind: Kind) -> &mut Group {
        let site = self.places.number(at);
        self.found.groups.entry((site, kind)).or_default()
    }

    /// Counts an instance that had that main cause, whether it has waited or not, and the delay.
    pub(super) fn count(&mut self, at: &At, kind: Kind, cause: u32, waits: bool, signed_ns: i64) {
        let group = self.group(at, kind);
        group.instances += 1;
        let own = group.causes.entry(cause).or_default();
        (own.instances, own.met) = (own.instances + u64::from(waits), own.met + 1);
        match u64::try_from(signed_ns) {
            Ok(late) => own.late_ns += late,
            Err(_) => own.early_ns += signed_ns.unsigned_abs(),
        }
    }

    /// Charges a wait of the call `at` to what delayed `culprit` since `since_ns`. Returns its main cause, and that part.
    pub(super) fn charge(
        &mut self,
        (actor, at): (u32, &At),
        kind: Kind,
        ns: u64,
        error_ns: u64,
        (culprit, history, since_ns): (u32, &History, i64),
    ) -> Option<(u32, u64)> {
        let timed = at.timed?;
        if !self.takes(at.rank, &timed) {
            return None;
        }
        let duration = timed.duration_ns.unwrap_or(0).max(ns);
        let end_ns = timed.start_ns.saturating_add_unsigned(duration);
        let mut causes = history.causes(ns, culprit, since_ns);
        // A rank does not wait for itself: in a ring of waits the one that it waited for last is charged.
        let own: u64 = causes.iter().filter(|(cause, _)| *cause == at.rank).map(|(_, ns)| ns).sum();
        if own > 0 {
            causes.retain(|(cause, _)| *cause != at.rank);
            match causes.iter_mut().find(|(cause, _)| *cause == culprit) {
                Some((_, ns)) => *ns += own,
                None => causes.push((culprit, own)),
            }
        }
        let group = self.group(at, kind);
        for &(cause, ns) in &causes {
            let own = group.causes.entry(cause).or_default();
            own.ns += ns;
            *own.waiting.entry(at.rank).or_default() += ns;
            own.error_ns = own.error_ns.max(error_ns);
        }
        let state = self.state(actor);
        // It is late by the whole call, of which `ns` is what is certain.
        for &(cause, part) in &causes {
            let delay = (u128::from(duration) * u128::from(part) / u128::from(ns.max(1))) as u64;
            state.history.add(cause, delay, end_ns);
        }
        causes.into_iter().max_by_key(|(_, ns)| *ns)
    }

    /// Time since when `culprit` may have come later than `waiting`: they have left a collective together, or it has met
    /// it at `met_ns`. What they waited for there has delayed both.
    pub(super) fn since(&self, culprit: u32, waiting: u32, met_ns: Option<i64>) -> i64 {
        let exits = |rank: u32| self.exits.get(&rank).map_or(&[][..], Vec::as_slice);
        let together = |of: &&(u32, i64)| exits(waiting).iter().any(|other| other.0 == of.0);
        let left = exits(culprit).iter().filter(together).map(|of| of.1).max();
        left.max(met_ns).unwrap_or(i64::MIN)
    }

    /// Notes that `rank` has left a collective of that communicator.
    fn leave(&mut self, rank: u32, comm: u32, end_ns: i64) {
        let own = self.exits.entry(rank).or_default();
        own.retain(|of| of.0 != comm);
        if own.len() == MOST_EXITS {
            own.remove(0);
        }
        own.push((comm, end_ns));
    }

    /// Counts a delay, and the wait of a call for a sender.
    fn settle(&mut self, actor: usize) {
        let Some(late) = self.states[actor].waits.take() else { return };
        let Some(timed) = late.at.timed else { return };
        let met = self.met.get(&(late.sender, late.at.rank)).copied();
        let since = self.since(late.sender, late.at.rank, met);
        let waited = u64::try_from(late.signed_ns).unwrap_or(0).min(late.in_calls_ns);
        let ns = waited.saturating_sub(late.error_ns);
        let mut cause = late.sender;
        if ns > 0 {
            let culprit = (late.sender, &late.history, since);
            let main = self.charge((actor as u32, &late.at), Kind::LateSender, ns, late.error_ns, culprit);
            cause = main.map_or(cause, |(main, _)| main);
        }
        if self.takes(late.at.rank, &timed) {
            self.count(&late.at, Kind::LateSender, cause, ns > 0, late.signed_ns);
        }
        let sent = timed.start_ns.saturating_add(late.signed_ns);
        self.met.insert((late.sender, late.at.rank), sent);
    }

    /// Waits in a collective that no rank leaves before all have entered it.
    fn synchronising(
        &mut self,
        kept: &[(&Arrival<History>, Timed, u64)],
        all: bool,
        function: Function,
        comm: u32,
    ) {
        let Some(&(last, _, least)) = kept.iter().min_by_key(|(_, _, duration)| *duration) else { return };
        let bare =
            self.shortest.get(&function).is_some_and(|&shortest| least <= shortest.saturating_mul(BARE));
        // By the place of those that wait: ranks may make the same call at several places.
        let mut causes: BTreeMap<usize, BTreeMap<u32, u64>> = BTreeMap::new();
        for &(arrival, timed, duration) in kept {
            if arrival.at.rank == last.at.rank {
                continue;
            }
            let (own, others) = (self.clock(arrival.at.rank).relative, self.clock(last.at.rank).relative);
            let ns = (duration as f64 / (1.0 + own) - least as f64 / (1.0 - others)).max(0.0) as u64;
            if ns == 0 || !self.takes(arrival.at.rank, &timed) {
                continue;
            }
            if all || bare {
                let since = self.since(last.at.rank, arrival.at.rank, None);
                let culprit = (last.at.rank, &last.stamp, since);
                let charged = (arrival.actor, &arrival.at);
                let main = self.charge(charged, Kind::LastToArrive, ns, 0, culprit);
                let own = causes.entry(self.places.number(&arrival.at)).or_default();
                main.into_iter().for_each(|(main, ns)| *own.entry(main).or_default() += ns);
            } else {
                self.group(&arrival.at, Kind::LastToArrive).unknown_ns += ns;
            }
        }
        for (place, causes) in causes {
            let group = self.found.groups.entry((place, Kind::LastToArrive)).or_default();
            group.instances += 1;
            let main = causes.into_iter().max_by_key(|(_, ns)| *ns).map_or(last.at.rank, |(main, _)| main);
            let own = group.causes.entry(main).or_default();
            own.instances += 1;
            own.late_ns += 1;
        }
        for (arrival, timed, duration) in kept {
            self.leave(arrival.at.rank, comm, timed.start_ns.saturating_add_unsigned(*duration));
        }
    }

    /// Waits of ranks for a root's data.
    fn for_root(&mut self, kept: &[(&Arrival<History>, Timed, u64)], root: u32, comm: u32) {
        let Some(&(late, sent, _)) = kept.iter().find(|(arrival, ..)| arrival.at.rank == root) else {
            return;
        };
        let met = self.met_all.get(&(root, comm)).copied();
        for &(arrival, timed, duration) in kept.iter().filter(|(arrival, ..)| arrival.at.rank != root) {
            let error = self.error((arrival.actor, arrival.at.rank), (late.actor, root));
            let signed = sent.start_ns.saturating_sub(timed.start_ns);
            let ns = u64::try_from(signed).unwrap_or(0).min(duration).saturating_sub(error);
            let mut cause = root;
            if ns > 0 {
                let culprit = (root, &late.stamp, self.since(root, arrival.at.rank, met));
                let charged = self.charge((arrival.actor, &arrival.at), Kind::LateRoot, ns, error, culprit);
                cause = charged.map_or(root, |(main, _)| main);
            }
            if self.takes(arrival.at.rank, &timed) {
                self.count(&arrival.at, Kind::LateRoot, cause, ns > 0, signed);
            }
        }
        self.met_all.insert((root, comm), sent.start_ns);
    }

    /// Wait of a root for the others' data.
    fn of_root(&mut self, kept: &[(&Arrival<History>, Timed, u64)], root: u32, comm: u32) {
        let Some(&(own, timed, duration)) = kept.iter().find(|(arrival, ..)| arrival.at.rank == root) else {
            return;
        };
        let others = kept.iter().filter(|(arrival, ..)| arrival.at.rank != root);
        let Some(&(last, last_timed, _)) = others.max_by_key(|(_, timed, _)| timed.start_ns) else { return };
        let error = self.error((own.actor, root), (last.actor, last.at.rank));
        let signed = last_timed.start_ns.saturating_sub(timed.start_ns);
        let ns = u64::try_from(signed).unwrap_or(0).min(duration).saturating_sub(error);
        let since = self.since(last.at.rank, root, self.met_all.get(&(last.at.rank, comm)).copied());
        let mut cause = last.at.rank;
        if ns > 0 {
            let culprit = (last.at.rank, &last.stamp, since);
            let charged = self.charge((own.actor, &own.at), Kind::EarlyRoot, ns, error, culprit);
            cause = charged.map_or(cause, |(main, _)| main);
        }
        if self.takes(root, &timed) {
            self.count(&own.at, Kind::EarlyRoot, cause, ns > 0, signed);
        }
    }
}

impl Visitor for Observer<'_> {
    type Stamp = History;

    fn wants_times(&self) -> bool {
        true
    }

    fn enter(&mut self, actor: u32, at: &At, _: u64, terminal: &Terminal) -> History {
        self.state(actor);
        self.settle(actor as usize);
        self.state(actor).polls.pass(at, terminal);
        if let Some(timed) = at.timed {
            let duration = timed.duration_ns.unwrap_or(0);
            let state = self.state(actor);
            let gap = u64::try_from(timed.start_ns.saturating_sub(state.end_ns)).unwrap_or(0);
            state.recent_ns = gap.max(duration).max(state.recent_ns / 2);
            state.end_ns = timed.start_ns.saturating_add_unsigned(duration);
            let site = self.places.number(at);
            *self.found.kept_ns.entry(site).or_default() += duration;
        }
        self.state(actor).history.clone()
    }

    fn completed(&mut self, own: &Half<History>, other: &Half<History>, at: &At) {
        if !own.receives {
            return;
        }
        let site = self.places.number(at);
        self.found.senders.entry((site, at.rank)).or_default().insert(other.posted.rank);
        let (Some(timed), Some(sent)) = (at.timed, other.posted.timed) else { return };
        let error_ns = self.error((own.actor, at.rank), (other.actor, other.posted.rank));
        let (whole, in_calls_ns) = self.state(own.actor).polls.and(timed);
        let signed_ns = sent.start_ns.saturating_sub(whole.start_ns);
        let late = Late {
            at: At { timed: Some(whole), ..*at },
            in_calls_ns,
            sender: other.posted.rank,
            history: other.stamp.clone(),
            signed_ns,
            error_ns,
        };
        let waits = &mut self.state(own.actor).waits;
        if waits.as_ref().is_none_or(|before| before.signed_ns < signed_ns) {
            *waits = Some(late);
        }
    }

    fn message(&mut self, send: &Half<History>, receive: &Half<History>) {
        let both = (send.posted.timed, receive.done.and_then(|done| done.timed));
        self.found.matched.timed_messages += u64::from(both.0.is_some() && both.1.is_some());
        // A send that waits alone, in its own call or in MPI_Wait.
        let Some(done) = send.done else { return };
        let (Some(timed), Some(posted)) = (done.timed, receive.posted.timed) else { return };
        let error = self.error((send.actor, done.rank), (receive.actor, receive.posted.rank));
        let signed = posted.start_ns.saturating_sub(timed.start_ns);
        let duration = timed.duration_ns.unwrap_or(0);
        let ns = u64::try_from(signed).unwrap_or(0).min(duration).saturating_sub(error);
        // It went on before the receive began: it has not waited for it.
        let eager = u64::try_from(signed).unwrap_or(0) > duration.saturating_add(error);
        if ns == 0 || eager || !self.waits_alone(&done) {
            return;
        }
        let history = receive.stamp.clone();
        let met = self.met.get(&(done.rank, receive.posted.rank)).copied();
        let since = self.since(receive.posted.rank, done.rank, met);
        let culprit = (receive.posted.rank, &history, since);
        let main = self.charge((send.actor, &done), Kind::LateReceiver, ns, error, culprit);
        let Some((main, _)) = main else { return };
        self.count(&done, Kind::LateReceiver, main, true, signed);
    }

    fn ended(&mut self, actor: u32, at: &At, instance: &Instance<History>, needs: Needs) {
        let begins = |arrival: &&Arrival<History>| arrival.at.rank == at.rank && !arrival.blocking;
        if instance.arrivals.iter().any(|arrival| begins(&arrival)) {
            self.end(actor, at, instance, needs);
        }
    }

    fn collective(
        &mut self,
        instance: &Instance<History>,
        calls: &[&Collective],
        joined: &Joined<'_>,
    ) -> bool {
        let function = calls[0].function;
        let alike = calls.iter().all(|call| call.function == function);
        if let Some(root) = instance.root {
            for arrival in &instance.arrivals {
                let site = self.places.number(&arrival.at);
                self.found.roots.entry(site).or_default().insert(root);
            }
        }
        let timed = |arrival: &'_ Arrival<History>| {
            let timed = arrival.at.timed.filter(|_| arrival.blocking)?;
            Some((timed, timed.duration_ns?))
        };
        let kept: Vec<(&Arrival<History>, Timed, u64)> = instance
            .arrivals
            .iter()
            .filter_map(|arrival| timed(arrival).map(|(timed, duration)| (arrival, timed, duration)))
            .collect();
        let all = kept.len() as u32 == instance.size;
        self.found.matched.timed_collectives += u64::from(all);
        if !alike || kept.len() < 2 || function.spec().class != Class::Ordinary {
            return true;
        }
        let comm = joined.number;
        match (calls[0].pairing, instance.root) {
            _ if function.synchronises() => self.synchronising(&kept, all, function, comm),
            (Pairing::FromRoot, Some(root)) => self.for_root(&kept, root, comm),
            (_, Some(root)) if all => self.of_root(&kept, root, comm),
            _ => {}
        }
        true
    }
}

impl Observer<'_> {
    /// True where a call waits for nothing but a send.
    fn waits_alone(&mut self, at: &At) -> bool {
        let site = self.places.number(at);
        let name = self.places.function(site).base_name();
        matches!(name, "MPI_Send" | "MPI_Ssend" | "MPI_Rsend" | "MPI_Wait")
    }
}
