//! Sleep, as MPI libraries do while they wait for other processes; overdue work is done then.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::contain::contained;
use crate::symbol::next_definition;

/// The C library's, or that of a tool in between; null before there is an agent.
static NEXT: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Function called at each sleep, with the address at which the sleeping thread goes on; none before there is an agent.
static OBSERVER: OnceLock<fn(u64)> = OnceLock::new();

/// Finds the definition behind ours, and passes sleeps to `observer` from now on.
pub fn find(observer: fn(u64)) {
    NEXT.store(next_definition("usleep\0").cast_mut(), Ordering::Relaxed);
    let _ = OBSERVER.set(observer);
}

/// Notes a call of `usleep` that returns to `back`; returns the definition to jump to.
extern "C" fn note(_: u32, back: u64) -> *const () {
    if let Some(observer) = OBSERVER.get() {
        contained(|| observer(back));
    }
    match NEXT.load(Ordering::Relaxed).cast_const() {
        next if next.is_null() => plain as *const (),
        next => next,
    }
}

/// Sleeps, while no definition has been found.
extern "C-unwind" fn plain(microseconds: u32) -> i32 {
    let time = libc::timespec {
        tv_sec: (microseconds / 1_000_000).into(),
        tv_nsec: (microseconds % 1_000_000 * 1000).into(),
    };
    // SAFETY: a time, and no place for what is left of it.
    unsafe { libc::nanosleep(&raw const time, ptr::null_mut()) }
}

/// As in the C library. Jumps on to it: whoever is cancelled there leaves no frame of ours behind.
// SAFETY: an exported symbol with the C library's name and type.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn usleep(microseconds: u32) -> i32 {
    core::arch::naked_asm!(
        "push rdi",
        "mov rsi, qword ptr [rsp + 8]",
        "call {note}",
        "pop rdi",
        "jmp rax",
        note = sym note,
    )
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn one_sleeps_as_long_as_one_wants() {
        for _ in 0..2 {
            let begun = Instant::now();
            // SAFETY: the function above.
            assert_eq!(unsafe { usleep(20_000) }, 0);
            assert!(begun.elapsed() >= Duration::from_millis(20));
            find(|_| {});
        }
    }
}
