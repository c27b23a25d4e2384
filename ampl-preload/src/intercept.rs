//! The one path that every wrapper takes.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use ampl_agent::floating::Environment;
use ampl_agent::thread::LOOK_EVERY;
use ampl_core::mpi::{Class, FUNCTION_COUNT, Function, Returns, ids};

use crate::abi;
use crate::caller::{Caller, is_of_mpi, who};
use crate::clock::{self, ticks};
use crate::entry::{Entry, Origin, Outer, entry};
use crate::finalize;
use crate::hook_plan::{self, FastPath, HookPlan};
use crate::hooks;
use crate::presence;
use crate::process::{self, contained, contained_counting};
use crate::reader::ierror_index;
use crate::symbol::{Language, Symbol};
use crate::thread_state::ThreadState;
use crate::uncovered;
use crate::walk;

/// Forwards words to a definition.
type Forward<R> = unsafe fn(*const (), *const usize) -> R;

/// Most ticks of a call that is only counted, about 1 µs: beyond, the processor went elsewhere.
const DESCHEDULED: u64 = 3000;

/// Calls made before the agent existed.
pub static EARLY: [AtomicU64; FUNCTION_COUNT] = [const { AtomicU64::new(0) }; FUNCTION_COUNT];

/// `MPI_ERR_OTHER`: result of calls of functions that the loaded MPI does not have.
fn absent_code() -> i32 {
    match abi::detect() {
        Some(abi) if abi.name == "mpich" => 15,
        _ => 16,
    }
}

