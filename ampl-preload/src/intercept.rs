//! The one path that every wrapper takes.

use std::sync::atomic::{AtomicU64, Ordering};

use ampl_core::mpi::{Class, FUNCTION_COUNT, Function, ids};

use crate::clock::ticks;
use crate::entry::{Entry, entry};
use crate::hooks;
use crate::process::{self, contained};
use crate::symbol::{Language, Symbol};
use crate::thread_state::ThreadState;

/// Forwards words to a definition.
type Forward<R> = unsafe fn(*const (), *const usize) -> R;

/// Calls made before the agent existed.
pub static EARLY: [AtomicU64; FUNCTION_COUNT] = [const { AtomicU64::new(0) }; FUNCTION_COUNT];

/// What a function of the table returns that the loaded MPI does not have: `MPI_ERR_OTHER` of MPICH,
/// an error of some kind everywhere.
const ABSENT: usize = 15;

/// Forwards a call exactly once, and records it unless MPI made it itself.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol`, and `forward` must have its arity.
pub unsafe fn intercept(symbol: &'static Symbol, words: &mut [usize], forward: Forward<usize>) -> usize {
    let next = symbol.next();
    if next.is_null() {
        return ABSENT;
    }
    // SAFETY: the calling thread's own block.
    let here: &mut Entry = unsafe { &mut *entry() };
    // The stack grows down: a wrapper entered below the outermost one is MPI calling itself. At or
    // above it, that one was left by a longjmp or an exception, and its mark is stale.
    if here.inside != 0 && here.stack < here.inside {
        // SAFETY: the caller's promise.
        return unsafe { forward(next, words.as_ptr()) };
    }
    let address = here.address;
    here.inside = here.stack;
    let state = if process::is_active() { here.thread } else { std::ptr::null_mut() };
    // SAFETY: the caller's promise; a thread's state is only ever used by that thread, and nested
    // wrappers return above before they touch it.
    let result = unsafe {
        match state.as_mut() {
            Some(state) => recorded(symbol, words, forward, next, address, state),
            None => outside(symbol, words, forward, next, address),
        }
    };
    // SAFETY: as above; looked up again, because the call may have been long.
    unsafe { (*entry()).inside = 0 };
    result
}

/// As [`intercept`], for functions that return a double and are only counted.
///
/// # Safety
/// As [`intercept`].
pub unsafe fn intercept_double(symbol: &'static Symbol, words: &[usize], forward: Forward<f64>) -> f64 {
    let next = symbol.next();
    if next.is_null() {
        return 0.0;
    }
    // SAFETY: the calling thread's own block.
    let here: &mut Entry = unsafe { &mut *entry() };
    if here.inside == 0 || here.stack >= here.inside {
        // SAFETY: a thread's state is only ever used by that thread.
        match unsafe { here.thread.as_mut() }.filter(|_| process::is_active()) {
            Some(state) => state.thread.count(symbol.function, 1),
            None => count_early(symbol.function),
        }
    }
    // SAFETY: the caller's promise.
    unsafe { forward(next, words.as_ptr()) }
}

fn count_early(function: Function) {
    if process::has_not_started() {
        EARLY[usize::from(function.0)].fetch_add(1, Ordering::Relaxed);
    }
}

/// A call on a thread that has no state: before `MPI_Init`, after the end, or a thread's first.
#[cold]
unsafe fn outside(
    symbol: &'static Symbol,
    words: &mut [usize],
    forward: Forward<usize>,
    next: *const (),
    address: u64,
) -> usize {
    if process::is_active()
        && let Some(state) = contained(process::adopt_thread).flatten()
    {
        // SAFETY: the caller's promise, passed on.
        return unsafe { recorded(symbol, words, forward, next, address, state) };
    }
    let starts =
        matches!(symbol.function, ids::MPI_INIT | ids::MPI_INIT_THREAD) && process::has_not_started();
    if !starts {
        count_early(symbol.function);
    }
    let before = starts.then(process::clock_pair);
    // SAFETY: the caller's promise.
    let result = unsafe { forward(next, words.as_ptr()) };
    if let Some(before) = before {
        // SAFETY: Fortran passes a place for the error code behind the arguments.
        if unsafe { succeeded(symbol, words, result) } {
            contained(|| process::start(symbol.function, address, before));
        }
    }
    result
}

