//! The process of a node that copies journals in the node's memory to the run directory while the job runs.
//!
//! A rank that hangs runs no code of ampl's, and `ampl exec` leaves no parent. So the library starts this process, once on
//! a node. It ends with the node's last rank. Copies are where `ampl recover --node` puts them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ampl_core::nodes::NODES;
use ampl_reader::directory::nodes::{self, Home};
use ampl_reader::directory::{self, TRACE, host, journals_in, living};
use ampl_trace::journal::{BLOCK_HEADER_WORDS, BLOCK_MAGIC, HEADER_WORDS, head, word};
use ampl_trace::permissions::{as_directory, create_directory, create_file};
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};
use rustix::time::{ClockId, clock_gettime};

use crate::inherited::leave_processor;

/// Bytes of a page, which blocks are made of.
const PAGE: usize = HEADER_WORDS * 8;
/// Bytes that are copied in a second, at most.
const RATE: u64 = 32 << 20;
/// Time between two checks whether a rank still runs.
const CHECK: Duration = Duration::from_millis(250);
/// Readings of a block that changes meanwhile, before it waits for the next round.
const READINGS: usize = 4;

/// Copies the journals in `place`: to `once`, as they are now, where that is given; else to the directory of `run`, by
/// another process where this one is to be `detached`.
///
/// # Errors
/// Errors of the directories, or of starting a process.
pub fn run(
    run: &Path,
    place: &Path,
    interval: Duration,
    detached: bool,
    once: Option<&Path>,
) -> io::Result<()> {
    match once {
        Some(home) => copy_once(place, home),
        None if detached => {
            let interval = interval.as_millis().to_string();
            detach(&["copy-journals".into(), run.into(), place.into(), interval.into()])
        }
        None => copy(run, place, interval),
    }
}

/// Starts the copying process, and does not wait for it: no rank may be its parent, as programs wait for all their
/// children.
fn detach(words: &[OsString]) -> io::Result<()> {
    _ = rustix::process::setsid();
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(drop)
}

/// Copies the journals in `place` to the directory of `run`, every `interval` and when their last process has ended. After
/// an error, such as a full disk, the next round tries again.
///
/// # Errors
/// Errors of the last round.
fn copy(run: &Path, place: &Path, interval: Duration) -> io::Result<()> {
    // Where the system refuses, the copies are worth more than the priority.
    _ = rustix::process::setpriority_process(None, 19);
    leave_processor();
    let home = nodes::home(run, &host());
    let mut copies = BTreeMap::new();
    let last = loop {
        let lives = wait(place, interval);
        // A run with its trace needs no copies. Somebody may have written another of less while ranks run.
        if !run.join(NODES).is_dir() || run.join(TRACE).exists() && (!lives || directory::is_whole(run)) {
            break Ok(());
        }
        let done = round(place, &home, &mut copies);
        sign(&home);
        if !lives {
            break done.and_then(|()| nodes::mark(run, &host(), Home::Last));
        }
    };
    if directory::is_whole(run) {
        _ = fs::remove_dir_all(&home);
        _ = fs::remove_dir(run.join(NODES));
    }
    last
}

/// Sets the time of `home` to that of its file system: journals that have not changed, and full disks, leave none.
fn sign(home: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    _ = rustix::fs::utimensat(CWD, home, &times, AtFlags::empty());
}

/// Brings the copies in `home` up to the journals in `place`, each as far as there is room.
///
/// # Errors
/// The first error of a journal; the others are copied all the same.
fn round(place: &Path, home: &Path, copies: &mut BTreeMap<PathBuf, Copied>) -> io::Result<()> {
    create_directory(home)?;
    let mut done = Ok(());
    for journal in journals_in(place) {
        let name = PathBuf::from(journal.file_name().unwrap_or_default());
        // A journal that has gone meanwhile leaves the copy that there is.
        let Ok(source) = File::open(&journal) else { continue };
        let copied = match copies.entry(name) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => Copied::new(&home.join(new.key())).map(|copied| new.insert(copied)),
        };
        let updated = copied.and_then(|copied| copied.update(&source));
        done = done.and(updated);
    }
    // In one journal: ranks' shares are added up.
    if let Some(first) = copies.keys().next() {
        count(&place.join(first));
    }
    done
}

