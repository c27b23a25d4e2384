//! Readable memory. A call that MPI has refused may name any address, unread so far.

use libc::{getpid, iovec, process_vm_readv};

/// The smallest page of any system: within one, either all or nothing can be read.
const PAGE: usize = 4096;

/// Number of readable bytes from `address` on, at most `most`; 0 where the system does not report it.
pub fn readable(address: usize, most: usize) -> usize {
    let end = address.saturating_add(most);
    let mut at = address;
    // SAFETY: this thread's own variable. The program may look at what MPI has left there.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    while at < end && can_read(at) {
        at = (at | (PAGE - 1)).saturating_add(1);
    }
    // SAFETY: as above.
    unsafe { *errno = before };
    at.min(end) - address
}

/// The system copies a byte for us, and fails where we would crash.
fn can_read(address: usize) -> bool {
    let mut byte = 0u8;
    let to = iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let from = iovec { iov_base: address as *mut _, iov_len: 1 };
    // SAFETY: one byte is written, to `byte`.
    unsafe { process_vm_readv(getpid(), &raw const to, 1, &raw const from, 1, 0) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_ends_where_it_is_protected() {
        // SAFETY: a new mapping, of which the second page is taken away.
        let pages = unsafe {
            let (all, private) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let pages = libc::mmap(std::ptr::null_mut(), 2 * PAGE, all, private, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            assert_eq!(libc::mprotect(pages.add(PAGE), PAGE, libc::PROT_NONE), 0);
            pages as usize
        };
        assert_eq!(readable(pages, 2 * PAGE), PAGE);
        assert_eq!(readable(pages + 100, 50), 50);
        assert_eq!(readable(pages + PAGE - 8, 16), 8);
        assert_eq!(readable(pages + PAGE, 1), 0);
        assert_eq!((readable(0, 4), readable(8, 4), readable(usize::MAX - 4, 100)), (0, 0, 0));
        assert_eq!(readable(pages, 0), 0);
    }
}
