//! ampl's own command, started from a rank.
//!
//! By posix_spawn(3), never by fork(2): a copy of this process would have its network's memory. The process that is started
//! starts another and ends, so that no child is left to a program that waits for all of its own; of its end the program
//! gets no signal.

use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::mem::{self, MaybeUninit};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;
use std::{fs, ptr};

use crate::resolve;

/// Variables that the process gets; none of MPI's, and no library before its own.
const VARIABLES: [&str; 6] = ["PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "XDG_CACHE_HOME"];

/// Time that the command may take. It hangs where a file system does not answer, and the program shall not.
const LONGEST: Duration = Duration::from_secs(30);
/// Time between two checks whether it has ended.
const STEP: Duration = Duration::from_millis(1);
/// Bytes of the stack of the process between.
const STACK: usize = 64 << 10;

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

/// Arguments of the process between a rank and the command.
struct Start<'a> {
    program: &'a CString,
    actions: *const libc::posix_spawn_file_actions_t,
    attributes: *const libc::posix_spawnattr_t,
    words: &'a [*mut c_char],
    variables: &'a [*mut c_char],
    longest: Duration,
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
        let start = Start { program, actions, attributes, words, variables, longest };
        let ended = between(&start);
        libc::posix_spawn_file_actions_destroy(actions);
        libc::posix_spawnattr_destroy(attributes);
        ended.then_some(())
    }
}

/// Runs [`start_and_wait`] in a process of its own, on this process's memory, while this thread waits; returns whether it
/// succeeded.
///
/// Its end sends no signal, and only `__WCLONE` waits for it: the program's handler of `SIGCHLD`, and its calls of
/// wait(2), see nothing. A process that has called execve(2) sends `SIGCHLD` whatever it was started with, so this one
/// calls it in a child.
///
/// # Safety
/// As of [`spawn`].
unsafe fn between(start: &Start<'_>) -> bool {
    let mut stack = vec![0_u128; STACK / size_of::<u128>()];
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let mut status = 0;
    // SAFETY: CLONE_VFORK keeps this thread, and all that the process borrows from it, until the process has ended. Its
    // handlers are the program's, on the program's memory, so that it takes no signal.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let child = libc::clone(
            start_and_wait,
            stack.as_mut_ptr_range().end.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK,
            ptr::from_ref(start).cast_mut().cast(),
        );
        let found = if child > 0 { libc::waitpid(child, &raw mut status, libc::__WCLONE) } else { child };
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut());
        found > 0 && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}

/// Starts the command and waits until it has ended, or too much time has gone; the status with which it exits is 0 where
/// the command succeeded.
extern "C" fn start_and_wait(start: *mut c_void) -> c_int {
    let mut child = 0;
    let mut status = 0;
    // SAFETY: what `between` passes, and calls that take no lock and no memory of the process's.
    unsafe {
        let start = &*start.cast::<Start<'_>>();
        // Where the signal is ignored, as the program may do, the system takes the child before it is waited for.
        let mut usual: libc::sigaction = mem::zeroed();
        usual.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGCHLD, &raw const usual, ptr::null_mut());
        let code = libc::posix_spawn(
            &raw mut child,
            start.program.as_ptr(),
            start.actions,
            start.attributes,
            start.words.as_ptr(),
            start.variables.as_ptr(),
        );
        if code != 0 {
            return 1;
        }
        let steps = start.longest.as_micros().div_ceil(STEP.as_micros());
        for _ in 0..steps {
            let found = libc::waitpid(child, &raw mut status, libc::WNOHANG);
            if found != 0 {
                let succeeded = found == child && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
                return c_int::from(!succeeded);
            }
            libc::usleep(STEP.as_micros() as _);
        }
        libc::kill(child, libc::SIGKILL);
    }
    1
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
