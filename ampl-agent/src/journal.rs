//! A rank's journal file while it is being written.
//!
//! The file stays open as long as the job runs, under a [high](crate::descriptor) number. A program may close
//! numbers that it does not know, and be given them again; so before the file grows it is made sure that it still
//! is ours.
//!
//! What is left of the place of the file is looked at whenever streams grow: a journal must not take the
//! [room](crate::room) that the program will want. Where the place is full all the same, what follows goes to [memory](SPILL_BYTES) that ends with the process, and is
//! read behind the file: a whole run loses nothing, one that dies has what was in the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ampl_trace::journal::{
    BLOCK_HEADER_WORDS, BLOCK_MAGIC, BlockKind, HEADER_WORDS, MAGIC, VERSION, flag, table_checksum, word,
};
use ampl_trace::model::ClockFit;
use ampl_trace::record::put_text;

use crate::descriptor::high;
use crate::map::{MappedBlock, ReadOnlyMap, map_block};
use crate::room::Room;
use crate::uncancelled::Uncancelled;

const PAGE_WORDS: usize = 512;

/// Bytes that a journal takes of the process's memory once its file cannot grow: many windows' summaries, and no
/// burden to a job.
pub const SPILL_BYTES: u64 = 32 << 20;

/// What the header tells of the process.
#[derive(Clone, Debug, Default)]
pub struct Identity {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Ranks in `MPI_COMM_WORLD`.
    pub ranks: u32,
    /// Process number.
    pub pid: u32,
    /// Host name.
    pub host: String,
    /// Processors the process may run on.
    pub cpus: String,
    /// First clock pair: ticks, and nanoseconds since T0.
    pub first_pair: (u64, i64),
}

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    /// None for one that only memory holds.
    path: Option<PathBuf>,
    header: &'static [AtomicU64],
    file: Mutex<Growing>,
    /// Whether the file cannot grow any more.
    short: AtomicBool,
    /// Whether little room is left beside it.
    large: AtomicBool,
    room: Room,
}

#[derive(Debug)]
struct Growing {
    file: File,
    /// Device and number of the file.
    inode: (u64, u64),
    end: u64,
    /// What follows the file's end, where that could not grow.
    spill: Option<Box<Growing>>,
}

