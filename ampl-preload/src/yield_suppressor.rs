//! A look after the tree keeps the processor's turn.
//!
//! MPI libraries give it away when they are asked about messages and there are none: Open MPI where ranks share
//! processors (`mpi_yield_when_idle`), MPICH where threads do. The application asks because it has to wait; ampl asks
//! in passing, and a turn given away would come back after everybody else's, which the application would pay for.

use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::entry::entry;
use crate::symbol::next_definition;

/// What a thread gives its turn away with.
pub type Yield = extern "C" fn() -> i32;

/// While it lives, the calling thread gives no turn away.
#[derive(Debug)]
pub struct YieldSuppressor(Option<Yield>);

impl YieldSuppressor {
    /// From now on.
    pub fn keep() -> Self {
        // SAFETY: the calling thread's own block.
        Self(unsafe { (*entry()).gives_turn.replace(stay) })
    }
}

impl Drop for YieldSuppressor {
    fn drop(&mut self) {
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).gives_turn = self.0 };
    }
}

extern "C" fn stay() -> i32 {
    0
}

/// The C library's, or that of a tool in between; null before there is an agent.
static NEXT: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Finds what stands behind ours. Where a turn is given away would be no place for that: somebody may wait for the thread
/// with the loader's lock in hand, and what the loader has to say of an error is the program's to ask for.
pub fn find() {
    NEXT.store(next_definition("sched_yield\0").cast_mut(), Ordering::Relaxed);
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

/// A thread's first, and all before there is an agent.
#[cold]
fn first() -> i32 {
    let next = NEXT.load(Ordering::Relaxed).cast_const();
    // SAFETY: null, or the definition behind ours of a function of that type.
    let Some(next) = (unsafe { transmute::<*const (), Option<Yield>>(next) }) else {
        // SAFETY: a system call without arguments.
        return unsafe { libc::syscall(libc::SYS_sched_yield) as i32 };
    };
    // SAFETY: the calling thread's own block.
    unsafe { (*entry()).gives_turn = Some(next) };
    next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_kept_and_then_given_as_before() {
        // SAFETY: the calling thread's own block.
        let gives = || unsafe { (*entry()).gives_turn.map(|give| give as usize) };
        assert_eq!((sched_yield(), gives()), (0, None), "nobody looks for it");
        {
            let _turn = YieldSuppressor::keep();
            assert_eq!((sched_yield(), gives()), (0, Some(stay as *const () as usize)));
        }
        assert_eq!(gives(), None);
        find();
        assert_eq!(sched_yield(), 0);
        assert_eq!(gives(), Some(NEXT.load(Ordering::Relaxed) as usize).filter(|&next| next != 0));
        let there = gives();
        drop(YieldSuppressor::keep());
        assert_eq!(gives(), there);
    }
}
