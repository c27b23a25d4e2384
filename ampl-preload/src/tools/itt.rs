//! ITT: what `ittnotify`, which is part of the program, calls in the library that `INTEL_LIBITTNOTIFY64` names.
//!
//! Its table of functions is filled in where ampl has one; others do nothing. Once there is a tool, it is the tool that makes
//! domains and names. They are never freed: programs keep them.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use ampl_core::hook_source::HookSource;

use super::open_regions;
use crate::api;
use crate::api::names::{MOST, Names};
use crate::contain::contained;

/// First bytes of a [`Global`].
const MAGIC: [u8; 8] = [0xed, 0xab, 0xab, 0xec, 0x0d, 0xee, 0xda, 0x30];
/// Functions of a table, of which there are some hundred: another layout may have no end.
const MOST_FUNCTIONS: usize = 4096;

/// `__itt_global`, as far as it is read.
#[repr(C)]
pub struct Global {
    magic: [u8; 8],
    version: [libc::c_ulong; 3],
    state: [libc::c_long; 3],
    mutex: libc::pthread_mutex_t,
    library: *mut c_void,
    error_handler: *mut c_void,
    paths: *mut *const c_char,
    functions: *mut ApiInfo,
}

/// `__itt_api_info`
#[repr(C)]
struct ApiInfo {
    name: *const c_char,
    place: *mut *const (),
    at_first: *const (),
    without_tool: *const (),
    group: c_int,
}

/// `__itt_id`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Id([u64; 3]);

/// `__itt_domain`
#[repr(C)]
pub struct Domain {
    enabled: c_int,
    name: *const c_char,
    wide: *const c_void,
    number: c_int,
    data: *const c_void,
    next: *const Domain,
}

/// `__itt_string_handle`
#[repr(C)]
pub struct StringHandle {
    text: *const c_char,
    wide: *const c_void,
    /// Ours: the number of the region of that name.
    region: c_int,
    data: *const c_void,
    next: *const StringHandle,
}

/// Domains by the numbers of their names, the first for all beyond.
static DOMAINS: [AtomicPtr<Domain>; MOST + 1] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST + 1];
static DOMAIN_NAMES: Names = Names::new();
/// Names by the numbers of their regions, likewise.
static HANDLES: [AtomicPtr<StringHandle>; MOST + 1] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST + 1];

/// The contents of `place`; `new` where it is empty.
fn once<T>(place: Option<&AtomicPtr<T>>, new: impl FnOnce() -> T) -> *mut T {
    let Some(place) = place else { return ptr::null_mut() };
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    let made = Box::into_raw(Box::new(new()));
    match place.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => made,
        Err(other) => {
            // SAFETY: made here, and nobody else has it.
            drop(unsafe { Box::from_raw(made) });
            other
        }
    }
}

/// A copy of `text` that stays.
fn kept(text: &[u8]) -> *const c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

unsafe extern "C" fn domain_create(name: *const c_char) -> *mut Domain {
    // SAFETY: ittnotify's own argument.
    let text = unsafe { api::text(name) };
    let make = || {
        let number = DOMAIN_NAMES.number(text);
        let new = || Domain {
            enabled: 1,
            name: kept(text),
            wide: ptr::null(),
            number: 0,
            data: ptr::null(),
            next: ptr::null(),
        };
        once(DOMAINS.get(number as usize), new)
    };
    contained(make).unwrap_or(ptr::null_mut())
}

unsafe extern "C" fn string_handle_create(name: *const c_char) -> *mut StringHandle {
    // SAFETY: as above.
    let text = unsafe { api::text(name) };
    let region = api::region_number(text);
    let new =
        || StringHandle { text: kept(text), wide: ptr::null(), region, data: ptr::null(), next: ptr::null() };
    contained(|| once(HANDLES.get(region as usize), new)).unwrap_or(ptr::null_mut())
}

extern "C" fn task_begin(domain: *const c_void, _task: Id, _parent: Id, name: *const StringHandle) {
    // SAFETY: ittnotify's own argument: null or a handle.
    let region = unsafe { name.as_ref() }.map_or(0, |name| match name.region {
        // It was made before there was a tool.
        // SAFETY: a C string or null.
        0 => unsafe { api::ampl_region_register(name.text) },
        region => region,
    });
    open_regions::enter(HookSource::Itt, domain as u64, region);
}

extern "C" fn task_end(domain: *const c_void) {
    open_regions::leave(HookSource::Itt, domain as u64);
}

/// The function of ampl's that stands for `name`.
fn own(name: &CStr) -> Option<*const ()> {
    match name.to_bytes() {
        b"__itt_domain_create" => Some(domain_create as *const ()),
        b"__itt_string_handle_create" => Some(string_handle_create as *const ()),
        b"__itt_task_begin" => Some(task_begin as *const ()),
        b"__itt_task_end" => Some(task_end as *const ()),
        _ => None,
    }
}

/// `void __itt_api_init(__itt_global *global, __itt_group_id groups)`
///
/// # Safety
/// `global` must be null or ittnotify's own.
// SAFETY: the name that ittnotify looks for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __itt_api_init(global: *mut Global, _groups: c_int) {
    // SAFETY: the caller's promise.
    let Some(global) = (unsafe { global.as_ref() }).filter(|global| global.magic == MAGIC) else { return };
    if global.functions.is_null() {
        return;
    }
    for at in 0..MOST_FUNCTIONS {
        // SAFETY: the table ends with a name that is null.
        let info = unsafe { &*global.functions.add(at) };
        if info.name.is_null() {
            return;
        }
        // SAFETY: the table's own strings.
        if let Some(function) = own(unsafe { CStr::from_ptr(info.name) })
            && !info.place.is_null()
        {
            // SAFETY: ittnotify's variable for that function.
            unsafe { info.place.write(function) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_domain_and_one_handle() {
        // SAFETY: C strings.
        unsafe {
            let (one, again) = (domain_create(c"one".as_ptr()), domain_create(c"one".as_ptr()));
            assert!(one == again && one != domain_create(c"other".as_ptr()) && (*one).enabled == 1);
            assert_eq!(CStr::from_ptr((*one).name), c"one");
            let (one, again) = (string_handle_create(c"one".as_ptr()), string_handle_create(c"one".as_ptr()));
            assert!(one == again && one != string_handle_create(c"other".as_ptr()) && (*one).region > 0);
            assert_eq!(CStr::from_ptr((*one).text), c"one");
        }
    }
}
