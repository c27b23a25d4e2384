//! Processes that end: by themselves, or by the clock.

use std::cell::Cell;
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Variable that marks a job's processes, to find them when they must be killed.
const JOB: &str = "E2E_JOB";

/// Shared by the tests whose processes run beside each other.
static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    /// True where this thread holds its share of the machine, or all of it, already.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// A share of the machine, or all of it, until it is dropped.
#[derive(Debug)]
pub enum Machine {
    /// Other tests' processes run beside this thread's.
    Share(RwLockReadGuard<'static, ()>),
    /// No other test's process runs.
    Whole(RwLockWriteGuard<'static, ()>),
}

impl Drop for Machine {
    fn drop(&mut self) {
        HOLDS.set(false);
    }
}

/// Waits until no other test's process runs, and lets none begin: for results that depend on the clock, or on busy
/// processors. The processes must be started by this thread.
#[must_use]
pub fn alone() -> Machine {
    let whole = MACHINE.write().unwrap_or_else(PoisonError::into_inner);
    HOLDS.set(true);
    Machine::Whole(whole)
}

/// A share of the machine, as soon as no thread has all of it; `None` where this thread has one.
pub(crate) fn beside() -> Option<Machine> {
    let needed = !HOLDS.replace(true);
    needed.then(|| Machine::Share(MACHINE.read().unwrap_or_else(PoisonError::into_inner)))
}

/// Runs a test's `work` again, up to three times in all, where it panics: for results that name the rank, the place or
/// the kind of wait that costs most. A rank that the system keeps from the processors is waited for as well.
///
/// # Panics
/// With the last run's panic.
pub fn undisturbed(work: impl Fn()) {
    for _ in 0..2 {
        if catch_unwind(AssertUnwindSafe(&work)).is_ok() {
            return;
        }
    }
    work();
}

/// Waits until no process is there that was started with `word` in its command: a launcher may return before the ranks
/// that it ends are gone.
///
/// # Panics
/// When one is still there after a minute.
pub fn await_end_of(word: &str) {
    let is_there = || {
        let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let commands = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
        commands.into_iter().any(|command| String::from_utf8_lossy(&command).contains(word))
    };
    let begin = Instant::now();
    while is_there() {
        assert!(begin.elapsed() < Duration::from_secs(60), "{word} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Exit status and output of a process.
#[derive(Debug)]
pub struct Finished {
    /// Exit status.
    pub status: ExitStatus,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
}

impl Finished {
    /// The same, if the process succeeded.
    ///
    /// # Panics
    /// When it did not; the message holds all its output.
    pub fn success(self) -> Self {
        assert!(
            self.status.success(),
            "{}\n--- stdout\n{}--- stderr\n{}",
            self.status,
            self.stdout,
            self.stderr
        );
        self
    }

    /// The lines of standard output in alphabetical order, as ranks print in any.
    pub fn sorted_lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// Runs `command` to its end, without input.
///
/// # Panics
/// When it does not start, or is not done within `limit`; then all its processes are killed.
pub fn run(command: &mut Command, limit: Duration) -> Finished {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let _share = beside();
    let job = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let shown = format!("{command:?}");
    command.env(JOB, &job).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.stdin(Stdio::null());
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
    let stdout = reader(child.stdout.take().expect("it is piped"));
    let stderr = reader(child.stderr.take().expect("it is piped"));
    let status = wait(&mut child, limit);
    if status.is_none() {
        let _ = Command::new("kill").args(["-TERM", "--", &format!("-{}", child.id())]).status();
        if wait(&mut child, Duration::from_secs(5)).is_none() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
    // A launcher may leave ranks behind, which hold the pipes open.
    kill_left_over(&job);
    let text = |reader: JoinHandle<Vec<u8>>| {
        String::from_utf8_lossy(&reader.join().expect("reading does not panic")).into_owned()
    };
    let (stdout, stderr) = (text(stdout), text(stderr));
    let Some(status) = status else {
        panic!("not done after {limit:?}: {shown}\n--- stdout\n{stdout}--- stderr\n{stderr}");
    };
    Finished { status, stdout, stderr }
}

fn reader(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// Exit status of `child`; `None` when it has not ended by `limit`.
fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return Some(status);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Kills the processes whose environment names `job`.
fn kill_left_over(job: &str) {
    let wanted = format!("{JOB}={job}");
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return;
    };
    for process in processes.flatten() {
        let name = process.file_name().to_string_lossy().into_owned();
        let Ok(environment) = std::fs::read(process.path().join("environ")) else {
            continue;
        };
        if name.parse::<u32>().is_ok()
            && environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
        {
            let _ = Command::new("kill").args(["-KILL", &name]).status();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_status_come_back() {
        let finished = run(
            Command::new("sh").args(["-c", "echo b; echo a; echo c >&2; exit 3"]),
            Duration::from_secs(9),
        );
        assert_eq!(finished.status.code(), Some(3));
        assert_eq!(finished.sorted_lines(), ["a", "b"]);
        assert_eq!(finished.stderr, "c\n");
    }

    #[test]
    fn what_hangs_is_killed_with_its_children() {
        // Both hold the pipes: this returns only when both are gone.
        let sleepers = "setsid sleep 1000000 & sleep 1000000";
        let hang = || run(Command::new("sh").args(["-c", sleepers]), Duration::from_millis(200));
        let error = std::panic::catch_unwind(hang).unwrap_err();
        assert!(error.downcast_ref::<String>().unwrap().contains("not done after"));
    }
}