/// Whether the call returned `MPI_SUCCESS`.
///
/// # Safety
/// `words` must be the arguments of a finished call of `symbol`.
unsafe fn succeeded(symbol: &Symbol, words: &[usize], result: usize) -> bool {
    match symbol.language {
        Language::C => result as i32 == 0,
        Language::Fortran => {
            let at = words.get(hooks::ierror_index(symbol.function)).copied().unwrap_or(0);
            // SAFETY: an `ierror` that is present points to a default integer.
            at == 0 || unsafe { (at as *const i32).read_unaligned() } == 0
        }
    }
}

/// A call on a thread with state.
#[inline(always)]
unsafe fn recorded(
    symbol: &'static Symbol,
    words: &mut [usize],
    forward: Forward<usize>,
    next: *const (),
    address: u64,
    state: &mut ThreadState,
) -> usize {
    let function = symbol.function;
    let recipe = &state.process.recipes[usize::from(function.0)];
    if recipe.class == Class::CountOnly {
        state.thread.count(function, 1);
        // SAFETY: the caller's promise.
        return unsafe { forward(next, words.as_ptr()) };
    }
    let invariant = state.process.invariant;
    // The agent's own time is measured on one call in 256, and taken for the others from there:
    // two more reads of the clock at every call would double what is measured.
    state.unmeasured += 1;
    let measured = state.unmeasured & 255 == 1;
    let entered = if measured { ticks(invariant) } else { 0 };
    state.slow_ticks = 0;

    if recipe.prepares {
        // SAFETY: the application's arguments, before the call.
        contained(|| unsafe { hooks::enter(state, symbol, recipe, words) });
    }
    let mut start = ticks(invariant);
    if contained(|| state.thread.enter(function, address, start)) == Some(true) {
        contained(|| hooks::window_closed(state));
        start = ticks(invariant);
    }
    if recipe.class == Class::Lifecycle {
        contained(|| hooks::lifecycle(state, symbol, address, start));
    }
    // SAFETY: the caller's promise; outside of any catch_unwind, because the application's error
    // handler may unwind through here.
    let result = unsafe { forward(next, words.as_ptr()) };
    let end = ticks(invariant);

    if recipe.class == Class::Lifecycle {
        // MPI_Finalize has returned: what was to be recorded has been.
        return result;
    }
    // SAFETY: the application's arguments, after the call.
    let code = unsafe {
        match symbol.language {
            Language::C => result as i32,
            Language::Fortran if succeeded(symbol, words, result) => 0,
            Language::Fortran => 1,
        }
    };
    let call = hooks::Returned { address, start, end, code };
    // SAFETY: the application's arguments, after the call.
    contained(|| unsafe { hooks::leave(state, symbol, recipe, words, &call) });
    if measured {
        let own = (ticks(invariant) - entered).saturating_sub(end - start + state.slow_ticks);
        state.own_per_call = steady(state.own_per_call, own);
    }
    state.thread.add_own(state.own_per_call);
    result
}

/// A running median of the agent's own time per call: a descheduled moment is not the agent's
/// time, and would drown it in a mean.
fn steady(estimate: u64, measured: u64) -> u64 {
    match (estimate, measured) {
        (0, first) => first,
        (estimate, measured) if measured < estimate / 2 => estimate.midpoint(measured),
        (estimate, measured) if measured < estimate => estimate - estimate / 16,
        (estimate, _) => estimate + estimate / 16,
    }
}
