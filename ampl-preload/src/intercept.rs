//! The one path that every wrapper takes.

mod short_way;
mod unrecorded;

use std::ptr;

use ampl_agent::floating::Environment;
use ampl_agent::thread::CHECK_EVERY;
use ampl_core::mpi::{Class, Function, ids};

use crate::caller::{Caller, who};
use crate::clock::{self, ticks};
use crate::contain::{contained, contained_counting};
use crate::control;
use crate::decision;
use crate::entry::{Entry, Origin, Outer, entry};
use crate::hook_plan::{self, FastPath, HookPlan};
use crate::hooks;
use crate::hot_state;
use crate::lifecycle;
use crate::presence;
use crate::reader::ierror_index;
use crate::symbol::{Language, Symbol};
use crate::thread_state::ThreadState;
use crate::uncovered;
pub use unrecorded::intercept_double;
use unrecorded::{absent, count_early, count_within, define_file, within};

/// Forwards words to a definition.
type Forward<R> = unsafe fn(*const (), *const usize) -> R;

/// Most ticks of a call that is only counted, about 1 µs: beyond, the processor went elsewhere.
const DESCHEDULED: u64 = 3000;

/// Forwards a call exactly once, and records it unless MPI made it itself.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol`, and `forward` must have its arity.
pub unsafe fn intercept(symbol: &'static Symbol, words: &mut [usize], forward: Forward<usize>) -> usize {
    let next = symbol.next_if_known();
    // SAFETY: the calling thread's own block.
    let here: &mut Entry = unsafe { &mut *entry() };
    if here.inside != 0 || next.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { whole(symbol, words, forward) };
    }
    // SAFETY: the caller's promise.
    if let Some(begun) = unsafe { short_way::begin(here, symbol, words) } {
        let unwound = Unwound;
        // SAFETY: the caller's promise; outside of any catch_unwind, because the application's error handler may unwind
        // through here.
        let result = unsafe { forward(next, words.as_ptr()) };
        std::mem::forget(unwound);
        // SAFETY: the arguments of the call just made.
        unsafe { short_way::end(&begun, symbol, words, result) };
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).inside = 0 };
        return result;
    }
    if !passes(here, symbol.function) {
        // SAFETY: the caller's promise.
        return unsafe { whole(symbol, words, forward) };
    }
    // SAFETY: the wrapper just entered.
    enter(here, unsafe { here.origin().address }, symbol.function);
    let unwound = Unwound;
    // SAFETY: the caller's promise.
    let result = unsafe { forward(next, words.as_ptr()) };
    std::mem::forget(unwound);
    // SAFETY: as above; looked up again, because the call may have been long.
    let here: &mut Entry = unsafe { &mut *entry() };
    here.inside = 0;
    passed(here.state());
    result
}

/// Ends a call that is only counted. Where it has forked this may be the child, which has no journal.
#[inline(always)]
fn passed(thread: *const ThreadState) {
    if hot_state::is_active() {
        // SAFETY: the calling thread's own state, as before the call.
        unsafe { (*thread).thread.current.passed() };
    }
}

/// True where counting the call of `function` that begins is enough; it is counted then. Most calls go this way while
/// the agent is to cost next to nothing.
#[inline(always)]
fn passes(here: &Entry, function: Function) -> bool {
    if !hot_state::is_active() || here.thread.is_null() {
        return false;
    }
    // SAFETY: the calling thread's own state, which no wrapper uses now.
    let state = unsafe { &mut *here.state() };
    let fast_path = state.process.fast_paths[usize::from(function.0)];
    let passes = state.thread.is_quiet()
        && match fast_path {
            FastPath::Never => false,
            FastPath::Counted => !state.thread.follows_steps(function),
            // A clock that has to be asked for would cost the others their registers.
            FastPath::Marking => hot_state::is_invariant() && state.thread.pass_marker(ticks(true)),
        };
    if passes {
        // SAFETY: the wrapper just entered.
        let address = unsafe { here.origin().address };
        state.thread.pass(function, address);
    }
    passes
}

/// Notes that the wrapper of `function` that returns to `address` has been entered, and no other is running.
#[inline(always)]
fn enter(here: &mut Entry, address: u64, function: Function) {
    here.inside = here.stack;
    here.outer_bp = here.bp;
    here.outer = Outer { address, start: 0, function, seen: false };
}

