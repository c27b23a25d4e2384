//! The short way of repeated calls.
//!
//! Most calls of a program are the ones that came there before. Such a call needs no more than a comparison and a few
//! sums, if nothing is to be prepared before it nor followed after it. The plan says of which functions that holds, and how
//! far for those that make or name requests ([`ShortWay`]); the thread says when ([`ampl_agent::thread`]'s module of the
//! same name lists its conditions). Where anything differs the whole way follows: from its beginning if MPI has not been called, or from
//! there on. Either way leaves the same data.
//!
//! Threads are plain only where ticks are of the time-stamp counter. The short way does not allocate, wait or panic, here
//! as there; what follows requests is contained.

use ampl_agent::repeats::{Given, Outcome};
use ampl_agent::thread::{Settled, Span};
use ampl_trace::record::CALL_MISS;

use super::{conclude, error_code, measure};
use crate::clock::ticks;
use crate::contain::contained_counting;
use crate::control;
use crate::decision;
use crate::entry::{Entry, Outer};
use crate::hook_plan::{self, HookPlan, Outputs, ShortWay};
use crate::hooks::{self, Follow, Returned};
use crate::hot_state;
use crate::symbol::{Language, Symbol};
use crate::thread_state::ThreadState;

/// A call that has been begun on the short way.
#[derive(Clone, Copy)]
pub(super) struct Begun {
    state: *mut ThreadState,
    plan: &'static HookPlan,
    site: Settled,
    address: u64,
    start: u64,
    /// Ticks at its beginning, and of rare work until then, where the agent's own time is measured.
    measured: Option<(u64, u64)>,
}

/// Begins the call of `symbol` whose wrapper has just been entered, outside of all others; `None` where it has to take
/// the whole way.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol`.
#[inline(always)]
pub(super) unsafe fn begin(here: &mut Entry, symbol: &Symbol, words: &mut [usize]) -> Option<Begun> {
    if !hot_state::is_active() || here.thread.is_null() {
        return None;
    }
    let pointer = here.state();
    // SAFETY: the calling thread's own state, which no wrapper uses now.
    let state = unsafe { &mut *pointer };
    // SAFETY: there is an agent, and symbols are of functions of the table.
    let plan = unsafe { hook_plan::of_derived(symbol.function) };
    if plan.short_way == ShortWay::None {
        return None;
    }
    let measured = if state.meter.rests() { None } else { Some((ticks(true), state.thread.rare_ticks())) };
    // SAFETY: the wrapper just entered.
    let address = unsafe { here.origin().address };
    let site =
        state.thread.may_begin_shortly(symbol.function, address, words.first().copied().unwrap_or(0))?;
    if plan.names_request || symbol.language == Language::Fortran {
        // SAFETY: the caller's promise.
        contained_counting(|| unsafe { hooks::enter(state, symbol, plan, words) })?;
    } else if let (Some(index), true) = (plan.status, plan.receives)
        && !replace_status(state, words.get_mut(usize::from(index))?)
    {
        return None;
    }
    // SAFETY: the wrapper just entered.
    state.thread.come_by(state.known_way(unsafe { here.origin() })?);
    hooks::about(state, symbol.language, plan, words);
    let start = ticks(true);
    if !state.thread.begin_shortly(symbol.function, start) {
        return None;
    }
    let _ = state.meter.is_due();
    state.thread.current.enter(symbol.function, address, start);
    here.inside = here.stack;
    here.outer_bp = here.bp;
    here.outer = Outer { address, start, function: symbol.function, seen: false };
    Some(Begun { state: pointer, plan, site, address, start, measured })
}

/// Has MPI write the status that the program ignores, as [`hooks::enter`] does; returns false where that takes memory.
#[inline(always)]
fn replace_status(state: &mut ThreadState, at: &mut usize) -> bool {
    let abi = state.process.abi;
    if abi.is_status_ignore(*at) {
        if state.statuses.len() != abi.status_bytes.div_ceil(8).max(1) {
            return false;
        }
        state.statuses.fill(0);
        *at = state.statuses.as_mut_ptr() as usize;
    }
    true
}

