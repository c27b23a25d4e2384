//! Limits of a journal: the room of its place, and `agent.max_memory`.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ampl_trace::journal::{BlockKind, flag, word};
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::{Growing, Journal, Need};
use crate::free_space::{self, Reserve};
use crate::held::held_beside;
use crate::memory_limit::{MemoryLimit, Purpose, Taken};

/// How often a journal waits for its turn to grow where there is little room, and how long each time.
const TURNS: u32 = 100;
const TURN: Duration = Duration::from_micros(200);

/// Purpose of a block of that `kind`; `None` for those that a thread cannot do without.
pub(super) fn purpose(need: Need, kind: BlockKind) -> Option<Purpose> {
    match kind {
        _ if need == Need::Basic => None,
        BlockKind::Pending => Some(Purpose::Times),
        kind if kind.is_of_calls() => Some(Purpose::Calls),
        _ => Some(Purpose::Summaries),
    }
}

/// The error where `agent.max_memory` allows no more.
pub(super) fn reached() -> io::Error {
    io::ErrorKind::QuotaExceeded.into()
}

/// True for errors of [`reached`].
pub(super) fn is_reached(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::QuotaExceeded
}

impl Journal {
    /// This journal, for a process whose node has that limit.
    pub fn limited(mut self, limit: Option<MemoryLimit>) -> Self {
        self.limit = limit;
        self
    }

    /// True once a limit of memory has been reached.
    pub fn is_limited(&self) -> bool {
        self.header[word::FLAGS].load(Ordering::Relaxed) & flag::MAX_MEMORY != 0
    }

    /// True once the file cannot grow any more: later blocks are in memory, which has no room for times of calls.
    pub fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// True once the remaining memory is left to summaries: calls should take none of it.
    pub fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    /// True where another `words` words leave the program room enough. If not, the journal [is large](Self::is_large)
    /// from then on.
    pub fn has_room(&self, words: usize) -> bool {
        let (growing, _whole) = self.growing();
        let (file, bytes) = (growing.file.as_fd(), words as u64 * 8);
        let scarce = self.room.is_scarce(file, bytes)
            || !self.leaves(file, bytes, |reserve| reserve.times)
            || !self.allows(&growing, Some(Purpose::Times), bytes);
        self.large.fetch_or(scarce, Ordering::Relaxed);
        !scarce
    }

    /// True where the file system of `file` keeps the part of the reserve that `part` selects, after another `bytes`
    /// bytes.
    pub(super) fn leaves(&self, file: BorrowedFd<'_>, bytes: u64, part: fn(&Reserve) -> u64) -> bool {
        let Some(reserve) = &self.reserve else { return true };
        free_space::free(file).is_none_or(|free| free.saturating_sub(bytes) >= part(reserve))
    }

    /// True once so little room is left for the program that streams should not grow on.
    pub fn is_large(&self) -> bool {
        self.large.load(Ordering::Relaxed)
    }

    /// True where `agent.max_memory` allows another `bytes` bytes for `purpose`. If not, what they were for ends.
    pub(super) fn allows(&self, growing: &Growing, purpose: Option<Purpose>, bytes: u64) -> bool {
        let (Some(limit), Some(purpose)) = (&self.limit, purpose) else { return true };
        let in_memory = growing.spill.as_ref().map_or(0, |spill| spill.end);
        let taken = match &self.path {
            Some(path) => {
                let (journals, seen) = held_beside(path);
                Taken { journals: journals.max(growing.end), seen, private: in_memory }
            }
            // Nobody else sees it.
            None => Taken { journals: 0, seen: 1, private: growing.end + in_memory },
        };
        let allowed = limit.allows(taken, purpose, bytes);
        if !allowed {
            self.header[word::FLAGS].fetch_or(flag::MAX_MEMORY, Ordering::Relaxed);
            self.large.store(true, Ordering::Relaxed);
            self.crowded.fetch_or(purpose != Purpose::Times, Ordering::Relaxed);
        }
        allowed
    }

    /// Compares what has been allocated with the limit: memory of the process grows without the journal.
    pub fn watch_memory(&self) {
        if self.limit.is_none() || self.is_crowded() {
            return;
        }
        self.rarely(|| {
            let (growing, _whole) = self.growing();
            let _ = self.allows(&growing, Some(Purpose::Calls), 0)
                && self.allows(&growing, Some(Purpose::Times), 0);
        });
    }

    /// The sole right to grow among this run's journals, where it can be had: a stopped rank must not stop others.
    pub(super) fn turn(&self) -> io::Result<Option<File>> {
        let directory = self.path.as_deref().and_then(Path::parent).map(File::open);
        let Some(Ok(directory)) = directory else { return Ok(None) };
        for _ in 0..TURNS {
            match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(directory)),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(TURN),
                // Some file systems have no locks.
                Err(_) => return Ok(None),
            }
        }
        Err(io::ErrorKind::StorageFull.into())
    }

    /// Notes that the file, of `bytes` bytes, grows no more.
    pub(super) fn fall_short(&self, bytes: u64) {
        if !self.short.swap(true, Ordering::Relaxed) {
            self.large.store(true, Ordering::Relaxed);
            self.set(word::FILE_BYTES, bytes);
            self.set(word::SPILLED, self.latest().max(1));
        }
    }
}