/// Copies the journals in `place` to `home` as they are now.
///
/// # Errors
/// A directory that cannot be written, or a `place` without journals.
fn copy_once(place: &Path, home: &Path) -> io::Result<()> {
    let journals = journals_in(place);
    if journals.is_empty() {
        let why = format!("no journals are in {} of {}", place.display(), host());
        return Err(io::Error::new(io::ErrorKind::NotFound, why));
    }
    leave_processor();
    create_directory(home)?;
    for journal in journals {
        if let Ok(source) = File::open(&journal) {
            Copied::new(&home.join(journal.file_name().unwrap_or_default()))?.update(&source)?;
        }
    }
    Ok(())
}

/// Waits for `interval`, or until no process of the journals in `place` runs any more; returns whether one does.
fn wait(place: &Path, interval: Duration) -> bool {
    let end = Instant::now() + interval;
    let mut known: Option<PathBuf> = None;
    loop {
        if known.as_ref().is_none_or(|journal| living(journal).is_none()) {
            known = journals_in(place).into_iter().find(|journal| living(journal).is_some());
        }
        let left = end.saturating_duration_since(Instant::now());
        if known.is_none() || left.is_zero() {
            return known.is_some();
        }
        sleep(left.min(CHECK));
    }
}

/// Notes this process's processor time in `journal`, as part of ampl's own.
fn count(journal: &Path) {
    let took = clock_gettime(ClockId::ProcessCPUTime);
    let took_ns = took.tv_sec as u64 * 1_000_000_000 + took.tv_nsec as u64;
    if let Ok(file) = OpenOptions::new().write(true).open(journal) {
        _ = file.write_all_at(&took_ns.to_le_bytes(), (word::COPY_NS * 8) as u64);
    }
}

/// The copy of a journal.
struct Copied {
    file: File,
    /// Hashes of its pages.
    pages: Vec<u64>,
}

impl Copied {
    fn new(path: &Path) -> io::Result<Self> {
        let file = create_file(path)?;
        as_directory(path);
        Ok(Self { file, pages: Vec::new() })
    }

    /// Takes over what has changed in `source`, block by block: whatever moment a kill comes at, what the copy commits to
    /// is there.
    fn update(&mut self, source: &File) -> io::Result<()> {
        let bytes = source.metadata()?.len();
        let (mut at, mut wrote) = (0, false);
        while at < bytes {
            let Some(block) = read(source, at, bytes)? else { break };
            let length = block.bytes.len() as u64;
            if block.steady {
                let written = self.put(at, &block.bytes)?;
                wrote |= written > 0;
                sleep(Duration::from_nanos(written * 1_000_000_000 / RATE));
            }
            at += length;
        }
        if wrote { self.file.sync_data() } else { Ok(()) }
    }

    /// Writes the pages of a block at `at` that have changed, its head last; returns their bytes.
    fn put(&mut self, at: u64, block: &[u8]) -> io::Result<u64> {
        let first = (at / PAGE as u64) as usize;
        let pages = block.len().div_ceil(PAGE);
        if self.pages.len() < first + pages {
            self.pages.resize(first + pages, 0);
        }
        let of = |page: usize| &block[page * PAGE..block.len().min((page + 1) * PAGE)];
        let changed: Vec<(usize, u64)> = (0..pages)
            .map(|page| (page, hash(of(page))))
            .filter(|&(page, hash)| self.pages[first + page] != hash)
            .collect();
        let mut written = 0;
        for &(page, hash) in changed.iter().rev() {
            self.file.write_all_at(of(page), at + (page * PAGE) as u64)?;
            self.pages[first + page] = hash;
            written += of(page).len() as u64;
        }
        Ok(written)
    }
}

