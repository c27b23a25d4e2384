//! Journals in the node's memory whose jobs are gone, and which have not been recovered.

use std::fs::{self, DirEntry};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ampl_core::naming::RANKS;
use serde::Serialize;

use crate::recover::free;
use ampl_reader::directory::{self, Holder};
use ampl_report::human::{bytes, plural};

/// One part in so many of the node's memory file system is too little for a message before a job.
const SMALL_SHARE: u64 = 16;
/// Bytes that are worth a message on any node.
const LARGE: u64 = 1 << 30;
/// Age up to which a directory without journals belongs to a job that begins.
const BEGINNING: Duration = Duration::from_secs(60);

/// The journals of a run in this node's memory.
#[derive(Debug, Serialize)]
pub struct Leftover {
    /// Directory of the journals.
    pub journals: PathBuf,
    /// The run directory, as the job named it; null where no journal has it.
    pub run: Option<String>,
    /// Bytes that they take.
    pub bytes: u64,
    /// True where a process of the job still runs.
    pub alive: bool,
}

/// Message about the node's memory that journals of dead jobs take; `None` while that is little.
pub fn said() -> Option<String> {
    let small =
        rustix::fs::statvfs("/dev/shm").map_or(LARGE, |place| place.f_blocks * place.f_frsize / SMALL_SHARE);
    message(&found(), small.min(LARGE))
}

/// Journals of this user's jobs in the node's memory.
pub fn found() -> Vec<Leftover> {
    directory::own_in_memory().map_or_else(Vec::new, |own| found_in(&own))
}

/// A message about the dead of `leftovers`, if these take more than `small` bytes.
pub fn message(leftovers: &[Leftover], small: u64) -> Option<String> {
    let dead: Vec<&Leftover> = leftovers.iter().filter(|leftover| !leftover.alive).collect();
    let held: u64 = dead.iter().map(|leftover| leftover.bytes).sum();
    let place = dead.first()?.journals.parent()?;
    (held > small).then(|| {
        let runs: Vec<&str> = dead.iter().filter_map(|leftover| leftover.run.as_deref()).take(4).collect();
        let more = if dead.len() > runs.len() { ", …" } else { "" };
        let runs = if runs.is_empty() { String::new() } else { format!(": {}{more}", runs.join(", ")) };
        format!(
            "ampl: journals of {} whose processes are gone take {} of this node's memory ({}){runs}: 'ampl recover RUN' \
             what you want to keep, 'ampl doctor --clean' frees the rest",
            plural(dead.len() as u64, "run"),
            bytes(held as f64),
            place.display()
        )
    })
}

/// Removes leftovers whose processes are gone; returns a message each.
pub fn clean() -> Vec<String> {
    directory::own_in_memory().iter().for_each(|own| remove_marks(own));
    let (alive, dead): (Vec<Leftover>, Vec<Leftover>) =
        found().into_iter().partition(|leftover| leftover.alive);
    let mut said: Vec<String> = dead.iter().map(remove).collect();
    said.extend(
        alive.iter().map(|leftover| format!("ampl: kept {}: its job runs", leftover.journals.display())),
    );
    if said.is_empty() {
        said.push("ampl: no journals are in this node's memory: there is nothing to clean".into());
    }
    said
}

fn remove(leftover: &Leftover) -> String {
    let journals = journals(&leftover.journals);
    // Checked once more: a job may have begun there meanwhile.
    if journals.iter().any(|file| directory::living(file).is_some()) {
        return format!("ampl: kept {}: its job runs", leftover.journals.display());
    }
    free::journals(&journals);
    free::place(&leftover.journals);
    let run = leftover.run.as_ref().map_or(String::new(), |run| format!(", of {run}"));
    format!("ampl: freed {} ({}{run})", bytes(leftover.bytes as f64), leftover.journals.display())
}

/// Removes marks of ranks whose jobs died in `MPI_Init`: they take almost no memory.
fn remove_marks(node: &Path) {
    for place in entries(node).filter(|place| is_of_marks(place) && is_old(place)) {
        let marks: Vec<DirEntry> = entries(&place.path()).collect();
        if !marks.iter().any(|mark| may_run(&mark.file_name().to_string_lossy())) {
            marks.iter().for_each(|mark| _ = fs::remove_file(mark.path()));
            free::place(&place.path());
        }
    }
}

