//! Index of a trace's times: the same times once more, in pieces that can be read by themselves, with their sums.
//!
//! A rank's stored calls are cut into *chunks*, each of one window of one thread. A chunk has the limits of its calls'
//! times, the sums of its calls by function and site, and, where they are few, its calls by signature and duration: a
//! question to whole chunks reads no call. Where a thread's times have no gap, it has the visits of regions before it.
//! A chunk's calls are in *blocks*, each with the time of every function: a timeline reads the calls of few blocks.
//!
//! An index is of one trace file, whose [identity](Header::identity) it has, and holds nothing that the trace has not.
//! Which calls they are is not in it where the structure of the trace has that, from any call on, soon enough: else it has
//! the [classes](Classes) of the calls.

mod ans;
mod classes;
mod models;
mod read;
mod tables;
#[cfg(test)]
mod tests;
mod visits;
mod write;

pub use classes::{Classes, OfTerminals};
pub use read::{Block, Call, CallReader, Chunk, Group, Header, RankIndex, Sections, Sum};
pub use visits::{Ended, Regions, Visits};
pub use write::{RANK_HEAD_BYTES, encode, put_header, put_rank};

use crate::record::CALL_MISS;
use crate::structure::Signature;

/// First bytes of an index.
const MAGIC: [u8; 8] = *b"AMPLIDX3";
/// Most stored calls of a chunk.
const CHUNK: usize = 1 << 16;
/// Most stored calls of a block: the first that makes an index small enough.
const BLOCKS: [usize; 2] = [1024, 4096];

/// A stored call, as it is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Number of its signature; of its class, where there are classes.
    terminal: u32,
    /// Context of its numbers, by that number.
    context: u16,
    /// True where it may stand for any number of calls.
    folds: bool,
    /// Time since the end of the call before, zigzag.
    gap: u64,
    duration_ns: u64,
    /// Calls that it stands for.
    count: u64,
    /// Number of the call behind it.
    next_seq: u64,
}

/// True where an entry with that signature may stand for any number of calls: failed polls.
fn folds(signature: &Signature) -> bool {
    signature.flags & CALL_MISS != 0
}
