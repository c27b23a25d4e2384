//! This user's journals in the node's memory, and those that no run directory leads to: it has been removed, or had no
//! room for its `run.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use ampl_core::naming::node_directory_name;
use ampl_trace::planted;

use super::{Holder, journals};

/// This user's directory in the node's memory; `None` where another has planted it.
pub fn own() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let own = Path::new("/dev/shm").join(node_directory_name(user));
    planted::refuse(&own, user).is_ok().then_some(own)
}

/// Directory of the journals in this node's memory that name `run` as their run directory; `None` without any.
pub fn of(run: &Path) -> Option<PathBuf> {
    found(&own()?, run)
}

/// The newest directory in `place` whose journals name `run`.
fn found(place: &Path, run: &Path) -> Option<PathBuf> {
    let named = std::path::absolute(run).ok()?;
    // Without the links on the way to it, where that way is there.
    let parent = named.parent().and_then(|parent| parent.canonicalize().ok());
    let real = parent.zip(named.file_name()).map(|(parent, name)| parent.join(name));
    let is_of_run = |place: &PathBuf| {
        let holder = journals::list(place).first().and_then(|journal| Holder::of(journal));
        holder.is_some_and(|holder| {
            let run = Path::new(&holder.run);
            run == named || real.as_ref().is_some_and(|real| run == real)
        })
    };
    let changed = |place: &PathBuf| fs::metadata(place).and_then(|metadata| metadata.modified()).ok();
    let places = fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    places.filter(is_of_run).max_by_key(changed)
}

#[cfg(test)]
mod tests {
    use ampl_trace::journal::{HEADER_WORDS, MAGIC, word};
    use ampl_trace::record::put_text;

    use super::*;

    #[test]
    fn journals_are_found_by_the_run_that_they_name() {
        let scratch = tempfile::tempdir().unwrap();
        let memory = scratch.path().join("memory");
        let runs = scratch.path().join("runs");
        fs::create_dir(&runs).unwrap();
        let link = scratch.path().join("link");
        std::os::unix::fs::symlink(&runs, &link).unwrap();
        for name in ["a", "b"] {
            let mut words = vec![0; HEADER_WORDS];
            words[word::MAGIC] = MAGIC;
            let mut texts = Vec::new();
            let run = runs.join(name);
            for text in ["host", "0-1", run.to_str().unwrap()] {
                put_text(&mut texts, text);
            }
            words[word::TEXTS..word::TEXTS + texts.len()].copy_from_slice(&texts);
            let bytes: Vec<u8> = words.iter().flat_map(|word: &u64| word.to_le_bytes()).collect();
            let place = memory.join(format!("of-{name}"));
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("rank-000000.journal"), bytes).unwrap();
        }
        fs::create_dir(memory.join("empty")).unwrap();
        assert_eq!(found(&memory, &runs.join("a")), Some(memory.join("of-a")));
        assert_eq!(found(&memory, &link.join("b")), Some(memory.join("of-b")));
        assert_eq!((found(&memory, &runs.join("c")), found(&runs, &runs.join("a"))), (None, None));
    }
}
