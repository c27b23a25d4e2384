//! Permissions of the files of a run.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Mode of files before the process's mask: nobody but the owner writes.
const FILE: u32 = 0o644;
/// The same of directories.
pub const DIRECTORY: u32 = 0o755;

/// Lets those read `file`, a file or a directory, who may read its directory, whatever the process's mask is. A file
/// system without permissions leaves it as it is.
pub fn as_directory(file: &Path) {
    let directory = file.parent().map(fs::metadata);
    let (Some(Ok(directory)), Ok(own)) = (directory, fs::metadata(file)) else { return };
    let read = if own.is_dir() { 0o055 } else { 0o044 };
    let mode = own.permissions().mode() & 0o777 | directory.permissions().mode() & read;
    _ = fs::set_permissions(file, Permissions::from_mode(mode));
}

/// Makes `directory` and those above it that are not there; it may be read as [`as_directory`] says.
///
/// # Errors
/// Errors of the file system.
pub fn create_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIRECTORY).create(directory)?;
    as_directory(directory);
    Ok(())
}

/// The empty file `path`, which nobody but its owner may write to, whatever the process's mask is.
///
/// # Errors
/// Errors of open(2).
pub fn create_file(path: &Path) -> io::Result<File> {
    options().write(true).truncate(true).open(path)
}

/// Options that create a file where there is none, as [`create_file`] does.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(FILE);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_read_the_directory_may_read_the_file() {
        let run = tempfile::tempdir().unwrap();
        let file = run.path().join("file");
        fs::write(&file, "x").unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        for (directory, before, after) in
            [(0o750, 0o600, 0o640), (0o700, 0o644, 0o644), (0o755, 0o600, 0o644), (0o770, 0o620, 0o660)]
        {
            set(run.path(), directory);
            set(&file, before);
            as_directory(&file);
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, after);
        }
        as_directory(&run.path().join("none"));
        let inner = run.path().join("nodes");
        create_directory(&inner).unwrap();
        for (directory, after) in [(0o750, 0o750), (0o700, 0o700), (0o755, 0o755)] {
            set(run.path(), directory);
            set(&inner, 0o700);
            create_directory(&inner).unwrap();
            assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, after);
        }
    }
}
