//! Sizes of messages, communicators and peers of each place, from the recorded calls.
//!
//! Each signature of a place is read once, and counted as often as its terminal occurs in the sequence. The cost does
//! not depend on the sequence's length.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ampl_core::mpi::traffic::{Ends, Members, NOBODY};
use ampl_core::mpi::{FUNCTION_COUNT, Function, Traffic};
use ampl_core::value::{ANY_SOURCE, PROC_NULL, ROOT};
use ampl_trace::Trace;
use ampl_trace::model::call_path;
use ampl_trace::record::CALL_ERROR;
use ampl_trace::structure::{RankStructure, Signature};

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
        self.add_peers(other.peers);
        self.from_anyone |= other.from_anyone;
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
    for selected in trace.structure.select(&wanted) {
        looked = looked.saturating_add(selected.extent);
        if looked > MOST_WORDS {
            return None;
        }
        if let Some(structure) = selected.structure() {
            add_rank(&mut places, &structure, trace.run.ranks, &wanted);
        }
    }
    Some(places)
}

fn add_rank(
    places: &mut HashMap<Key, Recorded>,
    structure: &RankStructure,
    ranks: u32,
    wanted: impl Fn(u16) -> bool,
) {
    let mut objects = Objects::of(structure, ranks);
    // By function and site.
    let mut own: BTreeMap<(u16, u32), (Recorded, BTreeSet<i64>)> = BTreeMap::new();
    for thread in &structure.threads {
        let mut counts = vec![0u64; thread.signatures.len()];
        for (terminal, count) in thread.grammar.totals() {
            if let Some(sum) = counts.get_mut(terminal as usize) {
                *sum = sum.saturating_add(count);
            }
        }
        for (signature, calls) in thread.signatures.iter().zip(counts) {
            let is_call = usize::from(signature.function) < FUNCTION_COUNT;
            if is_call && wanted(signature.function) && calls > 0 {
                let (place, peers) = own.entry((signature.function, signature.site)).or_default();
                add_signature(place, peers, signature, calls, &mut objects);
            }
        }
    }
    for ((function, site), (mut place, peers)) in own {
        if function_names_peers(function) {
            place.add_peers(Some((peers.len() as u64, peers.len() as u64)));
        }
        let frames = site.checked_sub(1).into_iter().flat_map(|site| call_path(&structure.sites, site));
        let name = |module: u32| structure.modules.get(module as usize).cloned().unwrap_or_default();
        let path = frames.map(|frame| (name(frame.module), frame.offset)).collect();
        places.entry((function, path)).or_default().add(&place);
    }
}

fn function_names_peers(function: u16) -> bool {
    usize::from(function) < FUNCTION_COUNT && Ends::of(Function(function).spec()).is_some()
}

fn add_signature(
    place: &mut Recorded,
    peers: &mut BTreeSet<i64>,
    signature: &Signature,
    calls: u64,
    objects: &mut Objects<'_>,
) {
    let mut one = Recorded { calls, ..Recorded::default() };
    // A call that fails moves nothing.
    let failed = signature.flags & CALL_ERROR != 0;
    let arguments = if is_whole(signature) { Arguments::of(signature) } else { None };
    one.bytes = if failed { Some((0, 0)) } else { None };
    if let Some(arguments) = &arguments {
        one.comms = comms(arguments, objects);
        one.bytes = arguments.bytes(objects);
        let spec = arguments.function.spec();
        if let Some(ends) = Ends::of(spec) {
            let named = ends.named(&arguments.words);
            for end in [named.dest, named.source].into_iter().filter(|&end| end != NOBODY).map(i64::from) {
                match end {
                    ANY_SOURCE => one.from_anyone = true,
                    PROC_NULL | ROOT => {}
                    _ => drop(peers.insert(end)),
                }
            }
        }
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
    place.add(&one);
}

fn comms(arguments: &Arguments<'_>, objects: &Objects<'_>) -> Comms {
    match arguments.members(objects) {
        None => Comms::None,
        Some(Some(Members { local, .. })) => Comms::Of(local, local),
        Some(None) => Comms::Unknown,
    }
}