/// As [`intercept`], whatever is to be done.
#[inline(never)]
unsafe fn whole(symbol: &'static Symbol, words: &mut [usize], forward: Forward<usize>) -> usize {
    let next = symbol.next();
    if next.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { absent(symbol, words) };
    }
    // SAFETY: the calling thread's own block.
    let here: &mut Entry = unsafe { &mut *entry() };
    // SAFETY: the wrapper just entered.
    let address = unsafe { here.origin().address };
    if here.inside != 0 {
        // SAFETY: as above.
        match unsafe { who(here, address, next) } {
            Caller::Mpi => {
                if symbol.function == ids::MPI_FILE_OPEN {
                    define_file(symbol, words);
                }
                // SAFETY: the caller's promise.
                return unsafe { forward(next, words.as_ptr()) };
            }
            // A tool that takes part in the outer call, whichever of its modules this is in.
            Caller::Callback if symbol.is_twin() => {
                // SAFETY: the caller's promise.
                return unsafe { forward(next, words.as_ptr()) };
            }
            Caller::Callback => {
                // The outer call's record is being made in the thread's state: this one is only counted.
                count_within(here, symbol.function);
                // SAFETY: the caller's promise.
                return unsafe { within(symbol, words, forward, next) };
            }
            Caller::AfterJump => left(here, 0),
        }
    }
    enter(here, address, symbol.function);
    let state = if hot_state::is_active() { here.state() } else { ptr::null_mut() };
    let unwound = Unwound;
    // SAFETY: the caller's promise; a thread's state is only ever used by that thread, and nested
    // wrappers return above before they touch it.
    let result = unsafe {
        if state.is_null() {
            outside(symbol, words, forward, next, here.origin())
        } else {
            recorded(symbol, words, forward, next, address, state)
        }
    };
    std::mem::forget(unwound);
    // SAFETY: as above; looked up again, because the call may have been long.
    unsafe { (*entry()).inside = 0 };
    result
}

/// On the stack while a call is forwarded: dropped only when an exception or a cancellation unwinds through it.
struct Unwound;

impl Drop for Unwound {
    fn drop(&mut self) {
        // SAFETY: the calling thread's own block.
        left(unsafe { &mut *entry() }, clock::ticks(clock::is_invariant()));
    }
}

/// Ends the outer call, left without returning at `end` ticks (0: unknown): it was counted at its entry, and gets its
/// place in the sequence now.
#[cold]
fn left(here: &mut Entry, end: u64) {
    here.inside = 0;
    let Outer { address, start, function, .. } = here.outer;
    // SAFETY: the calling thread's own state, which no wrapper uses now.
    if let Some(state) = unsafe { here.state().as_mut() }.filter(|_| hot_state::is_active() && start != 0) {
        contained(|| hooks::left(state, function, address, start, end.max(start)));
        state.thread.current.leave(end.max(start));
    }
}

/// A call on a thread that has no state: before `MPI_Init`, after the end, or a thread's first.
#[cold]
unsafe fn outside(
    symbol: &'static Symbol,
    words: &mut [usize],
    forward: Forward<usize>,
    next: *const (),
    origin: Origin,
) -> usize {
    if hot_state::is_active()
        && let Some(state) = contained(lifecycle::adopt_thread).flatten()
    {
        let state = ptr::from_mut(state);
        // SAFETY: the caller's promise, passed on.
        return unsafe { recorded(symbol, words, forward, next, origin.address, state) };
    }
    let starts =
        matches!(symbol.function, ids::MPI_INIT | ids::MPI_INIT_THREAD) && hot_state::has_not_started();
    if symbol.function == ids::MPI_SESSION_INIT {
        contained(uncovered::session_began);
    } else if !starts && symbol.function.spec().class != Class::Local {
        contained(uncovered::called_unstarted);
    }
    if !starts {
        count_early(symbol.function, origin.address, next);
    }
    if starts {
        contained(lifecycle::will_start);
    }
    let before = starts.then(clock::pair);
    // SAFETY: the caller's promise.
    let result = unsafe { forward(next, words.as_ptr()) };
    if let Some(before) = before {
        // SAFETY: the arguments of the call just made.
        if unsafe { error_code(symbol, words, result) } == 0 {
            // SAFETY: as above, and the call has succeeded.
            contained(|| unsafe { lifecycle::start(symbol, words, origin, before) });
            decision::tell();
        } else {
            contained(presence::unmark);
        }
    }
    result
}

