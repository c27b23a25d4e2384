//! Hooks before and after a recorded call.

mod about;
mod encode;
mod facts;
mod filling;
mod members;
mod partners;
mod requests;

use ampl_agent::CallEnd;
use ampl_agent::buffers::Terminal;
use ampl_agent::polls::Poll;
use ampl_agent::repeats::{Given, Outcome as Came};
use ampl_agent::requests::TELLS;
use ampl_core::mpi::{Class, Direction, Function, Kind, Length, Traffic, ids};
use ampl_core::value::ObjectKind;
use ampl_trace::args::is_overwritten;
use ampl_trace::record::{CALL_ERROR, CALL_MISS, CALL_NO_ARGS, CALL_OUTCOME, CALL_UNFINISHED};

use crate::hook_plan::{self, FastPath, HookPlan, Outcome, Outputs};
use crate::hot_state;
use crate::reader::ierror_index;
use crate::symbol::{Language, Symbol};
use crate::thread_state::ThreadState;
pub use about::about;
use facts::Ask;
pub use filling::{again as filled_again, is_program_s};
pub use members::{changed, held};
pub use requests::{Follow, Followed, follow};

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// Return address into the caller.
    pub address: u64,
    /// Ticks just before MPI was entered.
    pub start: u64,
    /// Ticks just after MPI returned.
    pub end: u64,
    /// The error code; 0 is `MPI_SUCCESS`.
    pub code: i32,
}