/// Ends a call that has returned `result`.
///
/// # Safety
/// `words` must be the arguments of the call of `symbol` that was `begun`, and that has just returned.
#[inline(always)]
pub(super) unsafe fn end(begun: &Begun, symbol: &'static Symbol, words: &[usize], result: usize) {
    let end = ticks(true);
    if !hot_state::is_active() {
        return;
    }
    let &Begun { plan, start, .. } = begun;
    // SAFETY: the calling thread's own state, as before the call.
    let state = unsafe { &mut *begun.state };
    state.thread.current.leave(end);
    let span = Span { start, end, timed: !plan.local, apart: plan.operands.traffic.is_apart() };
    // SAFETY: the caller's promise.
    let code = unsafe { error_code(symbol, words, result) };
    let done = code == 0
        && match symbol.language {
            // SAFETY: the caller's promise.
            Language::C => unsafe { as_before(state, symbol, begun, words, &span) },
            // SAFETY: what `begin` has made of the caller's words.
            Language::Fortran => unsafe { fortran_as_before(state, symbol, begun, &span) },
        };
    if !done {
        // SAFETY: the caller's promise.
        unsafe { whole_end(state, begun, symbol, words, end, code) };
    } else if plan.communicates && state.timer.is_due(end) {
        poll(state, symbol, plan, words, end);
    }
    if let Some((entered, rare)) = begun.measured {
        let rare = state.thread.rare_ticks() - rare;
        measure(state, (ticks(true) - entered).saturating_sub(end - start + rare));
    }
    state.thread.add_own_of(start, end, state.meter.per_call());
}

/// Ends the call, which has succeeded and whose words are C's, if it is as the one before; returns false where it is not.
#[inline(always)]
unsafe fn as_before(
    state: &mut ThreadState,
    symbol: &Symbol,
    begun: &Begun,
    words: &[usize],
    span: &Span,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        match begun.plan.short_way {
            ShortWay::All => repeats(state, symbol, begun, words, span),
            ShortWay::Makes => makes(state, symbol, begun, words, span),
            ShortWay::Asks => asks(state, symbol, begun, words, span),
            ShortWay::Begins | ShortWay::None => false,
        }
    }
}

/// As [`as_before`], for a call whose words as C would pass them are in `state.words`.
#[inline(never)]
unsafe fn fortran_as_before(state: &mut ThreadState, symbol: &Symbol, begun: &Begun, span: &Span) -> bool {
    let as_c = std::mem::take(&mut state.words);
    // SAFETY: the caller's promise.
    let done = unsafe { as_before(state, symbol, begun, &as_c, span) };
    state.words = as_c;
    done
}

/// Outcome of the call, which its first words determine with such flags and such a value; `None` where it is not as the
/// one before.
#[inline(always)]
fn foresee(
    state: &ThreadState,
    symbol: &Symbol,
    begun: &Begun,
    words: &[usize],
    (flags, value): (u8, Option<u32>),
    span: &Span,
) -> Option<Outcome> {
    let (address, generation) = (state.thread.origin(begun.address), hot_state::generation());
    let given = Given { function: symbol.function, flags, address, generation, words, value };
    state.thread.foresee(begun.site, &given, span)
}

/// The words of a call that determine its record, where they do.
#[inline(always)]
fn telling<'a>(begun: &Begun, words: &'a [usize]) -> Option<&'a [usize]> {
    begun.plan.telling.and_then(|telling| words.get(..usize::from(telling)))
}

/// True where the call was as the one before, and all is done.
#[inline(always)]
unsafe fn repeats(
    state: &mut ThreadState,
    symbol: &Symbol,
    begun: &Begun,
    words: &[usize],
    span: &Span,
) -> bool {
    // SAFETY: the caller's promise.
    let Some((flags, value)) = (unsafe { outputs(begun.plan, words) }) else { return false };
    let known = telling(begun, words);
    let outcome = known.and_then(|words| foresee(state, symbol, begun, words, (flags, value), span));
    let Some(outcome) = outcome else { return false };
    if !state.thread.leave_shortly(begun.site, flags, &outcome, span) {
        return false;
    }
    state.thread.current.polled(flags != 0, span.start);
    if flags == 0 && begun.plan.status.is_some() {
        // SAFETY: the caller's promise.
        unsafe { note_status(state, symbol, begun.plan, words) };
    }
    true
}

