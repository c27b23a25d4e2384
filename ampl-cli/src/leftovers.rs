//! Journals in the node's memory that no run has taken away: of jobs that were killed, or that still run.

use std::fs::{self, DirEntry};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ampl_core::naming::node_directory_name;

use crate::human::{bytes, plural};

/// Less than this is what a job that runs may well have.
const SMALL: u64 = 1 << 30;

/// What journals take of the node's memory, as a message; nothing while that is little.
pub fn said() -> Option<String> {
    let own = node_directory_name(rustix::process::getuid().as_raw());
    said_of(&Path::new("/dev/shm").join(own), SMALL)
}

fn said_of(directory: &Path, small: u64) -> Option<String> {
    let runs: Vec<u64> = entries(directory).map(|run| size(&run)).collect();
    let held: u64 = runs.iter().sum();
    (held > small).then(|| {
        format!(
            "ampl: journals of {} take {} of this node's memory ({}): 'ampl recover RUN' what you want to keep of runs \
             that have ended, then remove them there",
            plural(runs.len() as u64, "run"),
            bytes(held as f64),
            directory.display()
        )
    })
}

fn entries(directory: &Path) -> impl Iterator<Item = DirEntry> {
    fs::read_dir(directory).into_iter().flatten().flatten()
}

/// Bytes that are allocated to it, and to what is in it.
fn size(entry: &DirEntry) -> u64 {
    let Ok(metadata) = entry.metadata() else { return 0 };
    let inside: u64 = match metadata.is_dir() {
        true => entries(&entry.path()).map(|entry| size(&entry)).sum(),
        false => 0,
    };
    metadata.blocks() * 512 + inside
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_added_up() {
        let directory = tempfile::tempdir().unwrap();
        for (run, file) in [("a", "0.journal"), ("a", "1.journal"), ("b", "0.journal")] {
            let run = directory.path().join(run);
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join(file), vec![1; 1 << 20]).unwrap();
        }
        let said = |small| said_of(directory.path(), small);
        assert_eq!(said(4 << 20), None);
        let text = said(1 << 20).unwrap();
        assert!(text.contains("journals of 2 runs take 3") && text.contains("recover"), "{text}");
        assert_eq!(said_of(&directory.path().join("none"), 0), None);
    }
}