/// Before the call: remembers what the call will overwrite, and makes sure that MPI writes statuses.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that is about to be made.
#[inline]
pub unsafe fn enter(state: &mut ThreadState, symbol: &Symbol, plan: &HookPlan, words: &mut [usize]) {
    state.reader = state.reader.for_call(symbol);
    if symbol.language == Language::C {
        // SAFETY: the caller's promise.
        unsafe { prepare(state, symbol.function, plan, words) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { enter_fortran(state, symbol, plan, words) };
    }
}

/// As [`enter`]: `state.words` becomes C's arguments, and `words` those that MPI is to write to.
unsafe fn enter_fortran(state: &mut ThreadState, symbol: &Symbol, plan: &HookPlan, words: &mut [usize]) {
    let function = symbol.function;
    if let Some(ierror) = words.get_mut(ierror_index(function)).filter(|word| **word == 0) {
        // mpi_f08 may leave it out; the agent needs the call's success all the same.
        *ierror = &raw mut state.ierror as usize;
    }
    let mut as_c = std::mem::take(&mut state.words);
    // SAFETY: the caller's promise.
    unsafe {
        state.reader.as_c(symbol, words, &mut as_c);
        prepare(state, function, plan, &mut as_c);
    }
    if let Some(index) = plan.status.map(usize::from) {
        // No function with a status leaves a parameter of C out: positions agree.
        words[index] = as_c[index];
    }
    state.words = as_c;
}

/// Before the call, whose words are C's.
#[inline(always)]
unsafe fn prepare(state: &mut ThreadState, function: Function, plan: &HookPlan, words: &mut [usize]) {
    if plan.names_request {
        if function == ids::MPI_CANCEL {
            hot_state::mark_cancelled();
        }
        // SAFETY: the caller's promise.
        unsafe { requests::name(state, plan, words) };
    }
    if plan.in_out {
        // SAFETY: the caller's promise.
        unsafe { remember(state, function, words) };
    }
    let reads_status =
        || state.thread.records() || (plan.tells_partners && partners::needs_status(state, plan, words));
    if let (Some(index), true) = (plan.status, plan.receives && reads_status()) {
        let at = &mut words[usize::from(index)];
        let unnamed = plan.request_count.is_some() && state.named.is_empty();
        // Where no request's status describes a message, the statuses are known.
        let known = plan.names_request && !state.named.any(TELLS);
        if !unnamed && !known && state.reader.is_status_ignore(*at) {
            let count = if plan.request_count.is_some() { state.named.len() } else { 1 };
            state.statuses.clear();
            state.statuses.resize((state.process.abi.status_bytes * count).div_ceil(8).max(1), 0);
            *at = state.statuses.as_mut_ptr() as usize;
        }
    }
}

/// Values of in/out parameters before the call, as recorded: afterwards MPI may have given a freed handle to another
/// thread.
unsafe fn remember(state: &mut ThreadState, function: Function, words: &[usize]) {
    state.before.clear();
    state.held.clear();
    let reader = state.reader;
    for (param, &word) in function.spec().params.iter().zip(words) {
        if is_overwritten(param) {
            // SAFETY: an in/out parameter points to a value that MPI is about to read.
            let value = unsafe { reader.load(param.kind, word, 0) }.unwrap_or(0);
            if param.kind == Kind::Status {
                state.before.push(state.filled.told(word, value));
                continue;
            }
            let object = ObjectKind::of(param.kind).map(|kind| facts::object(state, kind, value));
            state.held.extend(object.map(|object| (value, object.serial)));
            state.before.push(object.map_or(value, |object| object.word));
        } else if let (Direction::InOut, Kind::Int, Length::Param(count)) =
            (param.direction, param.kind, param.length)
        {
            let count = (words[usize::from(count)] as i32).clamp(0, 1 << 16) as usize;
            state.before.push(count as u64);
            // SAFETY: an in/out array has as many values as its count says.
            let values = (0..count).map(|at| unsafe { reader.load(param.kind, word, at) }.unwrap_or(0));
            state.before.extend(values);
        }
    }
}

/// After the call: counts its bytes, follows its requests and objects, and hands it to the thread; returns whether
/// windows were closed.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that has just returned.
#[inline]
pub unsafe fn leave(
    state: &mut ThreadState,
    symbol: &Symbol,
    plan: &HookPlan,
    words: &[usize],
    call: &Returned,
) -> bool {
    state.reader = state.reader.for_call(symbol);
    if symbol.language == Language::C {
        // SAFETY: the caller's promise.
        unsafe { finish(state, symbol.function, plan, words, call) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { leave_fortran(state, symbol.function, plan, call) }
    }
}

/// As [`leave`], for a call whose words as C would pass them are in `state.words`.
#[inline(never)]
unsafe fn leave_fortran(
    state: &mut ThreadState,
    function: Function,
    plan: &HookPlan,
    call: &Returned,
) -> bool {
    let as_c = std::mem::take(&mut state.words);
    // SAFETY: what `enter` made of the caller's words.
    let closed = unsafe { finish(state, function, plan, &as_c, call) };
    state.words = as_c;
    closed
}

/// After the call, whose words are C's.
#[inline(always)]
unsafe fn finish(
    state: &mut ThreadState,
    function: Function,
    plan: &HookPlan,
    words: &[usize],
    call: &Returned,
) -> bool {
    let mut flags = 0;
    if call.code != 0 {
        flags |= error_flags(state, plan, call.code);
    } else if let Some(index) = plan.flag {
        // SAFETY: a successful poll has written its flag or count, an int.
        if unsafe { state.reader.load(Kind::Int, words[usize::from(index)], 0) } == Some(0) {
            flags |= CALL_MISS;
        }
    }
    state.thread.current.polled(flags & CALL_MISS != 0, call.start);
    // SAFETY: the caller's promise.
    let value = if call.code == 0 { unsafe { value(plan, words) } } else { None };
    let says_nothing_new = || flags == CALL_MISS || value.is_some() || says_nothing_new(plan, words);
    let tells = call.code == 0 && says_nothing_new() && state.thread.records();
    let generation = hot_state::generation();
    let address = state.thread.origin(call.address);
    // A failed poll of requests says no more than which requests.
    let asks = tells && flags == CALL_MISS && plan.rest.asks;
    let telling = plan.telling.and_then(|telling| words.get(..usize::from(telling)));
    let telling = telling.filter(|_| tells && !asks);
    let given = telling.map(|words| Given { function, flags, address, generation, words, value });
    let repeated = match given {
        None if asks => state.thread.repeated_poll(&poll_of(state.named.words(), function, address)),
        given => given.and_then(|given| state.thread.repeated(&given)),
    };
    let (sent, received) = match repeated {
        Some(came) => (came.sent, came.received),
        None if call.code == 0 => traffic(state, plan, words),
        None => (0, 0),
    };
    if let (Some(ends), true) = (&plan.ends, call.code == 0 && flags & CALL_MISS == 0) {
        // SAFETY: the caller's promise.
        unsafe { partners::exchanged(state, plan, ends, words) };
    }
    if plan.gives && call.code == 0 {
        // SAFETY: the caller's promise.
        unsafe { about::given(state, function, plan, words) };
    }
    // SAFETY: the caller's promise.
    unsafe { requests::read_again(state, plan, words) };
    let mut terminal = repeated.map(|came| came.terminal);
    if repeated.is_some() && flags == 0 {
        // SAFETY: the caller's promise.
        unsafe { filling::again(state, plan, words) };
    }
    if repeated.is_none() && is_recorded(state, function, plan) {
        // SAFETY: the caller's promise.
        let placed = unsafe {
            encode::call(state, function, plan, words, flags, call.code);
            if plan.gives && call.code == 0 { members::place(state, function, words) } else { 0 }
        };
        let flags = flags | placed;
        terminal = state.thread.terminal(function, call.address, flags, &state.args, &state.call_places);
        // Cache request-making calls only if no equal request is live (slot 0).
        let alone = !plan.makes_request() || state.args.last() == Some(&0);
        if let (Some(given), Some(terminal), true) = (given, terminal, alone) {
            state.thread.repeats(&given, &Came { terminal, sent, received });
        }
        if let (true, Some(terminal)) = (asks, terminal) {
            state
                .thread
                .polls(&poll_of(state.named.words(), function, address), &Came { terminal, sent, received });
        }
    }
    // A failed completion may have completed some of its requests all the same.
    let follows = call.code == 0 || matches!(plan.class, Class::Completion | Class::Poll);
    let followed = (plan.request.is_some() && follows).then(|| {
        let follow = Follow {
            terminal: terminal.map(|terminal| terminal.number),
            bytes: (sent, received),
            missed: flags & CALL_MISS != 0,
            failed: flags & CALL_ERROR != 0,
        };
        // SAFETY: the caller's promise.
        unsafe { requests::follow(state, plan, words, &follow) }
    });
    let found = Found { flags, terminal, repeats: repeated.is_some(), bytes: (sent, received) };
    // SAFETY: the caller's promise.
    unsafe { settle(state, function, plan, words, call, &found, followed) }
}

/// The poll of `requests` by `function` from `address`.
#[inline(always)]
pub fn poll_of(requests: &[u64], function: Function, address: u64) -> Poll<'_> {
    Poll { function, address, generation: hot_state::generation(), requests }
}

/// The record of a call that has returned.
struct Found {
    flags: u8,
    /// Its terminal, if it is recorded.
    terminal: Option<Terminal>,
    /// True where the call repeats an earlier one: it has not been encoded.
    repeats: bool,
    /// Bytes sent and received by the call itself.
    bytes: (u64, u64),
}

/// Ends a call whose requests have been `followed`.
#[inline(always)]
unsafe fn settle(
    state: &mut ThreadState,
    function: Function,
    plan: &HookPlan,
    words: &[usize],
    call: &Returned,
    found: &Found,
    followed: Option<Followed>,
) -> bool {
    let &Found { flags, mut terminal, repeats, bytes: (mut sent, mut received) } = found;
    if let Some(followed) = followed {
        (sent, received) = followed.bytes.unwrap_or((sent, received));
        // Not the first live one of its kind: its slot differs, which is part of the record.
        let differs = match followed.told {
            Some(slot) => slot > 0,
            // No request has been made, which the words do not show.
            None => repeats && plan.makes_request(),
        };
        if differs && terminal.is_some() {
            if repeats {
                // SAFETY: the caller's promise.
                unsafe { encode::call(state, function, plan, words, flags, call.code) };
            }
            if let (Some(slot), Some(told)) = (followed.told, state.args.last_mut()) {
                *told = slot;
            }
            terminal = state.thread.terminal(function, call.address, flags, &state.args, &state.call_places);
        }
    }
    if plan.in_out && (call.code == 0 || flags & CALL_OUTCOME != 0) {
        // SAFETY: the caller's promise.
        unsafe { members::forget_freed(state, function, words) };
    }
    state.thread.leave(&CallEnd {
        function,
        address: call.address,
        start: call.start,
        end: call.end,
        sent,
        received,
        flags,
        terminal,
        timed: !plan.local,
        apart: plan.operands.traffic.is_apart(),
    })
}

/// Ends a repeated call of that outcome that has made a request, as [`leave`] does behind that.
///
/// # Safety
/// As [`leave`].
pub unsafe fn leave_making(
    state: &mut ThreadState,
    function: Function,
    plan: &HookPlan,
    words: &[usize],
    call: &Returned,
    outcome: &Came,
    followed: Followed,
) -> bool {
    state.thread.current.polled(false, call.start);
    state.thread.follow_terminal(outcome.terminal.number);
    let bytes = (outcome.sent, outcome.received);
    let found = Found { flags: 0, terminal: Some(outcome.terminal), repeats: true, bytes };
    // SAFETY: the caller's promise.
    unsafe { settle(state, function, plan, words, call, &found, Some(followed)) }
}

/// True where the outputs of a call that has succeeded are not recorded, or follow from its inputs: a message of one
/// source and one tag that the call names has these.
#[inline(always)]
pub fn says_nothing_new(plan: &HookPlan, words: &[usize]) -> bool {
    let any = hot_state::wildcards();
    let names = |index: u8, any: i32| words.get(usize::from(index)).is_some_and(|&word| word as i32 != any);
    let named = |&(source, tag): &(u8, u8)| names(source, any[0]) && names(tag, any[1]);
    plan.outputs == Outputs::Silent || plan.answer.as_ref().is_some_and(named)
}

/// The value that a call has given, where that is all that is recorded of its outputs.
///
/// # Safety
/// `words` must be the arguments of a call with that plan that has just succeeded.
#[inline(always)]
pub unsafe fn value(plan: &HookPlan, words: &[usize]) -> Option<u32> {
    let Outputs::Value(index) = plan.outputs else { return None };
    let at = words.get(usize::from(index)).copied().filter(|&at| at != 0)?;
    // SAFETY: MPI has written an integer there; programs may pass unaligned addresses.
    Some(unsafe { (at as *const u32).read_unaligned() })
}

/// True where a call of `function` is recorded in the sequence.
#[inline(always)]
fn is_recorded(state: &ThreadState, function: Function, plan: &HookPlan) -> bool {
    state.thread.records() || (plan.fast_path == FastPath::Never && members::is_kept(state, function))
}

/// Flags of a call that has returned an error.
#[cold]
fn error_flags(state: &ThreadState, plan: &HookPlan, code: i32) -> u8 {
    let abi = state.process.abi;
    let outcome = plan.rest.outcome.map(|outcome| match outcome {
        Outcome::Message => abi.error_truncate,
        Outcome::Several => abi.error_in_status,
    });
    CALL_ERROR | if outcome == Some(abi.error_class(code)) { CALL_OUTCOME } else { 0 }
}

/// Bytes of the call itself; those of persistent requests count at their start.
#[inline]
fn traffic(state: &mut ThreadState, plan: &HookPlan, words: &[usize]) -> (u64, u64) {
    match plan.operands.traffic {
        Traffic::None => (0, 0),
        _ => plan.operands.bytes(words, &mut Ask { state }),
    }
}

/// `MPI_Init` has returned: its arguments are in `state.args` then, if calls are stored.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that has just succeeded.
pub unsafe fn begun(state: &mut ThreadState, symbol: &Symbol, words: &[usize]) {
    if !state.thread.records() {
        return;
    }
    let function = symbol.function;
    let Some(plan) = hook_plan::of(function) else { return };
    state.reader = state.reader.for_call(symbol);
    let mut as_c = std::mem::take(&mut state.words);
    // SAFETY: the caller's promise; what MPI has read behind the arguments is still there.
    unsafe {
        if symbol.language == Language::Fortran {
            state.reader.as_c(symbol, words, &mut as_c);
        }
        let words = if symbol.language == Language::C { words } else { &as_c };
        encode::call(state, function, plan, words, 0, 0);
    }
    state.words = as_c;
}

/// `MPI_Finalize` or `MPI_Abort` is entered: the call is recorded now, because it may not return.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol` that is about to be made.
pub unsafe fn lifecycle(
    state: &mut ThreadState,
    symbol: &Symbol,
    plan: &HookPlan,
    words: &[usize],
    address: u64,
    now: u64,
) {
    match symbol.function {
        ids::MPI_FINALIZE => left(state, symbol.function, address, now, now),
        ids::MPI_ABORT => {
            state.reader = state.reader.for_call(symbol);
            let as_c = std::mem::take(&mut state.words);
            let words = if symbol.language == Language::C { words } else { &as_c };
            if state.thread.records() {
                // SAFETY: the caller's promise; what `enter` made of Fortran's.
                unsafe { encode::call(state, symbol.function, plan, words, CALL_UNFINISHED, 0) };
            }
            state.words = as_c;
            unfinished(state, symbol.function, address, (now, now), CALL_UNFINISHED);
            state.thread.close_gathered();
        }
        _ => {}
    }
}

/// A call that has been left without returning: recorded without arguments.
pub fn left(state: &mut ThreadState, function: Function, address: u64, start: u64, end: u64) {
    state.requests.give_back(&mut state.named);
    state.args.clear();
    state.call_places.clear();
    unfinished(state, function, address, (start, end), CALL_NO_ARGS | CALL_UNFINISHED);
}

/// Hands a call that does not return here, or may not, to the thread, with the arguments in `state.args`.
fn unfinished(
    state: &mut ThreadState,
    function: Function,
    address: u64,
    (start, end): (u64, u64),
    flags: u8,
) {
    let records = state.thread.records() || members::is_kept(state, function);
    let ThreadState { thread, args, call_places, .. } = &mut *state;
    let terminal = if records { thread.terminal(function, address, flags, args, call_places) } else { None };
    state.thread.leave(&CallEnd {
        function,
        address,
        start,
        end,
        sent: 0,
        received: 0,
        flags,
        terminal,
        timed: true,
        apart: false,
    });
}
