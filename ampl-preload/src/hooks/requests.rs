//! Requests from their making to their completion.

use ampl_agent::requests::{Peer, Request};
use ampl_core::mpi::{Class, Direction, Function, Kind};
use ampl_trace::request;

use super::partners;
use crate::recipe::Recipe;
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
    /// Whether it was a poll that found nothing.
    pub missed: bool,
    /// Whether it returned an error.
    pub failed: bool,
}

/// What came of following it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Followed {
    /// Bytes that count for the call instead of its own: those of what it started, or none for a constructor of a
    /// persistent request.
    pub bytes: Option<(u64, u64)>,
    /// The slot of the request that it has made.
    pub slot: Option<u64>,
}

/// Before the call: which requests its handles stand for.
///
/// # Safety
/// `words` must be the arguments of a call of `function` that is about to be made.
pub unsafe fn name(state: &mut ThreadState, function: Function, recipe: &Recipe, words: &[usize]) {
    let Some(index) = recipe.request.map(usize::from) else { return };
    let count = match recipe.request_count {
        None => 1,
        Some(count) => (words[usize::from(count)] as i32).max(0) as u64,
    };
    state.handles.clear();
    state.named.clear();
    if count > MOST {
        return;
    }
    let (reader, null, word) = (state.reader, state.process.request_null, words[index]);
    if recipe.request_count.is_none() && function.spec().params[index].direction == Direction::In {
        state.handles.push(state.process.abi.handle_word(Kind::Request, word));
    } else {
        // SAFETY: the array has `count` requests.
        let handle = |element| unsafe { reader.load(Kind::Request, word, element) }.unwrap_or(null);
        state.handles.extend((0..count as usize).map(handle));
    }
    state.with_requests(|requests, handles, named| requests.name(handles, null, named));
}

/// How many of its requests a call says by index that it has completed; `None` where it completes all.
///
/// # Safety
/// `words` must be the arguments of a call with that recipe that has just returned.
pub(super) unsafe fn indexed(state: &ThreadState, recipe: &Recipe, words: &[usize]) -> Option<usize> {
    recipe.index?;
    let count = match recipe.outcount {
        // SAFETY: the call has written how many it completed.
        Some(at) => unsafe { state.reader.load(Kind::Int, words[usize::from(at)], 0) },
        None => Some(1),
    };
    Some((count.unwrap_or(0) as i64).clamp(0, state.named.len() as i64) as usize)
}

/// After a call that succeeded, or a completion that may have in part: what it made, started or completed.
///
/// # Safety
/// `words` must be the arguments of a call of `function` that has just returned.
#[inline]
pub unsafe fn follow(
    state: &mut ThreadState,
    function: Function,
    recipe: &Recipe,
    words: &[usize],
    call: &Follow,
) -> Followed {
    let Some(index) = recipe.request.map(usize::from) else { return Followed::default() };
    // SAFETY: the caller's promise.
    unsafe {
        if recipe.names_request {
            let outcome = (call.missed, call.failed);
            Followed { bytes: follow_named(state, function, recipe, words, index, outcome), slot: None }
        } else {
            follow_made(state, recipe, words, index, call).unwrap_or_default()
        }
    }
}

/// After a call that has made a request, which its parameter number `index` tells.
unsafe fn follow_made(
    state: &mut ThreadState,
    recipe: &Recipe,
    words: &[usize],
    index: usize,
    call: &Follow,
) -> Option<Followed> {
    // SAFETY: the call has written its new request.
    let handle = unsafe { state.reader.load(Kind::Request, words[index], 0) }?;
    let (persistent, receives) = (recipe.makes_persistent, recipe.makes_receive);
    let (sent, received) = if persistent { call.bytes } else { (0, 0) };
    let is_null = handle == state.process.request_null;
    let peer = if is_null { Peer::None } else { partners::of_request(state, recipe, words) };
    let maker = call.terminal.map(|terminal| state.thread.maker(terminal));
    let slot = state.with_requests(|requests, _, named| {
        named.clear();
        if is_null {
            return None;
        }
        let active = !persistent;
        let request = Request { number: 0, receives, persistent, active, sent, received, peer };
        let number = requests.make(handle, request, maker);
        named.push(Request { number, ..request });
        Some(request::slot(number))
    });
    Some(Followed { bytes: persistent.then_some((0, 0)), slot })
}

/// After a call of `function` that has named the requests of its parameter number `index`.
unsafe fn follow_named(
    state: &mut ThreadState,
    function: Function,
    recipe: &Recipe,
    words: &[usize],
    index: usize,
    (missed, failed): (bool, bool),
) -> Option<(u64, u64)> {
    let reader = state.reader;
    if recipe.class == Class::Start {
        state.with_requests(|requests, handles, _| {
            handles.iter().for_each(|&handle| requests.set_active(handle, true));
        });
        if recipe.tells_partners {
            partners::started(state);
        }
        let sum = |side: fn(&Request) -> u64| state.named.iter().map(side).sum();
        return Some((sum(|request| request.sent), sum(|request| request.received)));
    }
    if function.spec().params[index].direction == Direction::In {
        return None;
    }
    if recipe.tells_partners && !missed && !failed {
        // SAFETY: the caller's promise.
        unsafe { partners::completed(state, recipe, words) };
    }
    // A persistent request keeps its handle: that it is done follows from what the call says.
    // After an error nothing is believed of it: MPI need not have written anything.
    let any = !missed && !failed && state.named.iter().any(|request| request.persistent && request.active);
    // SAFETY: the caller's promise.
    let indexed = if any { unsafe { indexed(state, recipe, words) } } else { Some(0) };
    let indices = recipe.index.map_or(0, |index| words[usize::from(index)]);
    let completes = |element: usize| {
        // SAFETY: the call has written as many indices.
        let says = |at| unsafe { reader.load(Kind::Int, indices, at) }.map(|said| reader.index(said));
        indexed.is_none_or(|count| (0..count).any(|at| says(at) == Some(element as u64)))
    };
    state.with_requests(|requests, handles, named| {
        for (element, (&before, request)) in handles.iter().zip(&*named).enumerate() {
            if request.number == 0 {
                continue;
            }
            // SAFETY: the array still has as many requests as before the call.
            let after = unsafe { reader.load(Kind::Request, words[index], element) };
            if after != Some(before) {
                requests.free(before);
            } else if request.persistent && request.active && completes(element) {
                requests.set_active(before, false);
            }
        }
    });
    None
}
