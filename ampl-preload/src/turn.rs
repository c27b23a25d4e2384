//! A look after the tree keeps the processor's turn.
//!
//! MPI libraries give it away when they are asked about messages and there are none: Open MPI where ranks share
//! processors (`mpi_yield_when_idle`), MPICH where threads do. The application asks because it has to wait; ampl asks
//! in passing, and a turn given away would come back after everybody else's, which the application would pay for.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::entry::entry;
use crate::symbol::next_definition;

/// While it lives, the calling thread gives no turn away.
#[derive(Debug)]
pub struct Turn(());

impl Turn {
    /// From now on.
    pub fn keep() -> Self {
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).keeps_turn = true };
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).keeps_turn = false };
    }
}

/// The C library's, or that of a tool in between; null until it is asked for.
static NEXT: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// As in the C library, but for a thread that keeps its turn.
// SAFETY: an exported symbol with the C library's name and type.
#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> i32 {
    // SAFETY: the calling thread's own block.
    if unsafe { (*entry()).keeps_turn } {
        return 0;
    }
    let mut next = NEXT.load(Ordering::Relaxed).cast_const();
    if next.is_null() {
        next = next_definition("sched_yield\0");
        NEXT.store(next.cast_mut(), Ordering::Relaxed);
    }
    if next.is_null() {
        // SAFETY: a system call without arguments.
        return unsafe { libc::syscall(libc::SYS_sched_yield) as i32 };
    }
    // SAFETY: the definition behind ours of a function of that type.
    unsafe { std::mem::transmute::<*const (), extern "C" fn() -> i32>(next)() }
}
