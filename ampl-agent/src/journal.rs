//! A rank's journal file while it is being written.
//!
//! The file stays open as long as the job runs, under a [high](crate::descriptor) number. A program may close numbers
//! that it does not know, and be given them again; so the journal checks that the file is its own before that grows.
//!
//! Before it grows, it reads the room left in its place: all journals of a node together must leave the
//! [room](crate::free_space) that the program and its MPI will want. Where they would not, or the place is full, the
//! rest goes to [memory](SPILL_BYTES) that ends with the process and is read behind the file. A run that finishes loses
//! nothing; one that dies keeps what was in the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ampl_trace::current::ends;
use ampl_trace::journal::{
    BLOCK_HEADER_WORDS, BLOCK_MAGIC, BlockKind, HEADER_WORDS, MAGIC, VERSION, flag, head, table_checksum,
    word,
};
use ampl_trace::model::ClockFit;
use ampl_trace::record::put_text;

use crate::descriptor::high;
use crate::free_space::{self, Reserve, Room};
use crate::held::{held_beside, hold};
use crate::map::{MappedBlock, ReadOnlyMap, map_block};
use crate::memory_limit::{MemoryLimit, Purpose};
use crate::uncancelled::Uncancelled;

mod limits;
mod measured;

use limits::{is_reached, purpose, reached};

const PAGE_WORDS: usize = 512;

/// Bytes that a journal takes of the process's memory once its file cannot grow: no burden to a job.
pub const SPILL_BYTES: u64 = 32 << 20;
/// The part of them that calls may take. The rest is for many windows' summaries.
const SPILLED_CALLS: u64 = SPILL_BYTES / 4 * 3;
/// Most journals that are taken to grow at once, where there is room for all of them.
const AT_ONCE: u64 = 256;

/// Purpose of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A thread begins.
    Basic,
    /// A thread goes on.
    More,
}

/// Facts of the process in the journal's header.
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
    /// Start of the process, clock ticks since the boot.
    pub started: u64,
    /// Namespace of the process number.
    pub pid_namespace: u64,
    /// The run directory.
    pub run: String,
    /// The program, where it is not rank 0's.
    pub program: String,
    /// First clock pair: ticks, and nanoseconds since T0.
    pub first_pair: (u64, i64),
}

/// The journal of this process.
#[derive(Debug)]
pub struct Journal {
    /// Path of the file; `None` for a journal that only memory holds.
    path: Option<PathBuf>,
    header: &'static [AtomicU64],
    file: Mutex<Growing>,
    /// True once the file cannot grow any more.
    short: AtomicBool,
    /// True once little room is left beside it.
    large: AtomicBool,
    /// True once calls have taken their share of memory.
    crowded: AtomicBool,
    room: Room,
    /// Room left where the file is; `None` where that place has no size.
    reserve: Option<Reserve>,
    /// `agent.max_memory`, where it is given.
    limit: Option<MemoryLimit>,
    /// True where rare work is measured.
    measures: bool,
}

#[derive(Debug)]
struct Growing {
    file: File,
    /// Device and number of the file.
    inode: (u64, u64),
    end: u64,
    /// Blocks behind the file's end, in memory, once the file cannot grow.
    spill: Option<Box<Growing>>,
}

