//! Process state that Rust's runtime changes before `main`. The runtime ignores SIGPIPE, which a `Command` then
//! sets to its default. It opens /dev/null where standard input, output or error is closed. Programs started from
//! here get all of it as without ampl.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{F_GETFD, SIG_IGN, SIGPIPE, close, fcntl, signal};

static PIPE_IGNORED: AtomicBool = AtomicBool::new(false);
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// The C library calls the functions listed here before `main`, and so before the runtime begins.
// SAFETY: the section is a list of functions; this one needs no arguments and nothing that a runtime prepares.
#[unsafe(link_section = ".init_array")]
#[used]
static BEFORE_MAIN: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: the runtime ignores the signal next, too; the answer is its state before.
    let before = unsafe { signal(SIGPIPE, SIG_IGN) };
    PIPE_IGNORED.store(before == SIG_IGN, Ordering::Relaxed);
    for (descriptor, closed) in (0..).zip(&CLOSED) {
        // SAFETY: only queries, and any number may be queried.
        closed.store(unsafe { fcntl(descriptor, F_GETFD) } == -1, Ordering::Relaxed);
    }
}

/// Has `command` start its program with the state that this process was started with.
pub fn hand_on(command: &mut Command) -> &mut Command {
    // SAFETY: between fork and exec it loads atomics and makes system calls, no more.
    unsafe { command.pre_exec(restore) }
}

/// After the `Command` has set SIGPIPE, and right before the program replaces this process.
fn restore() -> std::io::Result<()> {
    if PIPE_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: no handler, and nothing here waits for the signal.
        unsafe { signal(SIGPIPE, SIG_IGN) };
    }
    for (descriptor, _) in (0..).zip(&CLOSED).filter(|(_, closed)| closed.load(Ordering::Relaxed)) {
        // SAFETY: the runtime's /dev/null, which has no owner.
        unsafe { close(descriptor) };
    }
    Ok(())
}

/// Writes `text` to the inherited descriptor of that number, if it is open.
pub fn write(descriptor: i32, text: &[u8]) {
    // SAFETY: the bytes are there; a descriptor that is none is refused. Nobody reads an answer.
    unsafe { libc::write(descriptor, text.as_ptr().cast(), text.len()) };
}

/// Leaves the processors that this process was bound to by the one that started it, for any that the job's container has:
/// a rank's processor is that rank's alone.
pub fn leave_processor() {
    // SAFETY: a set of numbers, whose bits may all be set: the system takes away what the container lacks.
    unsafe {
        let mut all: libc::cpu_set_t = std::mem::zeroed();
        (0..8 * size_of::<libc::cpu_set_t>()).for_each(|cpu| libc::CPU_SET(cpu, &mut all));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const all);
    }
}
