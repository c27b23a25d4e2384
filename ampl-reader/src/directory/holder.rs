//! The process that writes a journal, and whether it still runs.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use ampl_core::process_stat::ProcessStat;
use ampl_trace::journal::{HEADER_WORDS, MAGIC, word};
use ampl_trace::record::get_text;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// The process that writes a journal, or did, by the journal's first page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Rank in `MPI_COMM_WORLD`.
    pub rank: u32,
    /// Process number in its namespace.
    pub pid: u32,
    /// The run directory, as the job named it.
    pub run: String,
    host: String,
    started: u64,
    pid_namespace: u64,
}

impl Holder {
    /// The holder of the journal at `path`; `None` where its first page cannot be read.
    pub fn of(path: &Path) -> Option<Self> {
        let mut page = [0; HEADER_WORDS * 8];
        File::open(path).ok()?.read_exact(&mut page).ok()?;
        let header: Vec<u64> = page.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word)).collect();
        if header[word::MAGIC] != MAGIC {
            return None;
        }
        let mut texts = &header[word::TEXTS..word::TEXTS_END];
        let mut text = || {
            let (text, used) = get_text(texts).unwrap_or_default();
            texts = &texts[used.min(texts.len())..];
            text
        };
        let (host, _cpus, run) = (text(), text(), text());
        Some(Self {
            rank: header[word::RANK] as u32,
            pid: header[word::PID] as u32,
            run,
            host,
            started: header[word::STARTED],
            pid_namespace: header[word::PID_NAMESPACE],
        })
    }

    /// True where the process runs on this host; false where its host or PID namespace is another.
    fn runs(&self) -> bool {
        self.host == host() && lives_in(self.pid_namespace, self.pid, self.started) == Some(true)
    }
}

/// True where process `pid` of the namespace `pid_namespace`, which began at `started`, runs on this host; `None` where
/// that namespace is not this process's.
pub fn lives_in(pid_namespace: u64, pid: u32, started: u64) -> Option<bool> {
    let here = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
    (pid_namespace == here && here != 0).then(|| runs(pid, started))
}

/// True where process `pid`, which began at `started` (clock ticks since boot), runs on this host.
pub fn runs(pid: u32, started: u64) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    ProcessStat::parse(&stat).is_some_and(|stat| stat.runs_since(started))
}

/// The process that still writes the journal at `path`: it has the file locked, or runs.
pub fn living(path: &Path) -> Option<Holder> {
    let holder = Holder::of(path);
    let unknown =
        || Holder { rank: 0, pid: 0, run: String::new(), host: String::new(), started: 0, pid_namespace: 0 };
    let locked = File::open(path).is_ok_and(|file| {
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
    });
    match holder {
        Some(holder) => (locked || holder.runs()).then_some(holder),
        None => locked.then(unknown),
    }
}

/// This host's name.
pub fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname").map_or("?".into(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_used_again_is_another_process() {
        let own = fs::read_to_string("/proc/self/stat").unwrap();
        let started = ProcessStat::parse(&own).unwrap().started;
        let pid = std::process::id();
        assert!(runs(pid, started) && !runs(pid, started + 1) && !runs(u32::MAX, started));
    }

    #[test]
    fn a_locked_file_is_held() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(living(file.path()), None);
        rustix::fs::flock(file.as_file(), FlockOperation::NonBlockingLockShared).unwrap();
        assert!(living(file.path()).is_some());
    }
}
