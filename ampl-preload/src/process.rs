//! The agent of this process: its beginning, its threads' shared state, its end.
//!
//! One agent per process, made when `MPI_Init` has returned and never freed: threads may still
//! be inside a wrapper when it ends.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ampl_agent::Thread;
use ampl_agent::floating::Environment;
use ampl_agent::handles::{Handles, Object};
use ampl_agent::requests::Shelves;
use ampl_agent::shared::Shared;
use ampl_agent::stopwatch::Stopwatch;
use ampl_agent::uncancelled::Uncancelled;
use ampl_core::mpi::FUNCTION_COUNT;
use ampl_core::value::ObjectKind;
use ampl_trace::args::index_of_predefined;
use ampl_trace::model::{GaveUp, RunInfo};

use crate::abi::Abi;
use crate::api;
use crate::clock;
use crate::ending::Ended;
use crate::entry::{Origin, entry};
use crate::environment;
use crate::finalize::Settlement;
use crate::fortran::Fortran;
use crate::hook_plan::{self, FastPath};
use crate::hooks;
use crate::init;
use crate::large_stack::with_room;
use crate::pmpi::Pmpi;
use crate::presence;
use crate::sleep;
use crate::symbol::{self, Symbol};
use crate::thread_state::ThreadState;
use crate::tree::Tree;
use crate::walk;
use crate::yield_suppressor::{self, YieldSuppressor};

mod end;

/// No agent yet.
const NOT_STARTED: u8 = 0;
/// An agent is or was here; there will be no other.
const STARTED: u8 = 1;

static STATE: AtomicU8 = AtomicU8::new(NOT_STARTED);
static ALWAYS: HotState = HotState {
    active: AtomicBool::new(false),
    invariant: AtomicBool::new(false),
    any: [AtomicI32::new(0), AtomicI32::new(0)],
    generation: AtomicU64::new(0),
};

/// State that every call reads: one line of memory, where no pointer leads. The page is its own, for the system to
/// empty in children ([`be_silent_in_children`]).
#[repr(C, align(4096))]
struct HotState {
    /// True while calls are to be recorded.
    active: AtomicBool,
    /// True where ticks are of the time-stamp counter.
    invariant: AtomicBool,
    /// `MPI_ANY_SOURCE` and `MPI_ANY_TAG`.
    any: [AtomicI32; 2],
    /// Changes whenever a handle changes its meaning.
    generation: AtomicU64,
}
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

/// State that the threads of a process share, and data for its end.
#[derive(Debug)]
pub struct Process {
    /// The loaded MPI's interface.
    pub abi: &'static Abi,
    /// The agent's shared state.
    pub shared: Arc<Shared>,
    /// The functions ampl calls.
    pub pmpi: &'static Pmpi,
    /// Work for calls of each function while the agent is to cost next to nothing.
    pub passages: [FastPath; FUNCTION_COUNT],
    /// Live requests of all threads.
    pub requests: Arc<Shelves>,
    /// Addresses that calls have named.
    pub places: Mutex<hooks::Places>,
    /// `MPI_REQUEST_NULL`, as a handle.
    pub request_null: u64,
    /// `MPI_REQUEST_NULL`, as recorded.
    pub request_null_word: u64,
    /// `MPI_COMM_WORLD`, as a handle and as recorded.
    pub world: (u64, u64),
    /// `MPI_NO_OP`, as a handle.
    pub no_op: Option<u64>,
    /// Windows that [may gather](ampl_client::Node::gathers) between two polls of the tree.
    pub gathers: Option<usize>,
    /// Nanoseconds on the monotonic clock at T0 of the job.
    pub epoch: i64,
    handles: Mutex<Handles>,
    threads: Mutex<Threads>,
    tree: Mutex<Tree>,
    settlement: Settlement,
    at_thread_end: libc::pthread_key_t,
    /// Time in `MPI_Finalize` up to where MPI deletes the attributes of `MPI_COMM_SELF`.
    pub ended: Ended,
    /// Differences in Fortran's arguments.
    pub fortran: Fortran,
}