impl Journal {
    /// A new journal at `path`, its header page mapped and filled.
    ///
    /// # Errors
    /// Errors of creating and allocating the file; it must not exist.
    pub fn create(path: &Path, identity: &Identity) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o644).open(path)?;
        Self::begin(file, Some(path.to_owned()), identity).inspect_err(|_| {
            // An empty file would only be in the way.
            let _ = std::fs::remove_file(path);
        })
    }

    /// A new journal without a name: it goes with the process.
    ///
    /// # Errors
    /// Errors of memfd_create(2) and of allocating memory.
    pub fn in_memory(identity: &Identity) -> io::Result<Self> {
        Self::begin(memory()?, None, identity)
    }

    fn begin(file: File, path: Option<PathBuf>, identity: &Identity) -> io::Result<Self> {
        let file = high(file);
        hold(&file);
        let inode = inode(file.as_fd())?;
        let reserve = path.as_deref().and_then(|path| {
            // Space that this run's other ranks have taken was free when the job began.
            Some(Reserve::of(free_space::free(file.as_fd())?.saturating_add(held_beside(path).0)))
        });
        let page = map_block(&file, 0, HEADER_WORDS, HEADER_WORDS)?;
        let journal = Self {
            path,
            header: page.head,
            file: Mutex::new(Growing { file, inode, end: (HEADER_WORDS * 8) as u64, spill: None }),
            short: AtomicBool::new(false),
            large: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
            room: Room::new(Path::new("/")),
            reserve,
            limit: None,
            measures: true,
        };
        journal.set(word::VERSION, VERSION);
        journal.set(word::RANK, u64::from(identity.rank));
        journal.set(word::RANKS, u64::from(identity.ranks));
        journal.set(word::PID, u64::from(identity.pid));
        journal.set(word::STARTED, identity.started);
        journal.set(word::PID_NAMESPACE, identity.pid_namespace);
        journal.set(word::TICKS_FIRST, identity.first_pair.0);
        journal.set(word::NANOS_FIRST, identity.first_pair.1 as u64);
        journal.clock_pair(identity.first_pair.0, identity.first_pair.1);
        journal.set(word::TABLE, u64::from(table_checksum()));
        let mut texts = Vec::new();
        let told = [&identity.host, &identity.cpus, &identity.run, &identity.program];
        told.into_iter().for_each(|text| put_text(&mut texts, text));
        for (index, &text) in texts.iter().take(word::TEXTS_END - word::TEXTS).enumerate() {
            journal.set(word::TEXTS + index, text);
        }
        journal.header[word::MAGIC].store(MAGIC, Ordering::Release);
        Ok(journal)
    }

    /// Everything written so far.
    ///
    /// # Errors
    /// Errors of mmap(2); or the program has closed the file and it has no name.
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

    /// Applies a clock correction to both stored pairs: `right` maps nanoseconds since T0 to corrected ones.
    pub fn correct(&self, right: impl Fn(i64) -> i64) {
        for index in [word::NANOS_FIRST, word::NANOS_LAST] {
            self.set(index, right(self.header[index].load(Ordering::Relaxed) as i64) as u64);
        }
    }

    /// Records this MPI's constants: any source, any tag, no process, the root itself; and the handles of the
    /// communicators of all and of the caller alone. Readers need them for calls that have not returned.
    pub fn constants(&self, [source, tag, nobody, root]: [i32; 4], [world, itself]: [u64; 2]) {
        self.set(word::ANY, ends(source, tag));
        self.set(word::NOBODY, ends(nobody, root));
        self.set(word::WORLD, world);
        self.set(word::ITSELF, itself);
    }

    /// Records how the clock was aligned with rank 0's, where that is another.
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

    /// Counts a failure of the agent.
    pub fn count_failure(&self) {
        self.header[word::FAILURES].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that part of a thread's sequence has no room, and is missing from about now on.
    pub fn lacks(&self) {
        let now = self.latest().max(1);
        let _ = self.header[word::FULL].compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Notes the same for all that has come since the file could not grow any more.
    pub fn lacks_all_in_memory(&self) {
        let since = self.header[word::SPILLED].load(Ordering::Relaxed);
        self.set(word::FULL, if since > 0 { since } else { self.latest().max(1) });
    }

    /// Notes that every call of the application is in.
    pub fn mark_finalized(&self) {
        self.header[word::FLAGS].fetch_or(flag::FINALIZED, Ordering::Release);
    }

    /// A new block of at least `payload_words` words for `thread`, in memory where the file cannot grow.
    ///
    /// # Errors
    /// Errors of the file system, when it is full and so is the [memory](SPILL_BYTES) for that; or the program has
    /// closed the file and it has no name.
    pub fn block(&self, need: Need, kind: BlockKind, thread: u32, words: usize) -> io::Result<MappedBlock> {
        self.rarely(|| self.make_block(need, kind, thread, words))
    }

    fn make_block(&self, need: Need, kind: BlockKind, thread: u32, words: usize) -> io::Result<MappedBlock> {
        let words = whole(words);
        let (mut growing, _whole) = self.growing();
        let block = match self.next_of_file(&mut growing, need, purpose(need, kind), words) {
            Err(error) if self.is_short() && !is_reached(&error) => {
                self.spill(&mut growing, need, kind, words).map_err(|_| error)
            }
            block => block,
        };
        block.inspect(|block| open(block, kind, thread, words))
    }

    /// A new block in the file itself, which survives the process.
    ///
    /// # Errors
    /// As [`block`](Self::block): the file cannot grow.
    pub fn file_block(&self, kind: BlockKind, thread: u32, words: usize) -> io::Result<MappedBlock> {
        self.rarely(|| {
            let words = whole(words);
            let (mut growing, _whole) = self.growing();
            let block = self.next_of_file(&mut growing, Need::More, purpose(Need::More, kind), words);
            block.inspect(|block| open(block, kind, thread, words))
        })
    }

    /// The next `words` words of the file. Where it cannot grow, it grows no more.
    fn next_of_file(
        &self,
        growing: &mut Growing,
        need: Need,
        purpose: Option<Purpose>,
        words: usize,
    ) -> io::Result<MappedBlock> {
        growing.recover(self.path.as_deref())?;
        let block = self.grow(growing, need, purpose, words);
        // A file without a name is in memory already. A limit holds for memory, too.
        if block.as_ref().is_err_and(|error| !is_reached(error)) && self.path.is_some() {
            self.fall_short(growing.end);
        }
        block
    }

    /// The next `words` words of the file, if the reserve of its place stays.
    fn grow(
        &self,
        growing: &mut Growing,
        need: Need,
        purpose: Option<Purpose>,
        words: usize,
    ) -> io::Result<MappedBlock> {
        if self.is_short() {
            // Later room in the file would lie before the blocks in memory. What is smaller than a block that had no room
            // does not go on from it, either: a reader takes what was behind the file for lost.
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (bytes, part) = (
            words as u64 * 8,
            match need {
                Need::Basic => |reserve: &Reserve| reserve.basic,
                Need::More => |reserve: &Reserve| reserve.growing,
            },
        );
        if !self.allows(growing, purpose, bytes) {
            return Err(reached());
        }
        let file = growing.file.as_fd();
        if self.limit.is_none() && self.leaves(file, bytes.saturating_mul(AT_ONCE), part) {
            return growing.grow(words);
        }
        // Others may be about to take the same room: one at a time. Without a turn, the file does not grow.
        let turn = self.turn()?;
        if !self.allows(growing, purpose, bytes) {
            return Err(reached());
        }
        if !self.leaves(growing.file.as_fd(), bytes, part) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let block = growing.grow(words);
        drop(turn);
        block
    }

    /// A block in memory behind the file, of the `kind` that is wanted.
    fn spill(
        &self,
        growing: &mut Growing,
        need: Need,
        kind: BlockKind,
        words: usize,
    ) -> io::Result<MappedBlock> {
        let bytes = words as u64 * 8;
        let taken = growing.spill.as_ref().map_or(0, |spill| spill.end) + bytes;
        if !self.allows(growing, purpose(need, kind), bytes) {
            return Err(reached());
        }
        let crowded = taken > SPILLED_CALLS || self.room.is_memory_scarce(bytes);
        let is_of_calls = kind.is_of_calls();
        // Times have no place there at all.
        if kind == BlockKind::Pending || (crowded && is_of_calls && need == Need::More) {
            self.crowded.fetch_or(crowded, Ordering::Relaxed);
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.crowded.fetch_or(crowded, Ordering::Relaxed);
        growing.spill(words)
    }

    /// Ticks of the latest clock pair.
    fn latest(&self) -> u64 {
        self.header[word::TICKS_LAST].load(Ordering::Relaxed)
    }
}

/// Words of a block with a payload of at least `payload_words`.
fn whole(payload_words: usize) -> usize {
    (BLOCK_HEADER_WORDS + payload_words).next_multiple_of(PAGE_WORDS)
}

/// Publishes `block`, of `words` words, to readers.
fn open(block: &MappedBlock, kind: BlockKind, thread: u32, words: usize) {
    block.head[head::KIND].store(kind.number(), Ordering::Relaxed);
    block.head[head::THREAD].store(u64::from(thread), Ordering::Relaxed);
    block.head[head::CAPACITY].store((words - BLOCK_HEADER_WORDS) as u64, Ordering::Relaxed);
    block.head[head::MAGIC].store(BLOCK_MAGIC, Ordering::Release);
}

/// A file without a name, in the process's memory.
fn memory() -> io::Result<File> {
    Ok(rustix::fs::memfd_create(c"ampl-journal", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

impl Growing {
    /// The next `words` words of the file.
    fn grow(&mut self, words: usize) -> io::Result<MappedBlock> {
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
        // The number behind the old handle is the program's now, or unused: it is not ours to close.
        let again = high(again);
        hold(&again);
        std::mem::forget(std::mem::replace(&mut self.file, again));
        Ok(())
    }
}

fn inode(file: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let found = rustix::fs::fstat(file)?;
    Ok((found.st_dev, found.st_ino))
}
