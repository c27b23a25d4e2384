//! Index of a trace's times: the same times once more, in pieces that can be read by themselves, with their sums.
//!
//! A rank's stored calls are cut into *chunks*, each of one window of one thread. A chunk has the limits of its calls'
//! times and its calls by signature and duration: a question to whole chunks reads no call. A chunk's calls are in
//! *blocks*, each with the time of every function: a timeline reads the calls of few blocks.
//!
//! An index is of one trace file, whose [identity](Header::identity) it has, and holds nothing that the trace has not.

mod ans;
mod models;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use read::{Block, Call, Chunk, Group, Header, RankIndex, Sections};
pub use write::{encode, put_header, put_rank};

/// First bytes of an index.
const MAGIC: [u8; 8] = *b"AMPLIDX1";
/// Most stored calls of a chunk.
const CHUNK: usize = 8192;
/// Most stored calls of a block.
const BLOCK: usize = 512;

/// A stored call, as it is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    /// Number of its signature.
    terminal: u32,
    /// Time since the end of the call before, zigzag.
    gap: u64,
    duration_ns: u64,
    /// Calls that it stands for.
    count: u64,
}

impl Entry {
    /// Numbers that are coded, by kind.
    fn numbers(&self) -> [u64; 4] {
        [self.terminal.into(), self.gap, self.duration_ns, self.count]
    }
}
