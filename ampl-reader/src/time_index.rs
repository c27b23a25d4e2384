//! The index of a run's times: a file beside the trace.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ampl_trace::time_index::{Header, RankIndex, Sections};
use memmap2::Mmap;

use crate::names::INDEX;

/// Place of the index of the trace file at `trace`.
pub fn place(trace: &Path) -> PathBuf {
    let mut name = OsString::from(trace);
    name.push(INDEX);
    name.into()
}

/// An index of the times of a run.
#[derive(Debug)]
pub struct TimeIndex {
    bytes: Bytes,
    /// Bytes of each rank, and their checksum.
    ranks: BTreeMap<u32, (Range<usize>, u32)>,
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
        let ranks =
            Sections::of(bytes.all()).map(|(rank, range, checksum)| (rank, (range, checksum))).collect();
        (header.identity == identity).then_some(Self { bytes, ranks })
    }

    /// The index of `rank`; `None` where there is none, or it is damaged.
    pub(crate) fn rank(&self, rank: u32) -> Option<RankIndex<'_>> {
        let (range, checksum) = self.ranks.get(&rank)?;
        let bytes = &self.bytes.all()[range.clone()];
        (crc32fast::hash(bytes) == *checksum).then(|| RankIndex::read(bytes)).flatten()
    }
}
