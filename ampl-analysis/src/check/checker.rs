//! Compares what is matched, and follows objects.

use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

use ampl_core::mpi::constants::{self, AbiFamily};
use ampl_trace::structure::Signature;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};

use super::agreement::{is_one, problems};
use super::objects::{Effect, Object, effect};
use super::{Envelope, Problem};
use crate::matching::{At, Channel, Collective, Element, Half, Instance, Joined, Source, Terminal, Visitor};
use crate::messages::Comm;

/// Call: rank, thread, terminal.
type Key = (u32, u32, u32);

/// Effect of a signature, and its function and site.
#[derive(Clone, Copy, Debug)]
struct Placed {
    effect: Option<Effect>,
    place: (u16, u32),
}

/// Rank, thread, kind of object, function and site that make objects.
type Maker = (u32, u32, Object, (u16, u32));

/// A fault whose communicator has a number.
#[derive(Debug)]
enum Found {
    Truncated(Channel, u64, u64),
    Elements(Channel, (Element, Element)),
    Other(Problem),
}

/// Compares sends with receives, and ranks' collectives with each other.
pub struct Checker {
    /// Effects by rank and thread, then terminal.
    effects: FxHashMap<(u32, u32), Vec<Placed>>,
    truncate: Option<i64>,
    /// MPICH has the class of an error in its code's last seven bits.
    class_mask: i64,
    /// First call that made them, and how often they were made and not freed: one group may have several references.
    live: FxHashMap<(u32, Object, u64), (At, u64)>,
    freed: FxHashSet<Object>,
    /// Pairs and sets of calls that have been compared.
    seen: FxHashSet<(Key, Key)>,
    seen_all: FxHashSet<u64>,
    found: Vec<(At, Found)>,
    failed: FxHashSet<Key>,
}

impl Checker {
    /// A checker of the calls of `sources`, whose error codes are those of `family`.
    pub fn new(sources: &[Source<'_>], family: Option<AbiFamily>) -> Self {
        let placed = |own: &Signature| Placed { effect: effect(own), place: (own.function, own.site) };
        let threads = |source: &Source<'_>| {
            let rank = source.structure.rank;
            let each = source.structure.threads.iter();
            let of: Vec<_> = each
                .map(|thread| ((rank, thread.thread), thread.signatures.iter().map(placed).collect()))
                .collect();
            of
        };
        let truncate = family.and_then(|family| constants::value(family, "MPI_ERR_TRUNCATE")).map(i64::from);
        Self {
            effects: sources.iter().flat_map(threads).collect(),
            truncate,
            class_mask: if family == Some(AbiFamily::Mpich) { 0x7f } else { -1 },
            live: FxHashMap::default(),
            freed: FxHashSet::default(),
            seen: FxHashSet::default(),
            seen_all: FxHashSet::default(),
            found: Vec::new(),
            failed: FxHashSet::default(),
        }
    }

    /// All faults; `comm` has communicators by number, and of ranks that are `lost` no leak is known.
    pub fn finish(
        self,
        comm: impl Fn(u32) -> Option<Comm>,
        is_lost: impl Fn(u32) -> bool,
    ) -> Vec<(At, Problem)> {
        let envelope = |channel: Channel| Envelope {
            from: channel.from,
            to: channel.to,
            tag: channel.tag,
            comm: comm(channel.comm),
        };
        let problem = |found: Found| match found {
            Found::Truncated(channel, sent, room) => {
                Problem::Truncated { envelope: envelope(channel), bytes: Some((sent, room)) }
            }
            Found::Elements(channel, of) => Problem::Elements { envelope: envelope(channel), of },
            Found::Other(problem) => problem,
        };
        let mut all: Vec<(At, Problem)> =
            self.found.into_iter().map(|(at, found)| (at, problem(found))).collect();
        // By place: each object of a loop has a signature of its own.
        let mut leaked: FxHashMap<Maker, (At, u64)> = FxHashMap::default();
        for (&(rank, object, _), (at, references)) in
            self.live.iter().filter(|((rank, ..), _)| !is_lost(*rank))
        {
            let own = self.effects.get(&(rank, at.thread)).and_then(|own| own.get(at.terminal as usize));
            let place = own.map_or((0, 0), |own| own.place);
            let sum = leaked.entry((rank, at.thread, object, place)).or_insert((*at, 0));
            sum.1 += references;
            if at.seq < sum.0.seq {
                sum.0 = *at;
            }
        }
        for ((_, _, object, _), (at, number)) in leaked {
            all.push((at, Problem::Leaked { object, number, frees: self.freed.contains(&object) }));
        }
        all
    }
}

impl Visitor for Checker {
    type Stamp = ();

    fn enter(&mut self, _: u32, at: &At, count: u64, terminal: &Terminal) {
        let own = self.effects.get(&(at.rank, at.thread)).and_then(|own| own.get(at.terminal as usize));
        match own.and_then(|own| own.effect) {
            Some(Effect::Makes(object, word)) => {
                self.live.entry((at.rank, object, word)).or_insert((*at, 0)).1 += count;
            }
            Some(Effect::Frees(object, word)) => {
                if let Entry::Occupied(mut live) = self.live.entry((at.rank, object, word)) {
                    live.get_mut().1 = live.get().1.saturating_sub(count);
                    if live.get().1 == 0 {
                        live.remove();
                    }
                }
                self.freed.insert(object);
            }
            None => {}
        }
        if (terminal.code == 0 && terminal.errors.is_empty()) || self.truncate.is_none() {
            return;
        }
        let is_truncation = |code: i64| Some(code & self.class_mask) == self.truncate;
        let any = is_truncation(terminal.code) || terminal.errors.iter().any(|&code| is_truncation(code));
        if any && self.failed.insert((at.rank, at.thread, at.terminal)) {
            let envelope = Envelope { from: u32::MAX, to: at.rank, tag: 0, comm: None };
            self.found.push((*at, Found::Other(Problem::Truncated { envelope, bytes: None })));
        }
    }

    fn message(&mut self, send: &Half<()>, receive: &Half<()>) {
        let key = |half: &Half<()>| (half.posted.rank, half.posted.thread, half.posted.terminal);
        if !self.seen.insert((key(send), key(receive))) {
            return;
        }
        let (sent, room) = (send.payload, receive.payload);
        if let (Some(sent), Some(room)) = (sent.bytes, room.bytes)
            && sent > room
        {
            self.found.push((receive.posted, Found::Truncated(receive.channel, sent, room)));
        } else if let (Some(one), Some(other)) = (sent.element, room.element)
            && !one.matches(other)
        {
            self.found.push((receive.posted, Found::Elements(receive.channel, (one, other))));
        }
    }

    fn collective(&mut self, instance: &Instance<()>, calls: &[&Collective], joined: &Joined<'_>) -> bool {
        let mut all: Vec<(At, &Collective)> =
            instance.arrivals.iter().map(|arrival| arrival.at).zip(calls.iter().copied()).collect();
        all.sort_unstable_by_key(|(at, _)| (at.rank, at.thread));
        let mut hasher = FxHasher::default();
        joined.number.hash(&mut hasher);
        let mut calls: Vec<(u32, u32)> =
            instance.arrivals.iter().map(|arrival| (arrival.actor, arrival.arguments)).collect();
        calls.sort_unstable();
        calls.hash(&mut hasher);
        if all.is_empty() || !self.seen_all.insert(hasher.finish()) {
            return true;
        }
        let found = problems(&all, joined).into_iter();
        self.found.extend(found.map(|(at, problem)| (at, Found::Other(problem))));
        is_one(&all)
    }
}
