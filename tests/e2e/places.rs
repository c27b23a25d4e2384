//! Places that fail while the job runs, are another user's, or were never writable: the job ends as without ampl.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ampl_tests::hosts::on_small;
use ampl_tests::job::{Job, Mpi};
use ampl_tests::place::{Scratch, ampl};
use ampl_tests::process::{self, Finished};
use ampl_tests::run::{Monitored, text_of};
use serde_json::Value;

const RANKS: u32 = 2;
const TURNS: u64 = 60;
/// Another user.
const ANOTHER: u32 = 65534;

/// `disturbed`, whose rank 0 has `command` run halfway.
fn job(mpi: Mpi, command: &str) -> Job {
    Job::of(mpi, RANKS, "disturbed", &[&TURNS.to_string(), command])
}

/// Command line of `job` under `ampl run`, with its run in `run`.
fn monitored(job: &Job, scratch: &Scratch, run: &Path, config: &str) -> Vec<OsString> {
    let file = scratch.write("job.toml", config);
    let start: Vec<OsString> = vec![ampl().into(), "run".into(), "-c".into(), file.into(), "-o".into()];
    [start, vec![run.into(), "--".into()], job.launch(), job.words.clone()].concat()
}

/// Asserts that the trace in `run` has all calls.
fn is_whole(finished: Finished, run: PathBuf, scratch: Scratch) {
    let run = Monitored { finished, run, scratch };
    let info = run.info();
    assert_eq!((&info["complete"], &info["agent_failures"]), (&Value::Bool(true), &0.into()), "{info}");
    assert_eq!(run.functions()["MPI_Barrier"], u64::from(RANKS) * TURNS);
}

/// Whoever removes the run directory meanwhile gets it back with the whole trace, and no journal stays.
#[test]
fn a_run_directory_that_is_removed_is_made_again() {
    for (mpi, journal) in [(Mpi::OpenMpi, "node"), (Mpi::OpenMpi, "run"), (Mpi::Mpich, "node")] {
        let scratch = Scratch::new("removed");
        let run = scratch.path().join("result");
        let job = job(mpi, &format!("rm -r '{}'", run.display()));
        let config = format!("[output]\njournal = \"{journal}\"\n");
        let finished = job.run(&monitored(&job, &scratch, &run, &config), scratch.path()).success();
        assert_eq!(
            finished.stdout,
            format!("{TURNS} turns, the command ended with 0\n"),
            "{mpi:?} {journal}"
        );
        let said = &finished.stderr;
        assert_eq!(said.matches("was removed while the job ran").count(), 1, "{mpi:?} {journal}: {said}");
        assert!(!said.contains("cannot write") && !said.contains("unmerged"), "{said}");
        is_whole(finished, run, scratch);
    }
}

/// Script before a command line, which it runs as its arguments, with `prepare` before and `after` behind it; the status is
/// the command line's.
fn around(prepare: &str, after: &str, words: Vec<OsString>) -> Vec<OsString> {
    let script = format!("{prepare}; \"$@\"; code=$?; {after}; exit $code");
    [vec!["sh".into(), "-c".into(), script.into(), "sh".into()], words].concat()
}

/// The journals are kept where the trace cannot be written, and read from there.
#[test]
fn a_run_directory_that_becomes_read_only_leaves_the_journals() {
    let scratch = Scratch::new("read-only");
    let disk = scratch.path().join("disk");
    std::fs::create_dir(&disk).expect("a directory of ours");
    let job = job(Mpi::OpenMpi, &format!("mount -o remount,ro '{}'", disk.display()));
    let run = disk.join("result");
    let recover = format!(
        "mount -o remount,rw '{0}'; '{1}' recover '{2}' && cp -r '{2}' kept",
        disk.display(),
        ampl().display(),
        run.display()
    );
    let words = around("true", &recover, monitored(&job, &scratch, &run, ""));
    let Some(words) = on_small("16m", &disk, &words) else { return };
    let finished = job.run(&words, scratch.path()).success();
    assert!(
        finished.stdout.starts_with(&format!("{TURNS} turns, the command ended with 0\n")),
        "{}",
        finished.stdout
    );
    let said = &finished.stderr;
    assert!(said.contains("cannot write the trace") && said.contains("Read-only"), "{said}");
    is_whole(finished, scratch.path().join("kept"), scratch);
}

/// Results of commands that cannot be written are one message and a status each.
#[test]
fn read_only_directories_are_told_of() {
    let scratch = Scratch::new("read-only");
    let disk = scratch.path().join("disk");
    std::fs::create_dir(&disk).expect("a directory of ours");
    let job = Job::of(Mpi::OpenMpi, RANKS, "steady", &["3"]);
    let run = scratch.path().join("result");
    let made = job.run(&monitored(&job, &scratch, &run, ""), scratch.path()).success();
    assert!(run.join("trace.ampl").is_file(), "{}", made.stderr);
    let launch: Vec<String> = [job.launch(), job.words.clone()]
        .concat()
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let launch: Vec<&str> = launch.iter().map(String::as_str).collect();
    let run = run.to_str().expect("text");
    let exec =
        [&launch[..launch.len() - 2], &["AMPL", "exec", "-o", "disk/r", "--"], &launch[launch.len() - 2..]];
    for (words, status) in [
        (vec!["AMPL", "report", run, "-o", "disk/report.html"], 1),
        (vec!["AMPL", "export", run, "--to", "csv", "-o", "disk/csv"], 1),
        (vec!["AMPL", "export", run, "--to", "perfetto", "-o", "disk/file"], 1),
        // Under a launcher the job comes first.
        (exec.concat(), 0),
    ] {
        let words: Vec<OsString> =
            words.iter().map(|&word| if word == "AMPL" { ampl().into() } else { word.into() }).collect();
        let words = around("mount -o remount,ro disk", "true", words);
        let Some(words) = on_small("1m", &disk, &words) else { return };
        let finished = job.run(&words, scratch.path());
        assert_eq!(finished.status.code(), Some(status), "{words:?}: {}", finished.stderr);
        let said: Vec<&str> = finished.stderr.lines().filter(|line| line.starts_with("ampl: ")).collect();
        assert!(said.len() == 1 && said[0].contains("Read-only"), "{words:?}: {}", finished.stderr);
        assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
    }
}