/// States of the process's threads.
#[derive(Debug, Default)]
struct Threads {
    all: Vec<*mut ThreadState>,
    /// States of ended threads: a new thread takes one over, so that a program of many short threads needs as many as
    /// run at a time.
    free: Vec<*mut ThreadState>,
}

// SAFETY: the raw pointers and handles inside are only passed back to MPI, which is what makes
// them safe to use from the threads that MPI itself allows.
unsafe impl Sync for Process {}
// SAFETY: as above.
unsafe impl Send for Process {}

/// True while calls are to be recorded.
#[inline(always)]
pub fn is_active() -> bool {
    ALWAYS.active.load(Ordering::Relaxed)
}

/// The clock of calls, in [ticks](clock::ticks). There must be an agent, or have been one.
#[inline(always)]
pub fn now() -> u64 {
    clock::ticks(is_invariant())
}

/// True where ticks are of the time-stamp counter. As [`now`].
#[inline(always)]
pub fn is_invariant() -> bool {
    ALWAYS.invariant.load(Ordering::Relaxed)
}

/// `MPI_ANY_SOURCE` and `MPI_ANY_TAG`. As [`now`].
#[inline(always)]
pub fn any() -> [i32; 2] {
    ALWAYS.any.each_ref().map(|any| any.load(Ordering::Relaxed))
}

/// Changes whenever a handle changes its meaning.
#[inline(always)]
pub fn generation() -> u64 {
    ALWAYS.generation.load(Ordering::Relaxed)
}

/// The process's agent, which may have ended; `None` if there never was one.
#[inline]
pub fn current() -> Option<&'static Process> {
    // SAFETY: null or the process, which is never freed.
    unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
}

/// True where no agent has been made yet.
pub fn has_not_started() -> bool {
    STATE.load(Ordering::Relaxed) == NOT_STARTED
}

/// True once a communicator has been freed unseen, in a callback: a known one may be gone.
static LOST_SIGHT: AtomicBool = AtomicBool::new(false);

/// True once the last window has ended, because `MPI_Finalize` is entered.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Notes that known communicators may be gone: see [`Process::has_lost_sight`].
pub fn mark_comms_uncertain() {
    LOST_SIGHT.store(true, Ordering::Relaxed);
}

/// True once the program has cancelled a request.
static CANCELS: AtomicBool = AtomicBool::new(false);

/// Notes that the program cancels a request.
pub fn cancels() {
    CANCELS.store(true, Ordering::Relaxed);
}

/// True once [`cancels`] has been called.
#[inline]
pub fn has_cancelled() -> bool {
    CANCELS.load(Ordering::Relaxed)
}

/// Runs a hook; if it panics, the agent ends and the job goes on.
#[inline(always)]
pub fn contained<T>(hook: impl FnOnce() -> T) -> Option<T> {
    let _as_it_was = Environment::begin();
    contained_counting(hook)
}

/// As [`contained`], without saving MXCSR: the hook must do no floating-point arithmetic outside of an [`Environment`]
/// of its own.
#[inline(always)]
pub fn contained_counting<T>(hook: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(hook)) {
        Ok(value) => Some(value),
        Err(_) => {
            disable(GaveUp::Failed);
            None
        }
    }
}

#[cold]
fn disable(why: GaveUp) {
    ALWAYS.active.store(false, Ordering::Relaxed);
    // SAFETY: the pointer is null or to the process, which is never freed.
    if let Some(process) = unsafe { PROCESS.load(Ordering::Acquire).as_ref() } {
        if why == GaveUp::Failed {
            process.shared.journal.count_failure();
        }
        process.shared.journal.mark_disabled(why);
    }
}

extern "C" fn in_forked_child() {
    ALWAYS.active.store(false, Ordering::Relaxed);
}

/// Disables recording in children: a child is no rank, and the journal is not mapped there. Handlers run in those of
/// `fork` only, not in those of the system call.
fn be_silent_in_children() {
    let page = (&raw const ALWAYS).cast_mut().cast();
    // Linux before 4.14 does not know how to.
    // SAFETY: the static's own page; a child finds the values that it had in the beginning, 0.
    if unsafe { libc::madvise(page, size_of::<HotState>(), libc::MADV_WIPEONFORK) } != 0 {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::pthread_atfork(None, None, Some(in_forked_child)) };
    }
}

