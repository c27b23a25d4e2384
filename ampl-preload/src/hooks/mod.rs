//! What happens before and after a recorded call.

mod encode;
mod facts;
mod requests;

use ampl_agent::CallEnd;
use ampl_core::mpi::{Class, Direction, Function, Kind, Length, Param, Traffic, ids};
use ampl_core::value::ObjectKind;
use ampl_trace::args::is_overwritten;
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_UNFINISHED};

use crate::clock::{thread_cpu_ns, ticks};
use crate::recipe::Recipe;
use crate::symbol::{Language, Symbol};
use crate::thread_state::ThreadState;
use facts::Ask;
pub use facts::{INTER, UNKNOWN};

/// Fewest ticks between two looks at the tree: about 100 µs at any clock rate of today.
const PROGRESS_TICKS: u64 = 300_000;
/// Most of them, where nothing has been on its way for a while: a look costs what MPI's own progress costs.
const IDLE_PROGRESS_TICKS: u64 = 64 * PROGRESS_TICKS;

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// Return address into the caller.
    pub address: u64,
    /// Ticks just before MPI was entered and just after it returned.
    pub start: u64,
    /// See `start`.
    pub end: u64,
    /// The error code; 0 is `MPI_SUCCESS`.
    pub code: i32,
}

/// Position of `ierror` among a Fortran call's words.
pub fn ierror_index(function: Function) -> usize {
    // Fortran's MPI_Init and its like have no argc and argv.
    let missing = match function {
        ids::MPI_INIT | ids::MPI_INIT_THREAD | ids::MPI_INFO_CREATE_ENV => 2,
        ids::MPI_PCONTROL => return usize::MAX,
        _ => 0,
    };
    function.spec().params.len() - missing
}

/// Before the call: remembers what the call will overwrite, and makes sure that statuses are told.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that is about to be made.
#[inline]
pub unsafe fn enter(state: &mut ThreadState, symbol: &Symbol, recipe: &Recipe, words: &mut [usize]) {
    if symbol.language == Language::Fortran {
        if recipe.in_out {
            // SAFETY: the caller's promise.
            unsafe { fortran_handles(state, symbol.function, words) };
        }
        return;
    }
    if recipe.names_request {
        // SAFETY: the caller's promise.
        unsafe { requests::name(state, symbol.function, recipe, words) };
    }
    if recipe.in_out {
        // SAFETY: the caller's promise.
        unsafe { remember(state, symbol.function, words) };
    }
    if let (Some(index), true) = (recipe.status, recipe.receives && state.thread.keeps()) {
        let abi = state.process.abi;
        let at = &mut words[usize::from(index)];
        let unnamed = recipe.request_count.is_some() && state.named.is_empty();
        if abi.is_status_ignore(*at) && !unnamed {
            let count = if recipe.request_count.is_some() { state.named.len() } else { 1 };
            state.statuses.clear();
            state.statuses.resize((abi.status_bytes * count).div_ceil(8).max(1), 0);
            *at = state.statuses.as_mut_ptr() as usize;
        }
    }
}

/// Values of in/out parameters before the call: as recorded, except that handles stay handles.
unsafe fn remember(state: &mut ThreadState, function: Function, words: &[usize]) {
    state.before.clear();
    for (param, &word) in function.spec().params.iter().zip(words) {
        if is_overwritten(param) {
            // SAFETY: an in/out parameter points to a value that MPI is about to read.
            state.before.push(unsafe { state.process.abi.load(param.kind, word, 0) }.unwrap_or(0));
        } else if let (Direction::InOut, Kind::Int, Length::Param(count)) =
            (param.direction, param.kind, param.length)
        {
            let count = (words[usize::from(count)] as i32).clamp(0, 1 << 16) as usize;
            state.before.push(count as u64);
            // SAFETY: an in/out array has as many values as its count says.
            let values =
                (0..count).map(|at| unsafe { state.process.abi.load(param.kind, word, at) }.unwrap_or(0));
            state.before.extend(values);
        }
    }
}

