//! Resources of a journal: the lock of its process, and the room of its place.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::FlockOperation;

/// Locks the file as long as the process has it: a file found unlocked may be taken for a dead process's.
pub fn hold(file: &File) {
    // Some file systems have no locks.
    let _ = rustix::fs::flock(file, FlockOperation::NonBlockingLockShared);
}

/// Bytes that the journals of all ranks in the directory of `path` have taken of its file system, and their number.
pub fn held_beside(path: &Path) -> (u64, u64) {
    let entries = path.parent().map(std::fs::read_dir);
    let entries = entries.into_iter().flatten().flatten().flatten();
    let each = entries.filter_map(|entry| entry.metadata().ok()).map(|entry| entry.blocks() * 512);
    each.fold((0, 0), |(bytes, files), of_file| (bytes + of_file, files + 1))
}
