//! Requests from their making to their completion.

use ampl_agent::requests::{Peer, Request, STARTED};
use ampl_core::mpi::{Class, Kind};
use ampl_trace::request;

use super::partners;
use crate::hook_plan::HookPlan;
use crate::thread_state::ThreadState;

/// More requests than this in one call are a broken argument, not a program.
const MOST: u64 = 1 << 24;

/// A call that is to be followed.
#[derive(Clone, Copy, Debug)]
pub struct Follow {
    /// Its terminal, where it is recorded.
    pub terminal: Option<u32>,
    /// Bytes sent and received that count for it.
    pub bytes: (u64, u64),
    /// True where it was a poll that found nothing.
    pub missed: bool,
    /// True where it returned an error.
    pub failed: bool,
}

/// Result of following a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct Followed {
    /// Bytes that count for the call instead of its own: those of what it started, or none for a constructor of a
    /// persistent request.
    pub bytes: Option<(u64, u64)>,
    /// Number of the request that it has made.
    pub told: Option<u64>,
}

/// Before the call: finds the requests of its handles.
///
/// # Safety
/// `words` must be the arguments of a call with that plan that is about to be made.
pub unsafe fn name(state: &mut ThreadState, plan: &HookPlan, words: &[usize]) {
    let Some(index) = plan.request.map(usize::from) else { return };
    let count = match plan.request_count {
        None => 1,
        Some(count) => (words[usize::from(count)] as i32).max(0) as u64,
    };
    let count = if count > MOST { 0 } else { count as usize };
    let null = (state.process.request_null, state.process.request_null_word);
    if !plan.completes && plan.rest.request_by_value {
        state.handles.clear();
        state.handles.push(state.process.abi.handle_word(Kind::Request, words[index]));
    } else {
        // SAFETY: the array has `count` requests.
        unsafe { state.reader.requests(words[index], count, null.0, &mut state.handles) };
    }
    state.requests.name(&state.handles, null, plan.completes, &mut state.named);
}

/// After the call: reads its requests' handles again, for the record and for [`follow`].
///
/// # Safety
/// `words` must be the arguments of a call with that plan that has just returned.
#[inline]
pub unsafe fn read_again(state: &mut ThreadState, plan: &HookPlan, words: &[usize]) {
    if let (Some(index), true) = (plan.request, plan.completes || plan.request_count.is_some()) {
        let (null, count) = (state.process.request_null, state.handles.len());
        // SAFETY: the array still has as many requests as before the call.
        unsafe { state.reader.requests(words[usize::from(index)], count, null, &mut state.after) };
    }
}

/// Number of requests that a call has completed by index; `None` where it completes all.
///
/// # Safety
/// `words` must be the arguments of a call with that plan that has just returned.
pub(super) unsafe fn indexed(state: &ThreadState, plan: &HookPlan, words: &[usize]) -> Option<usize> {
    plan.rest.index?;
    let count = match plan.rest.outcount {
        // SAFETY: the call has written how many it completed.
        Some(at) => unsafe { state.reader.load(Kind::Int, words[usize::from(at)], 0) },
        None => Some(1),
    };
    Some((count.unwrap_or(0) as i64).clamp(0, state.named.len() as i64) as usize)
}

/// After a call that succeeded, or a completion that may have in part: follows what it made, started or completed.
///
/// # Safety
/// `words` must be the arguments of a call with that plan that has just returned; where it completes requests, they
/// must have been [read again](read_again).
#[inline]
pub unsafe fn follow(state: &mut ThreadState, plan: &HookPlan, words: &[usize], call: &Follow) -> Followed {
    let Some(index) = plan.request.map(usize::from) else { return Followed::default() };
    // SAFETY: the caller's promise.
    unsafe {
        if plan.names_request {
            let bytes = follow_named(state, plan, words, (call.missed, call.failed));
            state.requests.give_back(&mut state.named);
            Followed { bytes, told: None }
        } else {
            follow_made(state, plan, words, index, call).unwrap_or_default()
        }
    }
}

/// After a call that has made a request, in its parameter number `index`.
unsafe fn follow_made(
    state: &mut ThreadState,
    plan: &HookPlan,
    words: &[usize],
    index: usize,
    call: &Follow,
) -> Option<Followed> {
    // SAFETY: the call has written its new request.
    let handle = unsafe { state.reader.load(Kind::Request, words[index], 0) }?;
    let (persistent, receives) = (plan.makes_persistent, plan.makes_receive);
    let (sent, received) = if persistent { call.bytes } else { (0, 0) };
    let is_null = handle == state.process.request_null;
    let peer = if is_null { Peer::None } else { partners::of_request(state, plan, words) };
    let told = (!is_null).then(|| {
        // One handle may stand for all that are done at once: small sends, and receives from MPI_PROC_NULL.
        let from_somebody =
            |&(source, _): &(u8, u8)| words[usize::from(source)] as i32 != state.process.abi.proc_null;
        let alone = persistent || plan.answer.as_ref().is_some_and(from_somebody);
        let request = Request { receives, persistent, active: !persistent, sent, received, peer, alone };
        request::told(state.requests.make(handle, request, call.terminal))
    });
    Some(Followed { bytes: persistent.then_some((0, 0)), told })
}

/// After a call that has named requests; `missed` and `failed` are its outcome.
unsafe fn follow_named(
    state: &mut ThreadState,
    plan: &HookPlan,
    words: &[usize],
    (missed, failed): (bool, bool),
) -> Option<(u64, u64)> {
    if plan.class == Class::Start {
        let mut bytes = (0, 0);
        for &place in state.named.places() {
            state.requests.set_active(place, true);
            let (sent, received) = state.requests.bytes(place);
            bytes = (bytes.0 + sent, bytes.1 + received);
        }
        if plan.tells_partners {
            partners::started(state);
        }
        return Some(bytes);
    }
    if !plan.completes {
        return None;
    }
    if plan.tells_partners && !missed && !failed {
        // SAFETY: the caller's promise.
        unsafe { partners::completed(state, plan, words) };
    }
    // A persistent request keeps its handle: its completion follows from the call's outputs. After an error none is
    // believed: MPI need not have written anything.
    let any = !missed && !failed && state.named.any(STARTED);
    if !any {
        if state.after != state.handles {
            state.requests.end_gone(&mut state.named, &state.handles, &state.after);
        }
        return None;
    }
    // SAFETY: the caller's promise.
    let indexed = unsafe { indexed(state, plan, words) };
    let indices = plan.rest.index.map_or(0, |index| words[usize::from(index)]);
    let reader = state.reader;
    let completes = |element: usize| {
        // SAFETY: the call has written as many indices.
        let says = |at| unsafe { reader.load(Kind::Int, indices, at) }.map(|said| reader.index(said));
        indexed.is_none_or(|count| (0..count).any(|at| says(at) == Some(element as u64)))
    };
    let ThreadState { requests, handles, after, named, .. } = state;
    for (element, (before, after)) in handles.iter().zip(&*after).enumerate() {
        if after == before && named.marks()[element] & STARTED != 0 && completes(element) {
            requests.set_active(named.places()[element], false);
        }
    }
    requests.end_gone(named, handles, after);
    None
}
