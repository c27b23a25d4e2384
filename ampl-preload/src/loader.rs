//! The loader's functions behind ours.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

type Dlopen = unsafe extern "C" fn(*const c_char, i32) -> *mut c_void;

/// A function of the C library's behind one of ours.
pub struct Real {
    name: &'static CStr,
    address: AtomicPtr<()>,
}

/// `dlopen`.
pub static DLOPEN: Real = Real { name: c"dlopen", address: AtomicPtr::new(ptr::null_mut()) };
/// `dlmopen`.
pub static DLMOPEN: Real = Real { name: c"dlmopen", address: AtomicPtr::new(ptr::null_mut()) };

impl Real {
    /// Its address; that of a function that refuses where the C library has none, as it is jumped to.
    pub fn find(&self) -> *const () {
        let known = self.address.load(Ordering::Relaxed);
        if !known.is_null() {
            return known;
        }
        // SAFETY: a NUL-terminated name.
        let found: *mut () = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) }.cast();
        let found = if found.is_null() { refuse as *mut () } else { found };
        self.address.store(found, Ordering::Relaxed);
        found
    }
}

/// As a loader that can load nothing.
extern "C" fn refuse() -> *mut c_void {
    ptr::null_mut()
}

/// `dlopen` of the C library.
///
/// # Safety
/// As that function.
pub unsafe fn real_dlopen(path: *const c_char, flags: i32) -> *mut c_void {
    // SAFETY: the C library's function has that type, and one that refuses takes no notice of arguments.
    let function = unsafe { std::mem::transmute::<*const (), Dlopen>(DLOPEN.find()) };
    // SAFETY: the caller's promise.
    unsafe { function(path, flags) }
}
