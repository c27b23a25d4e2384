//! Regions that the calling thread is in, for interfaces that do not name the region that they leave.
//!
//! A thread's list grows as deep as the thread's regions nest; entering and leaving allocate nothing then.

use std::cell::RefCell;
use std::ffi::c_int;

use ampl_core::hook_source::HookSource;

use crate::api;

/// Most regions that are noted of a thread: more are a program that never leaves them.
const DEEPEST: usize = 4096;

struct Open {
    source: HookSource,
    /// Part of the interface in which regions nest: a domain, an object.
    scope: u64,
    region: c_int,
    /// Number of regions of the scope around it.
    depth: usize,
}

thread_local! {
    static OPEN: RefCell<Vec<Open>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread enters the region of that number. Returns how many of the scope it was in, 0 where the list cannot
/// be had: the thread ends.
pub fn enter(source: HookSource, scope: u64, region: c_int) -> usize {
    let entered = OPEN.try_with(|open| {
        let mut open = open.try_borrow_mut().ok()?;
        let outer = open.iter().rfind(|own| own.source == source && own.scope == scope);
        let depth = outer.map_or(0, |outer| outer.depth + 1);
        let fits = open.len() < DEEPEST;
        if fits {
            open.push(Open { source, scope, region, depth });
        }
        Some((depth, fits))
    });
    let Ok(Some((depth, fits))) = entered else { return 0 };
    if fits {
        api::enter(region);
    }
    depth
}

/// It leaves the innermost region of the scope. Returns how many of it it is in then; `None` where it was in none.
pub fn leave(source: HookSource, scope: u64) -> Option<usize> {
    let left = take(|own| own.source == source && own.scope == scope)?;
    api::exit(left.region);
    Some(left.depth)
}

/// It leaves that region, which need not be the innermost of the scope; nothing where it is not in it.
pub fn leave_region(source: HookSource, scope: u64, region: c_int) {
    if take(|own| own.source == source && own.scope == scope && own.region == region).is_some() {
        api::exit(region);
    }
}

/// The innermost of the thread's regions of which `is_it` is true, which is in the list no longer.
fn take(is_it: impl Fn(&Open) -> bool) -> Option<Open> {
    let taken = OPEN.try_with(|open| {
        let mut open = open.try_borrow_mut().ok()?;
        let at = open.iter().rposition(is_it)?;
        Some(open.remove(at))
    });
    taken.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_nest_by_themselves() {
        let (nvtx, itt) = (HookSource::Nvtx, HookSource::Itt);
        assert_eq!(leave(nvtx, 1), None);
        assert_eq!([enter(nvtx, 1, 0), enter(itt, 1, 0), enter(nvtx, 2, 0), enter(nvtx, 1, 0)], [0, 0, 0, 1]);
        assert_eq!([leave(nvtx, 1), leave(nvtx, 1), leave(nvtx, 1)], [Some(1), Some(0), None]);
        assert_eq!([leave(itt, 1), leave(nvtx, 2), leave(itt, 1)], [Some(0), Some(0), None]);
    }

    #[test]
    fn a_thread_that_never_leaves_costs_no_more_and_no_more() {
        for _ in 0..2 * DEEPEST {
            enter(HookSource::Caliper, 0, 0);
        }
        assert_eq!(OPEN.with(|open| open.borrow().len()), DEEPEST);
        std::thread::spawn(|| assert_eq!(leave(HookSource::Caliper, 0), None)).join().unwrap();
    }
}
