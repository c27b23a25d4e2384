//! Journals that are not needed any more, and the places that were made for them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use ampl_core::naming::node_directory_name;

/// A file in directories that the library has made for the journals of several runs.
const MARK: &str = ".made-by-ampl";

/// Removes `files` and directories that are empty then.
pub fn journals(files: &[PathBuf]) {
    let places: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    for file in files {
        // A file that cannot be removed is left behind, like any other.
        let _ = fs::remove_file(file);
    }
    places.into_iter().for_each(place);
}

/// Removes the directory of a run's journals where it is empty, and its parents where ampl made them and they are
/// empty.
pub fn place(directory: &Path) {
    if fs::remove_dir(directory).is_err() {
        return;
    }
    let node = node_directory_name(rustix::process::getuid().as_raw());
    for above in directory.ancestors().skip(1) {
        let is_node = above.file_name().is_some_and(|name| name == &*node);
        if !is_node {
            let mut entries = fs::read_dir(above).into_iter().flatten().flatten();
            let only = (entries.next(), entries.next());
            if !matches!(&only, (Some(only), None) if only.file_name() == MARK) {
                return;
            }
            let _ = fs::remove_file(above.join(MARK));
        }
        if fs::remove_dir(above).is_err() {
            return;
        }
    }
}
