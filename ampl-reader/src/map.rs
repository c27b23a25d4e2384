//! Files as bytes, mapped: they take no memory of their own.
//!
//! A journal may be as large as half of its node's memory, and is in memory already where it was written. A trace file
//! is read where its bytes are used.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// The bytes of a trace file, or of a journal as it is now.
///
/// # Errors
/// Errors of opening and mapping it.
pub fn file(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: journals only grow, and nothing writes to what has been committed, which is all that readers use.
    // Trace files are written once, front to back, and never cut.
    unsafe { Mmap::map(&file) }
}
