//! Files and directories that appear when they are whole.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{Builder, NamedTempFile};

/// Parts that are not in their places yet. A signal ends a process without dropping its values.
static PARTS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn parts() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all parts before a signal ends the process, and returns their number. From here on whoever makes one, or puts
/// one in its place, waits for the end.
pub fn abandon() -> usize {
    let parts = parts();
    parts.iter().for_each(|part| remove(part));
    let count = parts.len();
    std::mem::forget(parts);
    count
}

/// Removes a file or a directory, into which another thread may still be writing files.
fn remove(part: &Path) {
    for _ in 0..100 {
        let removed = if part.is_dir() { fs::remove_dir_all(part) } else { fs::remove_file(part) };
        if removed.err().is_none_or(|error| error.kind() != ErrorKind::DirectoryNotEmpty) {
            return;
        }
    }
}

/// A part in the list as long as it is there.
#[derive(Debug)]
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        parts().remove(&self.0);
    }
}

/// Files of a directory, written elsewhere until all are whole; removed if dropped before.
#[derive(Debug)]
pub struct Place {
    target: PathBuf,
    /// Beside `target`, or in it where it is there already.
    part: Listed,
    names: Vec<String>,
}

impl Place {
    /// A place for files of those names in `target`; without names, for the whole of `target`, which is new.
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
        let mut parts = parts();
        fs::create_dir_all(&part)?;
        parts.insert(part.clone());
        Ok(Self { target: target.to_owned(), part: Listed(part), names })
    }

    /// The path of the file of that name until all are whole.
    pub fn path(&self, name: &str) -> PathBuf {
        self.part.0.join(name)
    }

    /// Puts the files under their final names.
    ///
    /// # Errors
    /// Errors of renaming; where the whole of `target` is to be new, and is there.
    pub fn finish(self) -> io::Result<()> {
        let _parts = parts();
        if !self.target.exists() {
            return fs::rename(&self.part.0, &self.target);
        }
        if self.names.is_empty() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let each = |name: &String| fs::rename(self.path(name), self.target.join(name));
        self.names.iter().try_for_each(each)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Empty after the renaming.
        let _parts = parts();
        let _ = fs::remove_dir_all(&self.part.0);
    }
}

/// A file that is written elsewhere until it is whole; removed if dropped before.
#[derive(Debug)]
pub struct Part {
    file: NamedTempFile,
    listed: Listed,
}

impl Part {
    /// A part beside `target`, readable as other files, where the user's mask allows it.
    ///
    /// # Errors
    /// Where it cannot be made.
    pub fn beside(target: &Path) -> io::Result<Self> {
        let open = Permissions::from_mode(0o666);
        let mut parts = parts();
        let file = Builder::new().permissions(open).tempfile_in(directory_of(target))?;
        parts.insert(file.path().to_owned());
        let listed = Listed(file.path().to_owned());
        Ok(Self { file, listed })
    }

    /// The file.
    pub fn as_file(&self) -> &fs::File {
        self.file.as_file()
    }

    /// Puts it under the name `target`, which is new.
    ///
    /// # Errors
    /// Errors of renaming; where `target` is there.
    pub fn finish(self, target: &Path) -> io::Result<()> {
        self.put(|file| file.persist_noclobber(target))
    }

    /// Puts it under the name `target`, in place of the file there.
    ///
    /// # Errors
    /// Errors of renaming.
    pub fn replace(self, target: &Path) -> io::Result<()> {
        self.put(|file| file.persist(target))
    }

    fn put(
        self,
        put: impl FnOnce(NamedTempFile) -> Result<fs::File, tempfile::PersistError>,
    ) -> io::Result<()> {
        let Self { file, listed } = self;
        let held = parts();
        let done = put(file).map(|_| ()).map_err(|error| error.error);
        drop(held);
        drop(listed);
        done
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Errors do not name the part then.
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

/// Way out of an error of writing a file.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room, or name a place with more with -o",
        ErrorKind::FileTooLarge => "raise 'ulimit -f', or leave out calls with --from, --until or --ranks",
        ErrorKind::AlreadyExists => "remove it, or name another with -o",
        _ => "name a directory that you may write with -o",
    }
}

/// The directory that holds `file`.
pub fn directory_of(file: &Path) -> &Path {
    let directory = file.parent().filter(|directory| !directory.as_os_str().is_empty());
    directory.unwrap_or(Path::new("."))
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
    #[test]
    fn what_is_there_when_all_is_whole_stays() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("out");
        let place = Place::new(&target, Vec::new()).unwrap();
        fs::write(place.path("a"), "new").unwrap();
        // Another export was faster.
        fs::create_dir(&target).unwrap();
        fs::write(target.join("a"), "old").unwrap();
        assert_eq!(place.finish().unwrap_err().kind(), ErrorKind::AlreadyExists);
        let mut part = Part::beside(&target.join("a")).unwrap();
        part.write_all(b"new").unwrap();
        assert_eq!(part.finish(&target.join("a")).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(target.join("a")).unwrap(), b"old");
        Part::beside(&target).unwrap().replace(&target.join("a")).unwrap();
        assert_eq!(fs::read(target.join("a")).unwrap(), b"");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert_eq!(fs::read_dir(target).unwrap().count(), 1);
    }
}
