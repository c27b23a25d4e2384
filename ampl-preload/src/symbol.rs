//! The definition that a wrapper forwards to.

use std::arch::global_asm;
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use ampl_core::mpi::Function;

use crate::libraries::Libraries;

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
    descriptors: bool,
    f08: bool,
    twin: bool,
}

impl Symbol {
    /// A symbol without its definition yet; `names` end in NUL, the most preferred first.
    pub const fn new(function: u16, language: Language, names: &'static [&'static str]) -> Self {
        let descriptors = takes_descriptors(names[0].as_bytes());
        Self {
            function: Function(function),
            language,
            names,
            next: AtomicPtr::new(ptr::null_mut()),
            descriptors,
            f08: is_of_f08(names[0].as_bytes()),
            twin: names[0].as_bytes()[0] == b'P',
        }
    }

    /// True where it belongs to the module `mpi_f08`.
    #[inline]
    pub fn is_f08(&self) -> bool {
        self.f08
    }

    /// True where it is a profiling name: a call of it within another is part of that.
    #[inline]
    pub fn is_twin(&self) -> bool {
        self.twin
    }

    /// The name that programs call it by, without its NUL.
    pub fn name(&self) -> &'static str {
        self.names[0].trim_end_matches('\0')
    }

    /// True where choice buffers come as descriptors of Fortran 2018 (TS 29113).
    pub fn passes_descriptors(&self) -> bool {
        self.descriptors
    }

    /// The next definition behind ours in the search order; null if this MPI has none.
    #[inline]
    pub fn next(&self) -> *const () {
        let next = self.next_if_known();
        if next.is_null() { self.look_up() } else { next }
    }

    /// The same, null also if it has not been looked for.
    #[inline]
    pub fn next_if_known(&self) -> *const () {
        self.next.load(Ordering::Relaxed)
    }

    #[cold]
    fn look_up(&self) -> *const () {
        self.look_up_with(next_definition)
    }

    fn look_up_with(&self, find: impl Fn(&str) -> *const ()) -> *const () {
        let found = self.names.iter().map(|name| find(name)).find(|found| !found.is_null());
        let found = found.unwrap_or(ptr::null());
        self.next.store(found.cast_mut(), Ordering::Relaxed);
        found
    }
}

// The linker would export the two names. It defines them only for a section that it keeps, and it drops the symbols
// where no wrapper is called, as in unit tests: an empty part that is always kept stands for them there.
global_asm!(
    ".pushsection ampl_symbols,\"awR\",@progbits",
    ".p2align 3",
    ".popsection",
    ".hidden __start_ampl_symbols",
    ".hidden __stop_ampl_symbols",
);

unsafe extern "C" {
    #[link_name = "__start_ampl_symbols"]
    static FIRST: u8;
    #[link_name = "__stop_ampl_symbols"]
    static END: u8;
}

/// All wrapped symbols: they stand in a section of their own.
pub fn all() -> &'static [Symbol] {
    let (first, end) = (&raw const FIRST, &raw const END);
    let (first, end) = (first.cast::<Symbol>(), end.cast::<Symbol>());
    // SAFETY: the linker's names for the beginning and the end of a section that holds symbols alone.
    unsafe { std::slice::from_raw_parts(first, end.offset_from_unsigned(first)) }
}

/// Finds the definitions behind the wrapped symbols, where the loader knows at once. The first call of a function is
/// too late: its thread may be awaited by a holder of the loader's lock, and the loader's error text is the program's.
pub fn find_all() {
    // An MPI that was loaded out of the global search order is asked by itself.
    let apart = in_search_order("PMPI_Init\0").is_null().then(Libraries::loaded);
    let find = |name: &str| match &apart {
        Some(libraries) => libraries.find(with_nul(name)),
        None => in_search_order(name),
    };
    let has_fortran = !find("mpi_init_\0").is_null();
    let wanted = |symbol: &&Symbol| symbol.language == Language::C || has_fortran;
    for symbol in all().iter().filter(wanted).filter(|symbol| symbol.next_if_known().is_null()) {
        symbol.look_up_with(find);
    }
    // SAFETY: forgets what was said of those that this MPI lacks.
    unsafe { libc::dlerror() };
}

