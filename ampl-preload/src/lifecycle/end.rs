//! The end of the agent of this process: the last window, MPI's call back as it ends, the trace.
//!
//! Delete callbacks run last-in first-out and ours was set in `MPI_Init`, so the application's own have run. MPI still
//! works then (MPI-4.1 §11.2.4).

use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use ampl_agent::handles::Handles;
use ampl_agent::uncancelled::Uncancelled;
use ampl_core::value::ObjectKind;

use super::{Agent, adopt_thread, current};
use crate::api;
use crate::contain::contained;
use crate::ending::Ending;
use crate::entry::{Entry, entry};
use crate::hot_state::{self, is_active, now};
use crate::large_stack::with_room;
use crate::libraries::is_library_of_mpi;
use crate::resolve;
use crate::thread_state::ThreadState;

/// True once the last window has ended, because `MPI_Finalize` is entered.
static ENDED: AtomicBool = AtomicBool::new(false);

/// The agent whose end MPI has yet to call; null before its start and after its end.
static TO_END: AtomicPtr<Agent> = AtomicPtr::new(ptr::null_mut());

/// The block of the thread that is in MPI's own `MPI_Finalize`, until the agent has given up.
static FINALIZING: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

/// `MPI_Finalize` is entered on this thread: the last window ends; the rest follows when MPI deletes the attributes of
/// `MPI_COMM_SELF`.
pub fn enter_finalize(state: &mut ThreadState, now: u64) {
    let Some(agent) = current() else { return };
    let _whole = Uncancelled::begin();
    let journal = &agent.process.shared.journal;
    let ending = Ending::start(journal);
    with_room(|| agent.finish(state, now));
    ending.stop(journal, &agent.finalizer.ended);
}

/// MPI's own `MPI_Finalize` is about to be called on this thread.
pub fn finalize_entered() {
    FINALIZING.store(entry(), Ordering::Release);
}

/// Notes that `MPI_Finalize` has returned. Where a session is left MPI ends with that; a run that is unmerged when the
/// process ends stays so.
pub fn finalize_left() {
    FINALIZING.store(ptr::null_mut(), Ordering::Release);
    if !TO_END.load(Ordering::Acquire).is_null() {
        // SAFETY: a function without arguments.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Notes that a thread sleeps, and goes on at `back`.
///
/// Where a delete callback of the program's fails, Open MPI deletes no more attributes of `MPI_COMM_SELF`, and waits
/// for all processes to come to its end, sleeping now and then. Ours is not called then, and others, which wait for
/// this rank in theirs, would never come. So it reports that it takes no further part. Merging here would wait for
/// ranks that MPI may let go.
pub fn is_sleeping(back: u64) {
    let agent = TO_END.load(Ordering::Acquire);
    if !agent.is_null()
        && FINALIZING.load(Ordering::Acquire) == entry()
        && is_library_of_mpi(&resolve::module(back).0)
    {
        FINALIZING.store(ptr::null_mut(), Ordering::Release);
        // SAFETY: the agent, which is never freed.
        contained(|| unsafe { (*agent).give_up() });
    }
}

unsafe extern "C" fn copy_nothing(_: usize, _: i32, _: usize, _: usize, _: usize, flag: *mut i32) -> i32 {
    // SAFETY: MPI passes a place for the answer: the attribute is not copied.
    unsafe { *flag = 0 };
    0
}

unsafe extern "C" fn at_deletion(_: usize, _: i32, _: usize, _: usize) -> i32 {
    let agent = TO_END.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null or the agent, which is never freed.
    if let Some(agent) = unsafe { agent.as_ref() }
        && contained(|| agent.end()).is_none()
    {
        // No rank may wait for this one's messages.
        contained(|| agent.give_up());
    }
    0
}

extern "C" fn at_exit() {
    let agent = TO_END.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: null or the agent, which is never freed.
    if let Some(agent) = unsafe { agent.as_ref() }
        && is_active()
    {
        contained(|| agent.finalizer.report_left());
    }
}

impl Agent {
    /// Has MPI call [`Agent::end`] when it ends. Where it refuses, journals stay unmerged.
    pub fn arm(&'static self) {
        let Some(own) = self.process.abi.handle(ObjectKind::Comm, "MPI_COMM_SELF") else { return };
        TO_END.store(ptr::from_ref(self).cast_mut(), Ordering::Release);
        let mut keyval = 0i32;
        let pmpi = self.process.pmpi;
        // SAFETY: callbacks of the standard's types, a place for the key, and a valid communicator.
        unsafe {
            let copy = copy_nothing as *const () as usize;
            let delete = at_deletion as *const () as usize;
            if (pmpi.comm_create_keyval)(copy, delete, &raw mut keyval as usize, 0) == 0 {
                (pmpi.comm_set_attr)(own, keyval as usize, 0);
            }
        }
    }

    fn finish(&self, state: &mut ThreadState, now: u64) {
        let process = self.process;
        ENDED.store(true, Ordering::Release);
        api::close();
        process.take_clock_pair();
        state.thread.recalibrate();
        for &other in &self.threads.lock().unwrap_or_else(PoisonError::into_inner).all {
            if !ptr::eq(other, state) {
                // SAFETY: no other thread is inside MPI when this one finalises it (MPI-4.1 §11.4.2).
                unsafe {
                    (*other).thread.hand_over();
                    (*other).thread.finish_structure();
                }
            }
        }
        state.thread.finish(now);
        state.thread.finish_structure();
        process.shared.journal.mark_finalized();
        process.with_handles(Handles::retire_groups);
        api::report_irregularities(process);
        process.tree().finish(&mut state.thread);
    }

    /// Reports to the neighbours in the tree that the end has failed.
    fn give_up(&self) {
        self.process.tree().close(false);
    }

    /// Ends the agent, as MPI deletes the attributes of `MPI_COMM_SELF`: no more calls of the application come.
    fn end(&self) {
        let _whole = Uncancelled::begin();
        if is_active() && !ENDED.load(Ordering::Acquire) {
            // `MPI_Finalize` is defined by the program, or by a tool before ampl: here is where its call shows.
            // SAFETY: the calling thread's own block; no wrapper uses its state now.
            let own = unsafe { (*entry()).state().as_mut() };
            if let Some(state) = own.or_else(adopt_thread) {
                enter_finalize(state, now());
            }
        }
        hot_state::deactivate();
        let mut tree = self.process.tree();
        let ending = Ending::start(&self.process.shared.journal);
        with_room(|| {
            // SAFETY: the calling thread's own block and state, which no wrapper uses now: the
            // application is inside MPI_Finalize on this thread.
            let state = unsafe { (*entry()).state().as_mut() };
            self.finalizer.finalize(&mut tree, state.map(|state| &mut state.thread), &ending);
        });
    }
}
