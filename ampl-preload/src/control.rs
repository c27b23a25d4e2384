//! Control between calls: polls of the tree, checks of the clock and of what the agent costs.
//!
//! [Hooks](crate::hooks) record calls; this is called beside them.

use ampl_agent::floating::Environment;
use ampl_agent::uncancelled::Uncancelled;
use ampl_core::mpi::ids;

use crate::clock::thread_cpu_ns;
use crate::hook_plan::HookPlan;
use crate::hot_state;
use crate::progress_timer::Poll;
use crate::symbol::{Language, Symbol};
use crate::thread_state::ThreadState;

/// The level of `MPI_Pcontrol` that pauses.
const PAUSE: i32 = 0;

/// Before a call of `symbol` for which the hooks have [prepared](crate::hooks::enter): `MPI_Pcontrol` resumes ampl, or
/// marks the end of a window.
#[inline(always)]
pub fn before_call(state: &mut ThreadState, symbol: &Symbol, words: &[usize]) {
    if symbol.function == ids::MPI_PCONTROL && level(state, symbol, words) != PAUSE {
        obey(state, level(state, symbol, words));
    }
}

/// After a call of `symbol` that returned at `end` and has been recorded; `closed`: it has closed windows. Returns whether
/// another window may be open, or the same one be paused.
#[inline(always)]
pub fn after_call(
    state: &mut ThreadState,
    symbol: &Symbol,
    plan: &HookPlan,
    words: &[usize],
    end: u64,
    closed: bool,
) -> bool {
    if closed || (plan.communicates && state.timer.is_due(end)) {
        progress(state, plan.communicates);
    }
    if symbol.function == ids::MPI_PCONTROL && level(state, symbol, words) == PAUSE {
        // Behind its own record: a pause begins when the call that asks for it has returned.
        obey(state, PAUSE);
    }
    closed || symbol.function == ids::MPI_PCONTROL
}

/// The level that a call of `MPI_Pcontrol` asks for.
#[cold]
fn level(state: &ThreadState, symbol: &Symbol, words: &[usize]) -> i32 {
    let words = if symbol.language == Language::C { words } else { &state.words };
    words[0] as i32
}

/// Pauses ampl, resumes it, or marks the end of a window, as the program wants.
#[cold]
fn obey(state: &mut ThreadState, level: i32) {
    if state.thread.control(level, hot_state::now()) {
        progress(state, false);
    }
}

/// A window was closed on entry of a call.
#[cold]
pub fn window_closed(state: &mut ThreadState, plan: &HookPlan) {
    progress(state, plan.communicates);
}

/// A window was closed by a call of ampl's own API, between calls of MPI.
#[cold]
pub fn window_closed_by_program(state: &mut ThreadState) {
    progress(state, false);
}

/// Every so often while calls are only counted: ends windows that are over, and polls the tree. Returns whether it has
/// closed windows.
#[cold]
pub fn check_while_counting(state: &mut ThreadState, plan: &HookPlan) -> bool {
    let now = hot_state::now();
    let closed = state.thread.catch_up(now);
    if closed || (plan.communicates && state.timer.is_due(now)) {
        progress(state, plan.communicates);
    }
    closed
}

/// Polls the tree if that is due, and checks what the agent costs.
///
/// The tree calls MPI: only where the application is calling something of MPI that communicates. Local queries of MPI
/// are allowed on any thread at any time, whatever the thread level. A window that is over is not a reason to poll
/// before the time: windows may be as short as calls are.
#[cold]
fn progress(state: &mut ThreadState, may_communicate: bool) {
    let now = hot_state::now();
    let closed = state.thread.take_closings();
    if closed > 0 {
        state.timer.windows_closed(closed, state.thread.is_crowded());
    }
    let poll_is_due = may_communicate && state.timer.is_due(now);
    let check_is_due = state.thread.is_check_due(now);
    // Windows may follow each other closely: data that most of them do not need stays outside of all caches.
    if poll_is_due || check_is_due {
        poll_and_check(state, now, poll_is_due, check_is_due);
    }
}

#[cold]
fn poll_and_check(state: &mut ThreadState, mut now: u64, poll_is_due: bool, check_is_due: bool) {
    let _as_it_was = Environment::begin();
    let _whole = Uncancelled::begin();
    let rare = state.thread.begin_rare();
    if check_is_due {
        state.process.take_clock_pair();
        state.thread.recalibrate();
        state.thread.was_displaced(state.displaced.ratio());
    }
    if poll_is_due {
        // Close gathered windows first, so that this poll sends them.
        state.thread.close_gathered();
        state.thread.take_closings();
        state.thread.look_for_steps(now);
        now = poll(state, now);
        state.thread.follow_steps();
    }
    check_overhead(state, now);
    state.thread.end_rare(rare);
}

/// Polls the tree; returns ticks at which that was done.
fn poll(state: &mut ThreadState, from: u64) -> u64 {
    let cpu_from = thread_cpu_ns().max(0) as u64;
    let moved = state.process.progress(&mut state.thread);
    let to = hot_state::now();
    let cpu_to = thread_cpu_ns().max(0) as u64;
    state.timer.poll_done(Poll { from, to, cpu_from, cpu_to, moved });
    to
}

/// Lets the agent step down or up if it costs too much, or less than it may. Requests are not followed while calls are
/// only counted: their state from before is forgotten.
fn check_overhead(state: &mut ThreadState, now: u64) {
    if state.thread.check_overhead(now) {
        state.requests.forget_passing();
        state.filled.clear();
    }
}