/// Forgets the definitions behind the wrapped symbols: the MPI that was found has been unloaded.
pub fn forget_all() {
    all().iter().for_each(|symbol| symbol.next.store(ptr::null_mut(), Ordering::Relaxed));
}

/// True where the name is that of a Fortran procedure whose buffers are descriptors: `mpi_send_f08ts_`,
/// `mpi_send_c_f08ts_`, `mpi_send_f08ts_large_`, `mpi_send_fts_`.
const fn takes_descriptors(name: &[u8]) -> bool {
    let mut at = 2;
    while at + 2 < name.len() {
        let form = name[at - 1] == b'8' || (name[at - 1] == b'f' && name[at - 2] == b'_');
        if form && name[at] == b't' && name[at + 1] == b's' && name[at + 2] == b'_' {
            return true;
        }
        at += 1;
    }
    false
}

/// True where the name is that of a procedure behind `mpi_f08`.
const fn is_of_f08(name: &[u8]) -> bool {
    let mut at = 0;
    while at + 4 < name.len() {
        if name[at] == b'_' && name[at + 1] == b'f' && name[at + 2] == b'0' && name[at + 3] == b'8' {
            return true;
        }
        at += 1;
    }
    false
}

/// Address of the function `name` (with its NUL) behind this library; null if there is none.
pub fn next_definition(name: &str) -> *const () {
    look_up(libc::RTLD_NEXT, name)
}

/// The same, but for what was loaded out of the global search order.
pub fn in_search_order(name: &str) -> *const () {
    ask(libc::RTLD_NEXT, with_nul(name))
}

/// Address of the variable `name` (with its NUL); null if there is none.
///
/// Searched from the program on: it may hold the one copy of a library's variable that counts.
pub fn variable(name: &str) -> *const () {
    look_up(libc::RTLD_DEFAULT, name)
}

fn look_up(from: *mut libc::c_void, name: &str) -> *const () {
    let name = with_nul(name);
    let found = ask(from, name);
    // MPI may have been loaded out of the global search order.
    if found.is_null() { Libraries::loaded().find(name) } else { found }
}

fn with_nul(name: &str) -> &CStr {
    CStr::from_bytes_with_nul(name.as_bytes()).expect("names end in NUL")
}

fn ask(from: *mut libc::c_void, name: &CStr) -> *const () {
    // SAFETY: a NUL-terminated name.
    unsafe { libc::dlsym(from, name.as_ptr()) }.cast_const().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_module() {
        assert!(is_of_f08(b"mpi_waitany_f08_\0") && is_of_f08(b"mpi_send_f08ts_large_\0"));
        assert!(!is_of_f08(b"mpi_waitany_\0") && !is_of_f08(b"mpi_send_fts_\0"));
    }

    #[test]
    fn names_tell_how_buffers_come() {
        for name in ["mpi_send_f08ts_\0", "mpi_send_f08ts_large_\0", "mpi_send_c_f08ts_\0", "mpi_send_fts_\0"]
        {
            assert!(takes_descriptors(name.as_bytes()), "{name}");
        }
        for name in ["mpi_send_\0", "mpi_send_f08_\0", "mpi_testsome_\0", "MPI_Get_elements\0", "MPI_SEND\0"]
        {
            assert!(!takes_descriptors(name.as_bytes()), "{name}");
        }
        // Function names themselves must not read as a form.
        for spec in ampl_core::mpi::FUNCTIONS {
            let name = format!("{}_\0", spec.name.to_lowercase());
            assert!(!takes_descriptors(name.as_bytes()), "{name}");
        }
    }
}
