//! Messages of a run by the places that send them: directed edges between ranks of the world, with counts and bytes.
//!
//! Each signature of a rank is read once and counted as often as its terminal occurs, so the cost does not depend on
//! how long the ranks ran. Sends suffice. Receives complete them where the sender's own calls are not all known.

pub(crate) mod facts;
mod matrix;
pub use matrix::{Entry, entries};
mod neighbours;
mod rank;
pub use crate::scope::{Comm, Scope, Scopes};
pub(crate) mod sources;
pub use sources::{goes_nowhere, started};

use ampl_core::mpi::Function;
use ampl_trace::communicators::Communicators;
use ampl_trace::structure::{JobStructure, RankStructure};
use rustc_hash::{FxHashMap, FxHashSet};

use self::neighbours::Graphs;
use self::rank::Reader;

/// Kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A message that is sent and received.
    Message,
    /// A message between neighbours in a collective of these.
    Neighbour,
    /// Access to another rank's window.
    OneSided,
}

/// Function of a call path: module and offset of the call in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// Path of the module.
    pub module: String,
    /// Offset of the return address.
    pub offset: u64,
}

/// A place that sends messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The function that sends; one that receives where the senders are not known.
    pub function: Function,
    /// Index into [`Messages::paths`].
    pub path: u32,
    /// Communicator of the message, or of the window's group.
    pub comm: Comm,
    /// Kind of its transfers.
    pub kind: Kind,
}

/// Messages from a rank to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Sender, a rank of the world.
    pub from: u32,
    /// Receiver, a rank of the world.
    pub to: u32,
    /// Number of messages.
    pub messages: u64,
    /// Their bytes, as far as these are known.
    pub bytes: u64,
}

/// Messages of a place to the partner of one ordinal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Index into [`Messages::places`].
    pub place: u32,
    /// Number of the partner among those of a rank at that place, in the order of its calls.
    pub ordinal: u32,
    /// Edges, by sender and receiver.
    pub edges: Vec<Edge>,
}

/// Messages and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Number of messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Volume {
    /// Adds `other`; sums stay at their largest value.
    pub fn add(&mut self, other: Self) {
        self.messages = self.messages.saturating_add(other.messages);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// Messages of a run, and the parts of it that are not among them.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// Ranks of the job.
    pub ranks: u32,
    /// Call paths, from the call outwards; empty where call sites are not known.
    pub paths: Vec<Vec<Frame>>,
    /// Places.
    pub places: Vec<Place>,
    /// Messages by place and ordinal.
    pub flows: Vec<Flow>,
    /// Messages to partners that are not known: on communicators whose members are not known.
    pub unplaced: Volume,
    /// Messages whose bytes are not known; they count as 0 bytes.
    pub unsized_messages: u64,
    /// Messages that are known from their receives only; their bytes are those of the buffers.
    pub received_only: u64,
    /// Calls that may send and whose arguments are not known.
    pub without_arguments: u64,
    /// Ranks without any recorded calls.
    pub missing: Vec<u32>,
    /// Ranks some of whose calls were counted and not recorded.
    pub gaps: Vec<u32>,
}

impl Messages {
    /// Messages of the ranks of `structure`, in a job of at least `ranks` ranks.
    pub fn of(structure: &JobStructure, comms: &Communicators, ranks: u32) -> Self {
        Self::of_part(structure, comms, ranks, |_| None)
    }

    /// As [`of`](Self::of), of a part of each rank's calls: those that `part` gives instead of them all, if it gives any.
    /// Their order may be another where one number does not name several communicators in turn.
    pub fn of_part(
        structure: &JobStructure,
        comms: &Communicators,
        ranks: u32,
        mut part: impl FnMut(&RankStructure) -> Option<RankStructure>,
    ) -> Self {
        let ranks = ranks.max(structure.rank_count());
        let mut present: Vec<u32> = structure.ranks().collect();
        present.sort_unstable();
        let here: FxHashSet<u32> = present.iter().copied().collect();
        let missing: Vec<u32> = (0..ranks).filter(|rank| !here.contains(rank)).collect();
        let mut reader = Reader::new(ranks, comms, Graphs::of(structure, comms));
        for selected in structure.select(|_| true) {
            if let Some(structure) = selected.structure() {
                reader.read(part(&structure).as_ref().unwrap_or(&structure));
            }
        }
        let mut built = reader.finish(&missing);
        built.ranks = ranks;
        built.missing = missing;
        built
    }

    /// Total of all flows.
    pub fn total(&self) -> Volume {
        let mut total = Volume::default();
        for edge in self.flows.iter().flat_map(|flow| &flow.edges) {
            total.add(Volume { messages: edge.messages, bytes: edge.bytes });
        }
        total
    }

    /// Volume of every pair of ranks, by sender and receiver.
    pub fn matrix(&self) -> Vec<Edge> {
        let mut sums: FxHashMap<(u32, u32), Volume> = FxHashMap::default();
        for edge in self.flows.iter().flat_map(|flow| &flow.edges) {
            let volume = Volume { messages: edge.messages, bytes: edge.bytes };
            sums.entry((edge.from, edge.to)).or_default().add(volume);
        }
        let edge = |((from, to), Volume { messages, bytes })| Edge { from, to, messages, bytes };
        let mut edges: Vec<Edge> = sums.into_iter().map(edge).collect();
        edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
        edges
    }

    /// True where all calls of all ranks are known, and all their partners.
    pub fn is_complete(&self) -> bool {
        let known = self.unplaced.messages == 0 && self.without_arguments == 0;
        known && self.missing.is_empty() && self.gaps.is_empty()
    }
}
