//! Signals that wait.

use std::mem::MaybeUninit;
use std::ptr;

/// Holds signals of the calling thread back while it is there.
pub struct Held(libc::sigset_t);

impl Held {
    /// All of them.
    pub fn all() -> Self {
        // SAFETY: fills the set that it is passed.
        Self::of(|set| unsafe { libc::sigfillset(set) })
    }

    /// One of them.
    pub fn only(signal: i32) -> Self {
        Self::of(|set| one(set, signal))
    }

    fn of(choose: impl FnOnce(*mut libc::sigset_t) -> i32) -> Self {
        let (mut chosen, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        choose(chosen.as_mut_ptr());
        // SAFETY: a set that was filled, and a place for one that the call fills.
        unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, chosen.as_ptr(), before.as_mut_ptr());
            Self(before.assume_init())
        }
    }

    /// Takes one of that signal that waits, unless the application holds it back itself.
    pub fn take(&self, signal: i32) {
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut set = MaybeUninit::uninit();
        one(set.as_mut_ptr(), signal);
        // SAFETY: sets that were filled, and no place for what the signal tells.
        unsafe {
            if libc::sigismember(&raw const self.0, signal) == 0 {
                libc::sigtimedwait(set.as_ptr(), ptr::null_mut(), &raw const at_once);
            }
        }
    }
}

fn one(set: *mut libc::sigset_t, signal: i32) -> i32 {
    // SAFETY: fills the set that it is passed, and adds to it.
    unsafe {
        libc::sigemptyset(set);
        libc::sigaddset(set, signal)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the set that was found.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}