/// The error code of a finished call; 0 is `MPI_SUCCESS`.
///
/// # Safety
/// `words` must be the arguments of a finished call of `symbol`.
#[inline]
unsafe fn error_code(symbol: &Symbol, words: &[usize], result: usize) -> i32 {
    match symbol.language {
        Language::C => result as i32,
        Language::Fortran => {
            let at = words.get(ierror_index(symbol.function)).copied().unwrap_or(0);
            // SAFETY: an `ierror` that is present points to a default integer.
            if at == 0 { 0 } else { unsafe { (at as *const i32).read_unaligned() } }
        }
    }
}

/// Site of the wrapper just entered: its return address `address`, or the number of its path, where paths identify call
/// sites.
#[inline(always)]
fn site(state: &mut ThreadState, address: u64) -> u64 {
    if state.walker.is_none() { address } else { path(state, address) }
}

/// Tells the thread which way the wrapper just entered was come by.
#[inline(always)]
fn come_by_way(state: &mut ThreadState, function: Function) {
    // SAFETY: the calling thread's own block, and the wrapper entered last is the one that runs.
    let origin = unsafe { (*entry()).origin() };
    let way = state.known_way(origin);
    let way = way.unwrap_or_else(|| contained_counting(|| state.new_way(function, origin)).unwrap_or(0));
    state.thread.come_by(way);
}

#[inline(never)]
fn path(state: &mut ThreadState, address: u64) -> u64 {
    // SAFETY: the calling thread's own block, and the wrapper entered last is the one that runs.
    let origin = unsafe { (*entry()).origin() };
    contained(|| state.path(origin)).unwrap_or(address)
}

/// Closes the windows that end where `function` is called at `now`; returns whether one was closed.
#[cold]
fn end_windows(state: &mut ThreadState, plan: &HookPlan, function: Function, address: u64, now: u64) -> bool {
    let closed = contained(|| state.thread.end_windows(function, address, now)) == Some(true);
    if closed {
        contained(|| control::window_closed(state, plan));
        decision::tell();
    }
    closed
}

