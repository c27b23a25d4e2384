//! The end of the agent of this process: the last window, the calls to the tree, the trace.

use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use ampl_agent::handles::Handles;
use ampl_agent::uncancelled::Uncancelled;

use super::{ALWAYS, ENDED, Process, adopt_thread, is_active, now};
use crate::api;
use crate::ending::Ending;
use crate::entry::entry;
use crate::large_stack::with_room;
use crate::thread_state::ThreadState;

impl Process {
    /// `MPI_Finalize` is entered on this thread: the last window ends; the rest follows when MPI
    /// deletes the attributes of `MPI_COMM_SELF`.
    pub fn enter_finalize(&self, state: &mut ThreadState, now: u64) {
        let _whole = Uncancelled::begin();
        let ending = Ending::start(&self.shared.journal);
        with_room(|| self.finish(state, now));
        ending.stop(&self.shared.journal, &self.ended);
    }

    fn finish(&self, state: &mut ThreadState, now: u64) {
        ENDED.store(true, Ordering::Release);
        api::close();
        self.take_clock_pair();
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
        self.shared.journal.mark_finalized();
        self.with_handles(Handles::retire_groups);
        api::say_irregularities(self);
        let mut tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        tree.finish(&mut state.thread);
    }

    /// Reports that MPI has ended and has not called back.
    pub fn say_left(&self) {
        self.settlement.say_left();
    }

    /// Reports to the neighbours in the tree that the end has failed.
    pub fn give_up(&self) {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner).close(false);
    }

    /// Ends the agent, as MPI deletes the attributes of `MPI_COMM_SELF`: no more calls of the application come.
    pub fn end(&self) {
        let _whole = Uncancelled::begin();
        if is_active() && !ENDED.load(Ordering::Acquire) {
            // `MPI_Finalize` is defined by the program, or by a tool before ampl: here is where its call shows.
            // SAFETY: the calling thread's own block; no wrapper uses its state now.
            let own = unsafe { (*entry()).thread.as_mut() };
            if let Some(state) = own.or_else(adopt_thread) {
                self.enter_finalize(state, now());
            }
        }
        ALWAYS.active.store(false, Ordering::Release);
        let mut tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = Ending::start(&self.shared.journal);
        with_room(|| self.settlement.settle(self, &mut tree, &ending));
    }
}
