//! The index of a run's times: a file beside the trace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use ampl_core::mpi::FUNCTIONS;
use ampl_trace::format::TraceFile;
use ampl_trace::time_index::{Header, RankIndex, Sections};
use memmap2::Mmap;

use crate::names::INDEX;

/// Place of the index of the trace file at `trace`.
pub fn place(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(INDEX);
    name.into()
}

/// Identity of `file` for its index, whose numbers of functions are those of this version.
pub(crate) fn identity(file: &TraceFile<Mmap>) -> u64 {
    static NAMES: OnceLock<u32> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names = crc32fast::Hasher::new();
        FUNCTIONS.iter().for_each(|function| names.update(function.name.as_bytes()));
        names.finalize()
    });
    file.identity() ^ u64::from(*names) << 32
}

/// An index of the times of a run.
#[derive(Debug)]
pub struct TimeIndex {
    bytes: Bytes,
    ranks: BTreeMap<u32, Section>,
}

/// Bytes of a rank.
#[derive(Debug)]
struct Section {
    place: Range<usize>,
    checksum: u32,
    /// True where the bytes have the checksum.
    is_whole: OnceLock<bool>,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Own(Vec<u8>),
}

impl Bytes {
    fn all(&self) -> &[u8] {
        match self {
            Self::Mapped(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

impl TimeIndex {
    /// The index in the file at `path`; `None` where it is none of the trace with that identity.
    pub(crate) fn open(path: &Path, identity: u64) -> Option<Self> {
        Self::of(Bytes::Mapped(crate::map::file(path).ok()?), identity)
    }

    /// The index in `bytes`; `None` where it is none of the trace with that identity.
    pub fn in_memory(bytes: Vec<u8>, identity: u64) -> Option<Self> {
        Self::of(Bytes::Own(bytes), identity)
    }

    fn of(bytes: Bytes, identity: u64) -> Option<Self> {
        let header = Header::read(bytes.all())?;
        let section =
            |(rank, place, checksum)| (rank, Section { place, checksum, is_whole: OnceLock::new() });
        let ranks = Sections::of(bytes.all()).map(section).collect();
        (header.identity == identity).then_some(Self { bytes, ranks })
    }

    /// The index of `rank`; `None` where there is none, or it is damaged.
    pub(crate) fn rank(&self, rank: u32) -> Option<RankIndex<'_>> {
        RankIndex::read(self.section(rank)?)
    }

    /// True where the index of `rank` has classes of its calls.
    pub(crate) fn has_classes(&self, rank: u32) -> bool {
        self.section(rank).is_some_and(RankIndex::has_classes)
    }

    /// Bytes of `rank`; `None` where there are none, or they are damaged.
    fn section(&self, rank: u32) -> Option<&[u8]> {
        let Section { place, checksum, is_whole } = self.ranks.get(&rank)?;
        let bytes = &self.bytes.all()[place.clone()];
        is_whole.get_or_init(|| crc32fast::hash(bytes) == *checksum).then_some(bytes)
    }
}
