//! Sizes of messages, communicators and peers of each place, from the recorded calls.
//!
//! Each signature of a place is read once for all ranks that are [alike](Alike), and counted as often as its terminal
//! occurs in the sequence. The cost does not depend on the sequence's length. It depends on the number of ranks where
//! the bytes of a call depend on the caller's rank, as a root's do.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use ampl_core::mpi::traffic::{Ends, Members, Operands};
use ampl_core::mpi::{FUNCTION_COUNT, Function, Traffic};
use ampl_trace::Trace;
use ampl_trace::model::call_path;
use ampl_trace::record::CALL_ERROR;
use ampl_trace::structure::{Alike, RankGroup, Signature};

use super::arguments::Arguments;
use super::objects::{Objects, is_whole};

/// Most words of all ranks' signatures that are read.
const MOST_WORDS: u64 = 1 << 28;

/// Function, then module and offset of each frame from the call outwards.
pub type Key = (u16, Vec<(String, u64)>);

/// Calls whose messages are of one size class: a power of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Calls.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The least bytes of one.
    pub least: u64,
    /// The most bytes of one.
    pub most: u64,
}

impl Sizes {
    fn add(&mut self, other: &Self) {
        if self.calls == 0 {
            *self = *other;
        } else if other.calls > 0 {
            *self = Self {
                calls: self.calls.saturating_add(other.calls),
                bytes: self.bytes.saturating_add(other.bytes),
                least: self.least.min(other.least),
                most: self.most.max(other.most),
            };
        }
    }
}

/// The sizes of the communicators that calls of a place are made on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Comms {
    /// No call names one.
    #[default]
    None,
    /// The least size and the most.
    Of(u64, u64),
    /// The size of some communicator is not known.
    Unknown,
}

impl Comms {
    fn join(&mut self, other: Self) {
        *self = match (*self, other) {
            (Self::None, any) | (any, Self::None) => any,
            (Self::Of(low, high), Self::Of(least, most)) => Self::Of(low.min(least), high.max(most)),
            _ => Self::Unknown,
        };
    }
}

/// The recorded calls of a place: their bytes, communicators and peers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Number of calls.
    pub calls: u64,
    /// Bytes that they sent and received, where that is known of all.
    pub bytes: Option<(u64, u64)>,
    /// Their sizes by class: 0 of no bytes, `k` of less than 2^k.
    pub sizes: BTreeMap<u32, Sizes>,
    /// Sizes of their communicators.
    pub comms: Comms,
    /// Callers of a function that waits for all, by the words of the communicators that they call it on. A word is
    /// `None` where it is not known.
    pub callers: BTreeMap<BTreeSet<Option<u64>>, BTreeSet<u32>>,
    /// Ranks that a rank's calls name as the other ends of messages: the fewest and the most of a rank.
    pub peers: Option<(u64, u64)>,
    /// True where calls receive from any source.
    pub from_anyone: bool,
}

impl Recorded {
    /// Adds the calls at another address of the same place.
    pub fn add(&mut self, other: &Self) {
        self.bytes = match (self.calls, self.bytes, other.bytes) {
            (0, _, theirs) => theirs,
            (_, Some(ours), Some(theirs)) => {
                Some((ours.0.saturating_add(theirs.0), ours.1.saturating_add(theirs.1)))
            }
            _ => None,
        };
        self.calls = self.calls.saturating_add(other.calls);
        for (&class, sizes) in &other.sizes {
            self.sizes.entry(class).or_default().add(sizes);
        }
        self.comms.join(other.comms);
        self.add_callers(&other.callers);
        self.add_peers(other.peers);
        self.from_anyone |= other.from_anyone;
    }

    /// The calls of so many ranks that make these.
    fn times(mut self, ranks: u64) -> Self {
        self.calls = self.calls.saturating_mul(ranks);
        self.bytes =
            self.bytes.map(|(sent, received)| (sent.saturating_mul(ranks), received.saturating_mul(ranks)));
        for sizes in self.sizes.values_mut() {
            sizes.calls = sizes.calls.saturating_mul(ranks);
            sizes.bytes = sizes.bytes.saturating_mul(ranks);
        }
        self
    }

