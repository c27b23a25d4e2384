//! Sizes of messages, communicators and peers of each place, from the recorded calls.
//!
//! Each signature of a place is read once, and counted as often as its terminal occurs in the sequence. The cost does
//! not depend on the sequence's length.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ampl_core::mpi::traffic::{Ends, Facts, Members, NOBODY, Operands};
use ampl_core::mpi::{Function, Kind, PREDEFINED, Traffic};
use ampl_core::value::{ANY_SOURCE, PROC_NULL, ROOT};
use ampl_trace::Trace;
use ampl_trace::args::{self, IN_PLACE, Shape, index_of_predefined, shape};
use ampl_trace::model::call_path;
use ampl_trace::record::{CALL_ERROR, GAP};
use ampl_trace::structure::{RankStructure, Signature};

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
            if signature.function != GAP && wanted(signature.function) && calls > 0 {
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
    usize::from(function) < ampl_core::mpi::FUNCTION_COUNT && Ends::of(Function(function).spec()).is_some()
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
        one.comms = arguments.comms(objects);
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

/// Bytes that a call of `signature` sends, or receives where it sends none; `None` where it moves no message, or
/// where they cannot be computed.
pub fn message_bytes(signature: &Signature, objects: &mut Objects<'_>) -> Option<u64> {
    let arguments = Arguments::of(signature).filter(|_| is_whole(signature))?;
    let moves = arguments.function.spec().traffic != Traffic::None;
    let (sent, received) = arguments.bytes(objects).filter(|_| moves)?;
    Some(if sent > 0 { sent } else { received })
}

/// The arguments of a call as C passes them; an array is its number in `arrays`.
struct Arguments<'a> {
    function: Function,
    words: Vec<usize>,
    arrays: Vec<&'a [u64]>,
}

impl<'a> Arguments<'a> {
    fn of(signature: &'a Signature) -> Option<Self> {
        let function = Function(signature.function);
        let spec = function.spec();
        let mut words = vec![0; spec.params.len()];
        let mut arrays = Vec::new();
        for (param, part) in args::inputs(spec, &mut &signature.words[..])? {
            let at = spec.params.iter().position(|other| other.name == param.name)?;
            words[at] = match shape(param) {
                Shape::Scalar => part.first().map_or(0, |&word| word as usize),
                _ => {
                    arrays.push(part);
                    arrays.len() - 1
                }
            };
        }
        Some(Self { function, words, arrays })
    }

    fn comms(&self, objects: &Objects<'_>) -> Comms {
        let comm = self
            .function
            .spec()
            .params
            .iter()
            .position(|param| param.kind == Kind::Comm && args::is_input(param));
        match comm.map(|at| objects.comm(self.words[at] as u64)) {
            None => Comms::None,
            Some(Some(Members { local, .. })) => Comms::Of(local, local),
            Some(None) => Comms::Unknown,
        }
    }

    /// Bytes sent and received; `None` where they cannot be computed.
    fn bytes(&self, objects: &mut Objects<'_>) -> Option<(u64, u64)> {
        let operands = Operands::of(self.function.spec());
        let mut asked = Asked { arrays: &self.arrays, objects, unknown: false.into() };
        let bytes = operands.bytes(&self.words, &mut asked);
        (!asked.unknown.get()).then_some(bytes)
    }
}

/// Values that a call's bytes depend on, from recorded words.
struct Asked<'a, 'b> {
    arrays: &'a [&'a [u64]],
    objects: &'a mut Objects<'b>,
    /// True once a value was asked for that is not known.
    unknown: std::cell::Cell<bool>,
}

impl Asked<'_, '_> {
    fn known(&self, value: Option<u64>) -> u64 {
        value.unwrap_or_else(|| {
            self.unknown.set(true);
            0
        })
    }

    fn element(&self, array: usize, index: usize) -> Option<u64> {
        self.arrays.get(array)?.get(index).copied()
    }
}

impl Facts for Asked<'_, '_> {
    fn type_bytes(&mut self, datatype: usize) -> u64 {
        let bytes = self.objects.type_bytes(datatype as u64);
        self.known(bytes)
    }

    fn comm(&mut self, comm: usize) -> Members {
        self.objects.comm(comm as u64).unwrap_or_else(|| {
            self.unknown.set(true);
            Members { peers: 0, local: 0, rank: None }
        })
    }

    fn comm_now(&mut self, comm: usize) -> Members {
        self.comm(comm)
    }

    fn degrees(&mut self, _: usize) -> (u64, u64) {
        self.unknown.set(true);
        (0, 0)
    }

    fn count_at(&self, base: usize, index: usize, _: bool) -> u64 {
        self.known(self.element(base, index))
    }

    fn type_at(&self, base: usize, index: usize) -> usize {
        self.known(self.element(base, index)) as usize
    }

    fn is_in_place(&self, buffer: usize) -> bool {
        buffer as u64 == IN_PLACE
    }

    fn is_proc_null(&self, rank: usize) -> bool {
        i64::from(rank as i32) == PROC_NULL
    }

    fn is_root(&self, rank: usize) -> bool {
        i64::from(rank as i32) == ROOT
    }

    fn is_no_op(&self, op: usize) -> bool {
        index_of_predefined(op as u64).is_some_and(|index| PREDEFINED[index].1 == "MPI_NO_OP")
    }
}
