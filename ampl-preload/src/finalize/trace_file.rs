//! The file of the trace, in the run directory.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use ampl_trace::permissions::create_file;

use crate::report::message;

/// The new file `path`. Its directory is made again, with the permissions `mode`, where it has been removed: journals of a
/// run without a directory would stay in the node's memory.
///
/// # Errors
/// Errors of mkdir(2) and open(2).
pub fn create(path: &Path, mode: u32) -> io::Result<File> {
    let Some(directory) = path.parent() else { return create_file(path) };
    match create_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        made => return made,
    }
    fs::create_dir(directory)?;
    // A file system without permissions has the directory all the same.
    let _ = fs::set_permissions(directory, Permissions::from_mode(mode));
    message(&format!(
        "the run directory was removed while the job ran: it is made again ({})",
        directory.display()
    ));
    create_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_has_gone_is_made_again() {
        let scratch = tempfile::tempdir().unwrap();
        let run = scratch.path().join("run");
        create(&run.join("trace.ampl"), 0o750).unwrap();
        assert_eq!(fs::metadata(&run).unwrap().permissions().mode() & 0o777, 0o750);
        // Those above it are not.
        assert!(create(&run.join("none/run/trace.ampl"), 0o750).is_err());
        // Another's link is not followed to nowhere.
        std::os::unix::fs::symlink(scratch.path().join("nowhere"), scratch.path().join("link")).unwrap();
        assert!(create(&scratch.path().join("link/trace.ampl"), 0o750).is_err());
        assert!(!scratch.path().join("nowhere").exists());
    }
}
