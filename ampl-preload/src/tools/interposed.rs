//! Functions of another library that stand before its own: the program's calls come here first, and go on.

use std::cell::Cell;
use std::ffi::CStr;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

use ampl_core::hook_source::HookSource;

use super::is_wanted;
use crate::contain::contained;
use crate::libraries::Handle;
use crate::resolve::loaded_modules;
use crate::symbol::in_search_order;

thread_local! {
    /// True while a function of such a library runs that may call others.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A call by the program, not by the library itself, of a source that is asked for; it returns, or an exception leaves it.
pub struct Outermost(());

impl Outermost {
    /// The call that begins now; `None` where it concerns nobody.
    #[inline]
    pub fn begin(source: HookSource) -> Option<Self> {
        (is_wanted(source) && !INSIDE.try_with(Cell::get).unwrap_or(true)).then_some(Self(()))
    }

    /// From here on the library's own calls of its functions are part of this one.
    pub fn enter(&self) {
        let _ = INSIDE.try_with(|inside| inside.set(true));
    }
}

impl Drop for Outermost {
    fn drop(&mut self) {
        let _ = INSIDE.try_with(|inside| inside.set(false));
    }
}

/// Address of the function `name` (with its NUL) of the library itself, which `place` remembers; null if there is none.
/// Where it was loaded out of the global search order, its file's name has one of those `beginnings`.
pub fn next(place: &AtomicPtr<()>, name: &'static str, beginnings: &[&str]) -> *const () {
    let known = place.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    let found = in_search_order(name);
    let found =
        if found.is_null() { contained(|| in_library(name, beginnings)).flatten() } else { Some(found) };
    let found = found.unwrap_or(std::ptr::null());
    place.store(found.cast_mut(), Ordering::Relaxed);
    found
}

/// The function in a library that was loaded out of the global search order.
#[cold]
fn in_library(name: &str, beginnings: &[&str]) -> Option<*const ()> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).ok()?;
    let is_it = |path: &String| {
        path.rsplit('/')
            .next()
            .is_some_and(|file| beginnings.iter().any(|beginning| file.starts_with(beginning)))
    };
    let handles = loaded_modules().into_iter().filter(is_it);
    let mut handles =
        handles.filter_map(|path| Handle::open(Path::new(&path), libc::RTLD_LAZY | libc::RTLD_NOLOAD));
    handles.find_map(|handle| Some(handle.symbol(name)).filter(|found| !found.is_null()))
}
