//! Shared file mappings.
//!
//! A block is allocated with `posix_fallocate` before it is mapped, because a write into a mapped
//! hole of a full file system is a SIGBUS in the application.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU64;

/// A freshly mapped, zeroed part of a file that lives as long as the process.
#[derive(Debug)]
pub struct MappedBlock {
    /// The first words, shared with readers: written with atomic stores.
    pub head: &'static [AtomicU64],
    /// The rest, written by one thread only; readers find its end in the head's commit counter.
    pub words: &'static mut [u64],
}

impl MappedBlock {
    /// The last `count` words apart, shared with readers as the head is.
    ///
    /// # Panics
    /// When there are fewer.
    pub fn with_tail(self, count: usize) -> (Self, &'static [AtomicU64]) {
        let Self { head, words } = self;
        let (words, tail) = words.split_at_mut(words.len() - count);
        // SAFETY: an atomic word has the layout of a word, these are writable, and nothing else refers to them.
        let tail = unsafe { std::slice::from_raw_parts(tail.as_mut_ptr().cast::<AtomicU64>(), count) };
        (Self { head, words }, tail)
    }
}

/// Extends `file` by `words` 64-bit words at `offset` (a multiple of the page size) and maps them.
///
/// # Errors
/// Errors of `posix_fallocate` (a full file system) or `mmap`; the file is then as it was.
pub fn map_block(file: &File, offset: u64, head_words: usize, words: usize) -> io::Result<MappedBlock> {
    let bytes = words * 8;
    let (position, length) = (offset as libc::off_t, bytes as libc::off_t);
    if exceeds_file_size_limit(offset + bytes as u64) {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    loop {
        // SAFETY: the descriptor is open; the call touches no memory of ours.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), position, length) } {
            0 => break,
            libc::EINTR => {} // a signal of the application's
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice, over bytes just allocated.
    let address = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, protection, libc::MAP_SHARED, file.as_raw_fd(), position)
    };
    if address == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // Page tables ready for writing, where the kernel can (since Linux 5.14); otherwise each page
    // faults at its first write.
    const MADV_POPULATE_WRITE: libc::c_int = 23;
    // SAFETY: exactly the mapping made above.
    unsafe { libc::madvise(address, bytes, MADV_POPULATE_WRITE) };
    // A forked child must neither write here nor keep it alive.
    // SAFETY: exactly the mapping made above.
    unsafe { libc::madvise(address, bytes, libc::MADV_DONTFORK) };
    let first = address.cast::<u64>();
    // SAFETY: page-aligned, mapped for `words` words, never unmapped, zero-initialised by
    // fallocate; the two parts do not overlap, and nobody else in this process has the mapping.
    let (head, words) = unsafe {
        (
            std::slice::from_raw_parts(first.cast::<AtomicU64>(), head_words),
            std::slice::from_raw_parts_mut(first.add(head_words), words - head_words),
        )
    };
    Ok(MappedBlock { head, words })
}

/// True where a file of `bytes` bytes is over the process's limit: growing it so far raises a signal.
fn exceeds_file_size_limit(bytes: u64) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills the structure passed.
    let code = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) };
    code == 0 && limit.rlim_cur != libc::RLIM_INFINITY && bytes > limit.rlim_cur
}

/// Files mapped for reading, as one; unmapped when dropped.
#[derive(Debug)]
pub struct ReadOnlyMap {
    address: *mut libc::c_void,
    bytes: usize,
}

impl ReadOnlyMap {
    /// Maps the first bytes of each of `parts`, as many as given, one behind the other; whole pages of all but the
    /// last.
    ///
    /// # Errors
    /// Errors of `mmap`.
    pub fn new(parts: &[(&File, u64)]) -> io::Result<Self> {
        let bytes = parts.iter().map(|&(_, bytes)| bytes as usize).sum();
        if bytes == 0 {
            return Ok(Self { address: std::ptr::null_mut(), bytes });
        }
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice, which holds the place of all parts.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_NONE, flags, -1, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = Self { address, bytes };
        let mut at = 0;
        for &(file, length) in parts.iter().filter(|(_, length)| *length > 0) {
            let flags = libc::MAP_SHARED | libc::MAP_FIXED;
            // SAFETY: replaces pages of the mapping made above, which nobody has seen yet.
            let part = unsafe {
                let place = address.byte_add(at);
                libc::mmap(place, length as usize, libc::PROT_READ, flags, file.as_raw_fd(), 0)
            };
            if part == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            at += length as usize;
        }
        Ok(map)
    }

    /// The bytes. Only for files that are never truncated meanwhile: our own journals.
    pub fn bytes(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: mapped for `bytes` bytes until drop; our journals only grow.
        unsafe { std::slice::from_raw_parts(self.address.cast(), self.bytes) }
    }
}

impl Drop for ReadOnlyMap {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: exactly the mapping made in `new`, and no borrow of it is left.
            unsafe { libc::munmap(self.address, self.bytes) };
        }
    }
}
