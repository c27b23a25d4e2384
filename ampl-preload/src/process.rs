//! State of the agent that the threads of this process share: the MPI library, its objects, the tree.
//!
//! One per process, made when `MPI_Init` has returned and never freed: threads may still be inside a wrapper when the
//! agent ends.

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ampl_agent::Thread;
use ampl_agent::handles::{Handles, Object};
use ampl_agent::requests::RequestTables;
use ampl_agent::shared::Shared;
use ampl_core::mpi::FUNCTION_COUNT;
use ampl_core::value::ObjectKind;

use crate::abi::Abi;
use crate::clock;
use crate::fortran::Fortran;
use crate::hook_plan::FastPath;
use crate::hot_state;
use crate::places::Places;
use crate::pmpi::Pmpi;
use crate::switches::Switches;
use crate::tree::Tree;
use crate::yield_suppressor::YieldSuppressor;

/// A fact of an object that MPI has not been asked for yet.
pub const UNKNOWN: u64 = u64::MAX;

static PROCESS: AtomicPtr<Process> = AtomicPtr::new(ptr::null_mut());

/// State that the threads of a process share.
#[derive(Debug)]
pub struct Process {
    /// The loaded MPI's interface.
    pub abi: &'static Abi,
    /// The agent's shared state.
    pub shared: Arc<Shared>,
    /// The functions ampl calls.
    pub pmpi: &'static Pmpi,
    /// Work for calls of each function while the agent is to cost next to nothing.
    pub fast_paths: [FastPath; FUNCTION_COUNT],
    /// Live requests of all threads.
    pub requests: Arc<RequestTables>,
    /// Addresses that calls have named.
    pub places: Mutex<Places>,
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
    /// Switches of the main thread since `MPI_Init` returned.
    pub switches: Switches,
    /// Objects that handles stand for.
    pub handles: Mutex<Handles>,
    /// This rank's part of the tree.
    pub tree: Mutex<Tree>,
    /// Differences in Fortran's arguments.
    pub fortran: Fortran,
}

// SAFETY: the raw pointers and handles inside are only passed back to MPI, which is what makes
// them safe to use from the threads that MPI itself allows.
unsafe impl Sync for Process {}
// SAFETY: as above.
unsafe impl Send for Process {}

/// The process's agent, which may have ended; `None` if there never was one.
#[inline]
pub fn current() -> Option<&'static Process> {
    // SAFETY: null or the process, which is never freed.
    unsafe { PROCESS.load(Ordering::Acquire).as_ref() }
}

impl Process {
    /// Becomes the [current] agent.
    pub fn install(self) -> &'static Self {
        let process: &'static Self = Box::leak(Box::new(self));
        PROCESS.store(ptr::from_ref(process).cast_mut(), Ordering::Release);
        process
    }

    /// Does `with` to the process's objects, and gives groups back to MPI that are not needed any more.
    pub fn with_handles<T>(&self, with: impl FnOnce(&mut Handles) -> T) -> T {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        let result = with(&mut handles);
        hot_state::set_generation(handles.generation());
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
            handles.get(kind, handle).unwrap_or_else(|| handles.define(kind, handle, [UNKNOWN, 0]))
        })
    }

    /// Notes facts of the object behind `handle`.
    pub fn learn(&self, kind: ObjectKind, handle: u64, facts: [u64; 2]) -> Object {
        self.with_handles(|handles| {
            handles.learn(kind, handle, facts).unwrap_or_else(|| handles.define(kind, handle, facts))
        })
    }

    /// Notes that MPI has given `handle` to the program.
    pub fn given(&self, kind: ObjectKind, handle: u64) {
        self.with_handles(|handles| handles.given(kind, handle, [UNKNOWN, 0]));
    }

    /// Notes that the program has given `handle` back, which stood for the object of that serial number.
    pub fn forget(&self, kind: ObjectKind, handle: u64, serial: u64) {
        self.with_handles(|handles| handles.forget(kind, handle, serial));
    }

    /// As [`Process::forget`], in a call that has no place in the sequence.
    pub fn lose(&self, kind: ObjectKind, handle: u64, serial: u64) {
        self.with_handles(|handles| handles.lose(kind, handle, serial));
    }

    /// Takes a clock pair for the journal: the longer the run, the better the rate is known.
    pub fn take_clock_pair(&self) {
        let (ticks, nanos) = clock::pair();
        self.shared.journal.clock_pair(ticks, nanos - self.epoch);
        self.shared.journal.processor(self.switches.now());
    }

    /// This rank's part of the tree, for the calling thread alone.
    pub fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the tree make progress, unless another thread is at it; returns true if anything was on its way.
    pub fn progress(&self, thread: &mut Thread) -> bool {
        let _turn = YieldSuppressor::new();
        self.tree.try_lock().is_ok_and(|mut tree| tree.progress(thread))
    }
}