/// The C handles behind a Fortran call's in/out handles, in the order of the parameters.
unsafe fn fortran_handles(state: &mut ThreadState, function: Function, words: &[usize]) {
    state.before.clear();
    for (param, &word) in function.spec().params.iter().zip(words) {
        if is_overwritten(param) {
            // SAFETY: a Fortran handle is a default INTEGER passed by reference.
            let integer = if word == 0 { 0 } else { unsafe { (word as *const i32).read_unaligned() } };
            let handle = match ObjectKind::of(param.kind) {
                Some(_) => state.process.fortran_handle(param.kind, integer) as u64,
                None => 0,
            };
            state.before.push(handle);
        }
    }
}

/// After the call: counts its bytes, follows its requests and objects, and hands it to the thread.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that has just returned.
#[inline]
pub unsafe fn leave(
    state: &mut ThreadState,
    symbol: &Symbol,
    recipe: &Recipe,
    words: &[usize],
    call: &Returned,
) {
    let mut flags = 0;
    let (mut sent, mut received) = (0, 0);
    let is_c = symbol.language == Language::C;
    if call.code != 0 {
        flags |= CALL_ERROR;
    } else if is_c {
        if let Some(index) = recipe.flag {
            // SAFETY: a successful poll has written its flag or count, an int.
            if unsafe { state.process.abi.load(Kind::Int, words[usize::from(index)], 0) } == Some(0) {
                flags |= CALL_MISS;
            }
        }
        (sent, received) = traffic(state, recipe, words);
    } else if recipe.operands.traffic != Traffic::None {
        // SAFETY: Fortran passes every argument by reference.
        let values = unsafe { scalars(state, symbol, words) };
        (sent, received) = traffic(state, recipe, &values);
    }
    // A failed completion may have completed some of its requests all the same.
    let follows = call.code == 0 || matches!(recipe.class, Class::Completion | Class::Poll);
    if is_c && recipe.request.is_some() && follows {
        let missed = flags & CALL_MISS != 0;
        let started =
            // SAFETY: the caller's promise.
            unsafe { requests::follow(state, symbol.function, recipe, words, (sent, received), missed) };
        (sent, received) = started.unwrap_or((sent, received));
    }
    state.args.clear();
    if state.thread.keeps() || state.thread.is_due(call.end) {
        if is_c {
            // SAFETY: the caller's promise.
            unsafe { encode::call(state, symbol.function, recipe, words, flags, call.code) };
        } else {
            flags |= CALL_NO_ARGS;
            if call.code != 0 {
                state.args.push(call.code as u64);
            }
        }
    }
    if recipe.in_out && call.code == 0 {
        // SAFETY: the caller's promise.
        unsafe { forget_freed(state, symbol.function, words, is_c) };
    }
    let closed = state.thread.leave(&CallEnd {
        function: symbol.function,
        address: call.address,
        start: call.start,
        end: call.end,
        sent,
        received,
        flags,
        words: &state.args,
    });
    if closed || (recipe.communicates && call.end >= state.next_progress) {
        progress(state, closed);
    }
}

/// Bytes of the call itself; those of persistent requests count at their start.
#[inline]
fn traffic(state: &mut ThreadState, recipe: &Recipe, words: &[usize]) -> (u64, u64) {
    match recipe.operands.traffic {
        Traffic::None => (0, 0),
        _ => recipe.operands.bytes(words, &mut Ask { state }),
    }
}