/// A hash that is never 0, which stands for a page that was not written.
fn hash(page: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    page.hash(&mut hasher);
    hasher.finish().max(1)
}

/// A block as it was at one moment, or what follows the moment.
struct Block {
    bytes: Vec<u8>,
    /// False where its contents were replaced each time that it was read.
    steady: bool,
}

/// The block at `at` of a file of that many `bytes`, or its header page; `None` where no block is there yet.
fn read(source: &File, at: u64, bytes: u64) -> io::Result<Option<Block>> {
    let mut page = vec![0; PAGE.min((bytes - at) as usize)];
    if page.len() < PAGE {
        return Ok(None);
    }
    source.read_exact_at(&mut page, at)?;
    if at == 0 {
        return Ok(Some(Block { bytes: page, steady: true }));
    }
    let capacity = number(&page, head::CAPACITY);
    let length = capacity.saturating_add(BLOCK_HEADER_WORDS as u64).saturating_mul(8);
    if number(&page, head::MAGIC) != BLOCK_MAGIC || length > bytes - at {
        return Ok(None);
    }
    let mut block = vec![0; length as usize];
    for _ in 0..READINGS {
        // Its head first: what is committed then comes behind it.
        source.read_exact_at(&mut block, at)?;
        let mut again = [0; BLOCK_HEADER_WORDS * 8];
        source.read_exact_at(&mut again, at)?;
        let same =
            [head::KIND, head::ORDER, head::LIVE].iter().all(|&at| number(&block, at) == number(&again, at));
        if same && number(&again, head::COMMITTED) >= number(&block, head::COMMITTED) {
            return Ok(Some(Block { bytes: block, steady: true }));
        }
    }
    Ok(Some(Block { bytes: block, steady: false }))
}

