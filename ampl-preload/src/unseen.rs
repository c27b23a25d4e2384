//! What ampl cannot see of a program, so that it can be said.

use std::sync::atomic::{AtomicBool, Ordering};

use ampl_core::mpi::FUNCTIONS;

use crate::begin::message;
use crate::caller::is_library_of_mpi;
use crate::environment;
use crate::process;
use crate::resolve::{is_in_same_module, module};
use crate::symbol::{next_definition, variable};

/// MPI functions whose first definition in the process is neither ours nor that of an MPI library: the
/// program's own profiling layer, or a tool that was loaded before ampl.
pub fn hidden_functions() -> Vec<String> {
    let own = hidden_functions as *const () as u64;
    let is_hidden = |name: &str| {
        let found = variable(&format!("{name}\0"));
        !found.is_null()
            && !is_in_same_module(found as u64, own)
            && !is_library_of_mpi(&module(found as u64).0)
    };
    FUNCTIONS.iter().map(|spec| spec.name).filter(|name| is_hidden(name)).map(str::to_owned).collect()
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