/// `MPI_Init` has returned: makes the agent, if there is to be one. `before` is a clock pair from before it.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that has just succeeded.
pub unsafe fn start(symbol: &Symbol, words: &[usize], origin: Origin, before: (u64, i64)) {
    if STATE.swap(STARTED, Ordering::AcqRel) != NOT_STARTED {
        return;
    }
    let _whole = Uncancelled::begin();
    let watch = Stopwatch::start();
    let Some(run) = with_room(|| make(before)) else { return };
    if let Some(state) = adopt_thread() {
        // SAFETY: the caller's promise.
        unsafe { hooks::begun(state, symbol, words) };
        let address = walk::path(state, origin);
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

/// Makes the process's state, if there is to be an agent; returns the run's data that rank 0 writes.
fn make(before: (u64, i64)) -> Option<Box<RunInfo>> {
    // Without a key (the program has used them all) states of ended threads are not used again.
    let at_thread_end = end_of_threads().unwrap_or(libc::pthread_key_t::MAX);
    let parts = init::begin(before)?;
    let predefined = parts.abi.predefined_handles();
    let mut handles = Handles::default();
    for &(kind, handle, word) in &predefined {
        // MPI must not be asked about null handles: its answer is a call of the error handler.
        let facts = if predefined_name(word).ends_with("_NULL") { [0, 0] } else { [hooks::UNKNOWN, 0] };
        handles.predefine(kind, handle, word, facts);
    }
    let find = |of: ObjectKind, name| {
        let found = predefined.iter().find(|(kind, _, word)| *kind == of && predefined_name(*word) == name);
        found.map(|&(_, handle, word)| (handle, word))
    };
    let named = |of, name| find(of, name).expect("every MPI has it");
    let (request_null, request_null_word) = named(ObjectKind::Request, "MPI_REQUEST_NULL");
    ALWAYS.invariant.store(clock::is_invariant(), Ordering::Relaxed);
    ALWAYS.any[0].store(parts.abi.any_source, Ordering::Relaxed);
    ALWAYS.any[1].store(parts.abi.any_tag, Ordering::Relaxed);
    let process: &'static Process = Box::leak(Box::new(Process {
        abi: parts.abi,
        pmpi: parts.pmpi,
        passages: hook_plan::derive(&parts.shared),
        shared: parts.shared,
        requests: Arc::new(Shelves::new(parts.concurrent)),
        places: Mutex::default(),
        request_null,
        request_null_word,
        world: named(ObjectKind::Comm, "MPI_COMM_WORLD"),
        no_op: find(ObjectKind::Op, "MPI_NO_OP").map(|(handle, _)| handle),
        gathers: parts.tree.gathers(),
        epoch: parts.epoch,
        handles: Mutex::new(handles),
        threads: Mutex::default(),
        tree: Mutex::new(parts.tree),
        settlement: parts.settlement,
        at_thread_end,
        ended: Ended::default(),
        fortran: parts.fortran,
    }));
    PROCESS.store(ptr::from_ref(process).cast_mut(), Ordering::Release);
    be_silent_in_children();
    yield_suppressor::find();
    sleep::find();
    symbol::find_all();
    process.settlement.arm(process);
    api::announce(process);
    ALWAYS.active.store(true, Ordering::Release);
    Some(Box::new(parts.run))
}

/// The name of the predefined object that `word` stands for in records.
fn predefined_name(word: u64) -> &'static str {
    let index = index_of_predefined(word).expect("the word of a predefined object");
    ampl_core::mpi::PREDEFINED[index].1
}

