//! Files and directories that appear when they are whole.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

/// Files of a directory, written elsewhere until all are whole; removed if dropped before.
#[derive(Debug)]
pub struct Place {
    target: PathBuf,
    /// Beside `target`, or in it where it is there already.
    part: PathBuf,
    names: Vec<String>,
}

impl Place {
    /// A place for files of those names in `target`.
    ///
    /// # Errors
    /// Where no directory can be made there.
    pub fn new(target: &Path, names: Vec<String>) -> io::Result<Self> {
        let own = format!(".part-{}", std::process::id());
        let part = match (target.is_dir(), target.file_name()) {
            (false, Some(name)) => {
                let name = format!(".{}{own}", name.to_string_lossy());
                target.with_file_name(name)
            }
            _ => target.join(own),
        };
        fs::create_dir_all(&part)?;
        Ok(Self { target: target.to_owned(), part, names })
    }

    /// The path of the file of that name until all are whole.
    pub fn path(&self, name: &str) -> PathBuf {
        self.part.join(name)
    }

    /// Puts the files under their final names.
    ///
    /// # Errors
    /// Errors of renaming.
    pub fn finish(self) -> io::Result<()> {
        if !self.target.exists() {
            return fs::rename(&self.part, &self.target);
        }
        let each = |name: &String| fs::rename(self.part.join(name), self.target.join(name));
        self.names.iter().try_for_each(each)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Empty after the renaming.
        let _ = fs::remove_dir_all(&self.part);
    }
}

/// A file beside `file`, to be put in its place when it is whole; as other files, where the user's mask allows it.
///
/// # Errors
/// Where it cannot be made.
pub fn part_beside(file: &Path) -> io::Result<NamedTempFile> {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    let open = Permissions::from_mode(0o666);
    Builder::new().permissions(open).tempfile_in(directory.unwrap_or(Path::new(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_half_written_has_the_final_name() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        let names = || vec!["a.csv".to_owned(), "b.csv".to_owned()];
        let place = Place::new(&target, names()).unwrap();
        fs::write(place.path("a.csv"), "half").unwrap();
        assert!(!target.exists());
        drop(place);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        // What is in the directory already stays.
        fs::create_dir(&target).unwrap();
        fs::write(target.join("c.csv"), "old").unwrap();
        let place = Place::new(&target, names()).unwrap();
        names().iter().for_each(|name| fs::write(place.path(name), "whole").unwrap());
        assert!(!target.join("a.csv").exists());
        place.finish().unwrap();
        assert_eq!(fs::read_dir(&target).unwrap().count(), 3);
    }
}
