//! OMPT: OpenMP's interface for tools, which a run time asks for by calling `ompt_start_tool` before its first region.
//!
//! It serves one tool. Another one that is there goes before ampl. Parallel regions are regions of the thread that
//! encounters them, named after the place of the construct.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::AtomicU64;

use ampl_core::hook_source::HookSource;

use super::is_wanted;
use super::numbered::Numbered;
use crate::api;
use crate::contain::contained;
use crate::environment;
use crate::report::message;
use crate::resolve;
use crate::symbol::in_search_order;

/// `ompt_callback_parallel_begin` and `ompt_callback_parallel_end`
const PARALLEL_BEGIN: c_int = 3;
const PARALLEL_END: c_int = 4;
/// Places of constructs that are named.
const MOST_PLACES: usize = 1024;

type Lookup = unsafe extern "C" fn(*const c_char) -> *const ();
type SetCallback = unsafe extern "C" fn(c_int, *const ()) -> c_int;
type StartTool = unsafe extern "C" fn(c_uint, *const c_char) -> *const StartResult;

/// `ompt_start_tool_result_t`
#[repr(C)]
pub struct StartResult {
    initialize: unsafe extern "C" fn(Option<Lookup>, c_int, *mut u64) -> c_int,
    finalize: extern "C" fn(*mut u64),
    data: AtomicU64,
}

static RESULT: StartResult = StartResult { initialize, finalize, data: AtomicU64::new(0) };

/// Regions by the addresses of their constructs.
static REGIONS: Numbered<MOST_PLACES> = Numbered::new();

/// The number of the region of the construct at `address`.
fn region_at(address: u64) -> c_int {
    REGIONS.number(address, || new_region(address)).unwrap_or(0)
}

#[cold]
fn new_region(address: u64) -> c_int {
    let (path, offset) = resolve::module(address);
    let module = path.rsplit('/').next().unwrap_or(&path);
    api::region_number(format!("omp parallel {module}+{offset:#x}").as_bytes())
}

unsafe extern "C" fn parallel_begin(
    _task: *mut u64,
    _frame: *const c_void,
    region: *mut u64,
    _threads: c_uint,
    _flags: c_int,
    address: *const (),
) {
    let number = contained(|| region_at(address as u64)).unwrap_or(0);
    // SAFETY: the run time's word for us, which it passes to the end of the region.
    if let Some(word) = unsafe { region.as_mut() } {
        *word = number as u64;
        api::enter(number);
    }
}

unsafe extern "C" fn parallel_end(region: *mut u64, _task: *mut u64, _flags: c_int, _address: *const ()) {
    // SAFETY: as above.
    if let Some(&number) = unsafe { region.as_ref() } {
        api::exit(c_int::try_from(number).unwrap_or(0));
    }
}

/// Asks for the callbacks; 1 where the run time has them.
unsafe extern "C" fn initialize(lookup: Option<Lookup>, _device: c_int, _data: *mut u64) -> c_int {
    // SAFETY: the run time's function, and a C string.
    let Some(set) = lookup.map(|lookup| unsafe { lookup(c"ompt_set_callback".as_ptr()) }) else { return 0 };
    // SAFETY: null or the function of that name.
    let Some(set) = (unsafe { std::mem::transmute::<*const (), Option<SetCallback>>(set) }) else { return 0 };
    let callbacks =
        [(PARALLEL_BEGIN, parallel_begin as *const ()), (PARALLEL_END, parallel_end as *const ())];
    for (event, callback) in callbacks {
        // SAFETY: functions of the types that the events have.
        unsafe { set(event, callback) };
    }
    1
}

extern "C" fn finalize(_data: *mut u64) {}

/// `ompt_start_tool_result_t *ompt_start_tool(unsigned int omp_version, const char *runtime_version)`
///
/// # Safety
/// A run time of OpenMP calls it.
// SAFETY: the name that run times look for.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompt_start_tool(version: c_uint, runtime: *const c_char) -> *const StartResult {
    let next = in_search_order("ompt_start_tool\0");
    if next.is_null() {
        // SAFETY: forgets that there is no other.
        unsafe { libc::dlerror() };
    }
    // SAFETY: null or the function of that name.
    let next = unsafe { std::mem::transmute::<*const (), Option<StartTool>>(next) };
    // SAFETY: the run time's own arguments.
    let other = next.map_or(std::ptr::null(), |next| unsafe { next(version, runtime) });
    if !is_wanted(HookSource::Ompt) {
        return other;
    }
    if other.is_null() {
        return &raw const RESULT;
    }
    if environment::is_first_rank() {
        message("another tool gets OpenMP's regions, not ampl: OMPT serves one");
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructs_have_a_region_each() {
        let here = region_at(constructs_have_a_region_each as *const () as u64);
        let there = region_at(region_at as *const () as u64);
        assert!(here > 0 && there > 0 && here != there);
        assert_eq!(region_at(constructs_have_a_region_each as *const () as u64), here);
    }
}
