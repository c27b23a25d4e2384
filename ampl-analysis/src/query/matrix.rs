//! Messages between ranks, hosts or on communicators, and their sizes.

use std::collections::BTreeMap;

use ampl_core::mpi::{FUNCTION_COUNT, Function, Traffic};
use ampl_reader::selection::Selection;
use ampl_reader::{Rank, Run};
use ampl_trace::grammar::{Grammar, Item, Symbol};
use ampl_trace::structure::RankStructure;
use serde::Serialize;

use super::bytes::bytes;
use super::part::{Extent, Facts, RankPart, absent, read_sums};
use super::stored::Stored;
use crate::messages::{Comm, Edge, Messages, Volume};

/// Messages from a rank or host to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row<Place> {
    /// Sender.
    pub source: Place,
    /// Receiver.
    pub dest: Place,
    /// Number of messages.
    pub calls: u64,
    /// Their bytes, as far as these are known.
    pub bytes: u64,
}

/// Messages on a communicator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CommRow {
    /// The communicator: `world`, `self`, or its name.
    pub communicator: String,
    /// Number of messages.
    pub calls: u64,
    /// Their bytes, as far as these are known.
    pub bytes: u64,
}

/// Messages whose sizes lie between two powers of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SizeRow {
    /// Bytes of the smallest.
    pub least: u64,
    /// Bytes of the largest.
    pub most: u64,
    /// Number of messages.
    pub calls: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The messages that the ranks of a part send in it.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// Messages between ranks of the world, by sender and receiver.
    pub rows: Vec<Row<u32>>,
    /// The same by communicator, most bytes first.
    pub communicators: Vec<CommRow>,
    /// The same by size; messages of neighbour collectives and of other ranks' windows are left out.
    pub sizes: Vec<SizeRow>,
    /// Extent to which the part is known.
    pub extent: Extent,
    /// Messages to partners that are not known.
    pub unplaced: Volume,
    /// Messages whose bytes are not known.
    pub unsized_messages: u64,
    /// Messages that are known from their receives only.
    pub received_only: u64,
}

/// The messages in the part of `run` that `selection` asks for.
pub fn matrix(run: &Run, selection: &Selection, mut rank_done: impl FnMut()) -> Matrix {
    let facts = Facts::of(run);
    let cuts = selection.cuts_time();
    let mut extent = Extent::default();
    let mut sizes: BTreeMap<u32, SizeRow> = BTreeMap::new();
    let messages = Messages::of_part(run.structure(), run.communicators(), run.info().ranks, |structure| {
        let taken = selection.takes_rank(structure.rank);
        if !taken && !cuts {
            rank_done();
            return None;
        }
        let stored = Stored::of(run, structure.rank)?;
        let part = read_sums(&stored, selection, facts, false, |_| ());
        if taken {
            extent.add(&stored, &part, cuts);
            add_sizes(&mut sizes, &stored.rank, &part, run.info().ranks);
        }
        rank_done();
        cuts.then(|| cut(structure, &part))
    });
    extent.missing_ranks = absent(run, selection);
    let edges: Vec<Edge> =
        messages.matrix().into_iter().filter(|edge| selection.takes_rank(edge.from)).collect();
    let row = |edge: &Edge| Row { source: edge.from, dest: edge.to, calls: edge.messages, bytes: edge.bytes };
    Matrix {
        rows: edges.iter().map(row).collect(),
        communicators: communicators(&messages, selection),
        sizes: sizes.into_values().collect(),
        extent,
        unplaced: messages.unplaced,
        unsized_messages: messages.unsized_messages,
        received_only: messages.received_only,
    }
}

impl Matrix {
    /// The same by the hosts of the ranks.
    pub fn by_host(&self, host: impl Fn(u32) -> String) -> Vec<Row<String>> {
        let mut sums: BTreeMap<(String, String), Volume> = BTreeMap::new();
        for row in &self.rows {
            let sum = sums.entry((host(row.source), host(row.dest))).or_default();
            sum.add(Volume { messages: row.calls, bytes: row.bytes });
        }
        let row = |((source, dest), volume): ((String, String), Volume)| Row {
            source,
            dest,
            calls: volume.messages,
            bytes: volume.bytes,
        };
        sums.into_iter().map(row).collect()
    }
}