impl Journal {
    /// A new journal at `path`, its header page mapped and filled.
    ///
    /// # Errors
    /// Those of creating and allocating the file; an existing file is one of them.
    pub fn create(path: &Path, identity: &Identity) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Self::begin(file, Some(path.to_owned()), identity).inspect_err(|_| {
            // An empty file would only be in the way.
            let _ = std::fs::remove_file(path);
        })
    }

    /// A new journal without a name: it goes with the process.
    ///
    /// # Errors
    /// Those of memfd_create(2) and of allocating memory.
    pub fn in_memory(identity: &Identity) -> io::Result<Self> {
        Self::begin(memory()?, None, identity)
    }

    fn begin(file: File, path: Option<PathBuf>, identity: &Identity) -> io::Result<Self> {
        let file = high(file);
        let inode = inode(file.as_fd())?;
        let page = map_block(&file, 0, HEADER_WORDS, HEADER_WORDS)?;
        let journal = Self {
            path,
            header: page.head,
            file: Mutex::new(Growing { file, inode, end: (HEADER_WORDS * 8) as u64, spill: None }),
            short: AtomicBool::new(false),
            large: AtomicBool::new(false),
            room: Room::new(Path::new("/")),
        };
        journal.set(word::VERSION, VERSION);
        journal.set(word::RANK, u64::from(identity.rank));
        journal.set(word::RANKS, u64::from(identity.ranks));
        journal.set(word::PID, u64::from(identity.pid));
        journal.set(word::TICKS_FIRST, identity.first_pair.0);
        journal.set(word::NANOS_FIRST, identity.first_pair.1 as u64);
        journal.clock_pair(identity.first_pair.0, identity.first_pair.1);
        journal.set(word::TABLE, u64::from(table_checksum()));
        let mut texts = Vec::new();
        put_text(&mut texts, &identity.host);
        put_text(&mut texts, &identity.cpus);
        for (index, &text) in texts.iter().take(HEADER_WORDS - word::TEXTS).enumerate() {
            journal.set(word::TEXTS + index, text);
        }
        journal.header[word::MAGIC].store(MAGIC, Ordering::Release);
        Ok(journal)
    }

    /// Everything written so far.
    ///
    /// # Errors
    /// That of mmap(2), or that the program has closed the file and it has no name.
    pub fn contents(&self) -> io::Result<ReadOnlyMap> {
        let (mut growing, _whole) = self.growing();
        growing.recover(self.path.as_deref())?;
        let Growing { file, end, spill, .. } = &mut *growing;
        let mut parts = vec![(&*file, *end)];
        if let Some(spill) = spill
            && spill.recover(None).is_ok()
        {
            parts.push((&spill.file, spill.end));
        }
        ReadOnlyMap::new(&parts)
    }

    /// Whether the place of the file is full: there is memory for summaries, and calls should take none of it.
    pub fn is_short(&self) -> bool {
        self.short.load(Ordering::Relaxed)
    }

    /// Whether the program has room enough beside another `words` words. If not, the journal [is
    /// large](Self::is_large) from then on.
    pub fn has_room(&self, words: usize) -> bool {
        let (growing, _whole) = self.growing();
        let scarce = self.room.is_scarce(growing.file.as_fd(), words as u64 * 8);
        self.large.fetch_or(scarce, Ordering::Relaxed);
        !scarce
    }

    /// Whether so little room is left for the program that streams should not grow on.
    pub fn is_large(&self) -> bool {
        self.large.load(Ordering::Relaxed)
    }

    /// Removes the file, which is not needed any more.
    pub fn remove(&self) {
        if let Some(path) = &self.path {
            // Where it cannot be removed it is as good as any other file left behind.
            let _ = std::fs::remove_file(path);
        }
    }

    /// The file, for this thread alone, which cannot be cancelled meanwhile.
    fn growing(&self) -> (MutexGuard<'_, Growing>, Uncancelled) {
        let whole = Uncancelled::begin();
        (self.file.lock().unwrap_or_else(PoisonError::into_inner), whole)
    }

    fn set(&self, index: usize, value: u64) {
        self.header[index].store(value, Ordering::Relaxed);
    }

    /// Records the latest clock pair: ticks, and nanoseconds since T0.
    pub fn clock_pair(&self, ticks: u64, nanos: i64) {
        self.set(word::TICKS_LAST, ticks);
        self.set(word::NANOS_LAST, nanos as u64);
    }

    /// Puts both clock pairs right: `right` makes of nanoseconds since T0, as they are, what they should be.
    pub fn correct(&self, right: impl Fn(i64) -> i64) {
        for index in [word::NANOS_FIRST, word::NANOS_LAST] {
            self.set(index, right(self.header[index].load(Ordering::Relaxed) as i64) as u64);
        }
    }

    /// Records how the clock was brought in step with rank 0's, where that is another.
    pub fn aligned(&self, fit: Option<ClockFit>) {
        let Some(fit) = fit else { return };
        self.set(word::CLOCK_OFFSET, fit.offset_ns as u64);
        self.set(word::CLOCK_DRIFT, fit.drift_ppm.unwrap_or(f64::NAN).to_bits());
        self.set(word::CLOCK_ERROR, fit.error_ns);
    }

    /// Nanoseconds per tick between the first and the latest clock pair.
    pub fn nanos_per_tick(&self) -> f64 {
        let load = |index: usize| self.header[index].load(Ordering::Relaxed);
        let ticks = load(word::TICKS_LAST).wrapping_sub(load(word::TICKS_FIRST));
        let nanos = load(word::NANOS_LAST).wrapping_sub(load(word::NANOS_FIRST));
        if ticks == 0 { 1.0 } else { nanos as f64 / ticks as f64 }
    }

    /// Ticks and nanoseconds since T0 of the first clock pair.
    pub fn first_pair(&self) -> (u64, i64) {
        let load = |index: usize| self.header[index].load(Ordering::Relaxed);
        (load(word::TICKS_FIRST), load(word::NANOS_FIRST) as i64)
    }

    /// Adds to the agent's own time.
    pub fn add_own_ticks(&self, ticks: u64) {
        self.header[word::OWN_TICKS].fetch_add(ticks, Ordering::Relaxed);
    }

    /// Counts a failure of the agent.
    pub fn count_failure(&self) {
        self.header[word::FAILURES].fetch_add(1, Ordering::Relaxed);
    }

    /// Something of a thread's sequence has no room, and is missing from about now on: a failure of the agent.
    pub fn lacks(&self) {
        self.count_failure();
        let now = self.header[word::TICKS_LAST].load(Ordering::Relaxed).max(1);
        let _ = self.header[word::FULL].compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Every call of the application is in.
    pub fn mark_finalized(&self) {
        self.header[word::FLAGS].fetch_or(flag::FINALIZED, Ordering::Release);
    }

    /// The agent gave up.
    pub fn mark_disabled(&self) {
        self.header[word::FLAGS].fetch_or(flag::DISABLED, Ordering::Release);
    }

    /// A new block of at least `payload_words` words for `thread`, in memory where the file cannot grow.
    ///
    /// # Errors
    /// That of the file system, when it is full and so is the [memory](SPILL_BYTES) for that; or that the program has
    /// closed the file and it has no name.
    pub fn block(&self, kind: BlockKind, thread: u32, payload_words: usize) -> io::Result<MappedBlock> {
        let words = (BLOCK_HEADER_WORDS + payload_words).next_multiple_of(PAGE_WORDS);
        let (mut growing, _whole) = self.growing();
        growing.recover(self.path.as_deref())?;
        let block = match growing.grow(words) {
            Ok(block) => block,
            // What has no name is in memory already.
            Err(error) if self.path.is_none() => return Err(error),
            Err(error) => {
                self.short.store(true, Ordering::Relaxed);
                growing.spill(words).map_err(|_| error)?
            }
        };
        block.head[1].store(kind.number(), Ordering::Relaxed);
        block.head[2].store(u64::from(thread), Ordering::Relaxed);
        block.head[3].store((words - BLOCK_HEADER_WORDS) as u64, Ordering::Relaxed);
        block.head[0].store(BLOCK_MAGIC, Ordering::Release);
        Ok(block)
    }
}

