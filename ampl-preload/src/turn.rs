//! A look after the tree keeps the processor's turn.
//!
//! MPI libraries give it away when they are asked about messages and there are none: Open MPI where ranks share
//! processors (`mpi_yield_when_idle`), MPICH where threads do. The application asks because it has to wait; ampl asks
//! in passing, and a turn given away would come back after everybody else's, which the application would pay for.

use std::mem::transmute;

use crate::entry::entry;
use crate::symbol::next_definition;

/// What a thread gives its turn away with.
pub type Yield = extern "C" fn() -> i32;

/// While it lives, the calling thread gives no turn away.
#[derive(Debug)]
pub struct Turn(Option<Yield>);

impl Turn {
    /// From now on.
    pub fn keep() -> Self {
        // SAFETY: the calling thread's own block.
        Self(unsafe { (*entry()).gives_turn.replace(stay) })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).gives_turn = self.0 };
    }
}

extern "C" fn stay() -> i32 {
    0
}

/// As in the C library, but for a thread that keeps its turn.
///
/// Whoever waits calls this again and again, with nothing of ours in the caches: all it needs is in the thread's block.
// SAFETY: an exported symbol with the C library's name and type.
#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> i32 {
    // SAFETY: the calling thread's own block.
    match unsafe { (*entry()).gives_turn } {
        Some(give) => give(),
        None => first(),
    }
}

/// A thread's first: it has not been looked for.
#[cold]
fn first() -> i32 {
    let next = next_definition("sched_yield\0");
    // SAFETY: null, or the definition behind ours of a function of that type.
    let next = unsafe { transmute::<*const (), Option<Yield>>(next) }.unwrap_or(system);
    // SAFETY: the calling thread's own block.
    unsafe { (*entry()).gives_turn = Some(next) };
    next()
}

extern "C" fn system() -> i32 {
    // SAFETY: a system call without arguments.
    unsafe { libc::syscall(libc::SYS_sched_yield) as i32 }
}