fn communicators(messages: &Messages, selection: &Selection) -> Vec<CommRow> {
    let mut sums: BTreeMap<Comm, Volume> = BTreeMap::new();
    for flow in &messages.flows {
        let sum = sums.entry(messages.places[flow.place as usize].comm).or_default();
        for edge in flow.edges.iter().filter(|edge| selection.takes_rank(edge.from)) {
            sum.add(Volume { messages: edge.messages, bytes: edge.bytes });
        }
    }
    let name = |comm| match comm {
        Comm::World => "MPI_COMM_WORLD".to_owned(),
        Comm::Itself => "MPI_COMM_SELF".to_owned(),
        Comm::Made(name) => name.to_string(),
    };
    let row = |(comm, volume): (Comm, Volume)| CommRow {
        communicator: name(comm),
        calls: volume.messages,
        bytes: volume.bytes,
    };
    let mut rows: Vec<CommRow> = sums.into_iter().filter(|(_, sum)| sum.messages > 0).map(row).collect();
    rows.sort_by_key(|row| std::cmp::Reverse((row.bytes, row.calls)));
    rows
}

/// Adds the messages that `rank` sends, by size: 0 bytes, 1, 2 to 3, 4 to 7, …
fn add_sizes(sizes: &mut BTreeMap<u32, SizeRow>, rank: &Rank<'_>, part: &RankPart, ranks: u32) {
    let moved = bytes(&rank.structure, ranks);
    for ((thread, counts), moved) in rank.structure.threads.iter().zip(&part.counts).zip(&moved) {
        for ((signature, &count), &moved) in thread.signatures.iter().zip(counts).zip(moved) {
            if count == 0 || !sends(signature, rank) {
                continue;
            }
            let Some(bytes) = moved else { continue };
            let class = u64::BITS - bytes.leading_zeros();
            let row = sizes.entry(class).or_insert(SizeRow { least: u64::MAX, ..SizeRow::default() });
            row.least = row.least.min(bytes);
            row.most = row.most.max(bytes);
            row.calls = row.calls.saturating_add(count);
            row.bytes = row.bytes.saturating_add(bytes.saturating_mul(count));
        }
    }
}

/// True where a call sends one message.
fn sends(signature: &ampl_trace::structure::Signature, rank: &Rank<'_>) -> bool {
    if usize::from(signature.function) >= FUNCTION_COUNT {
        return false;
    }
    let spec = Function(signature.function).spec();
    if spec.name == "MPI_Start" {
        let maker = crate::messages::started(signature).and_then(|started| started.first().copied());
        let made = |(thread, terminal): (u32, u32)| {
            let thread = rank.structure.threads.iter().find(|own| own.thread == thread)?;
            let maker = thread.signatures.get(terminal as usize)?;
            (usize::from(maker.function) < FUNCTION_COUNT)
                .then(|| Function(maker.function).spec().traffic == Traffic::SendInit)
        };
        return maker.and_then(made).unwrap_or(false);
    }
    matches!(spec.traffic, Traffic::Send | Traffic::Sendrecv | Traffic::SendrecvReplace)
        && !crate::messages::goes_nowhere(signature)
}

/// `structure` with only the calls of `part`, in the order of their terminals.
fn cut(structure: &RankStructure, part: &RankPart) -> RankStructure {
    let mut cut = structure.clone();
    for (thread, counts) in cut.threads.iter_mut().zip(&part.counts) {
        let item = |(terminal, &count): (u32, &u64)| Item {
            symbol: Symbol::terminal(terminal),
            counts: [(count, 1)].into_iter().collect(),
        };
        let items: Vec<Item> = (0..).zip(counts).filter(|(_, count)| **count > 0).map(item).collect();
        thread.grammar = Grammar { rules: [items].into_iter().collect() };
    }
    cut
}