/// As [`repeats`], of a call that has made a request.
#[inline(never)]
unsafe fn makes(
    state: &mut ThreadState,
    symbol: &Symbol,
    begun: &Begun,
    words: &[usize],
    span: &Span,
) -> bool {
    let plan = begun.plan;
    let known = telling(begun, words);
    let outcome = known.and_then(|words| foresee(state, symbol, begun, words, (0, None), span));
    let Some(outcome) = outcome else { return false };
    state.reader = state.reader.for_call(symbol);
    let bytes = (outcome.sent, outcome.received);
    let follow = Follow { terminal: Some(outcome.terminal.number), bytes, missed: false, failed: false };
    // SAFETY: the caller's promise.
    let followed = contained_counting(|| unsafe { hooks::follow(state, plan, words, &follow) });
    let Some(followed) = followed else { return true };
    // Only the first live one of its kind is the request that the outcome is of.
    if followed.told == Some(0) && state.thread.leave_shortly(begun.site, 0, &outcome, span) {
        state.thread.current.polled(false, span.start);
        return true;
    }
    let call = Returned { address: begun.address, start: span.start, end: span.end, code: 0 };
    let changed = contained_counting(|| {
        // SAFETY: the caller's promise.
        let closed =
            unsafe { hooks::leave_making(state, symbol.function, plan, words, &call, &outcome, followed) };
        control::after_call(state, symbol, plan, words, span.end, closed)
    });
    if changed == Some(true) {
        decision::tell();
    }
    true
}

/// As [`repeats`], of a poll of requests, which have been [named](hooks::enter): done if it has found nothing.
#[inline(never)]
unsafe fn asks(
    state: &mut ThreadState,
    symbol: &Symbol,
    begun: &Begun,
    words: &[usize],
    span: &Span,
) -> bool {
    // SAFETY: the caller's promise.
    let missed = matches!(unsafe { outputs(begun.plan, words) }, Some((CALL_MISS, _)));
    let Some(&array) = begun.plan.request.and_then(|index| words.get(usize::from(index))) else {
        return false;
    };
    let ThreadState { reader, process, handles, after, named, thread, .. } = &mut *state;
    if !missed || named.is_claimed() {
        return false;
    }
    // SAFETY: the call has read as many requests there.
    unsafe { reader.requests(array, handles.len(), process.request_null, after) };
    if handles != after {
        return false;
    }
    let poll = hooks::poll_of(named.words(), symbol.function, thread.origin(begun.address));
    let Some(outcome) = thread.foresee_poll(&poll, span) else { return false };
    let done = state.thread.leave_shortly(begun.site, CALL_MISS, &outcome, span);
    if done {
        state.thread.current.polled(true, span.start);
    }
    done
}

/// Flags and value of a call that has succeeded; `None` where its record has more of its outputs.
#[inline(always)]
unsafe fn outputs(plan: &HookPlan, words: &[usize]) -> Option<(u8, Option<u32>)> {
    if plan.outputs == Outputs::Silent {
        return Some((0, None));
    }
    if let Some(&at) = plan.flag.and_then(|index| words.get(usize::from(index))) {
        // SAFETY: a successful poll has written its flag or count, an int; programs may pass unaligned addresses.
        if at != 0 && unsafe { (at as *const i32).read_unaligned() } == 0 {
            return Some((CALL_MISS, None));
        }
    }
    // SAFETY: the caller's promise.
    let value = unsafe { hooks::value(plan, words) };
    (value.is_some() || hooks::says_nothing_new(plan, words)).then_some((0, value))
}

/// Notes the status of the program that the call has filled.
#[inline(always)]
unsafe fn note_status(state: &mut ThreadState, symbol: &Symbol, plan: &HookPlan, words: &[usize]) {
    state.reader = state.reader.for_call(symbol);
    let at = plan.status.and_then(|index| words.get(usize::from(index)));
    if at.is_some_and(|&at| hooks::is_program_s(state, at)) {
        // SAFETY: the caller's promise.
        contained_counting(|| unsafe { hooks::filled_again(state, plan, words) });
    }
}

/// Ends a call that was not as the one before, at `end`.
#[cold]
unsafe fn whole_end(
    state: &mut ThreadState,
    begun: &Begun,
    symbol: &'static Symbol,
    words: &[usize],
    end: u64,
    code: i32,
) {
    let &Begun { plan, address, start, .. } = begun;
    let call = Returned { address, start, end, code };
    // SAFETY: the caller's promise.
    if unsafe { conclude(state, symbol, plan, words, &call) } {
        decision::tell();
    }
}

/// Polls the tree, as it is due.
#[cold]
fn poll(state: &mut ThreadState, symbol: &Symbol, plan: &HookPlan, words: &[usize], end: u64) {
    contained_counting(|| control::after_call(state, symbol, plan, words, end, false));
}
