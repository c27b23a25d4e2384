//! Functions of a program that was compiled with `-finstrument-functions`: the compiler has each call these two hooks.
//!
//! They do nothing unless `hooks.functions` is set. They may be called at any time, on any thread: before `MPI_Init` and
//! after `MPI_Finalize`, in constructors, in the program's own `malloc`. So they take no lock of their own, and an event
//! within a hook, or within a call of MPI, is none: what an operation or error handler of the program calls there is
//! part of that call.

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use ampl_agent::Thread;
use ampl_core::config::Hooks;
use ampl_trace::regions::Edge;

use crate::api::{Caller, is_open, with_caller};
use crate::entry::{Entry, entry};
use crate::hot_state;
use crate::symbol::next_definition;

/// Functions that are noted before the agent is there.
const MOST_EARLY: usize = 512;

/// True where functions are regions.
static WANTED: AtomicBool = AtomicBool::new(false);
/// The thread that called a hook first, as a rule the one that calls `MPI_Init`.
static FIRST: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());
/// Functions that it is in, outermost first, and how many: more than there is room for, where it is deeper.
static EARLY: [AtomicU64; MOST_EARLY] = [const { AtomicU64::new(0) }; MOST_EARLY];
static DEPTH: AtomicUsize = AtomicUsize::new(0);

/// Definitions behind these, of another tool or of the C library, by edge: not looked for yet, or none.
static NEXT: [AtomicPtr<()>; 2] = [const { AtomicPtr::new(UNKNOWN) }; 2];
const UNKNOWN: *mut () = ptr::without_provenance_mut(1);

type Hook = unsafe extern "C-unwind" fn(*const (), *const ());

/// The job asks for functions, or does not.
pub fn start(hooks: &Hooks) {
    WANTED.store(hooks.functions, Ordering::Relaxed);
}

/// Functions that the calling thread is in go over to its `thread`, which has made no call.
pub fn begin_inside(thread: &mut Thread) {
    if !WANTED.load(Ordering::Relaxed) || FIRST.load(Ordering::Relaxed) != entry() {
        return;
    }
    let depth = DEPTH.load(Ordering::Relaxed).min(MOST_EARLY);
    let now = hot_state::now();
    for function in &EARLY[..depth] {
        thread.begin_inside_function(function.load(Ordering::Relaxed), now);
    }
}

/// Notes an event from before the agent.
#[cold]
fn early(edge: Edge, function: u64) {
    let here = entry();
    let first = FIRST.compare_exchange(ptr::null_mut(), here, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| first != here) {
        return;
    }
    let depth = DEPTH.load(Ordering::Relaxed);
    match edge {
        Edge::Enter => {
            if let Some(place) = EARLY.get(depth) {
                place.store(function, Ordering::Relaxed);
            }
            DEPTH.store(depth + 1, Ordering::Relaxed);
        }
        // A jump has left those that it was in.
        Edge::Exit => {
            let known = &EARLY[..depth.min(MOST_EARLY)];
            let at = known.iter().rposition(|place| place.load(Ordering::Relaxed) == function);
            let at = if depth > MOST_EARLY { Some(depth - 1) } else { at };
            DEPTH.store(at.unwrap_or(depth), Ordering::Relaxed);
        }
    }
}

/// The calling thread passes `function`.
#[inline]
fn pass(edge: Edge, function: u64) {
    if !WANTED.load(Ordering::Relaxed) {
        if hot_state::has_not_started() {
            early(edge, function);
        }
        return;
    }
    // SAFETY: the calling thread's own block.
    let here = unsafe { &mut *entry() };
    // Threads that have made no call of MPI have no sequence.
    if here.in_hook || here.inside != 0 || here.thread.is_null() || !is_open() {
        return;
    }
    here.in_hook = true;
    with_caller(|caller, now| match caller {
        Caller::Rank(state) => (state.thread.pass_function(edge, function, now), ()),
        Caller::Bystander(_) => (false, ()),
    });
    here.in_hook = false;
}

/// The definition of `name` behind ours, if another tool has one.
#[inline]
fn next(edge: Edge, name: &str) -> Option<Hook> {
    let place = &NEXT[edge as usize];
    let mut next = place.load(Ordering::Relaxed);
    if next == UNKNOWN {
        // Looking it up may call a function of the program.
        place.store(ptr::null_mut(), Ordering::Relaxed);
        next = next_definition(name).cast_mut();
        place.store(next, Ordering::Relaxed);
    }
    // SAFETY: null, or a function of that name, whose type compilers fix.
    unsafe { std::mem::transmute::<*mut (), Option<Hook>>(next) }
}

/// `void __cyg_profile_func_enter(void *this_fn, void *call_site)`
///
/// # Safety
/// Compilers call it.
// SAFETY: the name that compilers call.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __cyg_profile_func_enter(function: *const (), site: *const ()) {
    pass(Edge::Enter, function as u64);
    if let Some(next) = next(Edge::Enter, "__cyg_profile_func_enter\0") {
        // SAFETY: the compiler's own arguments.
        unsafe { next(function, site) };
    }
}

/// `void __cyg_profile_func_exit(void *this_fn, void *call_site)`
///
/// # Safety
/// Compilers call it.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __cyg_profile_func_exit(function: *const (), site: *const ()) {
    pass(Edge::Exit, function as u64);
    if let Some(next) = next(Edge::Exit, "__cyg_profile_func_exit\0") {
        // SAFETY: the compiler's own arguments.
        unsafe { next(function, site) };
    }
}
