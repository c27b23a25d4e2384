//! What ampl cannot see of a program, so that it can be said.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use ampl_core::mpi::FUNCTIONS;
use ampl_trace::model::RunInfo;

use crate::begin::message;
use crate::caller::is_library_of_mpi;
use crate::environment;
use crate::process;
use crate::resolve::{each_module, is_in_same_module, module};
use crate::symbol::{next_definition, variable};

/// `run` with what of the program is not seen from now on.
pub fn noted(run: RunInfo) -> RunInfo {
    RunInfo { hidden: hidden_functions(), extensions: extensions(), ..run }
}

/// MPI functions whose first definition in the process is neither ours nor that of an MPI library: the
/// program's own profiling layer, or a tool that was loaded before ampl.
fn hidden_functions() -> Vec<String> {
    let own = hidden_functions as *const () as u64;
    let is_hidden = |name: &str| {
        let found = variable(&format!("{name}\0"));
        !found.is_null()
            && !is_in_same_module(found as u64, own)
            && !is_library_of_mpi(&module(found as u64).0)
    };
    FUNCTIONS.iter().map(|spec| spec.name).filter(|name| is_hidden(name)).map(str::to_owned).collect()
}

/// Extensions of the MPI library (`MPIX_*`, in Fortran `mpix_*`) that the program or a library of it refers to,
/// as their symbols have them: what is not wrapped is not seen, but for this.
fn extensions() -> Vec<String> {
    let is_extension = |name: &[u8]| name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"mpix_"));
    let mut names = BTreeSet::new();
    each_module(&mut |path, module| {
        if !is_library_of_mpi(&path) {
            names.extend(module.taken(is_extension));
        }
    });
    // Other libraries call theirs so, too; and of a weak reference nothing may be there.
    let is_of_mpi = |name: &String| {
        let found = variable(&format!("{name}\0"));
        !found.is_null() && is_library_of_mpi(&module(found as u64).0)
    };
    names.into_iter().filter(is_of_mpi).collect()
}

/// A session has begun: sessions are not recorded, which is said once, where nothing else is.
pub fn session_began() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if environment::is_disabled() || !environment::is_first_rank() || SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    if process::has_not_started() {
        // The world may still come: then its run is recorded.
        // SAFETY: a function without arguments.
        unsafe { libc::atexit(at_exit) };
    } else if !process::is_active() {
        message("the program uses MPI after MPI_Finalize, in a session: those calls are not recorded");
    }
}

/// A call has come although no agent was made: somebody before ampl may have kept `MPI_Init` to itself.
pub fn called_unstarted() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !process::has_not_started() || SAID.load(Ordering::Relaxed) || environment::is_disabled() {
        return;
    }
    let initialized = next_definition("PMPI_Initialized\0");
    if initialized.is_null() {
        return;
    }
    let mut flag = 0i32;
    // SAFETY: the standard's function, which may be called at any time, and a place for an int.
    unsafe {
        let ask: unsafe extern "C" fn(*mut i32) -> i32 = std::mem::transmute(initialized);
        ask(&raw mut flag);
    }
    if flag != 0 && !SAID.swap(true, Ordering::Relaxed) && environment::is_first_rank() {
        message("MPI_Init went past ampl (the program or another tool defines it): the job is not recorded");
    }
}

extern "C" fn at_exit() {
    if process::has_not_started() {
        message("the program uses MPI sessions and made no MPI_Init: it is not recorded");
    }
}
