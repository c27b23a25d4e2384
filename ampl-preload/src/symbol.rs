//! The definition that a wrapper forwards to.

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use ampl_core::mpi::Function;

/// Calling convention of a wrapped symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// Values in registers, handles as the implementation has them.
    C,
    /// Everything by reference, handles as integers, `ierror` behind the arguments.
    Fortran,
}

/// A wrapped symbol and the definition behind it.
#[derive(Debug)]
pub struct Symbol {
    /// The function.
    pub function: Function,
    /// How its arguments come.
    pub language: Language,
    names: &'static [&'static str],
    next: AtomicPtr<()>,
}

impl Symbol {
    /// A symbol not looked up yet; `names` end in NUL, the most preferred first.
    pub const fn new(function: u16, language: Language, names: &'static [&'static str]) -> Self {
        Self { function: Function(function), language, names, next: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Whether choice buffers come as descriptors of Fortran 2018 (TS 29113).
    pub fn passes_descriptors(&self) -> bool {
        self.names[0].contains("_f08ts")
    }

    /// The next definition behind ours in the search order; null if this MPI has none.
    #[inline]
    pub fn next(&self) -> *const () {
        let next = self.next.load(Ordering::Relaxed);
        if next.is_null() { self.look_up() } else { next }
    }

    #[cold]
    fn look_up(&self) -> *const () {
        let found = self.names.iter().map(|name| next_definition(name)).find(|found| !found.is_null());
        let found = found.unwrap_or(ptr::null());
        self.next.store(found.cast_mut(), Ordering::Relaxed);
        found
    }
}

/// Libraries to look into when MPI was loaded out of the global search order.
const LOCALLY_LOADED: [&CStr; 4] = [c"libmpi.so.40", c"libmpich.so.12", c"libmpi.so.12", c"libmpi_abi.so.1"];

/// Address of the function `name` (with its NUL) behind this library; null if there is none.
pub fn next_definition(name: &str) -> *const () {
    look_up(libc::RTLD_NEXT, name)
}

/// Address of the variable `name` (with its NUL); null if there is none.
///
/// Searched from the program on: it may hold the one copy of a library's variable that counts.
pub fn variable(name: &str) -> *const () {
    look_up(libc::RTLD_DEFAULT, name)
}

fn look_up(from: *mut libc::c_void, name: &str) -> *const () {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).expect("names end in NUL");
    // SAFETY: a NUL-terminated name.
    let found = unsafe { libc::dlsym(from, name.as_ptr()) };
    if !found.is_null() {
        return found.cast();
    }
    for library in LOCALLY_LOADED {
        // SAFETY: only asks for a library that is already there, and keeps it there.
        let found = unsafe {
            let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if handle.is_null() { ptr::null_mut() } else { libc::dlsym(handle, name.as_ptr()) }
        };
        if !found.is_null() {
            return found.cast();
        }
    }
    ptr::null()
}
