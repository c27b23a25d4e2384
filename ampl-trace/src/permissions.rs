//! Permissions of the files of a run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Lets those read `file` who may read its directory, whatever the process's mask is. A file system without permissions
/// leaves it as it is.
pub fn as_directory(file: &Path) {
    let directory = file.parent().map(fs::metadata);
    let (Some(Ok(directory)), Ok(own)) = (directory, fs::metadata(file)) else { return };
    let mode = own.permissions().mode() & 0o777 | directory.permissions().mode() & 0o044;
    _ = fs::set_permissions(file, Permissions::from_mode(mode));
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
    }
}
