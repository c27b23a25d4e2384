//! `dlopen` and `dlmopen` as the program calls them: ours stand before the C library's.

use std::ffi::{CStr, c_char, c_long, c_void};
use std::sync::atomic::Ordering;

use super::{WATCHING, before_dlopen};
use crate::contain::contained;
use crate::loader::{DLMOPEN, DLOPEN};

/// Prepares for a library that is about to be loaded into the program's namespace.
///
/// # Safety
/// `path` is null or NUL-terminated.
unsafe fn prepare(path: *const c_char, flags: i32) {
    if WATCHING.load(Ordering::Acquire) {
        contained(|| {
            // SAFETY: the caller's promise.
            before_dlopen((!path.is_null()).then(|| unsafe { CStr::from_ptr(path) }), flags);
        });
    }
}

/// Prepares for a call of `dlopen`, and returns where the real one is.
unsafe extern "C" fn opening(path: *const c_char, flags: i32) -> *const () {
    // SAFETY: the application's path.
    unsafe { prepare(path, flags) };
    DLOPEN.find()
}

/// Prepares for a call of `dlmopen`. What another namespace loads is bound to nothing of this library.
unsafe extern "C" fn opening_in(namespace: c_long, path: *const c_char, flags: i32) -> *const () {
    if namespace == libc::LM_ID_BASE {
        // SAFETY: the application's path.
        unsafe { prepare(path, flags) };
    }
    DLMOPEN.find()
}

/// Jumps on to the C library's, which finds its caller by the return address, and libraries beside that module.
// SAFETY: an exported symbol with the C library's name and type.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlopen(path: *const c_char, flags: i32) -> *mut c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {opening}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        opening = sym opening,
    )
}

/// As [`dlopen`].
// SAFETY: an exported symbol with the C library's name and type.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn dlmopen(namespace: c_long, path: *const c_char, flags: i32) -> *mut c_void {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "call {opening_in}",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        opening_in = sym opening_in,
    )
}
