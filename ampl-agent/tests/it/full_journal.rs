//! A journal whose place is full: here, a process that may not make files any longer.

use crate::common::alone;
use ampl_agent::journal::{Identity, Journal, Need};
use ampl_trace::journal::{self, BlockKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const WORDS: usize = 5000;

/// The only test of its process: the limit is everybody's.
#[test]
fn what_has_no_room_goes_to_memory() {
    alone("full_journal::what_has_no_room_goes_to_memory", grow_beyond_the_limit);
}

fn grow_beyond_the_limit() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let path = scratch.path().join("journal");
    let journal = Journal::create(&path, &Identity::default()).expect("a writable temporary directory");
    let write = |number: u64| {
        let block = journal.block(Need::More, BlockKind::Stream, 0, WORDS)?;
        block.words[..2].copy_from_slice(&[number, !number]);
        block.head[4].store(2, std::sync::atomic::Ordering::Release);
        std::io::Result::Ok(())
    };
    write(1).expect("room");
    assert!(!journal.is_short());
    let length = |path: &std::path::Path| path.metadata().expect("the file is there").len();
    let full = length(&path);
    // The limit: the file as it is, and as much again in memory.
    let before = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(full + 4096), ..before }).expect("less is allowed");
    write(2).expect("memory");
    assert!(journal.is_short());
    assert!(write(3).is_err(), "memory has its limits too");
    // Room that comes back is not used: it would be before what is in memory.
    setrlimit(Resource::Fsize, before).expect("what was");
    write(4).expect("memory");
    assert_eq!(length(&path), full);
    let contents = journal.contents().expect("all of it");
    let read = journal::read(contents.bytes()).expect("a journal");
    let words: Vec<Vec<u64>> = read
        .blocks
        .iter()
        .map(|block| block.words.iter().map(|word| u64::from_le_bytes(*word)).collect())
        .collect();
    assert_eq!(words, [1, 2, 4].map(|number: u64| vec![number, !number]));
    assert_eq!(read.cut_at, None);
    // A process that dies keeps what was in the file.
    let file = std::fs::read(&path).expect("the file");
    assert_eq!(journal::read(&file).map(|read| read.blocks.len()), Ok(1));
    journal.remove();
    // No room for the first page: nothing is left behind.
    setrlimit(Resource::Fsize, Rlimit { current: Some(100), ..before }).expect("less is allowed");
    let refused = Journal::create(&path, &Identity::default());
    setrlimit(Resource::Fsize, before).expect("what was");
    assert!(refused.is_err() && !path.exists());
}

/// Memory takes what comes behind a snapshot without room, although the file would take something smaller: a reader of
/// the file must see that it ends there.
#[test]
fn a_file_that_could_not_grow_once_grows_no_more() {
    alone("full_journal::a_file_that_could_not_grow_once_grows_no_more", grow_less_after_more);
}

fn grow_less_after_more() {
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let path = scratch.path().join("journal");
    let journal = Journal::create(&path, &Identity::default()).expect("a writable temporary directory");
    let length = || path.metadata().expect("the file is there").len();
    let full = length();
    let before = getrlimit(Resource::Fsize);
    let limit = Rlimit { current: Some(full + WORDS as u64 * 4), ..before };
    setrlimit(Resource::Fsize, limit).expect("less is allowed");
    assert!(journal.file_block(BlockKind::Snapshot, 0, WORDS).is_err());
    journal.block(Need::Basic, BlockKind::Log, 0, 100).expect("memory");
    setrlimit(Resource::Fsize, before).expect("what was");
    assert_eq!(length(), full);
    let file = std::fs::read(&path).expect("the file");
    let header = journal::read(&file).expect("a journal").header;
    assert!(header[journal::word::SPILLED] > 0 && header[journal::word::FILE_BYTES] == full);
}
