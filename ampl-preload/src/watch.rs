//! Reports why `MPI_Init` takes so long, where ranks wait for one that does not come.

use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::contain::contained;
use crate::once;
use crate::report::message;
use crate::signals::Held;

/// Agreeing takes milliseconds, on a machine that is overloaded seconds.
const LONG: Duration = Duration::from_secs(20);

/// A thread that waits; it ends with the value.
///
/// `MPI_Init` may be called by a constructor, with the loader's lock held by the thread that waits for this one. The
/// standard library's threads need that lock to begin; this one does not, until it has something to say.
#[derive(Debug)]
pub struct Watch(Option<(libc::pthread_t, &'static Waiting)>);

/// State shared by the waiting and the watching thread.
#[derive(Debug)]
struct Waiting {
    rank: u32,
    /// Posted when the agreement is there.
    agreed: UnsafeCell<libc::sem_t>,
    /// Taken by the side that is first: the thread, to report, or the one that need not wait any more.
    decided: AtomicBool,
}

// SAFETY: semaphores are there to be used by several threads.
unsafe impl Sync for Waiting {}

impl Waiting {
    fn is_first(&self) -> bool {
        !self.decided.swap(true, Ordering::AcqRel)
    }
}

impl Watch {
    /// Starts to watch, on a few ranks: any of them may be the missing one.
    pub fn start(rank: u32) -> Self {
        if rank != 0 && !rank.is_power_of_two() {
            return Self(None);
        }
        // SAFETY: plain data, and set below.
        let agreed = UnsafeCell::new(unsafe { std::mem::zeroed() });
        let waiting: &Waiting =
            Box::leak(Box::new(Waiting { rank, agreed, decided: AtomicBool::new(false) }));
        // SAFETY: a new semaphore of this process, of value 0.
        unsafe { libc::sem_init(waiting.agreed.get(), 0, 0) };
        Self(without_signals(waiting).map(|thread| (thread, waiting)))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some((thread, waiting)) = self.0.take() else { return };
        // SAFETY: the semaphore lives for ever, and the thread has been neither joined nor detached.
        unsafe {
            if waiting.is_first() {
                libc::sem_post(waiting.agreed.get());
                libc::pthread_join(thread, ptr::null_mut());
            } else {
                libc::pthread_detach(thread);
            }
        }
    }
}

extern "C" fn wait(waiting: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: what `start` has leaked.
    let waiting = unsafe { &*waiting.cast::<Waiting>() };
    // The C library gives a thread that allocates memory a pool of its own, and turns to such a pool when the program's
    // can grow no more: the end of a job that has used up its memory finds room there.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(1)));
    let mut until = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the time, and a semaphore; nothing interrupts a thread without signals.
    let agreed = unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut until);
        until.tv_sec += LONG.as_secs() as libc::time_t;
        // Not sem_timedwait: the clock of that jumps when it is set.
        sem_clockwait(waiting.agreed.get(), libc::CLOCK_MONOTONIC, &raw const until) == 0
    };
    if !agreed && waiting.is_first() {
        contained(|| {
            if !once::is_first("waits") {
                return;
            }
            message(&format!(
                "rank {} has been waiting for the other ranks in MPI_Init for {} s, although all have the library: one \
                 may have stopped there",
                waiting.rank,
                LONG.as_secs()
            ));
        });
    }
    ptr::null_mut()
}

unsafe extern "C" {
    /// As `sem_timedwait`, by a clock of one's choice; the GNU C library has it since 2.30.
    fn sem_clockwait(
        semaphore: *mut libc::sem_t,
        clock: libc::clockid_t,
        until: *const libc::timespec,
    ) -> libc::c_int;
}

/// A thread that takes none of the signals that are meant for the program; `None` where there can be none.
fn without_signals(waiting: &'static Waiting) -> Option<libc::pthread_t> {
    let _held = Held::all();
    // SAFETY: attributes are plain data, and each call only fills or reads those passed.
    unsafe {
        let (mut attributes, mut thread) = std::mem::zeroed();
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, 1 << 17);
        let argument = ptr::from_ref(waiting).cast_mut().cast();
        let made = libc::pthread_create(&raw mut thread, &raw const attributes, wait, argument);
        if made == 0 {
            libc::pthread_setname_np(thread, c"ampl".as_ptr());
        }
        libc::pthread_attr_destroy(&raw mut attributes);
        (made == 0).then_some(thread)
    }
}
