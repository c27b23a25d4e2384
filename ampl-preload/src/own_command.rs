//! ampl's own command, started from a rank.
//!
//! By posix_spawn(3), never by fork(2): a copy of this process would have its network's memory. The process that is started
//! starts another and ends, so that no child is left to a program that waits for all of its own.

use std::ffi::{CString, OsStr, c_char};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{fs, ptr, thread};

use crate::resolve;

/// Variables that the process gets; none of MPI's, and no library before its own.
const VARIABLES: [&str; 6] = ["PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "XDG_CACHE_HOME"];

/// Time that the command may take. It hangs where a file system does not answer, and the program shall not.
const LONGEST: Duration = Duration::from_secs(30);
/// Time between two checks whether it has ended.
const STEP: Duration = Duration::from_millis(1);

/// `bin/ampl` beside the directory of this library.
fn command() -> Option<PathBuf> {
    let own = PathBuf::from(resolve::module(command as *const () as u64).0);
    let own = own.canonicalize().unwrap_or(own);
    Some(own.parent()?.parent()?.join("bin/ampl")).filter(|path| path.is_file())
}

/// Starts the command with these `words`, and waits until it has ended, at most half a minute; `None` where it failed.
pub fn run(words: &[&OsStr]) -> Option<()> {
    let text = |bytes: &[u8]| CString::new(bytes).ok();
    let ampl = text(command()?.as_os_str().as_bytes())?;
    let words: Option<Vec<CString>> = words.iter().map(|word| text(word.as_bytes())).collect();
    let words = [vec![ampl.clone()], words?].concat();
    let variables: Vec<CString> = VARIABLES
        .iter()
        .filter_map(|name| text(format!("{name}={}", std::env::var(name).ok()?).as_bytes()))
        .collect();
    // SAFETY: texts that live until it returns.
    unsafe { spawn(&ampl, &pointers(&words), &pointers(&variables), LONGEST) }
}

fn pointers(texts: &[CString]) -> Vec<*mut c_char> {
    texts.iter().map(|text| text.as_ptr().cast_mut()).chain([ptr::null_mut()]).collect()
}

/// Starts `program`, and waits until it has ended, at most `longest`, after which it is killed; `None` where it failed.
///
/// # Safety
/// The lists end with a null pointer, and their texts with a null byte.
unsafe fn spawn(
    program: &CString,
    words: &[*mut c_char],
    variables: &[*mut c_char],
    longest: Duration,
) -> Option<()> {
    let mut actions = MaybeUninit::uninit();
    let mut attributes = MaybeUninit::uninit();
    let (mut child, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: places for what is initialised here, and destroyed at the end.
    unsafe {
        if libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) != 0
            || libc::posix_spawnattr_init(attributes.as_mut_ptr()) != 0
        {
            return None;
        }
        let (actions, attributes) = (actions.as_mut_ptr(), attributes.as_mut_ptr());
        // A launcher waits for the ends of its pipes: the process keeps none of them.
        for number in open_files() {
            libc::posix_spawn_file_actions_addclose(actions, number);
        }
        for (number, flags) in [(0, libc::O_RDONLY), (1, libc::O_WRONLY), (2, libc::O_WRONLY)] {
            libc::posix_spawn_file_actions_addopen(actions, number, c"/dev/null".as_ptr(), flags, 0);
        }
        // It ends with the last rank, and no sooner: launchers send these to all processes of a job.
        let mut blocked = MaybeUninit::uninit();
        libc::sigemptyset(blocked.as_mut_ptr());
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2]
        {
            libc::sigaddset(blocked.as_mut_ptr(), signal);
        }
        libc::posix_spawnattr_setsigmask(attributes, blocked.as_ptr());
        libc::posix_spawnattr_setflags(attributes, libc::POSIX_SPAWN_SETSIGMASK as _);
        // The program may have a handler for the ends of its own children.
        let mut ends = MaybeUninit::uninit();
        libc::sigemptyset(ends.as_mut_ptr());
        libc::sigaddset(ends.as_mut_ptr(), libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, ends.as_ptr(), before.as_mut_ptr());
        let code = libc::posix_spawn(
            child.as_mut_ptr(),
            program.as_ptr(),
            actions,
            attributes,
            words.as_ptr(),
            variables.as_ptr(),
        );
        let ended = code == 0 && ended(child.assume_init(), ends.as_ptr(), longest);
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        libc::posix_spawn_file_actions_destroy(actions);
        libc::posix_spawnattr_destroy(attributes);
        ended.then_some(())
    }
}

/// Waits until process `child` has ended, at most `longest`, and takes its signal back; returns whether it succeeded.
///
/// # Safety
/// `ends` has `SIGCHLD`, which is blocked in this thread.
unsafe fn ended(child: libc::pid_t, ends: *const libc::sigset_t, longest: Duration) -> bool {
    let mut status = 0;
    let started = Instant::now();
    // SAFETY: a child of ours, and places for the answers.
    unsafe {
        loop {
            let found = libc::waitpid(child, &raw mut status, libc::WNOHANG);
            if found == child {
                break;
            }
            if found == 0 {
                if started.elapsed() > longest {
                    libc::kill(child, libc::SIGKILL);
                    return false;
                }
                thread::sleep(STEP);
                continue;
            }
            if *libc::__errno_location() != libc::EINTR {
                // Where the program ignores the signal, the system has taken the child already.
                return *libc::__errno_location() == libc::ECHILD;
            }
        }
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        if libc::sigtimedwait(ends, info.as_mut_ptr(), &raw const at_once) == libc::SIGCHLD
            && info.assume_init().si_pid() != child
        {
            // That of another child.
            libc::kill(libc::getpid(), libc::SIGCHLD);
        }
    }
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

/// Numbers of open files above the standard ones.
fn open_files() -> Vec<i32> {
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&number| number > 2)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_hangs_is_left() {
        let run = |program: &str, word: &str, longest: Duration| {
            let texts = [program, word].map(|text| CString::new(text).expect("no null byte"));
            // SAFETY: texts that live until it returns.
            unsafe { spawn(&texts[0], &pointers(&texts), &pointers(&[]), longest) }
        };
        assert_eq!(run("/bin/sleep", "0", Duration::from_secs(60)), Some(()));
        assert_eq!(run("/bin/sleep", "1000", Duration::from_millis(50)), None);
        assert_eq!(run("/bin/false", "", Duration::from_secs(60)), None);
    }
}