/// Forwards a call exactly once, and records it unless MPI made it itself.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol`, and `forward` must have its arity.
pub unsafe fn intercept(symbol: &'static Symbol, words: &mut [usize], forward: Forward<usize>) -> usize {
    let next = symbol.next_if_known();
    // SAFETY: the calling thread's own block.
    let here: &mut Entry = unsafe { &mut *entry() };
    if here.inside != 0 || next.is_null() || !passes(here, symbol.function) {
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
    passed(here.thread);
    result
}

/// Ends a call that is only counted. Where it has forked this may be the child, which has no journal.
#[inline(always)]
fn passed(thread: *const ThreadState) {
    if process::is_active() {
        // SAFETY: the calling thread's own state, as before the call.
        unsafe { (*thread).thread.current.passed() };
    }
}

/// True where counting the call of `function` that begins is enough; it is counted then. Most calls go this way while
/// the agent is to cost next to nothing.
#[inline(always)]
fn passes(here: &Entry, function: Function) -> bool {
    if !process::is_active() || here.thread.is_null() {
        return false;
    }
    // SAFETY: the calling thread's own state, which no wrapper uses now.
    let state = unsafe { &mut *here.thread };
    let passage = state.process.passages[usize::from(function.0)];
    let passes = state.thread.is_quiet()
        && match passage {
            FastPath::Never => false,
            FastPath::Counted => true,
            // A clock that has to be asked for would cost the others their registers.
            FastPath::Marking => process::is_invariant() && state.thread.pass_marker(ticks(true)),
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
    let state = if process::is_active() { here.thread } else { ptr::null_mut() };
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

/// MPICH's Fortran `MPI_FILE_OPEN` opens a file in C into a variable of its own that it has not set, and converts that
/// whether or not the file could be opened. The earlier contents of the stack decide whether a program survives; a
/// wrapper between them changes these. Stores `MPI_FILE_NULL` there.
#[cold]
fn define_file(symbol: &Symbol, words: &[usize]) {
    let is_mpich = abi::detect().is_some_and(|abi| abi.name == "mpich");
    if is_mpich && symbol.language == Language::C && words[4] != 0 {
        // SAFETY: the caller is MPI, and has room there for the handle that it asks for: a pointer.
        unsafe { (words[4] as *mut usize).write_unaligned(0) };
    }
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
    if let Some(state) = unsafe { here.thread.as_mut() }.filter(|_| process::is_active() && start != 0) {
        contained(|| hooks::left(state, function, address, start, end.max(start)));
        state.thread.current.leave(end.max(start));
    }
}

/// Counts a call that the application makes from within another.
#[cold]
fn count_within(here: &Entry, function: Function) {
    if process::is_active() && !here.thread.is_null() {
        // SAFETY: the calling thread's own state: the outer wrapper holds no reference to it while it forwards.
        contained(|| unsafe { (*here.thread).thread.nested(function, process::now()) });
        if matches!(function, ids::MPI_COMM_FREE | ids::MPI_COMM_DISCONNECT) {
            process::mark_comms_uncertain();
        }
        if function == ids::MPI_CANCEL {
            process::cancels();
        }
    }
}

/// Forwards a call that the application makes from within another, and follows the handles that it gives and takes.
///
/// # Safety
/// As [`intercept`].
#[cold]
unsafe fn within(symbol: &Symbol, words: &mut [usize], forward: Forward<usize>, next: *const ()) -> usize {
    let process = process::current().filter(|_| process::is_active() && symbol.language == Language::C);
    // SAFETY: the caller's promise.
    let held = process
        .and_then(|process| contained(|| unsafe { hooks::held(process, symbol.function, words) }).flatten());
    // SAFETY: the caller's promise; outside of any catch_unwind.
    let result = unsafe { forward(next, words.as_ptr()) };
    if let Some(process) = process.filter(|_| result as i32 == 0 && process::is_active()) {
        // SAFETY: the arguments of a call that has succeeded.
        contained(|| unsafe { hooks::changed(process, symbol.function, words, held) });
    }
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
    // SAFETY: the wrapper just entered.
    let address = unsafe { here.origin().address };
    let outermost = here.inside == 0;
    // SAFETY: as above.
    if outermost || unsafe { who(here, address, next) } != Caller::Mpi {
        // SAFETY: a thread's state is only ever used by that thread.
        match unsafe { here.thread.as_mut() }.filter(|_| process::is_active()) {
            Some(state) => state.thread.count(symbol.function, 1),
            None => count_early(symbol.function, address, next),
        }
    }
    if outermost {
        // MPICH's Fortran clocks come back through the C ones.
        enter(here, address, symbol.function);
    }
    // SAFETY: the caller's promise.
    let result = unsafe { forward(next, words.as_ptr()) };
    if outermost {
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).inside = 0 };
    }
    result
}

/// Counts a call that the application makes while there is no agent yet; not those of MPI's constructors, such as its
/// C++ binding has.
fn count_early(function: Function, address: u64, next: *const ()) {
    if process::has_not_started() && !is_of_mpi(address, next) {
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
    origin: Origin,
) -> usize {
    if process::is_active()
        && let Some(state) = contained(process::adopt_thread).flatten()
    {
        let state = ptr::from_mut(state);
        // SAFETY: the caller's promise, passed on.
        return unsafe { recorded(symbol, words, forward, next, origin.address, state) };
    }
    let starts =
        matches!(symbol.function, ids::MPI_INIT | ids::MPI_INIT_THREAD) && process::has_not_started();
    if symbol.function == ids::MPI_SESSION_INIT {
        contained(uncovered::session_began);
    } else if !starts && symbol.function.spec().class != Class::Local {
        contained(uncovered::called_unstarted);
    }
    if !starts {
        count_early(symbol.function, origin.address, next);
    }
    if starts {
        contained(process::will_start);
    }
    let before = starts.then(clock::pair);
    // SAFETY: the caller's promise.
    let result = unsafe { forward(next, words.as_ptr()) };
    if let Some(before) = before {
        // SAFETY: the arguments of the call just made.
        if unsafe { error_code(symbol, words, result) } == 0 {
            // SAFETY: as above, and the call has succeeded.
            contained(|| unsafe { process::start(symbol, words, origin, before) });
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

/// Result of a call of a function that this MPI lacks: an error, in the language's way.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol`.
#[cold]
unsafe fn absent(symbol: &Symbol, words: &[usize]) -> usize {
    if symbol.function.spec().returns == Returns::Word {
        return 0; // a handle or an address, not an error code
    }
    let code = absent_code();
    if symbol.language == Language::Fortran
        && let Some(&at) = words.get(ierror_index(symbol.function)).filter(|&&at| at != 0)
    {
        // SAFETY: an `ierror` that is present points to a default integer.
        unsafe { (at as *mut i32).write_unaligned(code) };
    }
    code as usize
}

/// Site of the wrapper just entered: its return address `address`, or the number of its path, where paths identify call
/// sites.
#[inline(always)]
fn site(state: &mut ThreadState, address: u64) -> u64 {
    if state.walker.is_none() { address } else { path(state, address) }
}

#[inline(never)]
fn path(state: &mut ThreadState, address: u64) -> u64 {
    // SAFETY: the calling thread's own block, and the wrapper entered last is the one that runs.
    let origin = unsafe { (*entry()).origin() };
    contained(|| walk::path(state, origin)).unwrap_or(address)
}

/// Closes the windows that end where `function` is called at `now`; returns whether one was closed.
#[cold]
fn end_windows(
    state: &mut ThreadState,
    recipe: &HookPlan,
    function: Function,
    address: u64,
    now: u64,
) -> bool {
    let closed = contained(|| state.thread.end_windows(function, address, now)) == Some(true);
    if closed {
        contained(|| hooks::window_closed(state, recipe));
    }
    closed
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
    let Some(recipe) = hook_plan::of(function) else {
        // SAFETY: the caller's promise.
        return unsafe { forward(next, words.as_ptr()) };
    };
    if recipe.class == Class::CountOnly {
        state.thread.count(function, 1);
        // SAFETY: the caller's promise.
        return unsafe { forward(next, words.as_ptr()) };
    }
    let invariant = process::is_invariant();
    if state.thread.is_off() && recipe.passage != FastPath::Never {
        let quiet = state.thread.is_quiet();
        let from = ticks(invariant);
        state.thread.pass(function, address);
        if recipe.passage == FastPath::Marking && !state.thread.pass_marker(from) {
            end_windows(state, recipe, function, address, from);
        }
        if !quiet {
            let took = (ticks(invariant) - from).saturating_sub(clock::read_ticks()).min(DESCHEDULED);
            state.thread.add_own(took * LOOK_EVERY);
            state.thread.current.leave(from);
            contained(|| hooks::look_around(state, recipe));
        }
        // SAFETY: the caller's promise.
        let result = unsafe { forward(next, words.as_ptr()) };
        passed(pointer);
        return result;
    }
    if recipe.local && !state.thread.records() {
        let now = ticks(invariant);
        let measured = state.local_meter.is_due();
        let address = site(state, address);
        if contained_counting(|| state.thread.local(function, address, now)) == Some(true) {
            contained(|| hooks::window_closed(state, recipe));
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
        state.thread.fetch();
    }
    if recipe.prepares || symbol.language == Language::Fortran {
        // SAFETY: the application's arguments, before the call.
        contained_counting(|| unsafe { hooks::enter(state, symbol, recipe, words) });
    }
    if !state.thread.is_known(function, address) {
        contained_counting(|| state.thread.know(function, address));
    }
    hooks::about(state, symbol.language, recipe, words);
    let mut start = ticks(invariant);
    if state.thread.begin_call(function, start) && end_windows(state, recipe, function, address, start) {
        start = ticks(invariant);
    }
    state.thread.current.enter(function, address, start);
    if recipe.class == Class::Lifecycle {
        // SAFETY: the application's arguments, before the call.
        contained(|| unsafe { hooks::lifecycle(state, symbol, recipe, words, address, start) });
    }
    if recipe.class != Class::Lifecycle {
        // SAFETY: the calling thread's own block.
        unsafe { (*entry()).outer.start = start };
    }
    // SAFETY: the caller's promise; outside of any catch_unwind, because the application's error
    // handler may unwind through here.
    let result = unsafe { forward(next, words.as_ptr()) };
    let end = ticks(invariant);
    if recipe.class == Class::Lifecycle || !process::is_active() {
        // MPI_Finalize has returned, and what was to be recorded has been; or this is a child that a
        // callback forked, and the journal is its parent's.
        if recipe.class == Class::Lifecycle {
            contained(finalize::is_left);
        }
        return result;
    }
    // SAFETY: as above, and MPI has returned.
    let state = unsafe { &mut *pointer };
    state.thread.current.leave(end);
    // SAFETY: the application's arguments, after the call.
    let code = unsafe { error_code(symbol, words, result) };
    let call = hooks::Returned { address, start, end, code };
    // SAFETY: the application's arguments, after the call.
    contained_counting(|| unsafe { hooks::leave(state, symbol, recipe, words, &call) });
    if measured {
        let own =
            (ticks(invariant) - entered).saturating_sub(end - start + (state.thread.rare_ticks() - rare));
        state.meter.take(own);
        let _as_it_was = Environment::begin();
        // The wrapper's entry and the way back, by the only measure that is the machine's own.
        state.thread.set_surcharge(state.meter.surcharge(2 * clock::read_ticks()));
    }
    state.thread.add_own(state.meter.per_call());
    result
}
