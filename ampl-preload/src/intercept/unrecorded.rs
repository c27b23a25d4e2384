//! Calls that are forwarded and have no place in the sequence: those within others, those before the agent, clocks, and
//! functions that the loaded MPI lacks.

use ampl_core::mpi::constants::AbiFamily;
use ampl_core::mpi::{Function, Returns, ids};

use super::{Forward, enter};
use crate::abi;
use crate::caller::{Caller, is_of_mpi, who};
use crate::contain::contained;
use crate::counts;
use crate::entry::{Entry, entry};
use crate::hooks;
use crate::hot_state;
use crate::process;
use crate::reader::ierror_index;
use crate::symbol::{Language, Symbol};

/// MPICH's Fortran `MPI_FILE_OPEN` opens a file in C into a variable of its own that it has not set, and converts that
/// whether or not the file could be opened. The earlier contents of the stack decide whether a program survives; a
/// wrapper between them changes these. Stores `MPI_FILE_NULL` there.
#[cold]
pub(super) fn define_file(symbol: &Symbol, words: &[usize]) {
    let is_mpich = abi::detect().is_some_and(|abi| abi.family == AbiFamily::Mpich);
    if is_mpich && symbol.language == Language::C && words[4] != 0 {
        // SAFETY: the caller is MPI, and has room there for the handle that it asks for: a pointer.
        unsafe { (words[4] as *mut usize).write_unaligned(0) };
    }
}

/// Counts a call that the application makes from within another.
#[cold]
pub(super) fn count_within(here: &Entry, function: Function) {
    if hot_state::is_active() && !here.thread.is_null() {
        // SAFETY: the calling thread's own state: the outer wrapper holds no reference to it while it forwards.
        contained(|| unsafe { (*here.state()).thread.nested(function, hot_state::now()) });
        if matches!(function, ids::MPI_COMM_FREE | ids::MPI_COMM_DISCONNECT) {
            hot_state::mark_comms_uncertain();
        }
        if function == ids::MPI_CANCEL {
            hot_state::mark_cancelled();
        }
    }
}

/// Forwards a call that the application makes from within another, and follows the handles that it gives and takes.
///
/// # Safety
/// As [`intercept`].
#[cold]
pub(super) unsafe fn within(
    symbol: &Symbol,
    words: &mut [usize],
    forward: Forward<usize>,
    next: *const (),
) -> usize {
    let process = process::current().filter(|_| hot_state::is_active() && symbol.language == Language::C);
    // SAFETY: the caller's promise.
    let held = process
        .and_then(|process| contained(|| unsafe { hooks::held(process, symbol.function, words) }).flatten());
    // SAFETY: the caller's promise; outside of any catch_unwind.
    let result = unsafe { forward(next, words.as_ptr()) };
    if let Some(process) = process.filter(|_| result as i32 == 0 && hot_state::is_active()) {
        // SAFETY: the arguments of a call that has succeeded.
        contained(|| unsafe { hooks::changed(process, symbol.function, words, held) });
    }
    result
}

/// Counts a call that the application makes while there is no agent yet; not those of MPI's constructors, such as its
/// C++ binding has.
pub(super) fn count_early(function: Function, address: u64, next: *const ()) {
    if hot_state::has_not_started() && !is_of_mpi(address, next) {
        counts::count(function);
    }
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
        match unsafe { here.state().as_mut() }.filter(|_| hot_state::is_active()) {
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

/// `MPI_ERR_OTHER`: result of calls of functions that the loaded MPI does not have.
fn absent_code() -> i32 {
    match abi::detect() {
        Some(abi) if abi.family == AbiFamily::Mpich => 15,
        _ => 16,
    }
}

/// Result of a call of a function that this MPI lacks: an error, in the language's way.
///
/// # Safety
/// `words` must be the arguments of a call of `symbol`.
#[cold]
pub(super) unsafe fn absent(symbol: &Symbol, words: &[usize]) -> usize {
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
