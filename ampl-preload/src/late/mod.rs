//! MPI that comes later: a process that starts without one (an interpreter) and loads it with `dlopen`.
//!
//! Such programs ask what there is before they choose an MPI (mpi4py looks for `MPI_Get_version` in the
//! process), and their extension modules hold weak references to every function that some MPI has. Our
//! exports would answer for an MPI that is not there. So in a process without MPI they are hidden, and
//! once an MPI comes, those that it has are shown: before the module that asked for it is bound.
//!
//! A process that starts with an MPI is left alone: its program was bound before we could tell.

mod exports;
mod needed;

use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::caller::is_library_of_mpi;
use crate::resolve::loaded_modules;
use exports::Exports;

/// Whether `dlopen` must be watched.
static WATCHING: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<State> =
    Mutex::new(State { exports: None, modules: 0, bound_lazily: false, held: Vec::new() });

struct State {
    /// Our exports; none before the process was found to have no MPI.
    exports: Option<Exports>,
    /// Modules of MPI libraries when the exports were last set.
    modules: usize,
    /// Whether something may have been bound to what this MPI lacks, and will be called later.
    bound_lazily: bool,
    /// References to libraries that were loaded for a module to come.
    held: Vec<Handle>,
}

/// One reference to a loaded library, given back when dropped.
struct Handle(*mut libc::c_void);

// SAFETY: the loader's handles belong to the process.
unsafe impl Send for Handle {}

impl Handle {
    /// A reference, if the loader gives one.
    fn open(path: &Path, flags: i32) -> Option<Self> {
        let path = std::ffi::CString::new(path.as_os_str().as_encoded_bytes()).ok()?;
        // SAFETY: a NUL-terminated path.
        let handle = unsafe { real_dlopen(path.as_ptr(), flags) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// The same to a library that is already there.
    fn of_loaded(path: &str) -> Option<Self> {
        Self::open(Path::new(path), libc::RTLD_LAZY | libc::RTLD_NOLOAD)
    }

    fn symbol(&self, name: &CStr) -> *const () {
        // SAFETY: a handle of a loaded library and a NUL-terminated name.
        unsafe { libc::dlsym(self.0, name.as_ptr()) }.cast_const().cast()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the reference is ours.
        unsafe { libc::dlclose(self.0) };
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

/// Runs when this library is loaded, before the program.
extern "C" fn at_load() {
    crate::process::contained(|| {
        if mpi_modules().is_empty() && crate::symbol::next_definition("PMPI_Init\0").is_null() {
            let mut state = STATE.lock().unwrap_or_else(PoisonError::into_inner);
            state.exports = Exports::find();
            if let Some(exports) = &state.exports {
                exports.show(|_| false);
                WATCHING.store(true, Ordering::Release);
            }
        }
    });
}

fn mpi_modules() -> Vec<String> {
    loaded_modules().into_iter().filter(|path| is_library_of_mpi(path) && !path.contains("mca_")).collect()
}

/// `dlopen(path, flags)` is about to be made.
fn before_dlopen(path: Option<&CStr>, flags: i32) {
    // Taken already: the library that is being loaded for another caller loads some itself.
    let Ok(mut state) = STATE.try_lock() else { return };
    state.held.clear();
    state.settle();
    let Some(path) = path.map(|path| path.to_string_lossy().into_owned()) else { return };
    if state.modules > 0 || is_library_of_mpi(&path) {
        return;
    }
    let needed = needed::by_file(Path::new(&path));
    if let Some(needs) = &needed {
        let mut of_mpi = needs.names.iter().filter(|name| is_library_of_mpi(name)).peekable();
        if of_mpi.peek().is_some() {
            // What the module's own loading would do in a moment.
            let load = |name: &String| Handle::open(&needs.find(name)?, libc::RTLD_LAZY | libc::RTLD_LOCAL);
            if let Some(loaded) = of_mpi.map(load).collect::<Option<Vec<_>>>() {
                state.settle();
                state.held = loaded;
                return;
            }
        }
    }
    // What its libraries need in turn may be MPI: then all of ours must be there when they are bound.
    let loaded = loaded_modules();
    let known = |name: &String| loaded.iter().any(|path| path.rsplit('/').next() == Some(name));
    if needed.is_none_or(|needs| !needs.names.iter().all(known)) {
        state.bound_lazily |= flags & libc::RTLD_NOW == 0;
        if let Some(exports) = &state.exports {
            exports.show(|_| true);
        }
    }
}

impl State {
    /// Shows what the MPI libraries now loaded have; nothing where there are none.
    fn settle(&mut self) {
        let modules = mpi_modules();
        if self.modules > 0 && modules.len() <= self.modules {
            return;
        }
        self.modules = modules.len();
        if self.bound_lazily {
            return;
        }
        let handles: Vec<Handle> = modules.iter().filter_map(|path| Handle::of_loaded(path)).collect();
        if let Some(exports) = &self.exports {
            exports.show(|name| handles.iter().any(|handle| !handle.symbol(name).is_null()));
        }
    }
}

/// Address of `name` in an MPI library that is loaded, wherever the search order has it; null if none has it.
pub fn in_mpi_libraries(name: &CStr) -> *const () {
    let modules = mpi_modules();
    let mut found =
        modules.iter().filter_map(|path| Handle::of_loaded(path)).map(|handle| handle.symbol(name));
    found.find(|symbol| !symbol.is_null()).unwrap_or(std::ptr::null())
}

type Dlopen = unsafe extern "C" fn(*const libc::c_char, i32) -> *mut libc::c_void;

/// The C library's `dlopen`: ours stands before it.
static REAL: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

fn real() -> *const () {
    let known = REAL.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // SAFETY: a NUL-terminated name.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlopen".as_ptr()) }.cast();
    REAL.store(found, Ordering::Relaxed);
    found
}

/// `dlopen` of the C library.
///
/// # Safety
/// As that function.
pub unsafe fn real_dlopen(path: *const libc::c_char, flags: i32) -> *mut libc::c_void {
    // SAFETY: the C library has the function, with that type.
    let function = unsafe { std::mem::transmute::<*const (), Option<Dlopen>>(real()) };
    // SAFETY: the caller's promise.
    function.map_or(std::ptr::null_mut(), |function| unsafe { function(path, flags) })
}

/// Looks at a call of `dlopen`, and tells where the real one is.
unsafe extern "C" fn look(path: *const libc::c_char, flags: i32) -> *const () {
    if WATCHING.load(Ordering::Acquire) {
        crate::process::contained(|| {
            // SAFETY: the application's path, null or NUL-terminated.
            before_dlopen((!path.is_null()).then(|| unsafe { CStr::from_ptr(path) }), flags);
        });
    }
    real()
}

/// Jumps on to the C library's: it looks at its return address to know who asks, and finds libraries
/// beside that module.
// SAFETY: an exported symbol with the C library's name and type.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(path: *const libc::c_char, flags: i32) -> *mut libc::c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {look}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        look = sym look,
    )
}
