//! Hosts of a run and the journals that they hold, as its ranks noted when they started.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ampl_core::nodes::{NODES, NodeRank};
use ampl_core::units::RankSet;

/// Suffix, behind the host's name, of a directory of journals that were brought home.
const HOME: &str = ".journals";

/// State of a host's journals in the run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// No journals, or copies that processes may go beyond.
    Copies,
    /// The last copies, made after the host's processes had ended.
    Last,
    /// The journals themselves, read back.
    Journals,
}

/// Names of the files that mark [`Home::Last`] and [`Home::Journals`].
const MARKS: [(Home, &str); 2] = [(Home::Journals, "journals-brought"), (Home::Last, "last-copies")];

/// State of the journals of `host` in the directory of `run`.
pub fn state(run: &Path, host: &str) -> Home {
    let place = home(run, host);
    let marked = MARKS.iter().find(|(_, mark)| place.join(mark).exists());
    marked.map_or(Home::Copies, |&(state, _)| state)
}

/// Marks the journals of `host` in the directory of `run` as `state`.
///
/// # Errors
/// Errors of the directory.
pub fn mark(run: &Path, host: &str, state: Home) -> io::Result<()> {
    let mark = MARKS.iter().find(|&&(of, _)| of == state);
    mark.map_or(Ok(()), |(_, mark)| File::create(home(run, host).join(mark)).map(drop))
}

/// The ranks of each host; empty where the run directory has no note of them.
pub fn of(run: &Path) -> BTreeMap<String, Vec<NodeRank>> {
    let entries = fs::read_dir(run.join(NODES)).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    let read = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path()).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), NodeRank::parse(&text)))
    };
    files.filter_map(read).collect()
}

/// Directory that journals of `host` are brought home to.
pub fn home(run: &Path, host: &str) -> PathBuf {
    run.join(NODES).join(format!("{host}{HOME}"))
}

/// Directories of journals that were brought home.
pub fn homes(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join(NODES)).into_iter().flatten().flatten();
    let mut homes: Vec<PathBuf> = entries
        .filter(|entry| entry.file_name().to_string_lossy().ends_with(HOME))
        .map(|entry| entry.path())
        .collect();
    homes.sort();
    homes
}

/// Other hosts than `here` and their ranks that are not `there`.
pub fn elsewhere(run: &Path, here: &str, there: impl Fn(u32) -> bool) -> BTreeMap<String, RankSet> {
    let others = of(run).into_iter().filter(|(host, _)| host != here);
    others
        .map(|(host, ranks)| {
            let others = ranks.iter().map(|rank| rank.rank).filter(|&rank| !there(rank));
            (host, others.collect::<RankSet>())
        })
        .filter(|(_, ranks)| !ranks.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_known_by_host() {
        let run = tempfile::tempdir().unwrap();
        assert!(of(run.path()).is_empty());
        let line = |rank: u32| NodeRank {
            rank,
            pid: 1,
            started: 2,
            pid_namespace: 3,
            journals: "/dev/shm/x".into(),
        };
        fs::create_dir_all(home(run.path(), "b")).unwrap();
        for (host, ranks) in [("a", 0..2), ("b", 2..4), ("c", 4..7)] {
            let text: String = ranks.map(|rank| line(rank).to_string()).collect();
            fs::write(run.path().join(NODES).join(host), text).unwrap();
        }
        assert_eq!(homes(run.path()), [home(run.path(), "b")]);
        let missing = elsewhere(run.path(), "a", |rank| rank == 3 || rank > 4);
        let missing: Vec<String> = missing.iter().map(|(host, ranks)| format!("{host} {ranks}")).collect();
        assert_eq!(missing, ["b 2", "c 4"]);
        for next in [Home::Copies, Home::Last, Home::Journals] {
            mark(run.path(), "b", next).unwrap();
            assert_eq!(state(run.path(), "b"), next);
        }
        assert_eq!(state(run.path(), "c"), Home::Copies);
    }
}
