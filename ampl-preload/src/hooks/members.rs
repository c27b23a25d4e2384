//! Communicators and groups: the caller's place in one that MPI has just made, and those that calls within others make
//! and free.

use ampl_core::mpi::{Direction, Function, Kind, Param, ids};
use ampl_core::value::ObjectKind;
use ampl_trace::args::is_overwritten;
use ampl_trace::communicators::acts;
use ampl_trace::record::{CALL_PLACE, NOWHERE};

use crate::process::Process;
use crate::thread_state::ThreadState;

/// True where a call of `function` is recorded although others are not: it makes or frees a communicator or group.
#[cold]
pub fn is_kept(state: &ThreadState, function: Function) -> bool {
    acts(function.0) && state.thread.records_objects()
}

/// Appends the size of the communicator that a call has made, the caller's rank in it, and the rank in the world of
/// its rank 0, where the library chose these; returns the flag that says so, or 0.
///
/// Only this shows the members of the communicator: a program need not ask for its rank there. The queries are local.
///
/// # Safety
/// `words` must be the arguments of a C call of `function` that has just succeeded.
#[cold]
pub unsafe fn place(state: &mut ThreadState, function: Function, words: &[usize]) -> u8 {
    let params = function.spec().params;
    let reorders = || {
        let reorder = params.iter().position(|param| param.name == "reorder");
        reorder.is_some_and(|index| words[index] as i32 != 0)
    };
    let is_chosen = match function {
        ids::MPI_COMM_SPLIT_TYPE | ids::MPI_INTERCOMM_MERGE => true,
        ids::MPI_CART_CREATE
        | ids::MPI_GRAPH_CREATE
        | ids::MPI_DIST_GRAPH_CREATE
        | ids::MPI_DIST_GRAPH_CREATE_ADJACENT => reorders(),
        _ => false,
    };
    let is_made = |param: &Param| param.kind == Kind::Comm && param.direction == Direction::Out;
    let Some(made) = params.iter().position(is_made).filter(|_| is_chosen) else { return 0 };
    // SAFETY: MPI has written the handle.
    let Some(handle) = (unsafe { state.reader.load(Kind::Comm, words[made], 0) }) else { return 0 };
    let process = state.process;
    let is_null = process.abi.handle(ObjectKind::Comm, "MPI_COMM_NULL") == Some(handle as usize);
    let told = if is_null { [NOWHERE; 3] } else { process.place_in(handle as usize) };
    state.args.extend_from_slice(&told);
    CALL_PLACE
}

/// Forgets the objects that the call has freed: their handle has changed.
///
/// # Safety
/// `words` must be the arguments of a call of `function` that has just returned.
pub unsafe fn forget_freed(state: &mut ThreadState, function: Function, words: &[usize]) {
    let handles = function.spec().params.iter().zip(words).filter(|(param, _)| is_overwritten(param));
    let handles = handles.filter_map(|(param, &word)| Some((param, ObjectKind::of(param.kind)?, word)));
    for ((param, kind, word), &(before, serial)) in handles.zip(&state.held) {
        // SAFETY: the parameter points to a handle that MPI has written.
        let after = unsafe { state.reader.load(param.kind, word, 0) };
        if after != Some(before) {
            state.process.forget(kind, before, serial);
        }
    }
}

/// A communicator or group that a call within another may free: its kind, handle and serial number.
pub type Held = (ObjectKind, u64, u64);

/// The parameter of `function` that is a communicator or group of that direction: its index and kinds.
fn object_param(function: Function, direction: Direction) -> Option<(usize, Kind, ObjectKind)> {
    let is_one =
        |param: &Param| matches!(param.kind, Kind::Comm | Kind::Group) && param.direction == direction;
    let params = function.spec().params;
    let index = params.iter().position(is_one).filter(|_| acts(function.0))?;
    Some((index, params[index].kind, ObjectKind::of(params[index].kind)?))
}

/// Object that a C call may free which the program is about to make from within another.
///
/// # Safety
/// `words` must be the arguments of a C call of `function` that is about to be made.
#[cold]
pub unsafe fn held(process: &Process, function: Function, words: &[usize]) -> Option<Held> {
    let (index, param, kind) = object_param(function, Direction::InOut)?;
    // SAFETY: the parameter points to a handle.
    let handle = unsafe { process.abi.load(param, words[index], 0) }?;
    let object = process.with_handles(|handles| handles.get(kind, handle))?;
    Some((kind, handle, object.serial))
}

/// Updates handles after it has succeeded: those that it has freed stand for nothing, those that it has made for new
/// objects. Neither has a place in the sequence; later calls must not be taken for calls of what these handles were
/// before.
///
/// # Safety
/// `words` must be the arguments of a C call of `function` that has just succeeded, with what was [`held`] before it.
#[cold]
pub unsafe fn changed(process: &Process, function: Function, words: &[usize], held: Option<Held>) {
    if let (Some((kind, before, serial)), Some((index, param, _))) =
        (held, object_param(function, Direction::InOut))
    {
        // SAFETY: the parameter points to a handle.
        let after = unsafe { process.abi.load(param, words[index], 0) };
        if after != Some(before) {
            process.lose(kind, before, serial);
        }
    }
    if let Some((index, param, kind)) = object_param(function, Direction::Out)
        // SAFETY: MPI has written a handle there.
        && let Some(handle) = unsafe { process.abi.load(param, words[index], 0) }
    {
        process.given(kind, handle);
    }
}
