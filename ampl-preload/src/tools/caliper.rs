//! Caliper: its functions for annotations, which go on to Caliper's own.
//!
//! Caliper has no interface for tools that are loaded. So this works where its library is shared, and for what the program
//! calls, not for what Caliper calls itself.

use std::ffi::c_char;
use std::sync::atomic::AtomicPtr;

use ampl_core::hook_source::HookSource;

use super::interposed::{self, Outermost};
use super::open_regions;
use crate::api::{self, ampl_region_register as region};

const SOURCE: HookSource = HookSource::Caliper;

/// Beginnings of the library's file names.
const LIBRARIES: [&str; 1] = ["libcaliper"];

/// Does `event`, unless within a function of Caliper's, then calls `next` if it is there.
fn pass<F>(event: impl FnOnce(), next: Option<F>, call: impl FnOnce(F)) {
    let _outermost = Outermost::begin(SOURCE).inspect(|outermost| {
        event();
        outermost.enter();
    });
    if let Some(next) = next {
        call(next);
    }
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
                let next = interposed::next(&NEXT, concat!(stringify!($name), "\0"), &LIBRARIES);
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
