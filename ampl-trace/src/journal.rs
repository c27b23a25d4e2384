//! Layout of a rank's journal file: what the agent maps and what survives its process.
//!
//! A header page, then blocks back to back. Each block has 8 header words and a payload; a stream
//! block's commit counter is stored last, with release order, after the words it covers. Readers
//! take committed words only, so a process may die at any instruction.

use std::fmt;
use std::sync::OnceLock;

use crate::error::ReadError;
use crate::record::Word;

/// First word of a journal: `AMPLJRN0`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"AMPLJRN0");
/// Layout version in the second word.
pub const VERSION: u64 = 4;
/// Words of the header page (4096 bytes).
pub const HEADER_WORDS: usize = 512;
/// First word of a block: `AMPLBLK0`.
pub const BLOCK_MAGIC: u64 = u64::from_le_bytes(*b"AMPLBLK0");
/// Words of a block's header.
pub const BLOCK_HEADER_WORDS: usize = 8;
/// Words of one entry in a site table: return address; function, in the low 16 bits; calls; of their times in ticks
/// the sum, the low word of the sum of squares, least and most; bytes sent and received; the high word of the sum of
/// squares.
pub const SITE_WORDS: usize = 10;

/// Positions of words in a block's header.
pub mod head {
    /// [`super::BLOCK_MAGIC`].
    pub const MAGIC: usize = 0;
    /// [`super::BlockKind::number`].
    pub const KIND: usize = 1;
    /// The thread.
    pub const THREAD: usize = 2;
    /// Words of the payload.
    pub const CAPACITY: usize = 3;
    /// Words of it that are whole records.
    pub const COMMITTED: usize = 4;
    /// Pending blocks, logs and snapshots: number in the order of their contents.
    pub const ORDER: usize = 5;
    /// Pending blocks: first word that is not decided.
    pub const LIVE: usize = 6;
}

/// Positions of words in the header page.
pub mod word {
    /// [`super::MAGIC`], written last: a journal without it was never opened.
    pub const MAGIC: usize = 0;
    /// [`super::VERSION`].
    pub const VERSION: usize = 1;
    /// Rank in `MPI_COMM_WORLD`.
    pub const RANK: usize = 2;
    /// Ranks in `MPI_COMM_WORLD`.
    pub const RANKS: usize = 3;
    /// Process number.
    pub const PID: usize = 4;
    /// Ticks of the first clock pair.
    pub const TICKS_FIRST: usize = 5;
    /// Nanoseconds since the job's T0 of the first clock pair (two's complement).
    pub const NANOS_FIRST: usize = 6;
    /// Ticks of the latest clock pair.
    pub const TICKS_LAST: usize = 7;
    /// Nanoseconds since T0 of the latest clock pair.
    pub const NANOS_LAST: usize = 8;
    /// Bits of [`super::flag`].
    pub const FLAGS: usize = 9;
    /// Ticks of processor time that the agent itself took.
    pub const OWN_TICKS: usize = 10;
    /// Failures of the agent.
    pub const FAILURES: usize = 11;
    /// CRC-32 of the function table, so that a journal is never read with another one.
    pub const TABLE: usize = 12;
    /// Largest error of the times of a process whose clock is not rank 0's, nanoseconds.
    pub const CLOCK_ERROR: usize = 13;
    /// Nanoseconds that were added to its clock for rank 0's (two's complement).
    pub const CLOCK_OFFSET: usize = 14;
    /// Nanoseconds that the clock lost to rank 0's in 10^6, as a double; not a number where it was not measured.
    pub const CLOCK_DRIFT: usize = 15;
    /// Ticks of the latest clock pair when something of the sequence first had no room; 0 if all had.
    pub const FULL: usize = 16;
    /// `MPI_ANY_SOURCE` of its MPI, and `MPI_ANY_TAG` in the upper half: for calls that a rank is in.
    pub const ANY: usize = 504;
    /// `MPI_PROC_NULL`, and `MPI_ROOT` in the upper half.
    pub const NOBODY: usize = 505;
    /// The handle of `MPI_COMM_WORLD`.
    pub const WORLD: usize = 506;
    /// The handle of `MPI_COMM_SELF`.
    pub const ITSELF: usize = 507;
    /// Nanoseconds of processor time of the agent's rare work: the journal's growth, snapshots.
    pub const RARE_NS: usize = 17;
    /// Nanoseconds of processor time that the agent took in `MPI_Init`, and before it to start the program.
    pub const BEGIN_NS: usize = 18;
    /// Nanoseconds of processor time of the whole process so far.
    pub const PROCESSOR_NS: usize = 19;
    /// Number of times that the thread that checked last has lost its processor to another, so far.
    pub const SWITCHES: usize = 20;
    /// Processors of the node that are in use; 0 where that is not known.
    pub const PROCESSORS: usize = 21;
    /// Thousandths of a processor that the control group allows; 0 where it allows all.
    pub const QUOTA: usize = 22;
    /// Start of the packed texts: host, CPU binding, run directory, and the program where that is not rank 0's.
    pub const TEXTS: usize = 23;
    /// Ticks of the latest clock pair when the file could not grow any more; 0 if it can. What came later is in the
    /// process's memory.
    pub const SPILLED: usize = 500;
    /// Bytes of the file then: those behind them are what was in memory.
    pub const FILE_BYTES: usize = 501;
    /// Start of the process, clock ticks since the boot; 0 where it is not known.
    pub const STARTED: usize = 502;
    /// The namespace of its process number; 0 where that is not known.
    pub const PID_NAMESPACE: usize = 503;
    /// Nanoseconds of processor time of the process that copies the node's journals, in the journal of one rank.
    pub const COPY_NS: usize = 508;
    /// Ticks of the agent's time for polls in a row that found nothing, but the first of each row.
    pub const POLLING_TICKS: usize = 509;
    /// End of the texts.
    pub const TEXTS_END: usize = 496;
}