/// A `/dev/shm` with `prepare`d entries for the job, and what is in it afterwards.
fn shared_memory(size: &str, job: &Job, prepare: &str) -> Option<(Finished, String, Scratch)> {
    let scratch = Scratch::new("shared");
    let run = scratch.path().join("result");
    let after = "find /dev/shm -mindepth 1 | sort > after";
    let words = around(prepare, after, monitored(job, &scratch, &run, ""));
    let words = on_small(size, Path::new("/dev/shm"), &words)?;
    let finished = job.run(&words, scratch.path()).success();
    let after = text_of(&scratch.path().join("after"));
    Some((finished, after, scratch))
}

/// A link or a directory of another user, where this user's journals would be, is not used.
#[test]
fn what_another_user_has_planted_is_left_alone() {
    let user = process::run(Command::new("id").arg("-u"), Duration::from_secs(9)).stdout.trim().to_owned();
    let own = format!("/dev/shm/ampl-{user}");
    let link =
        format!("mkdir trap && chmod 777 trap && ln -s \"$PWD/trap\" {own} && chown -h {ANOTHER} {own}");
    let directory = format!("mkdir -m 777 {own} && chown {ANOTHER} {own}");
    for prepare in [link, directory] {
        let job = job(Mpi::OpenMpi, "true");
        let Some((finished, after, scratch)) = shared_memory("64m", &job, &prepare) else { return };
        let said = &finished.stderr;
        assert_eq!(said.matches("cannot make its journal").count(), 1, "{said}");
        assert!(said.contains(&format!("belongs to another user ({ANOTHER})")), "{said}");
        let trap: Vec<&str> = after.lines().filter(|line| line.contains("ampl-")).collect();
        assert_eq!(trap, [&*own], "{after}");
        let inside = scratch.path().join("trap").read_dir().map_or(0, Iterator::count);
        assert_eq!(inside, 0, "{said}");
        is_whole(finished, scratch.path().join("result"), scratch);
    }
}

/// Journals of others are theirs, however little room they leave.
#[test]
fn a_node_s_memory_full_of_another_s_journals_is_done_without() {
    let scratch = Scratch::new("backing");
    // Open MPI's own memory is elsewhere; the launcher of MPICH has none without it.
    let job = job(Mpi::OpenMpi, "true").with("OMPI_MCA_btl_vader_backing_directory", scratch.path());
    let theirs = format!("/dev/shm/ampl-{ANOTHER}");
    let fill = format!(
        "mkdir -p {theirs}/run-1 && dd if=/dev/zero of={theirs}/run-1/rank-000000.journal bs=4k 2> /dev/null; \
         chown -R {ANOTHER} {theirs}"
    );
    let Some((finished, after, scratch)) = shared_memory("1m", &job, &fill) else { return };
    let said = &finished.stderr;
    assert_eq!(said.matches("cannot make its journal").count(), 1, "{said}");
    assert!(said.contains("No space left") && !said.contains("goes on without"), "{said}");
    let expected = format!("{theirs}\n{theirs}/run-1\n{theirs}/run-1/rank-000000.journal\n");
    assert_eq!(after, expected, "{said}");
    is_whole(finished, scratch.path().join("result"), scratch);
}

/// Files that others could write to, in `place` and below.
fn open_to_all(place: &Path) -> Vec<PathBuf> {
    let mut open = Vec::new();
    for entry in place.read_dir().expect("a directory of ours").flatten() {
        let found = entry.metadata().expect("it is there");
        if found.permissions().mode() & 0o022 != 0 && !found.is_symlink() {
            open.push(entry.path());
        }
        if found.is_dir() {
            open.extend(open_to_all(&entry.path()));
        }
    }
    open
}

/// With a mask that hides nothing, nobody else may write to what ampl makes.
#[test]
fn nothing_is_writable_by_others() {
    let scratch = Scratch::new("mask");
    let run = scratch.path().join("result");
    let look = "cp -a /dev/shm/ampl-* during; cp -a result/. during";
    let job = job(Mpi::OpenMpi, look);
    let words = monitored(&job, &scratch, &run, "[output]\njournal = \"node\"\n");
    let words = around("umask 0; mkdir -m 755 during", "true", words);
    let Some(words) = on_small("64m", Path::new("/dev/shm"), &words) else { return };
    let job = Job { directory: Some(scratch.path().to_owned()), ..job };
    let finished = job.run(&words, scratch.path()).success();
    let during = scratch.path().join("during");
    assert!(during.join("run.toml").is_file() && during.read_dir().is_ok_and(|found| found.count() > 2));
    assert_eq!(open_to_all(&during), Vec::<PathBuf>::new(), "{}", finished.stderr);
    assert_eq!(open_to_all(&run), Vec::<PathBuf>::new(), "{}", finished.stderr);
}