/// State for the calling thread; `None` if the journal has no room for it.
pub fn adopt_thread() -> Option<&'static mut ThreadState> {
    // SAFETY: null or the process, which is never freed.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() }?;
    let _whole = Uncancelled::begin();
    let mut threads = process.threads.lock().unwrap_or_else(PoisonError::into_inner);
    let state = match threads.free.pop() {
        Some(state) => {
            // SAFETY: the state of a thread that has ended.
            if let Some(walker) = unsafe { &mut (*state).walker } {
                walker.settle();
            }
            state
        }
        None => {
            let now = now();
            let number = threads.all.len() as u32;
            let Ok(thread) = Thread::new(process.shared.clone(), number, now) else {
                // The process goes on unobserved rather than half observed. Rank 0 reports all such at the end.
                disable(GaveUp::NoRoom);
                return None;
            };
            let state = ptr::from_mut(Box::leak(Box::new(ThreadState::new(process, thread))));
            threads.all.push(state);
            state
        }
    };
    // SAFETY: the calling thread's own block; a state belongs to one thread at a time, and is never freed.
    unsafe {
        libc::pthread_setspecific(process.at_thread_end, state.cast());
        (*entry()).thread = state;
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
        let process = unsafe {
            (*state).thread.hand_over();
            (*state).thread.end_regions();
            (*state).thread.current.end();
            (*state).process
        };
        process.threads.lock().unwrap_or_else(PoisonError::into_inner).free.push(state);
    });
}

/// A key whose value has [`thread_ended`] called when a thread ends; `None` where the process has no key left.
fn end_of_threads() -> Option<libc::pthread_key_t> {
    let mut key = 0;
    // SAFETY: a place for the key, and a function that takes its value.
    (unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ended)) } == 0).then_some(key)
}

impl Process {
    /// Does `with` to the process's objects, and gives groups back to MPI that are not needed any more.
    pub fn with_handles<T>(&self, with: impl FnOnce(&mut Handles) -> T) -> T {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let result = with(&mut handles);
        ALWAYS.generation.store(handles.generation(), Ordering::Relaxed);
        while let Some(group) = handles.take_retired() {
            let mut group = group as usize;
            // SAFETY: a group that MPI gave us, and nobody uses any more.
            unsafe { (self.pmpi.group_free)(&raw mut group as usize) };
        }
        result
    }

    /// The object behind `handle`, numbered now if it is met for the first time.
    pub fn object(&self, kind: ObjectKind, handle: u64) -> Object {
        self.with_handles(|handles| {
            handles.get(kind, handle).unwrap_or_else(|| handles.define(kind, handle, [hooks::UNKNOWN, 0]))
        })
    }

    /// Notes facts of the object behind `handle`.
    pub fn learn(&self, kind: ObjectKind, handle: u64, facts: [u64; 2]) -> Object {
        self.with_handles(|handles| {
            handles.learn(kind, handle, facts).unwrap_or_else(|| handles.define(kind, handle, facts))
        })
    }

    /// MPI has given `handle` to the program.
    pub fn given(&self, kind: ObjectKind, handle: u64) {
        self.with_handles(|handles| handles.given(kind, handle, [hooks::UNKNOWN, 0]));
    }

    /// The program has given `handle` back, which stood for the object of that serial number.
    pub fn forget(&self, kind: ObjectKind, handle: u64, serial: u64) {
        self.with_handles(|handles| handles.forget(kind, handle, serial));
    }

    /// As [`Process::forget`], in a call that has no place in the sequence.
    pub fn lose(&self, kind: ObjectKind, handle: u64, serial: u64) {
        self.with_handles(|handles| handles.lose(kind, handle, serial));
    }

    /// True where a known communicator may be gone all the same.
    pub fn has_lost_sight(&self) -> bool {
        LOST_SIGHT.load(Ordering::Relaxed)
    }

    /// Takes a clock pair for the journal: the longer the run, the better the rate is known.
    pub fn take_clock_pair(&self) {
        let (ticks, nanos) = clock::pair();
        self.shared.journal.clock_pair(ticks, nanos - self.epoch);
        self.shared.journal.processor(clock::switches());
    }

    /// Lets the tree make progress, unless another thread is at it; returns true if anything was on its way.
    pub fn progress(&self, thread: &mut Thread) -> bool {
        let _turn = YieldSuppressor::keep();
        self.tree.try_lock().is_ok_and(|mut tree| tree.progress(thread))
    }
}