/// Bits of the header's flag word.
pub mod flag {
    /// `MPI_Finalize` was entered: every call of the application is in.
    pub const FINALIZED: u64 = 1;
    /// The agent gave up; what it had committed is here.
    pub const DISABLED: u64 = 2;
    /// It gave up because it found no room for a thread's first blocks.
    pub const NO_ROOM: u64 = 4;
    /// `agent.max_memory` was reached: something had no room for that reason.
    pub const MAX_MEMORY: u64 = 8;
}

/// The first byte of a snapshot.
pub mod snapshot {
    /// A grammar follows ([`Grammar::read`](crate::grammar::Grammar::read)): the thread has ended.
    pub const GRAMMAR: u8 = 0;
    /// A builder's contents follow ([`Grammar::undump`](crate::grammar::Grammar::undump)).
    pub const BUILDER: u8 = 1;
}

/// Layout of a thread's table of unrecorded calls: words before the entries, then a key and a number of calls each.
pub mod gap {
    /// Ticks of the first call, or some before.
    pub const FROM: usize = 0;
    /// Ticks of the last call whose moment is known.
    pub const UNTIL: usize = 1;
    /// Words before the entries.
    pub const HEAD_WORDS: usize = 2;
    /// Entries.
    pub const PLACES: usize = 128;

    const FUNCTION_AT: u32 = 48;
    const REASON_AT: u32 = 60;
    const ADDRESS: u64 = (1 << FUNCTION_AT) - 1;

    /// The key of calls of `function` that return to `address`, which is 0 where it does not matter, for the reason of
    /// that number.
    #[inline(always)]
    pub fn key(function: u16, address: u64, reason: u64) -> u64 {
        address & ADDRESS | u64::from(function) << FUNCTION_AT | reason << REASON_AT
    }

    /// Function, address and reason of a key.
    pub fn parts(key: u64) -> (u16, u64, u64) {
        ((key >> FUNCTION_AT) as u16 & 0xfff, key & ADDRESS, key >> REASON_AT)
    }
}

/// Contents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Calls per function, updated in place.
    Counters,
    /// Aggregates per call site, updated in place.
    Sites,
    /// Records up to the commit counter.
    Stream,
    /// Records of windows that are not decided yet, from one word on up to the commit counter. Blocks are used again
    /// and again, so their order is by their order number alone.
    Pending,
    /// Runs of calls since a snapshot: terminal, and from bit 32 on how many. Its order number is that of the snapshot.
    Log,
    /// A snapshot of the thread's grammar: its bytes, and the bytes themselves. The one with the highest order number
    /// counts; one without is being written, or was given up.
    Snapshot,
    /// Unrecorded calls since the last recorded one, updated in place: [`gap`].
    Gap,
    /// Runs of unrecorded calls, as [`Log`](Self::Log).
    GapLog,
    /// A snapshot of their grammar, as [`Snapshot`](Self::Snapshot).
    GapSnapshot,
    /// Runs of [moves](crate::buffers), as [`Log`](Self::Log).
    MoveLog,
    /// A snapshot of their grammar, as [`Snapshot`](Self::Snapshot).
    MoveSnapshot,
}

impl BlockKind {
    /// The number in a block's header.
    pub fn number(self) -> u64 {
        match self {
            Self::Counters => 1,
            Self::Sites => 2,
            Self::Stream => 3,
            Self::Pending => 4,
            Self::Log => 5,
            Self::Snapshot => 6,
            Self::Gap => 7,
            Self::GapLog => 8,
            Self::GapSnapshot => 9,
            Self::MoveLog => 10,
            Self::MoveSnapshot => 11,
        }
    }

    /// True for contents that grow with the calls that are recorded, or are not.
    pub fn is_of_calls(self) -> bool {
        use BlockKind::*;
        matches!(self, Log | Snapshot | Pending | GapLog | GapSnapshot | MoveLog | MoveSnapshot)
    }