/// Word `at` of a block.
fn number(block: &[u8], at: usize) -> u64 {
    block.get(8 * at..8 * at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of that many pages with one word in its payload.
    fn block(pages: usize, order: u64, payload: u64) -> Vec<u8> {
        let mut words = vec![0u64; pages * HEADER_WORDS];
        words[head::MAGIC] = BLOCK_MAGIC;
        words[head::CAPACITY] = (words.len() - BLOCK_HEADER_WORDS) as u64;
        words[head::ORDER] = order;
        *words.last_mut().unwrap() = payload;
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn copies_follow_a_journal_block_by_block() {
        let scratch = tempfile::tempdir().unwrap();
        let (from, to) = (scratch.path().join("from"), scratch.path().join("to"));
        let mut whole = vec![7; PAGE];
        whole.extend(block(3, 1, 5));
        fs::write(&from, &whole).unwrap();
        let mut copied = Copied::new(&to).unwrap();
        let mut update = || {
            copied.update(&File::open(&from).unwrap()).unwrap();
            fs::read(&to).unwrap()
        };
        assert_eq!(update(), whole);
        // What is no block yet waits.
        let more = [whole.clone(), vec![0; 2 * PAGE]].concat();
        fs::write(&from, &more).unwrap();
        assert_eq!(update(), whole);
        let mut more = [whole.clone(), block(1, 2, 6), block(2, 3, 7)].concat();
        fs::write(&from, &more).unwrap();
        assert_eq!(update(), more);
        // One page of a block changes, and the header.
        more[PAGE + 2 * PAGE + 9] ^= 1;
        more[11] ^= 1;
        fs::write(&from, &more).unwrap();
        assert_eq!(update(), more);
        assert_eq!(update(), more);
    }

    #[test]
    fn only_changed_pages_are_written() {
        let scratch = tempfile::tempdir().unwrap();
        let mut copied = Copied::new(&scratch.path().join("to")).unwrap();
        let mut own = block(3, 1, 5);
        assert_eq!(copied.put(PAGE as u64, &own).unwrap(), 3 * PAGE as u64);
        assert_eq!(copied.put(PAGE as u64, &own).unwrap(), 0);
        own[2 * PAGE] ^= 1;
        assert_eq!(copied.put(PAGE as u64, &own).unwrap(), PAGE as u64);
    }

    #[test]
    fn an_error_of_a_journal_keeps_no_other_back() {
        let scratch = tempfile::tempdir().unwrap();
        let (place, home) = (scratch.path().join("place"), scratch.path().join("home"));
        fs::create_dir_all(&place).unwrap();
        let bytes = [vec![7; PAGE], block(2, 1, 5)].concat();
        let names = [3, 4].map(|rank| format!("rank-{rank:06}.journal"));
        names.iter().for_each(|name| fs::write(place.join(name), &bytes).unwrap());
        // A directory stands where the first copy is to be.
        fs::create_dir_all(home.join(&names[0])).unwrap();
        let mut copies = BTreeMap::new();
        assert!(round(&place, &home, &mut copies).is_err());
        assert_eq!(fs::read(home.join(&names[1])).unwrap(), bytes);
        fs::remove_dir(home.join(&names[0])).unwrap();
        round(&place, &home, &mut copies).unwrap();
        assert_eq!(fs::read(home.join(&names[0])).unwrap(), bytes);
    }

    #[test]
    fn one_copy_needs_no_run() {
        let scratch = tempfile::tempdir().unwrap();
        let (place, home) = (scratch.path().join("place"), scratch.path().join("home"));
        assert!(copy_once(&place, &home).is_err() && !home.exists());
        fs::create_dir_all(&place).unwrap();
        let bytes = [vec![7; PAGE], block(2, 1, 5)].concat();
        fs::write(place.join("rank-000003.journal"), &bytes).unwrap();
        copy_once(&place, &home).unwrap();
        assert_eq!(fs::read(home.join("rank-000003.journal")).unwrap(), bytes);
    }

    #[test]
    fn a_trace_that_is_not_whole_does_not_end_the_copying() {
        let scratch = tempfile::tempdir().unwrap();
        let (run, place) = (scratch.path().join("run"), scratch.path().join("place"));
        fs::create_dir_all(run.join(NODES)).unwrap();
        fs::create_dir_all(&place).unwrap();
        let journal = place.join("rank-000003.journal");
        fs::write(&journal, [vec![7; PAGE], block(2, 1, 5)].concat()).unwrap();
        fs::write(run.join(TRACE), "of fewer ranks").unwrap();
        // Its process runs.
        let lock = File::open(&journal).unwrap();
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockShared).unwrap();
        let home = nodes::home(&run, &host());
        std::thread::scope(|scope| {
            let copying = scope.spawn(|| copy(&run, &place, Duration::from_millis(10)));
            while !home.join("rank-000003.journal").exists() && !copying.is_finished() {
                sleep(Duration::from_millis(5));
            }
            let copied = home.join("rank-000003.journal").exists();
            drop(lock);
            copying.join().unwrap().unwrap();
            assert!(copied);
        });
    }

    #[test]
    fn without_a_process_there_is_one_round() {
        let scratch = tempfile::tempdir().unwrap();
        let (run, place) = (scratch.path().join("run"), scratch.path().join("place"));
        fs::create_dir_all(run.join(NODES)).unwrap();
        fs::create_dir_all(&place).unwrap();
        let bytes = [vec![7; PAGE], block(2, 1, 5)].concat();
        fs::write(place.join("rank-000003.journal"), &bytes).unwrap();
        fs::write(place.join("other"), "x").unwrap();
        copy(&run, &place, Duration::from_secs(3600)).unwrap();
        let home = nodes::home(&run, &host());
        let copies: Vec<_> = fs::read_dir(&home).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(copies.len(), 2);
        assert_eq!(nodes::state(&run, &host()), Home::Last);
        assert_eq!(fs::read(home.join("rank-000003.journal")).unwrap(), bytes);
        // A run that has its trace gets none.
        fs::remove_dir_all(&home).unwrap();
        fs::write(run.join(TRACE), "").unwrap();
        copy(&run, &place, Duration::from_secs(3600)).unwrap();
        assert!(!home.exists());
    }
}
