//! Bytes that ampl has allocated in this process: the library's allocator counts them.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

/// The system's allocator with a counter. Only ampl's own allocations come here, never the program's.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static BYTES: AtomicU64 = AtomicU64::new(0);

/// Bytes that are allocated now.
pub fn bytes() -> u64 {
    // The counter may be read between the parts of a change.
    let bytes = BYTES.load(Ordering::Relaxed);
    if bytes > i64::MAX as u64 { 0 } else { bytes }
}

// SAFETY: every call is passed on as it is to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        BYTES.fetch_add((size as u64).wrapping_sub(layout.size() as u64), Ordering::Relaxed);
        // SAFETY: the caller's promise is the same.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_counts_until_it_is_freed() {
        const MANY: usize = 1 << 30;
        let before = bytes();
        // Never touched: it takes no memory.
        let mut much: Vec<u8> = Vec::with_capacity(MANY);
        let with = bytes();
        // Tests beside this one allocate less.
        assert!(with - before > (MANY / 2) as u64);
        much.reserve_exact(2 * MANY);
        assert!(bytes() - before > (3 * MANY / 2) as u64);
        drop(much);
        assert!(bytes() < before + (MANY / 2) as u64);
    }
}
