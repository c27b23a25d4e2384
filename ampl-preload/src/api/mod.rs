//! The C API of `include/ampl.h`: events and queries of the program.
//!
//! A call that concerns nothing of the configuration costs a few loads. Every other reads the clock and goes
//! to the calling thread's state; none waits, and none allocates but a thread's first, or a region's.

mod early;
pub(crate) mod names;
mod thread;

use std::ffi::{c_char, c_int, c_long};
use std::sync::atomic::Ordering;

use ampl_agent::Thread;
use ampl_agent::thread::NamedRegion;
use ampl_core::config::Keep;

use crate::contain::contained;
use crate::hot_state;
use crate::process::{self, Process};
use crate::report::message;
pub use names::hash;
use names::{LONGEST, METRICS, Name, Names, REGIONS};
pub use thread::{ApiThread, Caller, is_open, with_caller};

/// The text at `name`; nothing at null.
///
/// # Safety
/// Null, or a string that ends in NUL and lasts as long as the result is used.
pub unsafe fn text<'a>(name: *const c_char) -> &'a [u8] {
    if name.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(name.cast(), libc::strnlen(name, LONGEST)) }
}

/// A Fortran string, which blanks fill up.
///
/// # Safety
/// `name` must point to `length` characters that last as long as the result is used.
unsafe fn fortran_text<'a>(name: *const c_char, length: c_long) -> &'a [u8] {
    if name.is_null() || length <= 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(name.cast::<u8>(), length as usize) }.trim_ascii_end()
}

/// The number of a region, whose name goes to the agent; 0 where there are too many.
pub fn region_number(text: &[u8]) -> c_int {
    let number = number(&REGIONS, text);
    if is_open()
        && let (Some(process), Ok(name)) = (process::current(), str::from_utf8(text))
    {
        process.shared.know_region(name);
    }
    number
}

/// Passes the regions that the program has named before to the agent, which has just been made.
pub fn announce(process: &Process) {
    REGIONS.all().for_each(|name| process.shared.know_region(name));
}

/// The number of a metric of the program; 0 where there are too many.
fn metric_number(text: &[u8]) -> c_int {
    number(&METRICS, text)
}

fn number(names: &Names, text: &[u8]) -> c_int {
    if text.is_empty() { 0 } else { contained(|| names.number(text)).unwrap_or(0) }
}

/// The index that the configuration gives the region, and true where it is recorded.
#[inline(always)]
fn uses(name: &Name) -> (Option<u16>, bool) {
    name.uses(|text| {
        let Some(process) = process::current() else { return (None, false) };
        let trace = &process.shared.plan.config.trace;
        let recorded = trace.structure != Keep::Off && trace.regions.takes(text);
        (process.shared.declared().region(text), recorded)
    })
}

/// The region of that number, if it matters now, and true where it is recorded.
#[inline(always)]
fn named(region: c_int) -> Option<(NamedRegion<'static>, bool)> {
    let name = REGIONS.get(region)?;
    let (declared, recorded) = uses(name);
    let region = NamedRegion { number: region as u32, name: name.label(), declared };
    (declared.is_some() || recorded).then_some((region, recorded))
}

/// Regions that the calling thread has entered before its first call of MPI, and not left, go over to its `thread`.
pub fn begin_inside(thread: &mut Thread) {
    for region in early::take() {
        if let Some((region, true)) = named(region) {
            thread.begin_inside(region, hot_state::now());
        }
    }
}

/// The calling thread enters the region of that number.
#[inline]
pub fn enter(region: c_int) {
    if is_open() {
        let Some((region, recorded)) = named(region) else { return };
        with_caller(|caller, now| match caller {
            Caller::Rank(state) => (state.thread.enter_region(region, now), ()),
            Caller::Bystander(bystander) => {
                if recorded {
                    bystander.note_entry(region.number);
                }
                (false, region.declared.into_iter().for_each(|index| bystander.enter(index, now)))
            }
        });
    } else if hot_state::has_not_started()
        && let Some(name) = REGIONS.get(region)
    {
        name.early.fetch_add(1, Ordering::Relaxed);
        early::enter(region);
    }
}

/// The calling thread leaves the region of that number.
#[inline]
pub fn exit(region: c_int) {
    if is_open() {
        let Some(name) = REGIONS.get(region) else { return };
        let Some((region, _)) = named(region) else { return };
        let entered = with_caller(|caller, now| match caller {
            Caller::Rank(state) => state.thread.exit_region(region, now),
            Caller::Bystander(bystander) => {
                bystander.note_exit(region.number);
                (false, region.declared.is_none_or(|index| bystander.exit(index, now)))
            }
        });
        if entered == Some(false) && name.early.fetch_sub(1, Ordering::Relaxed) <= 0 {
            name.early.store(0, Ordering::Relaxed);
            if let Some(process) = process::current() {
                process.shared.irregular.unbalanced.fetch_add(1, Ordering::Relaxed);
            }
        }
    } else if hot_state::has_not_started()
        && let Some(name) = REGIONS.get(region)
    {
        let _ = name
            .early
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |times| (times > 0).then_some(times - 1));
        early::exit(region);
    }
}