/// The values of a Fortran call's scalar inputs, as a C call would pass them; addresses stay.
unsafe fn scalars(state: &ThreadState, symbol: &Symbol, words: &[usize]) -> Vec<usize> {
    let by_reference = |kind: Kind, word: usize| {
        // SAFETY: a Fortran scalar input is passed by reference: an INTEGER, or one of 64 bits.
        unsafe {
            match kind {
                Kind::Count | Kind::Aint | Kind::Offset => (word as *const i64).read_unaligned() as usize,
                Kind::String | Kind::Address | Kind::Status => word,
                kind => {
                    let integer = (word as *const i32).read_unaligned();
                    let is_handle = ObjectKind::of(kind).is_some();
                    if is_handle { state.process.fortran_handle(kind, integer) } else { integer as usize }
                }
            }
        }
    };
    let convert = |(param, &word): (&Param, &usize)| match (param.kind, param.direction, param.length) {
        (Kind::Buffer, ..) if symbol.passes_descriptors() => {
            // SAFETY: a descriptor's first word is the buffer's address.
            state.process.fortran_buffer(unsafe { (word as *const usize).read_unaligned() })
        }
        (Kind::Buffer, ..) => state.process.fortran_buffer(word),
        (kind, Direction::In, Length::One) => by_reference(kind, word),
        _ => word,
    };
    symbol.function.spec().params.iter().zip(words).map(convert).collect()
}

/// Forgets the objects that the call has freed: their handle has changed.
unsafe fn forget_freed(state: &mut ThreadState, function: Function, words: &[usize], is_c: bool) {
    let mut before = state.before.iter();
    for (param, &word) in function.spec().params.iter().zip(words) {
        if !is_overwritten(param) {
            continue;
        }
        let Some(&before) = before.next() else { return };
        let Some(kind) = ObjectKind::of(param.kind) else { continue };
        // SAFETY: the parameter points to a handle that MPI has written, in Fortran to its INTEGER.
        let after = unsafe {
            match is_c {
                true => state.process.abi.load(param.kind, word, 0),
                false if word == 0 => None,
                false => {
                    let integer = (word as *const i32).read_unaligned();
                    Some(state.process.fortran_handle(param.kind, integer) as u64)
                }
            }
        };
        if after != Some(before) {
            state.process.forget(kind, before);
        }
    }
}

/// `MPI_Finalize` or `MPI_Abort` is entered: the call is recorded now, the last window ends.
pub fn lifecycle(state: &mut ThreadState, symbol: &Symbol, address: u64, now: u64) {
    if !matches!(symbol.function, ids::MPI_FINALIZE | ids::MPI_ABORT) {
        return;
    }
    state.thread.leave(&CallEnd {
        function: symbol.function,
        address,
        start: now,
        end: now,
        sent: 0,
        received: 0,
        flags: CALL_NO_ARGS | CALL_UNFINISHED,
        words: &[],
    });
    if symbol.function == ids::MPI_FINALIZE {
        state.process.begin_end(state, now);
    }
}

/// A window was closed on entry of a call.
#[cold]
pub fn window_closed(state: &mut ThreadState) {
    progress(state, true);
}

/// Looks after the tree, on the thread that closes windows only.
#[cold]
fn progress(state: &mut ThreadState, closed: bool) {
    if state.thread.number() != 0 {
        state.next_progress = u64::MAX;
        return;
    }
    let invariant = state.process.invariant;
    let (from, cpu_from) = (ticks(invariant), thread_cpu_ns());
    if closed {
        state.process.take_clock_pair();
        state.thread.recalibrate();
    }
    let moved = state.process.progress(&mut state.thread);
    let idle = (state.progress_ticks * 2).clamp(PROGRESS_TICKS, IDLE_PROGRESS_TICKS);
    state.progress_ticks = if moved || closed { PROGRESS_TICKS } else { idle };
    let now = ticks(invariant);
    state.next_progress = now + state.progress_ticks;
    state.slow_ticks += now - from;
    state.thread.add_slow(now - from, (thread_cpu_ns() - cpu_from).max(0) as u64);
}

/// Whether a constructor's traffic counts at each start of its request.
pub(crate) fn counts_at_start(recipe: &Recipe) -> bool {
    recipe.class == Class::PersistentCollective
        || matches!(recipe.operands.traffic, Traffic::SendInit | Traffic::RecvInit)
}
