//! Bytes as an index of times, and as that of a rank: read to an end within bounds.

use std::sync::OnceLock;

use ampl_trace::structure::RankStructure;
use ampl_trace::time_index::{Chunk, Header, RankIndex, Sections};

/// Trace whose first rank the calls are of.
const GOLDEN: &[u8] = include_bytes!("../../ampl-trace/tests/golden/v1/four-ranks.ampl");
/// Stored calls of a chunk, at most.
const MOST_CALLS: u64 = 1 << 16;
/// Chunks that are read of one input, so that those of many are tried: each may have that many calls.
const MOST_CHUNKS: usize = 4;

/// Reads `bytes`.
///
/// # Panics
/// Where the property does not hold.
pub fn check(bytes: &[u8]) {
    rank(bytes);
    if Header::read(bytes).is_some() {
        Sections::of(bytes).take(MOST_CHUNKS).for_each(|(_, place, _)| rank(&bytes[place]));
    }
}

fn structure() -> &'static RankStructure {
    static STRUCTURE: OnceLock<RankStructure> = OnceLock::new();
    STRUCTURE.get_or_init(|| {
        let trace = ampl_trace::format::read(GOLDEN).expect("golden");
        trace.structure.rank(0).expect("rank 0")
    })
}

fn rank(bytes: &[u8]) {
    let Some(index) = RankIndex::read(bytes) else { return };
    let mut reader = index.reader(structure());
    for chunk in index.chunks().iter().take(MOST_CHUNKS) {
        parts(chunk, bytes.len());
        let mut calls = 0;
        let whole = reader.chunk(chunk, |_| calls += 1);
        assert!(calls <= MOST_CALLS);
        let mut entries = 0;
        let blocks = chunk.blocks(|block, _| {
            let _ = reader.block(block, |_| entries += 1);
        });
        assert!(entries <= MOST_CALLS && (whole.is_none() || blocks.is_some() && entries == calls));
    }
}

/// Sums of `chunk`, of an index of that many bytes: each takes one or more.
fn parts(chunk: &Chunk<'_>, bytes: usize) {
    let mut groups = 0;
    let _ = chunk.groups(|_| groups += 1);
    let sums = chunk.sums().map_or(0, |sums| sums.len());
    let functions = chunk.functions().map_or(0, |functions| functions.len());
    assert!(groups <= bytes && sums <= bytes && functions <= bytes);
    let _ = (chunk.visits(), chunk.is_dense(), chunk.has_groups());
}
