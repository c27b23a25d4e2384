//! Regions that threads are in before the agent is there.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard};

use crate::entry::entry;

/// Most regions that are noted.
const MOST: usize = 1000;

/// Thread and region, in the order in which they were entered.
static OPEN: Mutex<Vec<(usize, c_int)>> = Mutex::new(Vec::new());

/// The list, unless another thread has it: a child of this process may find it locked for good.
fn open() -> Option<MutexGuard<'static, Vec<(usize, c_int)>>> {
    OPEN.try_lock().ok()
}

fn this_thread() -> usize {
    entry() as usize
}

/// The calling thread enters `region`.
pub fn enter(region: c_int) {
    if let Some(mut open) = open().filter(|open| open.len() < MOST) {
        open.push((this_thread(), region));
    }
}

/// It leaves `region`, and those that it has entered there.
pub fn exit(region: c_int) {
    if let Some(mut open) = open()
        && let Some(at) = open.iter().rposition(|&own| own == (this_thread(), region))
    {
        let mut before = at;
        open.retain(|own| {
            let keeps = before > 0 || own.0 != this_thread();
            before = before.saturating_sub(1);
            keeps
        });
    }
}

/// The regions that the calling thread is in, outermost first.
pub fn take() -> Vec<c_int> {
    let Some(mut open) = open() else { return Vec::new() };
    open.extract_if(.., |own| own.0 == this_thread()).map(|(_, region)| region).collect()
}
