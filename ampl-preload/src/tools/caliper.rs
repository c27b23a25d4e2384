//! Caliper: its functions for annotations, which go on to Caliper's own.
//!
//! Caliper has no interface for tools that are loaded. So this works where its library is shared, and for what the program
//! calls, not for what Caliper calls itself.

use std::cell::Cell;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

use ampl_core::hook_source::HookSource;

use super::{is_wanted, open_regions};
use crate::api::{self, ampl_region_register as region};
use crate::contain::contained;
use crate::libraries::Handle;
use crate::resolve::loaded_modules;
use crate::symbol::in_search_order;

const SOURCE: HookSource = HookSource::Caliper;

thread_local! {
    /// True while a function of Caliper's runs that may call others.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Does `event`, unless within a function of Caliper's, then calls `next` if it is there.
fn pass<F>(event: impl FnOnce(), next: Option<F>, call: impl FnOnce(F)) {
    let _outermost = (is_wanted(SOURCE) && !INSIDE.try_with(Cell::get).unwrap_or(true)).then(|| {
        event();
        let _ = INSIDE.try_with(|inside| inside.set(true));
        Outermost
    });
    if let Some(next) = next {
        call(next);
    }
}

/// The function of Caliper's that the program called; it returns, or an exception leaves it.
struct Outermost;

impl Drop for Outermost {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(false));
    }
}

/// Address of Caliper's own function, which `place` remembers; null if there is none.
fn next(place: &AtomicPtr<()>, name: &'static str) -> *const () {
    let known = place.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let found = in_search_order(name);
    let found = if found.is_null() { contained(|| in_library(name)).flatten() } else { Some(found) };
    let found = found.unwrap_or(std::ptr::null());
    place.store(found.cast_mut(), Ordering::Relaxed);
    found
}

/// The function in a library that was loaded out of the global search order.
#[cold]
fn in_library(name: &str) -> Option<*const ()> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    let is_caliper =
        |path: &String| path.rsplit('/').next().is_some_and(|file| file.starts_with("libcaliper"));
    let handles = loaded_modules().into_iter().filter(is_caliper);
    let mut handles =
        handles.filter_map(|path| Handle::open(Path::new(&path), libc::RTLD_LAZY | libc::RTLD_NOLOAD));
    handles.find_map(|handle| Some(handle.symbol(name)).filter(|found| !found.is_null()))
}

/// Scope of the regions of the attribute of that name; numbers of attributes are far below.
///
/// # Safety
/// `name` must be null or a C string.
unsafe fn scope(name: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let text = unsafe { api::text(name) };
    api::hash(text) | 1 << 63
}

/// Defines functions of Caliper's: name, parameters, and what their call means.
macro_rules! interposed {
    ($($name:ident($($parameter:ident: $kind:ty),*) { $event:expr })+) => {
        $(
            /// # Safety
            /// The program calls it as Caliper's.
            // SAFETY: Caliper's name and type.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case, unused_unsafe, reason = "names of C++; some events are safe")]
            pub unsafe extern "C-unwind" fn $name($($parameter: $kind),*) {
                static NEXT: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());
                let next = next(&NEXT, concat!(stringify!($name), "\0"));
                // SAFETY: null or Caliper's function of that name.
                let next = unsafe {
                    std::mem::transmute::<*const (), Option<unsafe extern "C-unwind" fn($($kind),*)>>(next)
                };
                // SAFETY: the program's own arguments.
                pass(|| unsafe { $event }, next, |next| unsafe { next($($parameter),*) });
            }
        )+
    };
}

interposed! {
    cali_begin_region(name: *const c_char) { api::enter(region(name)) }
    cali_end_region(name: *const c_char) { api::exit(region(name)) }
    cali_begin_phase(name: *const c_char) { api::enter(region(name)) }
    cali_end_phase(name: *const c_char) { api::exit(region(name)) }
    cali_begin_comm_region(name: *const c_char) { api::enter(region(name)) }
    cali_end_comm_region(name: *const c_char) { api::exit(region(name)) }
    cali_begin_string(attribute: u64, value: *const c_char) {
        { open_regions::enter(SOURCE, attribute, region(value)); }
    }
    cali_end(attribute: u64) { { open_regions::leave(SOURCE, attribute); } }
    cali_begin_string_byname(attribute: *const c_char, value: *const c_char) {
        { open_regions::enter(SOURCE, scope(attribute), region(value)); }
    }
    cali_end_byname(attribute: *const c_char) { { open_regions::leave(SOURCE, scope(attribute)); } }
    // cali::Function::Function(char const*), ~Function()
    _ZN4cali8FunctionC1EPKc(object: *mut (), name: *const c_char) {
        { open_regions::enter(SOURCE, object as u64, region(name)); }
    }
    _ZN4cali8FunctionD1Ev(object: *mut ()) { { open_regions::leave(SOURCE, object as u64); } }
    // cali::ScopeAnnotation::ScopeAnnotation(char const*), ~ScopeAnnotation()
    _ZN4cali15ScopeAnnotationC1EPKc(object: *mut (), name: *const c_char) {
        { open_regions::enter(SOURCE, object as u64, region(name)); }
    }
    _ZN4cali15ScopeAnnotationD1Ev(object: *mut ()) { { open_regions::leave(SOURCE, object as u64); } }
    // cali::Loop::Loop(char const*), ~Loop(), end()
    _ZN4cali4LoopC1EPKc(object: *mut (), name: *const c_char) {
        { open_regions::enter(SOURCE, object as u64, region(name)); }
    }
    _ZN4cali4LoopD1Ev(object: *mut ()) { { open_regions::leave(SOURCE, object as u64); } }
    _ZN4cali4Loop3endEv(object: *mut ()) { { open_regions::leave(SOURCE, object as u64); } }
}