/// A file without a name, in the process's memory.
fn memory() -> io::Result<File> {
    Ok(rustix::fs::memfd_create(c"ampl-journal", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

impl Growing {
    /// The next `words` words of the file.
    fn grow(&mut self, words: usize) -> io::Result<MappedBlock> {
        if self.spill.is_some() {
            // Room there again would be before what has gone to memory.
            return Err(io::ErrorKind::StorageFull.into());
        }
        let block = map_block(&self.file, self.end, BLOCK_HEADER_WORDS, words).inspect_err(|_| {
            // Some file systems leave what they could allocate: it belongs to nothing.
            let _ = rustix::fs::ftruncate(&self.file, self.end);
        })?;
        self.end += (words * 8) as u64;
        Ok(block)
    }

    /// The next `words` words of the memory behind the file.
    fn spill(&mut self, words: usize) -> io::Result<MappedBlock> {
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => {
                let file = high(memory()?);
                let inode = inode(file.as_fd())?;
                none.insert(Box::new(Growing { file, inode, end: 0, spill: None }))
            }
        };
        if spill.end + (words * 8) as u64 > SPILL_BYTES {
            return Err(io::ErrorKind::StorageFull.into());
        }
        spill.recover(None)?;
        spill.grow(words)
    }

    /// Makes sure that the file is ours; it is opened again where the program has closed it.
    fn recover(&mut self, path: Option<&Path>) -> io::Result<()> {
        if inode(self.file.as_fd()).is_ok_and(|found| found == self.inode) {
            return Ok(());
        }
        let closed = || io::Error::from_raw_os_error(libc::EBADF);
        let again = OpenOptions::new().read(true).write(true).open(path.ok_or_else(closed)?)?;
        if inode(again.as_fd())? != self.inode {
            return Err(closed());
        }
        // The number behind the old handle is the program's now, or nobody's: it is not ours to close.
        std::mem::forget(std::mem::replace(&mut self.file, high(again)));
        Ok(())
    }
}

fn inode(file: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let found = rustix::fs::fstat(file)?;
    Ok((found.st_dev, found.st_ino))
}