    fn from_number(number: u64) -> Option<Self> {
        use BlockKind::*;
        let calls = [Log, Snapshot, GapLog, GapSnapshot, MoveLog, MoveSnapshot];
        let others = [Counters, Sites, Stream, Pending, Gap];
        calls.into_iter().chain(others).find(|kind| kind.number() == number)
    }
}

/// One block of a journal.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    /// Kind of its contents.
    pub kind: BlockKind,
    /// The thread it belongs to, 0 for the one that called `MPI_Init`.
    pub thread: u32,
    /// Its payload: committed words of a stream, undecided ones of a pending block, all words otherwise.
    pub words: &'a [Word],
    /// Number in the order of contents, of kinds that have one.
    pub order: u64,
}

/// A journal as it lies in its bytes.
#[derive(Debug)]
pub struct Journal<'a> {
    /// The header page.
    pub header: Vec<u64>,
    /// The blocks, in the order of the file.
    pub blocks: Vec<Block<'a>>,
    /// Position in words of the first block that could not be read, if one.
    pub cut_at: Option<usize>,
}

/// The journal in `bytes`: everything committed before its process ended.
///
/// # Errors
/// [`ReadError`] when there is no whole header page of this layout and function table. A damaged
/// block ends the reading, but is no error: see [`Journal::cut_at`].
pub fn read(bytes: &[u8]) -> Result<Journal<'_>, ReadError> {
    let (words, _) = bytes.as_chunks::<8>();
    let Some((header, _)) = words.split_first_chunk::<HEADER_WORDS>() else {
        return Err(ReadError::TooShort { len: bytes.len() });
    };
    let header = header.map(u64::from_le_bytes).to_vec();
    if header[word::MAGIC] != MAGIC {
        return Err(ReadError::BadMagic { found: header[word::MAGIC].to_le_bytes() });
    }
    if header[word::VERSION] != VERSION {
        return Err(ReadError::UnknownVersion { found: header[word::VERSION] });
    }
    if header[word::TABLE] != u64::from(table_checksum()) {
        return Err(ReadError::TableMismatch { function: "the table of functions".into() });
    }
    // Ranks are ints of C. Behind one beyond these there would be no room for a next.
    if header[word::RANK] > i32::MAX as u64 {
        return Err(ReadError::Malformed { what: "rank", at: word::RANK });
    }
    let mut blocks = Vec::new();
    let mut at = HEADER_WORDS;
    let mut cut_at = None;
    while let Some((head, payload)) = words[at..].split_first_chunk::<BLOCK_HEADER_WORDS>() {
        let head = head.map(u64::from_le_bytes);
        if head[head::MAGIC] == 0 {
            break; // allocated, never opened
        }
        let kind = BlockKind::from_number(head[head::KIND]);
        let payload = usize::try_from(head[head::CAPACITY]).ok().and_then(|capacity| payload.get(..capacity));
        let (BLOCK_MAGIC, Some(kind), Some(payload)) = (head[head::MAGIC], kind, payload) else {
            cut_at = Some(at);
            break;
        };
        let place = |word: usize| usize::try_from(head[word]).unwrap_or(usize::MAX).min(payload.len());
        let used = match kind {
            BlockKind::Stream
            | BlockKind::Log
            | BlockKind::Snapshot
            | BlockKind::GapLog
            | BlockKind::GapSnapshot
            | BlockKind::MoveLog
            | BlockKind::MoveSnapshot => 0..place(head::COMMITTED),
            BlockKind::Pending => place(head::LIVE).min(place(head::COMMITTED))..place(head::COMMITTED),
            BlockKind::Counters | BlockKind::Sites | BlockKind::Gap => 0..payload.len(),
        };
        let (thread, order) = (head[head::THREAD] as u32, head[head::ORDER]);
        blocks.push(Block { kind, thread, words: &payload[used], order });
        at += BLOCK_HEADER_WORDS + payload.len();
    }
    Ok(Journal { header, blocks, cut_at })
}

/// CRC-32 over names and parameters of the function table.
pub fn table_checksum() -> u32 {
    // Asked for when a journal begins and again when it is merged, inside MPI's own calls.
    static CHECKSUM: OnceLock<u32> = OnceLock::new();
    *CHECKSUM.get_or_init(|| {
        let mut sum = Checksum(crc32fast::Hasher::new());
        for spec in ampl_core::mpi::FUNCTIONS {
            sum.add(format_args!("{}", spec.name));
            for param in spec.params {
                sum.add(format_args!(
                    "{}{:?}{:?}{:?}",
                    param.name, param.kind, param.direction, param.length
                ));
            }
        }
        for (kind, name) in ampl_core::mpi::PREDEFINED {
            sum.add(format_args!("{}{name}", kind.name()));
        }
        sum.0.finalize()
    })
}

/// Checksum of text that is written to it.
struct Checksum(crc32fast::Hasher);

impl Checksum {
    fn add(&mut self, text: fmt::Arguments<'_>) {
        fmt::Write::write_fmt(self, text).expect("summing up does not fail");
    }
}

impl fmt::Write for Checksum {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}