    /// A rank that calls at several addresses of a place has the words of all of them.
    fn add_callers(&mut self, callers: &BTreeMap<BTreeSet<Option<u64>>, BTreeSet<u32>>) {
        for (words, ranks) in callers {
            let mut left = ranks.clone();
            let mut both: Vec<(BTreeSet<Option<u64>>, BTreeSet<u32>)> = Vec::new();
            for (known, of) in &mut self.callers {
                let again: BTreeSet<u32> = of.intersection(&left).copied().collect();
                if again.is_empty() || known == words {
                    left = left.difference(&again).copied().collect();
                    continue;
                }
                of.retain(|rank| !again.contains(rank));
                left.retain(|rank| !again.contains(rank));
                both.push((known.union(words).copied().collect(), again));
            }
            both.push((words.clone(), left));
            for (words, ranks) in both.into_iter().filter(|(_, ranks)| !ranks.is_empty()) {
                self.callers.entry(words).or_default().extend(ranks);
            }
        }
        self.callers.retain(|_, ranks| !ranks.is_empty());
    }

    fn add_peers(&mut self, peers: Option<(u64, u64)>) {
        self.peers = match (self.peers, peers) {
            (Some(ours), Some(theirs)) => Some((ours.0.min(theirs.0), ours.1.max(theirs.1))),
            (ours, theirs) => ours.or(theirs),
        };
    }
}

/// Recorded calls of `wanted` functions, by place; `None` where they have more than `MOST_WORDS` words.
pub fn of(trace: &Trace, wanted: impl Fn(u16) -> bool) -> Option<HashMap<Key, Recorded>> {
    let mut places = HashMap::new();
    let mut looked = 0u64;
    for group in trace.structure.groups().filter(|group| group.calls_any(&wanted)) {
        let totals: Vec<_> = group.threads().map(|thread| thread.totals()).collect();
        for alike in group.alike() {
            looked = looked.saturating_add(group.extent());
            if looked > MOST_WORDS {
                return None;
            }
            let calls: Option<Vec<&[u64]>> =
                totals.iter().map(|spans| calls_at(spans, alike.position())).collect();
            if let Some(calls) = calls {
                add_alike(&mut places, &group, &alike, &calls, trace.run.ranks, &wanted);
            }
        }
    }
    Some(places)
}

/// Calls by signature of the rank at `position`; `None` where they make no sense.
fn calls_at(spans: &[(Range<u32>, Option<Vec<u64>>)], position: u32) -> Option<&[u64]> {
    let at = spans.partition_point(|(span, _)| span.end <= position);
    spans.get(at)?.1.as_deref()
}

/// Calls of a function at a site: their numbers, and the ranks that they name, with the words of the communicators.
#[derive(Default)]
struct Site {
    recorded: Recorded,
    peers: BTreeSet<i64>,
    comms: BTreeSet<Option<u64>>,
}

fn add_alike(
    places: &mut HashMap<Key, Recorded>,
    group: &RankGroup<'_>,
    alike: &Alike<'_>,
    calls: &[&[u64]],
    ranks: u32,
    wanted: impl Fn(u16) -> bool,
) {
    let first = alike.first();
    let threads = alike.signatures(first);
    let signatures = threads.iter().map(Vec::as_slice);
    let mut objects = Objects::of_signatures(first, alike.comms(first), signatures, ranks);
    let of_threads = threads.iter().zip(calls).flat_map(|(signatures, calls)| signatures.iter().zip(*calls));
    let called: Vec<(&Signature, u64)> = of_threads
        .map(|(signature, &calls)| (signature, calls))
        .filter(|(signature, calls)| {
            usize::from(signature.function) < FUNCTION_COUNT && wanted(signature.function) && *calls > 0
        })
        .collect();
    let (own, same): (Vec<_>, Vec<_>) =
        called.iter().copied().partition(|(signature, _)| depends_on_rank(signature));
    // By function and site.
    let mut sites: BTreeMap<(u16, u32), Site> = BTreeMap::new();
    for (signature, calls) in same {
        let site = sites.entry((signature.function, signature.site)).or_default();
        let one = recorded(site, signature, calls, &mut objects);
        site.recorded.add(&one.times(alike.len()));
    }
    for rank in alike.ranks().filter(|_| !own.is_empty()) {
        objects.turn_to(rank, alike.comms(rank));
        for &(signature, calls) in &own {
            let site = sites.entry((signature.function, signature.site)).or_default();
            let one = recorded(site, signature, calls, &mut objects);
            site.recorded.add(&one);
        }
    }
    for ((function, site), mut found) in sites {
        if Function(function).waits_for_all() {
            found.recorded.callers = [(found.comms.clone(), alike.ranks().collect())].into();
        }
        if function_names_peers(function) {
            // In one communicator the peers of all are as many: each is turned by the caller's rank.
            let number = |peers: &BTreeSet<i64>| Some((peers.len() as u64, peers.len() as u64));
            match found.comms.len() {
                0 | 1 => found.recorded.add_peers(number(&found.peers)),
                _ => alike.ranks().for_each(|rank| {
                    found.recorded.add_peers(number(&peers_of(alike, rank, calls, (function, site))));
                }),
            }
        }
        let frames = site.checked_sub(1).into_iter().flat_map(|site| call_path(group.sites(), site));
        let name = |module: u32| group.modules().get(module as usize).cloned().unwrap_or_default();
        let path = frames.map(|frame| (name(frame.module), frame.offset)).collect();
        places.entry((function, path)).or_default().add(&found.recorded);
    }
}