/// `int ampl_region_register(const char *region_name)`
///
/// # Safety
/// `name` must be null or a C string.
// SAFETY: an exported symbol of the library's own name space, as are those below.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampl_region_register(name: *const c_char) -> c_int {
    // SAFETY: the program's string.
    region_number(unsafe { text(name) })
}

/// `void ampl_region_enter(int region)`
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ampl_region_enter(region: c_int) {
    enter(region);
}

/// `void ampl_region_exit(int region)`
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ampl_region_exit(region: c_int) {
    exit(region);
}

/// `void ampl_region_begin(const char *region_name)`
///
/// # Safety
/// `name` must be null or a C string.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampl_region_begin(name: *const c_char) {
    if is_open() || hot_state::has_not_started() {
        // SAFETY: the program's string.
        enter(region_number(unsafe { text(name) }));
    }
}

/// `void ampl_region_end(const char *region_name)`
///
/// # Safety
/// `name` must be null or a C string.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampl_region_end(name: *const c_char) {
    if is_open() || hot_state::has_not_started() {
        // SAFETY: the program's string.
        exit(region_number(unsafe { text(name) }));
    }
}

/// `int ampl_metric_register(const char *metric_name)`
///
/// # Safety
/// `name` must be null or a C string.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampl_metric_register(name: *const c_char) -> c_int {
    // SAFETY: the program's string.
    metric_number(unsafe { text(name) })
}

/// `void ampl_metric_add(int metric, double value)`
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ampl_metric_add(metric: c_int, value: f64) {
    // Beyond, the fourth powers in sums over ranks would leave the range of numbers. The comparison is false for NaN.
    const LARGEST: f64 = 1e60;
    let sound = value.abs() <= LARGEST;
    if !is_open() || !sound {
        return;
    }
    let declared = |text: &str| process::current()?.shared.declared().user(text);
    let Some(index) = METRICS.get(metric).and_then(|name| name.index(declared)) else { return };
    with_caller(|caller, now| match caller {
        Caller::Rank(state) => (state.thread.metric_add(index, value, now), ()),
        Caller::Bystander(bystander) => (false, bystander.add(index, value)),
    });
}

/// `void ampl_marker(void)`
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ampl_marker() {
    const MARKER: i32 = 2;
    if is_open() {
        with_caller(|caller, now| match caller {
            Caller::Rank(state) => (state.thread.control(MARKER, now), ()),
            Caller::Bystander(bystander) => (false, bystander.marker()),
        });
    }
}

/// Result of `ask` for the window that is open now; `None` without an agent.
fn of_window<T>(ask: impl FnOnce(&ampl_agent::shared::Shared) -> T) -> Option<T> {
    if !is_open() {
        return None;
    }
    // Windows end with the clock, whether calls are made or not.
    with_caller(|caller, now| match caller {
        Caller::Rank(state) => (state.thread.catch_up(now), ()),
        Caller::Bystander(_) => (false, ()),
    });
    process::current().map(|process| ask(&process.shared))
}

/// `int ampl_is_traced(void)`
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ampl_is_traced() -> c_int {
    of_window(|shared| c_int::from(shared.is_traced())).unwrap_or(-1)
}

/// `long ampl_window(void)`
// SAFETY: see above.
#[unsafe(no_mangle)]
pub extern "C" fn ampl_window() -> c_long {
    of_window(|shared| shared.window_now().0 as c_long).unwrap_or(-1)
}

/// [`ampl_region_register`] for `integrations/fortran/ampl.f90`: characters and how many.
///
/// # Safety
/// `name` must be null or `length` characters.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampl_fortran_region_register(name: *const c_char, length: c_long) -> c_int {
    // SAFETY: the module's promise.
    region_number(unsafe { fortran_text(name, length) })
}

/// [`ampl_metric_register`], likewise.
///
/// # Safety
/// `name` must be null or `length` characters.
// SAFETY: see above.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ampl_fortran_metric_register(name: *const c_char, length: c_long) -> c_int {
    // SAFETY: the module's promise.
    metric_number(unsafe { fortran_text(name, length) })
}

/// Collects what threads have left for the API, as `MPI_Finalize` is entered; later calls have no effect.
pub fn close() {
    thread::close();
}

/// Reports on rank 0 the program's irregular uses of regions.
pub fn report_irregularities(process: &Process) {
    if process.shared.rank.0 != 0 {
        return;
    }
    for said in process.shared.irregularities() {
        message(&said);
    }
}
