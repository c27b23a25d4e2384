//! Journals as bytes, without memory of their own: one may be as large as half of what its node has, and is in memory
//! already where it was written.

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::Mmap;

/// The bytes of a journal, as it is now.
///
/// # Errors
/// Those of opening and mapping it.
pub fn journal(path: &Path) -> io::Result<Mmap> {
    let file = File::open(path)?;
    // SAFETY: journals only grow, and nobody writes to what has been committed, which is all that readers look at.
    unsafe { Mmap::map(&file) }
}