/// Ranks that the calls of `rank` of a function at a site name.
fn peers_of(alike: &Alike<'_>, rank: u32, calls: &[&[u64]], of: (u16, u32)) -> BTreeSet<i64> {
    let mut peers = BTreeSet::new();
    for (signatures, calls) in alike.signatures(rank).iter().zip(calls) {
        let called = signatures.iter().zip(*calls).filter(|&(_, &calls)| calls > 0);
        for (signature, _) in called.filter(|(signature, _)| (signature.function, signature.site) == of) {
            if let Some(arguments) = Arguments::of(signature).filter(|_| is_whole(signature)) {
                arguments.name_peers(&mut peers);
            }
        }
    }
    peers
}

/// True where the bytes of a call of `signature` depend on the caller's rank in its communicator.
fn depends_on_rank(signature: &Signature) -> bool {
    is_whole(signature) && Operands::of(Function(signature.function).spec()).depends_on_rank()
}

fn function_names_peers(function: u16) -> bool {
    usize::from(function) < FUNCTION_COUNT && Ends::of(Function(function).spec()).is_some()
}

/// The calls of `signature` by one rank; their peers and communicator are noted at `site`.
fn recorded(site: &mut Site, signature: &Signature, calls: u64, objects: &mut Objects<'_>) -> Recorded {
    let mut one = Recorded { calls, ..Recorded::default() };
    // A call that fails moves nothing.
    let failed = signature.flags & CALL_ERROR != 0;
    let arguments = if is_whole(signature) { Arguments::of(signature) } else { None };
    one.bytes = if failed { Some((0, 0)) } else { None };
    if arguments.is_none() && !failed {
        site.comms.insert(None);
    }
    if let Some(arguments) = &arguments {
        one.comms = comms(arguments, objects);
        one.bytes = arguments.bytes(objects);
        one.from_anyone = arguments.name_peers(&mut site.peers);
        site.comms.insert(arguments.comm_word(objects));
    }
    let moves = arguments.as_ref().is_some_and(|call| call.function.spec().traffic != Traffic::None);
    if let (Some((sent, received)), true) = (one.bytes, moves) {
        let bytes = if sent > 0 { sent } else { received };
        let total = bytes.saturating_mul(calls);
        let sizes = Sizes { calls, bytes: total, least: bytes, most: bytes };
        one.sizes.insert(u64::BITS - bytes.leading_zeros(), sizes);
    }
    one.bytes =
        one.bytes.map(|(sent, received)| (sent.saturating_mul(calls), received.saturating_mul(calls)));
    one
}

fn comms(arguments: &Arguments<'_>, objects: &Objects<'_>) -> Comms {
    match arguments.members(objects) {
        None => Comms::None,
        Some(Some(Members { local, .. })) => Comms::Of(local, local),
        Some(None) => Comms::Unknown,
    }
}

#[cfg(test)]
mod tests;
