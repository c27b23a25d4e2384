//! Parts of a program that ampl cannot see, to be reported.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use ampl_core::mpi::Function;
use ampl_trace::model::RunInfo;

use crate::environment;
use crate::hot_state;
use crate::libraries::is_library_of_mpi;
use crate::report::message;
use crate::resolve::{self, each_module, is_in_same_module, module};
use crate::symbol::{self, Language, next_definition, variable};

/// `run` with the parts of the program that are not seen from now on.
pub fn noted(run: RunInfo) -> RunInfo {
    RunInfo { hidden: hidden_functions(), extensions: extensions(), ..run }
}

/// MPI functions whose first definition in the process is neither ours nor that of an MPI library: the program's own
/// profiling layer, or a tool that was loaded before ampl. In Fortran, too, where the process has MPI's Fortran.
fn hidden_functions() -> Vec<String> {
    let has_fortran = !next_definition("mpi_init_\0").is_null();
    let symbols = symbol::all().iter().filter(|symbol| has_fortran || symbol.language == Language::C);
    let hidden = symbols.filter(|symbol| !symbol.is_twin() && defined_before(symbol.name()).is_some());
    let functions: BTreeSet<Function> = hidden.map(|symbol| symbol.function).collect();
    functions.into_iter().map(|function| function.spec().name.to_owned()).collect()
}

/// Path of the module that defines `name` for the process, if that is neither ours nor part of an MPI library.
fn defined_before(name: &str) -> Option<String> {
    let own = defined_before as *const () as u64;
    let found = variable(&format!("{name}\0")) as u64;
    let path = (found != 0 && !is_in_same_module(found, own)).then(|| module(found).0)?;
    (!is_library_of_mpi(&path)).then_some(path)
}

/// Extensions of the MPI library (`MPIX_*`, in Fortran `mpix_*`) that the program or a library of it refers to, by
/// their symbols: calls of unwrapped functions are not recorded.
fn extensions() -> Vec<String> {
    let is_extension = |name: &[u8]| name.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"mpix_"));
    let mut names = BTreeSet::new();
    each_module(&mut |path, module| {
        if !is_library_of_mpi(&path) {
            names.extend(module.taken(is_extension));
        }
    });
    // Other libraries use such names, too; and a weak reference may have no definition.
    let is_of_mpi = |name: &String| {
        let found = variable(&format!("{name}\0"));
        !found.is_null() && is_library_of_mpi(&module(found as u64).0)
    };
    names.into_iter().filter(is_of_mpi).collect()
}

/// Reports once that a session has begun: sessions are not recorded, and nothing else mentions it.
pub fn session_began() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if environment::is_disabled() || !environment::is_first_rank() || SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    if hot_state::has_not_started() {
        // The world may still come: then its run is recorded.
        // SAFETY: a function without arguments.
        unsafe { libc::atexit(at_exit) };
    } else if !hot_state::is_active() {
        message("the program uses MPI after MPI_Finalize, in a session: those calls are not recorded");
    }
}

/// Reports a call although no agent was made: a tool before ampl may have kept `MPI_Init` to itself.
pub fn called_unstarted() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !hot_state::has_not_started() || SAID.load(Ordering::Relaxed) || environment::is_disabled() {
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
        message(&past(["MPI_Init", "MPI_Init_thread", "mpi_init_"].into_iter().find_map(defined_before)));
    }
}

/// Text that reports that MPI has begun without ampl, by way of the module at `by`, and how to change that.
fn past(by: Option<String>) -> String {
    let own = module(past as *const () as u64).0;
    let main = resolve::executable();
    let (by, way_out) = match by {
        Some(path) if main.as_ref() == Some(&path) => (
            format!("the program ({path}) defines MPI_Init itself"),
            "build it without that layer".to_owned(),
        ),
        Some(path) => (
            format!("{path} defines MPI_Init, and stands before ampl"),
            format!("put ampl first (LD_PRELOAD={own}:{path})"),
        ),
        None => (
            "it was called where ampl is not looked up".to_owned(),
            "load MPI through the program's own libraries, without RTLD_DEEPBIND or dlsym".to_owned(),
        ),
    };
    format!(
        "MPI has begun and ampl has seen no MPI_Init: {by}, and MPI's own is called past ampl; this job is not \
         recorded: {way_out}"
    )
}

extern "C" fn at_exit() {
    if hot_state::has_not_started() {
        message("the program uses MPI sessions and made no MPI_Init: it is not recorded");
    }
}
