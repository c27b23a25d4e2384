//! A thread that cannot be cancelled for a while.

use std::ptr;

/// Guard: while it lives, the thread cannot be cancelled. A cancellation unwinds, and must not meet a hook's panic
/// guard while the hook waits for the system or for MPI. Opening, closing and extending files are points of
/// cancellation, too.
#[derive(Debug)]
pub struct Uncancelled(i32);

impl Uncancelled {
    /// From now on.
    pub fn begin() -> Self {
        let mut before = 0;
        // SAFETY: a place for the state before.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: puts back what was.
        unsafe { pthread_setcancelstate(self.0, ptr::null_mut()) };
    }
}

const PTHREAD_CANCEL_DISABLE: i32 = 1;

unsafe extern "C" {
    // Not in the libc crate.
    fn pthread_setcancelstate(state: i32, before: *mut i32) -> i32;
}
