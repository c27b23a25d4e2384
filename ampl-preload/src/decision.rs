//! The program's callback for decisions: a tool that traces by itself follows ampl from window to window.
//!
//! It is called on the thread that has begun a window, outside of everything of ampl's: neither a lock nor a reference is
//! held, and what it throws is not caught.

use std::ffi::{c_int, c_long, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use ampl_core::config::{Config, Selection};

use crate::contain::contained;
use crate::hot_state;
use crate::process;
use crate::report::message;

/// `ampl_decision_callback`
pub type Callback = unsafe extern "C-unwind" fn(c_long, c_int, *mut c_void);

struct Registered {
    callback: Callback,
    data: *mut c_void,
}

/// The callback, which is never freed: another thread may be calling it.
static REGISTERED: AtomicPtr<Registered> = AtomicPtr::new(ptr::null_mut());
/// The window that it was told of last, and whether that is kept.
static TOLD: AtomicU64 = AtomicU64::new(NOTHING);
const NOTHING: u64 = u64::MAX;
/// True from `MPI_Finalize` on.
static ENDED: AtomicBool = AtomicBool::new(false);
/// True while a thread calls it.
static TELLING: AtomicBool = AtomicBool::new(false);

/// True where the program wants to be told.
#[inline]
pub fn is_wanted() -> bool {
    !REGISTERED.load(Ordering::Relaxed).is_null()
}

fn is_open() -> bool {
    hot_state::is_active() && !ENDED.load(Ordering::Relaxed)
}

/// Ends it, as `MPI_Finalize` is entered.
pub fn close() {
    ENDED.store(true, Ordering::Relaxed);
}

/// Tells the program of the window that is open, if it has not been told.
#[inline]
pub fn tell() {
    if is_wanted() {
        tell_wanted();
    }
}

#[cold]
fn tell_wanted() {
    struct Telling;
    impl Drop for Telling {
        fn drop(&mut self) {
            // Reads what a thread wrote that has found this one telling.
            TELLING.swap(false, Ordering::AcqRel);
        }
    }
    // A window may begin while the thread that tells is about to stop: it looks once more.
    while now().is_some_and(|now| TOLD.load(Ordering::Relaxed) != now) {
        // Whoever tells now goes on until nothing is new; a callback that ends windows itself is not called within itself.
        if TELLING.swap(true, Ordering::AcqRel) {
            return;
        }
        let _telling = Telling;
        while let Some(now) = now().filter(|&now| TOLD.swap(now, Ordering::Relaxed) != now) {
            // SAFETY: null or a callback that was registered, and is never freed.
            let Some(registered) = (unsafe { REGISTERED.load(Ordering::Acquire).as_ref() }) else { return };
            // SAFETY: the program's promise about its own function.
            unsafe { (registered.callback)((now >> 1) as c_long, (now & 1) as c_int, registered.data) };
        }
    }
}

/// Number of the open window, and whether it is kept in the lowest bit.
fn now() -> Option<u64> {
    let shared = &process::current().filter(|_| is_open())?.shared;
    let (window, traced) = contained(|| shared.decision_now())?;
    Some(window.0 << 1 | u64::from(traced))
}

/// `void ampl_on_decision(ampl_decision_callback callback, void *data)`
///
/// # Safety
/// `callback` must be null or a function of that type, which may be called with `data` from any thread of the program.
// SAFETY: an exported symbol of the library's own name space.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ampl_on_decision(callback: Option<Callback>, data: *mut c_void) {
    let registered =
        callback.map(|callback| contained(|| Box::into_raw(Box::new(Registered { callback, data }))));
    REGISTERED.store(registered.flatten().unwrap_or(ptr::null_mut()), Ordering::Release);
    TOLD.store(NOTHING, Ordering::Relaxed);
    if is_open() && is_wanted() {
        contained(say_late);
        tell();
    }
}

/// Switches to decisions before windows, which the program wants to be told of; returns whether `config` did not ask for
/// them.
pub fn decides_before(config: &mut Config) -> bool {
    let switches = is_wanted() && config.sampling.selection != Selection::Predictive;
    if switches {
        config.sampling.selection = Selection::Predictive;
    }
    switches
}

/// Says that the callback has come too late to change how windows are decided.
fn say_late() {
    if let Some(process) = process::current()
        && process.shared.rank.0 == 0
        && process.shared.plan.config.sampling.selection != Selection::Predictive
    {
        message(
            "ampl_on_decision was called after MPI_Init: windows are decided after their end, and what the callback is told \
             may differ; call it before, or set sampling.selection = \"predictive\"",
        );
    }
}
