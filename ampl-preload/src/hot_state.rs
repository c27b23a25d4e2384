//! Flags of the agent of this process that every call reads.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};

use crate::clock;

/// No agent yet.
const NOT_STARTED: u8 = 0;
/// An agent is or was here; there will be no other.
const STARTED: u8 = 1;

static STATE: AtomicU8 = AtomicU8::new(NOT_STARTED);
static HOT: HotState = HotState {
    active: AtomicBool::new(false),
    invariant: AtomicBool::new(false),
    wildcards: [AtomicI32::new(0), AtomicI32::new(0)],
    generation: AtomicU64::new(0),
};

/// Flags in one line of memory, where no pointer leads. The page is its own, for the system to empty in children
/// ([`be_silent_in_children`]).
#[repr(C, align(4096))]
struct HotState {
    /// True while calls are to be recorded.
    active: AtomicBool,
    /// True where ticks are of the time-stamp counter.
    invariant: AtomicBool,
    /// `MPI_ANY_SOURCE` and `MPI_ANY_TAG`.
    wildcards: [AtomicI32; 2],
    /// Changes whenever a handle changes its meaning.
    generation: AtomicU64,
}

/// True while calls are to be recorded.
#[inline(always)]
pub fn is_active() -> bool {
    HOT.active.load(Ordering::Relaxed)
}

/// The clock of calls, in [ticks](clock::ticks). There must be an agent, or have been one.
#[inline(always)]
pub fn now() -> u64 {
    clock::ticks(is_invariant())
}

/// True where ticks are of the time-stamp counter. As [`now`].
#[inline(always)]
pub fn is_invariant() -> bool {
    HOT.invariant.load(Ordering::Relaxed)
}

/// `MPI_ANY_SOURCE` and `MPI_ANY_TAG`. As [`now`].
#[inline(always)]
pub fn wildcards() -> [i32; 2] {
    HOT.wildcards.each_ref().map(|wildcard| wildcard.load(Ordering::Relaxed))
}

/// Number that changes whenever a handle changes its meaning.
#[inline(always)]
pub fn generation() -> u64 {
    HOT.generation.load(Ordering::Relaxed)
}

/// Sets the [`generation`] of handles.
#[inline]
pub fn set_generation(generation: u64) {
    HOT.generation.store(generation, Ordering::Relaxed);
}

/// True where no agent has been made yet.
pub fn has_not_started() -> bool {
    STATE.load(Ordering::Relaxed) == NOT_STARTED
}

/// Claims the start of the agent; true for the first caller alone.
pub fn claim_start() -> bool {
    STATE.swap(STARTED, Ordering::AcqRel) == NOT_STARTED
}

/// Sets MPI's wildcards and the kind of clock, before the agent is [active](activate).
pub fn prepare(wildcards: [i32; 2]) {
    HOT.invariant.store(clock::is_invariant(), Ordering::Relaxed);
    for (place, value) in HOT.wildcards.iter().zip(wildcards) {
        place.store(value, Ordering::Relaxed);
    }
}

/// Has calls recorded from now on.
pub fn activate() {
    HOT.active.store(true, Ordering::Release);
}

/// Ends the recording of calls, as MPI ends or the agent has failed.
pub fn deactivate() {
    HOT.active.store(false, Ordering::Release);
}

/// True once a communicator has been freed unseen, in a callback: a known one may be gone.
static COMMS_UNCERTAIN: AtomicBool = AtomicBool::new(false);

/// Notes that known communicators may be gone.
pub fn mark_comms_uncertain() {
    COMMS_UNCERTAIN.store(true, Ordering::Relaxed);
}

/// True where a known communicator may be gone all the same.
pub fn are_comms_uncertain() -> bool {
    COMMS_UNCERTAIN.load(Ordering::Relaxed)
}

/// True once the program has cancelled a request.
static CANCELS: AtomicBool = AtomicBool::new(false);

/// Notes that the program cancels a request.
pub fn mark_cancelled() {
    CANCELS.store(true, Ordering::Relaxed);
}

/// True once [`mark_cancelled`] has been called.
#[inline]
pub fn has_cancelled() -> bool {
    CANCELS.load(Ordering::Relaxed)
}

extern "C" fn in_forked_child() {
    HOT.active.store(false, Ordering::Relaxed);
}

/// Disables recording in children: a child is no rank, and the journal is not mapped there. Handlers run in those of
/// `fork` only, not in those of the system call.
pub fn be_silent_in_children() {
    let page = (&raw const HOT).cast_mut().cast();
    // Linux before 4.14 does not know how to.
    // SAFETY: the static's own page; a child finds the values that it had in the beginning, 0.
    if unsafe { libc::madvise(page, size_of::<HotState>(), libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    }
}
