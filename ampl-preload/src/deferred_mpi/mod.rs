//! MPI that comes later: a process that starts without one (an interpreter) and loads it with `dlopen`.
//!
//! Such programs search for an MPI before they choose one (mpi4py looks for `MPI_Get_version` in the process), and
//! their extension modules hold weak references to every function that some MPI has. Our exports would stand for an MPI
//! that is not there. So in a process without MPI they are hidden, and once an MPI comes, those that it has are shown:
//! before the module that needs it is bound.
//!
//! A process that starts with an MPI is left alone: its program was bound before we could tell.

mod hooks;
mod needed;

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::contain::contained;
use crate::exports::Exports;
use crate::libraries::{Handle, is_library_of_mpi, mpi_modules, references};
use crate::resolve::loaded_modules;
use crate::symbol;

/// True where `dlopen` must be watched.
static WATCHING: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> = Mutex::new(State {
    exports: None,
    modules: Vec::new(),
    bound_lazily: false,
    binding: None,
    held: Vec::new(),
});

struct State {
    /// Our exports; `None` until the process was found to have no MPI.
    exports: Option<Exports>,
    /// Modules of MPI libraries when the exports were last set.
    modules: Vec<String>,
    /// True where a module was bound to functions that this MPI lacks, and will call them later.
    bound_lazily: bool,
    /// Modules loaded before the latest one that may be bound so: it may have failed to load.
    binding: Option<Vec<String>>,
    /// References to libraries that were loaded for a module to come.
    held: Vec<Handle>,
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// Runs when this library is loaded, before the program.
extern "C" fn at_load() {
    contained(|| {
        if mpi_modules().is_empty() && symbol::next_definition("PMPI_Init\0").is_null() {
            let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
            state.exports = Exports::find(is_of_mpi);
            if let Some(exports) = &state.exports {
                exports.show(|_| false);
                WATCHING.store(true, Ordering::Release);
            }
        }
        // SAFETY: forgets what was not found: the program has asked for nothing yet.
        unsafe { libc::dlerror() };
    });
}

/// True for the names of MPI's functions.
fn is_of_mpi(name: &[u8]) -> bool {
    // Profiling names, too.
    let plain = name.strip_prefix(b"P").unwrap_or(name);
    plain.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"mpi_"))
}

/// Prepares for `dlopen(path, flags)`, which is about to be called.
fn before_dlopen(path: Option<&CStr>, flags: i32) {
    // Locked already: the library that is being loaded for another caller loads some itself.
    let Ok(mut state) = STATE.try_lock() else { return };
    state.held.clear();
    state.update_exports();
    let Some(path) = path.map(|path| path.to_string_lossy().into_owned()) else { return };
    // Such a call loads nothing, and preparing for it must not either. An empty name is the program.
    let loads = flags & libc::RTLD_NOLOAD == 0 && !path.is_empty();
    if !loads || !state.modules.is_empty() || is_library_of_mpi(&path) {
        return;
    }
    let needed = needed::by_file(Path::new(&path));
    if let Some(needs) = &needed {
        let of_mpi = || needs.names.iter().filter(|name| is_library_of_mpi(name));
        let found: Option<Vec<_>> = of_mpi().map(|name| needs.find(name)).collect();
        if let Some(found) = found.filter(|found| !found.is_empty()) {
            // What the module's own loading would do in a moment.
            let load = |path: &PathBuf| Handle::open(path, libc::RTLD_LAZY | libc::RTLD_LOCAL);
            // Where one of them cannot be loaded, nor can the module: there is nothing to show.
            if let Some(loaded) = found.iter().map(load).collect::<Option<Vec<_>>>() {
                state.update_exports();
                state.held = loaded;
            }
            return;
        }
    }
    // What its libraries need in turn may be MPI: then all of ours must be there when they are bound. Nowhere else: a
    // program may ask for MPI's functions to learn that there are none.
    let loaded = loaded_modules();
    if needed::brings_mpi(Path::new(&path), &loaded) {
        if flags & libc::RTLD_NOW == 0 {
            state.binding = Some(loaded);
        }
        if let Some(exports) = &state.exports {
            exports.show(|_| true);
        }
    }
}

impl State {
    /// Shows the functions that the MPI libraries now loaded have; none where there are none.
    fn update_exports(&mut self) {
        if let Some(before) = self.binding.take() {
            self.bound_lazily |= loaded_modules().iter().any(|path| !before.contains(path));
        }
        let modules = mpi_modules();
        if !self.modules.is_empty() && modules == self.modules {
            return;
        }
        if self.modules.iter().any(|path| !modules.contains(path)) {
            // Another MPI, or the same one elsewhere, may come to where that was.
            symbol::forget_all();
        }
        self.modules = modules;
        if self.bound_lazily {
            return;
        }
        let handles = references(&self.modules);
        if let Some(exports) = &self.exports {
            exports.show(|name| handles.iter().any(|handle| !handle.symbol(name).is_null()));
        }
    }
}
