//! Tell ampl about a program: regions, metrics, markers; ask whether this rank is traced.
//!
//! It links nothing: the library is looked for once in the running process, and without ampl every call is a test of a
//! pointer. Meanings are those of `include/ampl.h`.
//!
//! ```
//! let step = ampl::Region::new(c"step");
//! let moved = ampl::Metric::new(c"moved");
//! for _ in 0..3 {
//!     let _inside = step.enter();
//!     moved.add(100.0);
//! }
//! assert_eq!(ampl::is_traced(), None, "no ampl here");
//! ```
#![warn(missing_docs)]

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
}

/// The library's functions.
struct Hooks {
    region_register: unsafe extern "C" fn(*const c_char) -> c_int,
    region_enter: extern "C" fn(c_int),
    region_exit: extern "C" fn(c_int),
    metric_register: unsafe extern "C" fn(*const c_char) -> c_int,
    metric_add: extern "C" fn(c_int, f64),
    marker: extern "C" fn(),
    is_traced: extern "C" fn() -> c_int,
    window: extern "C" fn() -> c_long,
}

/// `None` without ampl.
fn hooks() -> Option<&'static Hooks> {
    static HOOKS: OnceLock<Option<Hooks>> = OnceLock::new();
    /// # Safety
    /// `F` must be the type of the function `name`.
    unsafe fn find<F>(name: &CStr) -> Option<F> {
        // SAFETY: the null handle means the whole process; the name ends in NUL.
        let found = unsafe { dlsym(ptr::null_mut(), name.as_ptr()) };
        // SAFETY: `F` is the function's type, as the caller ensures.
        (!found.is_null()).then(|| unsafe { std::mem::transmute_copy(&found) })
    }
    // SAFETY: the types of include/ampl.h.
    let look = || unsafe {
        Some(Hooks {
            region_register: find(c"ampl_region_register")?,
            region_enter: find(c"ampl_region_enter")?,
            region_exit: find(c"ampl_region_exit")?,
            metric_register: find(c"ampl_metric_register")?,
            metric_add: find(c"ampl_metric_add")?,
            marker: find(c"ampl_marker")?,
            is_traced: find(c"ampl_is_traced")?,
            window: find(c"ampl_window")?,
        })
    };
    HOOKS.get_or_init(look).as_ref()
}

/// A named span of the program.
#[derive(Clone, Copy, Debug)]
pub struct Region(c_int);

impl Region {
    /// The region of that name; call this once.
    pub fn new(name: &CStr) -> Self {
        // SAFETY: the name ends in NUL.
        Self(hooks().map_or(0, |hooks| unsafe { (hooks.region_register)(name.as_ptr()) }))
    }

    /// Does `work` within it.
    pub fn within<T>(self, work: impl FnOnce() -> T) -> T {
        let _inside = self.enter();
        work()
    }

    /// Enters it, until the result is dropped.
    pub fn enter(self) -> Inside {
        if let Some(hooks) = hooks() {
            (hooks.region_enter)(self.0);
        }
        Inside(self.0, PhantomData)
    }
}

/// The thread is in a region for as long as this lives. It stays on its thread.
#[derive(Debug)]
#[must_use = "the region is left where this is dropped"]
pub struct Inside(c_int, PhantomData<*const ()>);

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(hooks) = hooks() {
            (hooks.region_exit)(self.0);
        }
    }
}

/// A metric of the program, in a unit of its own.
#[derive(Clone, Copy, Debug)]
pub struct Metric(c_int);

impl Metric {
    /// The metric of that name; call this once.
    pub fn new(name: &CStr) -> Self {
        // SAFETY: the name ends in NUL.
        Self(hooks().map_or(0, |hooks| unsafe { (hooks.metric_register)(name.as_ptr()) }))
    }

    /// Adds to its total in the window that is open.
    pub fn add(self, value: f64) {
        if let Some(hooks) = hooks() {
            (hooks.metric_add)(self.0, value);
        }
    }
}

/// A marker, as `MPI_Pcontrol` with a level of the program's own.
pub fn marker() {
    if let Some(hooks) = hooks() {
        (hooks.marker)();
    }
}

/// True where this rank's open window is in the sample; `None` without ampl.
pub fn is_traced() -> Option<bool> {
    match (hooks()?.is_traced)() {
        -1 => None,
        answer => Some(answer == 1),
    }
}

/// The number of this rank's open window, from 0; `None` without ampl.
pub fn window() -> Option<u64> {
    (hooks()?.window)().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_happens_without_ampl() {
        let region = Region::new(c"region");
        assert_eq!(region.0, 0);
        assert_eq!(region.within(|| 7), 7);
        Metric::new(c"metric").add(1.0);
        marker();
        assert_eq!((is_traced(), window()), (None, None));
    }
}
