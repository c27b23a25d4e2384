//! PerfStubs: what its library, which is part of ADIOS2 and PETSc, looks for in the process.
//!
//! Timers are regions, and counters metrics of the program.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::without_provenance_mut;

use ampl_core::hook_source::HookSource;

use super::{is_wanted, open_regions};
use crate::api;

const SOURCE: HookSource = HookSource::PerfStubs;

/// Number of the region or metric that a handle stands for.
fn number(handle: *const c_void) -> c_int {
    c_int::try_from(handle as usize).unwrap_or(0)
}

/// The number of the region of that name; 0 where nobody asked for PerfStubs.
///
/// # Safety
/// `name` must be null or a C string.
unsafe fn region(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    if is_wanted(SOURCE) { unsafe { api::ampl_region_register(name) } } else { 0 }
}

fn start(region: c_int) {
    if is_wanted(SOURCE) {
        open_regions::enter(SOURCE, 0, region);
    }
}

fn stop(region: c_int) {
    if is_wanted(SOURCE) {
        open_regions::leave_region(SOURCE, 0, region);
    }
}

/// Does nothing: runs begin and end with MPI. PerfStubs takes that this exists for a tool.
// SAFETY: the name that PerfStubs looks for, as those below.
#[unsafe(no_mangle)]
pub extern "C" fn ps_tool_initialize() {}

/// # Safety
/// `name` must be null or a C string.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ps_tool_timer_create(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise.
    without_provenance_mut(unsafe { region(name) } as usize)
}

// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ps_tool_timer_start(timer: *const c_void) {
    start(number(timer));
}

// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ps_tool_timer_stop(timer: *const c_void) {
    stop(number(timer));
}

/// # Safety
/// `name` must be null or a C string.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ps_tool_start_string(name: *const c_char) {
    // SAFETY: the caller's promise.
    start(unsafe { region(name) });
}

/// # Safety
/// `name` must be null or a C string.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ps_tool_stop_string(name: *const c_char) {
    // SAFETY: the caller's promise.
    stop(unsafe { region(name) });
}

// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ps_tool_stop_current() {
    open_regions::leave(SOURCE, 0);
}

/// # Safety
/// `name` must be null or a C string.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ps_tool_create_counter(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise.
    let number = if is_wanted(SOURCE) { unsafe { api::ampl_metric_register(name) } } else { 0 };
    without_provenance_mut(number as usize)
}

// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ps_tool_sample_counter(counter: *const c_void, value: f64) {
    if is_wanted(SOURCE) {
        api::ampl_metric_add(number(counter), value);
    }
}
