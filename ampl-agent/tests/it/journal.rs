//! A journal's file.

use crate::common::alone;
use ampl_agent::descriptor;
use ampl_agent::journal::{Identity, Journal, Need};
use ampl_trace::journal::BlockKind;

const WORDS: usize = 5000;

/// Numbers under which this process has files of that name open.
fn numbers_of(name: &str) -> Vec<i32> {
    let open = std::fs::read_dir("/proc/self/fd").expect("open files").flatten();
    let named = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| target.to_string_lossy().contains(name))
    };
    open.filter(named).filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The only test of its process: another's journal may be about to get its number.
#[test]
fn a_journal_in_memory_is_as_good_as_a_file() {
    alone("journal::a_journal_in_memory_is_as_good_as_a_file", compare_memory_and_file);
}

fn compare_memory_and_file() {
    let name = format!("ampl-journal-{}", std::process::id());
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let path = scratch.path().join(&name);
    let file = Journal::create(&path, &Identity::default()).expect("a writable temporary directory");
    let memory = Journal::in_memory(&Identity::default()).expect("memory");
    let [file, memory] = [file, memory].map(Journal::unmeasured);
    for journal in [&file, &memory] {
        journal.block(Need::More, BlockKind::Stream, 0, WORDS).expect("room").words[WORDS - 1] = 17;
    }
    let (of_file, of_memory) = (file.contents().expect("all of it"), memory.contents().expect("all of it"));
    assert_eq!(of_file.bytes(), of_memory.bytes());
    assert!(of_file.bytes().len() > 8 * WORDS);
    for name in [&name[..], "ampl-journal ("] {
        let numbers = numbers_of(name);
        assert!(
            !numbers.is_empty() && numbers.iter().all(|&number| number >= descriptor::FIRST),
            "{numbers:?}"
        );
    }
    memory.remove();
    file.remove();
    assert!(!path.exists());
}