/// As [`end_windows`] at a call that is only counted, where windows follow steps.
#[cold]
fn pass_step(state: &mut ThreadState, plan: &HookPlan, function: Function, address: u64, now: u64) {
    let address = site(state, address);
    if contained(|| state.thread.pass_step(function, address, now)) == Some(true) {
        contained(|| control::window_closed(state, plan));
        decision::tell();
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
    pointer: *mut ThreadState,
) -> usize {
    // SAFETY: the calling thread's own state. The reference is not used again once the call is
    // forwarded: a callback of the application may count a call meanwhile.
    let state = unsafe { &mut *pointer };
    let function = symbol.function;
    let Some(plan) = hook_plan::of(function) else {
        // SAFETY: the caller's promise.
        return unsafe { forward(next, words.as_ptr()) };
    };
    if plan.class == Class::CountOnly {
        state.thread.count(function, 1);
        // SAFETY: the caller's promise.
        return unsafe { forward(next, words.as_ptr()) };
    }
    let invariant = hot_state::is_invariant();
    if state.thread.is_off() && plan.fast_path != FastPath::Never {
        let quiet = state.thread.is_quiet();
        let from = ticks(invariant);
        state.thread.pass(function, address);
        if plan.fast_path == FastPath::Marking && !state.thread.pass_marker(from) {
            end_windows(state, plan, function, address, from);
        } else if state.thread.follows_steps(function) {
            pass_step(state, plan, function, address, from);
        }
        if !quiet {
            let took = (ticks(invariant) - from).saturating_sub(clock::read_ticks()).min(DESCHEDULED);
            state.thread.add_own(took * CHECK_EVERY);
            state.thread.current.leave(from);
            if contained(|| control::check_while_counting(state, plan)) == Some(true) {
                decision::tell();
            }
        }
        // SAFETY: the caller's promise.
        let result = unsafe { forward(next, words.as_ptr()) };
        passed(pointer);
        return result;
    }
    if plan.local && !state.thread.records() {
        let now = ticks(invariant);
        let measured = state.local_meter.is_due();
        let address = site(state, address);
        if contained_counting(|| state.thread.local(function, address, now)) == Some(true) {
            contained(|| control::window_closed(state, plan));
            decision::tell();
        } else if measured {
            state.local_meter.take(ticks(invariant) - now);
        }
        state.thread.add_own(state.local_meter.per_call());
        // SAFETY: the caller's promise.
        return unsafe { forward(next, words.as_ptr()) };
    }
    // The agent's own time is measured on some calls, and taken for the others from there: two more
    // reads of the clock at every call would double what is measured.
    let measured = state.meter.is_due();
    let entered = if measured { ticks(invariant) } else { 0 };
    let rare = state.thread.rare_ticks();
    let address = site(state, address);
    if state.thread.records() {
        state.thread.fetch(words.first().copied().unwrap_or(0));
    }
    if plan.prepares || symbol.language == Language::Fortran {
        // SAFETY: the application's arguments, before the call.
        contained_counting(|| unsafe {
            hooks::enter(state, symbol, plan, words);
            control::before_call(state, symbol, words);
        });
    }
    if !state.thread.is_known(function, address) {
        contained_counting(|| state.thread.know(function, address));
    }
    come_by_way(state, function);
    hooks::about(state, symbol.language, plan, words);
    let mut start = ticks(invariant);
    if state.thread.begin_call(function, start) && end_windows(state, plan, function, address, start) {
        start = ticks(invariant);
    }
    state.thread.current.enter(function, address, start);
    if plan.class == Class::Lifecycle {
        // SAFETY: the application's arguments, before the call.
        contained(|| unsafe {
            hooks::lifecycle(state, symbol, plan, words, address, start);
            if function == ids::MPI_FINALIZE {
                lifecycle::enter_finalize(state, start);
                lifecycle::finalize_entered();
            }
        });
    } else {
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).outer.start = start };
    }
    // SAFETY: the caller's promise; outside of any catch_unwind, because the application's error
    // handler may unwind through here.
    let result = unsafe { forward(next, words.as_ptr()) };
    let end = ticks(invariant);
    if plan.class == Class::Lifecycle || !hot_state::is_active() {
        // MPI_Finalize has returned, and what was to be recorded has been; or this is a child that a
        // callback forked, and the journal is its parent's.
        if plan.class == Class::Lifecycle {
            contained(lifecycle::finalize_left);
        }
        return result;
    }
    // SAFETY: as above, and MPI has returned.
    let state = unsafe { &mut *pointer };
    state.thread.current.leave(end);
    // SAFETY: the application's arguments, after the call.
    let code = unsafe { error_code(symbol, words, result) };
    let call = hooks::Returned { address, start, end, code };
    // SAFETY: as above.
    let changed = unsafe { conclude(state, symbol, plan, words, &call) };
    if measured {
        let own =
            (ticks(invariant) - entered).saturating_sub(end - start + (state.thread.rare_ticks() - rare));
        measure(state, own);
    }
    state.thread.add_own_of(start, end, state.meter.per_call());
    if changed {
        decision::tell();
    }
    result
}

/// Notes that the agent has taken `own` ticks for a call.
#[cold]
fn measure(state: &mut ThreadState, own: u64) {
    state.meter.take(own);
    let _as_it_was = Environment::begin();
    // The wrapper's entry and the way back, by the only measure that is the machine's own.
    state.thread.set_surcharge(state.meter.surcharge(2 * clock::read_ticks()));
}

/// After a call on a thread with state: hands it to the hooks. Returns whether another window may be open, or the same
/// one be paused.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that has just returned.
#[inline(always)]
unsafe fn conclude(
    state: &mut ThreadState,
    symbol: &Symbol,
    plan: &HookPlan,
    words: &[usize],
    call: &hooks::Returned,
) -> bool {
    let changed = contained_counting(|| {
        // SAFETY: the application's arguments, after the call.
        let closed = unsafe { hooks::leave(state, symbol, plan, words, call) };
        control::after_call(state, symbol, plan, words, call.end, closed)
    });
    changed == Some(true)
}
