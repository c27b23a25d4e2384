//! Lifecycle of the agent of this process: its start, its threads, its end.
//!
//! This is the top of the crate. The agent is made when `MPI_Init` has returned and never freed: threads may still be
//! inside a wrapper when it ends.

mod end;

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ampl_agent::Thread;
use ampl_agent::handles::Handles;
use ampl_agent::requests::RequestTables;
use ampl_agent::stopwatch::Stopwatch;
use ampl_agent::uncancelled::Uncancelled;
use ampl_core::value::ObjectKind;
use ampl_trace::args::index_of_predefined;
use ampl_trace::model::{GaveUp, RunInfo};

use crate::api;
use crate::contain::{self, contained, disable};
use crate::entry::{Origin, entry};
use crate::environment;
use crate::finalize::Finalizer;
use crate::functions;
use crate::hook_plan;
use crate::hooks;
use crate::hot_state::{self, is_active, now};
use crate::init;
use crate::large_stack::with_room;
use crate::presence;
use crate::process::{Process, UNKNOWN};
use crate::sleep;
use crate::switches::Switches;
use crate::symbol::{self, Symbol};
use crate::thread_state::ThreadState;
use crate::yield_suppressor;
pub use end::{enter_finalize, finalize_entered, finalize_left};

static AGENT: AtomicPtr<Agent> = AtomicPtr::new(ptr::null_mut());

/// The agent of the process: the state that calls use, and data for its threads' and its own end.
#[derive(Debug)]
struct Agent {
    process: &'static Process,
    threads: Mutex<Threads>,
    finalizer: Finalizer,
    at_thread_end: libc::pthread_key_t,
}

/// States of the process's threads.
#[derive(Debug, Default)]
struct Threads {
    all: Vec<*mut ThreadState>,
    /// States of ended threads: a new thread takes one over, so that a program of many short threads needs as many as
    /// run at a time.
    free: Vec<*mut ThreadState>,
}

// SAFETY: a thread's state is used by that thread alone, and by the one that finalises MPI, when no other is inside of
// it. The handles inside are only passed back to MPI.
unsafe impl Sync for Agent {}
// SAFETY: as above.
unsafe impl Send for Agent {}

/// The process's agent, which may have ended; `None` if there never was one.
fn current() -> Option<&'static Agent> {
    // SAFETY: null or the agent, which is never freed.
    unsafe { AGENT.load(Ordering::Acquire).as_ref() }
}

/// `MPI_Init` has returned: makes the agent, if there is to be one. `before` is a clock pair from before it.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that has just succeeded.
pub unsafe fn start(symbol: &Symbol, words: &[usize], origin: Origin, before: (u64, i64)) {
    if !hot_state::claim_start() {
        return;
    }
    let _whole = Uncancelled::begin();
    let watch = Stopwatch::start();
    let Some(run) = with_room(|| make(before)) else { return };
    if let Some(state) = adopt_thread() {
        // SAFETY: the caller's promise.
        unsafe { hooks::begun(state, symbol, words) };
        api::begin_inside(&mut state.thread);
        functions::begin_inside(&mut state.thread);
        let address = state.path(origin);
        with_room(|| init::first_records(state, &run, symbol.function, address, before.0));
        let began = watch.stop().cpu_ns + environment::started_ns();
        state.process.shared.journal.has_begun(began);
    }
}

/// Notes that `MPI_Init` is about to be called.
pub fn will_start() {
    let _whole = Uncancelled::begin();
    with_room(presence::mark);
}

