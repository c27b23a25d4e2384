//! Numbers of the files that ampl keeps open: the program's own get the small ones that they would get without it.

use std::os::fd::{AsFd, OwnedFd};

/// The least number of such a file, where the process may have that many.
pub const FIRST: i32 = 200;

/// The same file under a high number, where there is one.
pub fn high<F: AsFd + From<OwnedFd>>(file: F) -> F {
    rustix::io::fcntl_dupfd_cloexec(&file, FIRST).map_or(file, F::from)
}
