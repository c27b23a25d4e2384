//! Keeps the processor during a poll of the tree.
//!
//! MPI libraries yield it when they are asked about messages and there are none: Open MPI where ranks share processors
//! (`mpi_yield_when_idle`), MPICH where threads do. The application polls because it has to wait; ampl polls in
//! passing, and after a yield the application would wait for everybody else's turn.

use std::mem::transmute;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::clock::ticks;
use crate::entry::{Yield, entry};
use crate::symbol::next_definition;

/// Guard: while it lives, the calling thread does not yield.
#[derive(Debug)]
pub struct YieldSuppressor(Option<Yield>);

impl YieldSuppressor {
    /// Suppresses yields from now on.
    pub fn new() -> Self {
        // SAFETY: the calling thread's own block.
        Self(unsafe { (*entry()).yields.replace(stay) })
    }
}

impl Drop for YieldSuppressor {
    fn drop(&mut self) {
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).yields = self.0 };
    }
}

extern "C" fn stay() -> i32 {
    0
}

/// Fewest ticks of a yield that another thread has taken, about 1 µs: two switches and a turn take longer, a yield that nobody
/// waits for does not.
const TAKEN: u64 = 3000;

/// How often the calling thread has given its turn away to another: it lost the processor by its own will, which the
/// system counts as if it had not wanted to.
pub fn yielded() -> u64 {
    // SAFETY: the calling thread's own block.
    unsafe { (*entry()).yielded }
}

/// The C library's, or that of a tool in between; null before there is an agent.
static NEXT: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());

/// Finds the definition behind ours. The first yield is too late: its thread may be awaited by a holder of the loader's
/// lock, and the loader's error text is the program's.
pub fn find() {
    NEXT.store(next_definition("sched_yield\0").cast_mut(), Ordering::Relaxed);
}

/// As in the C library, but for a thread that keeps its turn.
///
/// A waiting thread calls this again and again with cold caches: all data is in the thread's block.
// SAFETY: an exported symbol with the C library's name and type.
#[unsafe(no_mangle)]
extern "C" fn sched_yield() -> i32 {
    let from = ticks(true);
    // SAFETY: the calling thread's own block.
    let result = match unsafe { (*entry()).yields } {
        Some(function) => function(),
        None => first(),
    };
    if ticks(true).wrapping_sub(from) >= TAKEN {
        // SAFETY: as above.
        unsafe { (*entry()).yielded = (*entry()).yielded.wrapping_add(1) };
    }
    result
}

/// Yields for the first time of a thread, and before there is an agent.
#[cold]
fn first() -> i32 {
    let next = NEXT.load(Ordering::Relaxed).cast_const();
    // SAFETY: null, or the definition behind ours of a function of that type.
    let Some(next) = (unsafe { transmute::<*const (), Option<Yield>>(next) }) else {
        // SAFETY: a system call without arguments.
        return unsafe { libc::syscall(libc::SYS_sched_yield) as i32 };
    };
    // SAFETY: the calling thread's own block.
    unsafe { (*entry()).yields = Some(next) };
    next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_kept_and_then_given_as_before() {
        // SAFETY: the calling thread's own block.
        let yields = || unsafe { (*entry()).yields.map(|function| function as usize) };
        assert_eq!((sched_yield(), yields()), (0, None), "nobody looks for it");
        {
            let _kept = YieldSuppressor::new();
            assert_eq!((sched_yield(), yields()), (0, Some(stay as *const () as usize)));
        }
        assert_eq!(yields(), None);
        find();
        assert_eq!(sched_yield(), 0);
        assert_eq!(yields(), Some(NEXT.load(Ordering::Relaxed) as usize).filter(|&next| next != 0));
        let there = yields();
        drop(YieldSuppressor::new());
        assert_eq!(yields(), there);
    }

    #[test]
    fn a_yield_that_another_takes_is_counted() {
        extern "C" fn taken() -> i32 {
            std::thread::sleep(std::time::Duration::from_millis(1));
            0
        }
        let with = |function: Yield| {
            // SAFETY: the calling thread's own block.
            let known = unsafe { (*entry()).yields.replace(function) };
            let before = yielded();
            (0..20).for_each(|_| _ = sched_yield());
            // SAFETY: as above.
            unsafe { (*entry()).yields = known };
            yielded() - before
        };
        assert_eq!(with(taken), 20);
        // A busy machine may take the processor during one that keeps it.
        assert!(with(stay) < 20);
    }
}