/// Makes the agent, if there is to be one; returns the run's data that rank 0 writes.
fn make(before: (u64, i64)) -> Option<Box<RunInfo>> {
    // Without a key (the program has used them all) states of ended threads are not used again.
    let at_thread_end = end_of_threads().unwrap_or(libc::pthread_key_t::MAX);
    let parts = init::begin(before)?;
    let predefined = parts.abi.predefined_handles();
    let mut handles = Handles::default();
    for &(kind, handle, word) in &predefined {
        // MPI must not be asked about null handles: its answer is a call of the error handler.
        let facts = if predefined_name(word).ends_with("_NULL") { [0, 0] } else { [UNKNOWN, 0] };
        handles.predefine(kind, handle, word, facts);
    }
    let find = |of: ObjectKind, name| {
        let found = predefined.iter().find(|(kind, _, word)| *kind == of && predefined_name(*word) == name);
        found.map(|&(_, handle, word)| (handle, word))
    };
    let named = |of, name| find(of, name).expect("every MPI has it");
    let (request_null, request_null_word) = named(ObjectKind::Request, "MPI_REQUEST_NULL");
    hot_state::prepare([parts.abi.any_source, parts.abi.any_tag]);
    contain::note_in(&parts.shared.journal);
    let process = Process {
        abi: parts.abi,
        pmpi: parts.pmpi,
        fast_paths: hook_plan::derive(&parts.shared),
        shared: parts.shared,
        requests: Arc::new(RequestTables::new(parts.concurrent)),
        places: Mutex::default(),
        request_null,
        request_null_word,
        world: named(ObjectKind::Comm, "MPI_COMM_WORLD"),
        no_op: find(ObjectKind::Op, "MPI_NO_OP").map(|(handle, _)| handle),
        gathers: parts.tree.gathers(),
        epoch: parts.epoch,
        switches: Switches::start(),
        handles: Mutex::new(handles),
        tree: Mutex::new(parts.tree),
        fortran: parts.fortran,
    };
    let process = process.install();
    let threads = Mutex::default();
    let agent = Agent { process, threads, finalizer: parts.finalizer, at_thread_end };
    let agent: &'static Agent = Box::leak(Box::new(agent));
    AGENT.store(ptr::from_ref(agent).cast_mut(), Ordering::Release);
    hot_state::be_silent_in_children();
    yield_suppressor::find();
    sleep::find(end::is_sleeping);
    symbol::find_all();
    agent.arm();
    api::announce(process);
    functions::start(&process.shared.plan.config.hooks);
    hot_state::activate();
    Some(Box::new(parts.run))
}

/// The name of the predefined object that `word` stands for in records.
fn predefined_name(word: u64) -> &'static str {
    let index = index_of_predefined(word).expect("the word of a predefined object");
    ampl_core::mpi::PREDEFINED[index].1
}

/// State for the calling thread; `None` if the journal has no room for it.
pub fn adopt_thread() -> Option<&'static mut ThreadState> {
    let agent = current()?;
    let _whole = Uncancelled::begin();
    let mut threads = agent.threads.lock().unwrap_or_else(PoisonError::into_inner);
    let state = match threads.free.pop() {
        Some(state) => {
            // SAFETY: the state of a thread that has ended.
            unsafe { (*state).move_to_this_thread() };
            state
        }
        None => {
            let now = now();
            let number = threads.all.len() as u32;
            let Ok(thread) = Thread::new(agent.process.shared.clone(), number, now) else {
                // The process goes on unobserved rather than half observed. Rank 0 reports all such at the end.
                disable(GaveUp::NoRoom);
                return None;
            };
            let state = ptr::from_mut(Box::leak(Box::new(ThreadState::new(agent.process, thread))));
            threads.all.push(state);
            state
        }
    };
    // SAFETY: the calling thread's own block; a state belongs to one thread at a time, and is never freed.
    unsafe {
        libc::pthread_setspecific(agent.at_thread_end, state.cast());
        (*entry()).thread = state.cast();
        Some(&mut *state)
    }
}

/// Frees the state of a thread that has ended, for another; its totals stay.
unsafe extern "C" fn thread_ended(state: *mut libc::c_void) {
    // SAFETY: the calling thread's own block.
    unsafe { (*entry()).thread = ptr::null_mut() };
    if !is_active() {
        return;
    }
    contained(|| {
        let state = state.cast::<ThreadState>();
        // SAFETY: the state that `adopt_thread` gave to this thread, which will not use it any more.
        unsafe {
            (*state).thread.hand_over();
            (*state).thread.end_regions();
            (*state).thread.current.end();
        }
        if let Some(agent) = current() {
            agent.threads.lock().unwrap_or_else(PoisonError::into_inner).free.push(state);
        }
    });
}

/// A key whose value has [`thread_ended`] called when a thread ends; `None` where the process has no key left.
fn end_of_threads() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: a place for the key, and a function that takes its value.
    (unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ended)) } == 0).then_some(key)
}