fn is_of_marks(place: &DirEntry) -> bool {
    place.file_name().to_string_lossy().starts_with(RANKS)
}

/// True where the process of a mark of that name runs; one of another namespace may run.
fn may_run(mark: &str) -> bool {
    let numbers: Vec<u64> = mark.split('-').filter_map(|word| word.parse().ok()).collect();
    let [_, pid, started, namespace] = numbers[..] else { return false };
    let here = fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino());
    namespace != here || directory::runs(u32::try_from(pid).unwrap_or(0), started)
}

fn found_in(place: &Path) -> Vec<Leftover> {
    let runs = entries(place).filter(|run| run.path().is_dir() && !is_of_marks(run));
    let mut found: Vec<Leftover> = runs
        .filter_map(|run| {
            let files = journals(&run.path());
            if files.is_empty() && !is_old(&run) {
                return None;
            }
            let holder = files.iter().find_map(|file| Holder::of(file));
            Some(Leftover {
                run: holder.map(|holder| holder.run).filter(|run| !run.is_empty()),
                bytes: size(&run),
                alive: files.iter().any(|file| directory::living(file).is_some()),
                journals: run.path(),
            })
        })
        .collect();
    found.sort_by(|one, other| one.journals.cmp(&other.journals));
    found
}

fn is_old(entry: &DirEntry) -> bool {
    let changed = entry.metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|since| since > BEGINNING))
}

fn journals(directory: &Path) -> Vec<PathBuf> {
    let is_journal = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "journal");
    entries(directory).map(|entry| entry.path()).filter(is_journal).collect()
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
    use rustix::fs::FlockOperation;

    use super::*;

    #[test]
    fn marks_go_with_their_processes() {
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let started = ampl_core::process_stat::ProcessStat::parse(&stat).unwrap().started;
        let here = fs::metadata("/proc/self/ns/pid").unwrap().ino();
        let own = format!("3-{}-{started}-{here}", std::process::id());
        assert!(may_run(&own) && may_run(&format!("3-{}-1-{}", std::process::id(), here + 1)));
        assert!(!may_run(&format!("3-{}-1-{here}", std::process::id())) && !may_run("decided"));
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str, mark: &str| {
            let place = directory.path().join(format!("{RANKS}{name}"));
            fs::create_dir(&place).unwrap();
            fs::write(place.join(mark), "").unwrap();
            let old = std::time::SystemTime::now() - 2 * BEGINNING;
            fs::File::open(&place).unwrap().set_modified(old).unwrap();
            place
        };
        let (live, dead) =
            (place("live", &own), place("dead", &format!("0-{}-1-{here}", std::process::id())));
        remove_marks(directory.path());
        assert!(live.exists() && !dead.exists());
    }

    #[test]
    fn dead_runs_are_added_up_and_live_ones_are_not() {
        let directory = tempfile::tempdir().unwrap();
        for (run, file) in [("a", "0.journal"), ("a", "1.journal"), ("b", "0.journal"), ("c", "0.journal")] {
            let run = directory.path().join(run);
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join(file), vec![1; 1 << 20]).unwrap();
        }
        fs::create_dir(directory.path().join("just begun")).unwrap();
        let live = fs::File::open(directory.path().join("c/0.journal")).unwrap();
        rustix::fs::flock(&live, FlockOperation::NonBlockingLockShared).unwrap();
        let found = found_in(directory.path());
        assert_eq!(found.iter().map(|run| run.alive).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!(message(&found, 4 << 20), None);
        let text = message(&found, 1 << 20).unwrap();
        assert!(text.contains("journals of 2 runs") && text.contains("take 3"), "{text}");
        assert!(text.contains("recover") && text.contains("--clean"), "{text}");
        assert!(found_in(&directory.path().join("none")).is_empty());
        fs::create_dir(directory.path().join(format!("{RANKS}x"))).unwrap();
        assert_eq!(found_in(directory.path()).len(), 3);
        assert!(remove(&found[2]).contains("kept") && directory.path().join("c/0.journal").exists());
        assert!(remove(&found[0]).contains("freed") && !directory.path().join("a").exists());
    }
}
