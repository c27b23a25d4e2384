//! A journal's file, and programs that close what they have not opened.

use std::fs::{self, File};
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use ampl_agent::journal::{FIRST_DESCRIPTOR, Identity, Journal};
use ampl_trace::journal::BlockKind;

const WORDS: usize = 5000;

fn place(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("ampl-journal-{}-{name}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// The number under which this process has the file of that name open.
fn number_of(name: &str) -> i32 {
    let open = fs::read_dir("/proc/self/fd").expect("open files").flatten();
    let named = |entry: &fs::DirEntry| {
        fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().contains(name))
    };
    let found = open.filter(named).find_map(|entry| entry.file_name().to_str()?.parse().ok());
    found.expect("it is open")
}

/// What a program does that closes all numbers and then opens a file of its own, which gets this one.
fn take_number(number: i32, file: File) {
    // SAFETY: the number is open; taking it from its owner is what is tested.
    let mut taken = unsafe { OwnedFd::from_raw_fd(number) };
    rustix::io::dup2(file, &mut taken).expect("any file goes under any number");
    let _ = taken.into_raw_fd();
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).expect("it is there").len()
}

#[test]
fn the_program_s_file_of_the_same_number_stays_untouched() {
    let (path, other) = (place("closed"), place("other"));
    let journal = Journal::create(&path, &Identity::default()).expect("a writable temporary directory");
    let number = number_of(path.file_name().expect("a name").to_str().expect("a plain name"));
    assert!(number >= FIRST_DESCRIPTOR, "{number}: the program's own files keep small numbers");
    take_number(number, File::create_new(&other).expect("a writable temporary directory"));
    let before = size(&path);
    let block = journal.block(BlockKind::Stream, 0, WORDS).expect("it is opened again by its name");
    block.words[WORDS - 1] = 17;
    assert_eq!(size(&other), 0);
    assert!(size(&path) >= before + WORDS as u64 * 8);
    assert!(journal.contents().expect("all of it").bytes().len() as u64 == size(&path));
    journal.remove();
    assert!(!path.exists());
    fs::remove_file(other).expect("it is there");
}

#[test]
fn memory_that_the_program_closes_ends_the_journal() {
    let other = place("instead");
    let journal = Journal::in_memory(&Identity::default()).expect("memory");
    journal.block(BlockKind::Stream, 0, WORDS).expect("memory");
    assert!(journal.contents().expect("all of it").bytes().len() > WORDS * 8);
    take_number(number_of("ampl-journal ("), File::create_new(&other).expect("a writable directory"));
    assert!(journal.block(BlockKind::Stream, 0, WORDS).is_err());
    assert_eq!(size(&other), 0);
    fs::remove_file(other).expect("it is there");
}
