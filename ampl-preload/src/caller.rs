//! The caller of a wrapper while an outer one is still on its stack: MPI itself, the application from within MPI, or
//! the application after it has left the outer call by a jump.
//!
//! MPI's own calls (Fortran bindings, I/O components, a tool behind us) are not the application's.
//! A callback's are (error handlers, user operations, attribute functions), and so are all calls
//! after a longjmp out of an error handler, which gives no notice.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::memory::readable;
use crate::entry::Entry;
use crate::libraries::is_library_of_mpi;
use crate::resolve::module;

/// The caller of a wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// MPI, or a tool that takes part in the outer call.
    Mpi,
    /// The application, called by MPI.
    Callback,
    /// The application, which has left the outer call without returning.
    AfterJump,
}

/// Bytes within which two frames are of one stack: none that MPI can be called on is so small.
const NEAR: u64 = 8192;

/// Caller of the wrapper just entered, which returns to `address`; `inside` of `here` is not 0, and `next` is the
/// definition behind the wrapper.
///
/// # Safety
/// `here` must be the calling thread's block.
#[cold]
pub unsafe fn who(here: &mut Entry, address: u64, next: *const ()) -> Caller {
    // The stack grows down: at or above the outer wrapper's frame, that frame is gone.
    if here.stack >= here.inside {
        return Caller::AfterJump;
    }
    // A jump may lead to another stack, and the one that was left be gone.
    if here.inside - here.stack > NEAR && readable(here.inside as usize, size_of::<u64>()) == 0 {
        return Caller::AfterJump;
    }
    // SAFETY: memory that can be read: it lies between the caller's frame and the stack's beginning, or the system has
    // been asked. If the outer frame is still there, it begins with its return address.
    if unsafe { (here.inside as *const u64).read() } != here.outer.address {
        return Caller::AfterJump;
    }
    if is_of_mpi(address, next) {
        return Caller::Mpi;
    }
    // The frame that a jump left may lie untouched under a large array: walk the stack once per outer call.
    if !here.outer.seen && is_gone(here.inside) {
        return Caller::AfterJump;
    }
    here.outer.seen = true;
    Caller::Callback
}

/// True where the stack, walked upwards, passes the frame that began at `inside` without meeting it. A walk that ends
/// before (code without unwind tables) proves nothing: false.
fn is_gone(inside: u64) -> bool {
    struct Walk {
        wanted: u64,
        gone: bool,
    }
    unsafe extern "C" fn step(context: *mut libc::c_void, walk: *mut libc::c_void) -> i32 {
        // SAFETY: the unwinder's own context, and the structure below.
        let (frame, walk) = unsafe { (_Unwind_GetCFA(context) as u64, &mut *walk.cast::<Walk>()) };
        walk.gone = frame > walk.wanted;
        if frame < walk.wanted { 0 } else { 4 } // _URC_NO_REASON, _URC_NORMAL_STOP
    }
    // The frame's canonical address is just above its return address.
    let mut walk = Walk { wanted: inside + 8, gone: false };
    // SAFETY: walks the calling thread's stack, and calls `step` with the structure above.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    walk.gone
}

unsafe extern "C" {
    // The unwinder that the standard library uses for panics.
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut libc::c_void, *mut libc::c_void) -> i32,
        argument: *mut libc::c_void,
    ) -> i32;
    fn _Unwind_GetCFA(context: *mut libc::c_void) -> usize;
}

/// Places of calls seen before, by their hash: the address, with the top bit set if it is MPI's.
static KNOWN: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];
const MPI: u64 = 1 << 63;

/// True where the call that returns to `address` is MPI's own, or that of a tool which takes part in it; `next` is the
/// definition behind the wrapper.
pub fn is_of_mpi(address: u64, next: *const ()) -> bool {
    let slot = &KNOWN[(address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize];
    let known = slot.load(Ordering::Relaxed);
    if known & !MPI == address {
        return known & MPI != 0;
    }
    let (path, _) = module(address);
    // The module that defines what we forward to is MPI's, its Fortran binding's or a tool's.
    // A binding that jumps to the C function in the end, and does not call it, leaves our own address where
    // its caller's is: MPICH's mpi_pcontrol_.
    let own = module(is_of_mpi as *const () as u64).0;
    let of_mpi = path == module(next as u64).0 || path == own || is_library_of_mpi(&path);
    slot.store(address | if of_mpi { MPI } else { 0 }, Ordering::Relaxed);
    of_mpi
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Outer;
    use ampl_core::mpi::Function;

    fn here(stack: u64, slot: &u64) -> Entry {
        Entry {
            bp: 0,
            stack,
            thread: std::ptr::null_mut(),
            inside: std::ptr::from_ref(slot) as u64,
            outer: Outer { address: 0x1111, start: 0, function: Function(0), seen: true },
            yields: None,
            api: std::ptr::null_mut(),
            own_stack: 0..0,
            outer_bp: 0,
            in_hook: false,
            yielded: 0,
        }
    }

    #[test]
    fn a_frame_that_is_gone_was_left_by_a_jump() {
        let (alive, gone) = (0x1111u64, 0x2222u64);
        let code = libc::getpid as *const () as u64;
        let at = |slot: &u64| std::ptr::from_ref(slot) as u64;
        let elsewhere = who as *const ();
        // SAFETY: the slots are live.
        unsafe {
            assert_eq!(who(&mut here(at(&alive) - 64, &alive), code, elsewhere), Caller::Callback);
            let within = who(&mut here(at(&alive) - 64, &alive), code + 1, code as *const ());
            assert_eq!(within, Caller::Mpi);
            assert_eq!(who(&mut here(at(&gone) - 64, &gone), code, elsewhere), Caller::AfterJump);
            assert_eq!(who(&mut here(at(&alive), &alive), code, elsewhere), Caller::AfterJump);
        }
    }

    #[test]
    fn the_way_up_meets_frames_that_are_there() {
        let own = 0u64;
        let below = std::ptr::from_ref(&own) as u64;
        // Nothing begins at an address in the middle of a live frame: the way leads past it.
        assert!(is_gone(below | 4));
        assert!(!is_gone(u64::MAX - 64), "the stack ends before");
    }
}
