//! Hosts of a run and the journals that they hold, as its ranks noted when they started.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ampl_core::nodes::{NODES, NodeRank};
use ampl_core::units::RankSet;

/// Suffix, behind the host's name, of a directory of journals that were brought home.
const HOME: &str = ".journals";

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
    }
}
