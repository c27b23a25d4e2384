//! Directories for journals: made where they are missing, and removed when the last journal has gone.
//!
//! A [mark] shows what ampl has made, so that it goes with the last job that uses it, whoever came first; older
//! directories stay. A directory that is not empty is never removed; a job that starts while another one ends makes
//! again what has just gone. What another user has [planted] is not used.
//!
//! [planted]: ampl_trace::planted
//! [mark]: MARK

use std::fs::{self, DirBuilder, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use ampl_trace::planted;

use crate::environment::node_directory;

/// A file in every directory that was made for the journals of a run, and may hold others'. Empty: a place may have no
/// room for more.
const MARK: &str = ".made-by-ampl";

/// Most attempts where others come in between.
const TRIES: usize = 100;

/// Makes the run's own `directory`, and what is missing above it; for this user only.
///
/// # Errors
/// Errors of mkdir(2), where it isn't there already; another user's link or directory.
pub fn make(directory: &Path) -> io::Result<()> {
    // SAFETY: never fails.
    let user = unsafe { libc::getuid() };
    trusted(directory, user)?;
    make_in(directory, &node_directory())?;
    // Once more: another may have come in between.
    trusted(directory, user)
}

/// Refuses the entries on the way to `directory` that ampl uses by name and another than `user` has made.
fn trusted(directory: &Path, user: u32) -> io::Result<()> {
    let node = node_directory();
    let is_node = |above: &&Path| above.file_name() == node.file_name();
    directory.ancestors().skip(1).filter(is_node).try_for_each(|above| planted::refuse(above, user))?;
    planted::refuse(directory, user)
}

/// Removes the run's own `directory` once its last journal has gone, and those above it that were made for it and are
/// unused.
pub fn leave(directory: &Path) {
    leave_in(directory, &node_directory());
}

/// [`make`], where `node` is ampl's by its name and needs no mark.
fn make_in(directory: &Path, node: &Path) -> io::Result<()> {
    for _ in 1..TRIES {
        match make_once(directory, node, false) {
            // Its parent has gone since it was found.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            made => return made,
        }
    }
    make_once(directory, node, false)
}

fn make_once(directory: &Path, node: &Path, marked: bool) -> io::Result<()> {
    let make = || match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {
            if marked && directory != node {
                // Without it the directory stays, and does no harm.
                let _ = File::create_new(directory.join(MARK));
            }
            Ok(())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Err(error),
        Err(error) => match fs::metadata(directory) {
            Ok(there) if there.is_dir() => Ok(()),
            // It has gone since mkdir(2) found it.
            Err(gone)
                if error.kind() == ErrorKind::AlreadyExists
                    && gone.kind() == ErrorKind::NotFound
                    && !directory.is_symlink() =>
            {
                Err(gone)
            }
            _ => Err(error),
        },
    };
    match (make(), directory.parent()) {
        (Err(error), Some(above)) if error.kind() == ErrorKind::NotFound && above != Path::new("") => {
            make_once(above, node, true)?;
            make()
        }
        (made, _) => made,
    }
}

fn leave_in(directory: &Path, node: &Path) {
    if fs::remove_dir(directory).is_err() {
        return;
    }
    for above in directory.ancestors().skip(1) {
        let removed = if above == node { fs::remove_dir(above).is_ok() } else { remove_made(above) };
        if !removed {
            return;
        }
    }
}

/// Removes `directory` if it was made by ampl and holds nothing.
fn remove_made(directory: &Path) -> bool {
    let mark = directory.join(MARK);
    for _ in 0..TRIES {
        let Ok(entries) = fs::read_dir(directory) else { return false };
        let mut entries = entries.map(|entry| entry.map(|entry| entry.file_name()));
        if !matches!((entries.next(), entries.next()), (Some(Ok(only)), None) if only == MARK) {
            return false;
        }
        let _ = fs::remove_file(&mark);
        match fs::remove_dir(directory) {
            Ok(()) => return true,
            // Another job has come meanwhile; it or the next round is to find the mark.
            Err(_) => _ = File::create_new(&mark),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Scratch(tempfile::TempDir);

    impl Scratch {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn at(&self, name: &str) -> std::path::PathBuf {
            self.0.path().join(name)
        }
    }

    const NODE: &str = "/nowhere/ampl-7";

    #[test]
    fn what_was_made_goes_with_the_last_that_uses_it() {
        let scratch = Scratch::new();
        let node = Path::new(NODE);
        let [first, second] = ["a/b/1", "a/b/2"].map(|name| scratch.at(name));
        make_in(&first, node).unwrap();
        make_in(&second, node).unwrap();
        fs::write(second.join("rank"), "").unwrap();
        // In use: it stays.
        leave_in(&second, node);
        leave_in(&first, node);
        assert!(!first.exists() && second.join("rank").exists());
        fs::remove_file(second.join("rank")).unwrap();
        leave_in(&second, node);
        assert_eq!(fs::read_dir(scratch.0.path()).unwrap().count(), 0);
        // Once more, and nobody to leave.
        leave_in(&second, node);
    }

    #[test]
    fn what_was_there_stays() {
        let scratch = Scratch::new();
        let node = Path::new(NODE);
        fs::create_dir_all(scratch.at("a/b")).unwrap();
        let own = scratch.at("a/b/c/1");
        make_in(&own, node).unwrap();
        leave_in(&own, node);
        assert!(scratch.at("a/b").exists() && !scratch.at("a/b/c").exists());
        // Another's files stay.
        make_in(&own, node).unwrap();
        fs::write(scratch.at("a/b/c/file"), "").unwrap();
        leave_in(&own, node);
        assert!(scratch.at("a/b/c/file").exists() && !own.exists());
    }

    #[test]
    fn what_another_user_has_planted_is_not_used() {
        use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
        const ANOTHER: u32 = 4322;
        let scratch = Scratch::new();
        let name = node_directory().file_name().unwrap().to_owned();
        for shared in ["links", "directories"] {
            fs::create_dir(scratch.at(shared)).unwrap();
            fs::set_permissions(scratch.at(shared), fs::Permissions::from_mode(0o1777)).unwrap();
        }
        let [link, directory] = ["links", "directories"].map(|shared| scratch.at(shared).join(&name));
        fs::create_dir(scratch.at("home")).unwrap();
        symlink(scratch.at("home"), &link).unwrap();
        fs::create_dir(&directory).unwrap();
        // One's own are.
        for place in [&link, &directory] {
            make(&place.join("1")).unwrap();
            fs::remove_dir(place.join("1")).unwrap();
        }
        if lchown(&link, Some(ANOTHER), None).and_then(|()| chown(&directory, Some(ANOTHER), None)).is_err() {
            eprintln!("SKIPPED: not root, so no file can be another user's");
            return;
        }
        for place in [&link, &directory] {
            let refused = make(&place.join("1")).expect_err("another's");
            assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
            assert!(refused.to_string().contains(&*place.to_string_lossy()), "{refused}");
            assert_eq!(fs::read_dir(place).unwrap().count(), 0);
        }
    }

    #[test]
    fn the_node_s_directory_needs_no_mark() {
        let scratch = Scratch::new();
        let node = scratch.at("ampl-0");
        make_in(&node.join("1"), &node).unwrap();
        assert_eq!(fs::read_dir(&node).unwrap().count(), 1);
        leave_in(&node.join("1"), &node);
        assert!(!node.exists());
    }

    #[test]
    fn what_cannot_be_made_is_told() {
        let scratch = Scratch::new();
        fs::write(scratch.at("file"), "").unwrap();
        assert!(make_in(&scratch.at("file/1"), Path::new(NODE)).is_err());
        std::os::unix::fs::symlink(scratch.at("none"), scratch.at("link")).unwrap();
        assert!(make_in(&scratch.at("link/1"), Path::new(NODE)).is_err());
        // Not even root makes a directory there; that there is none is not why.
        let refused =
            make_in(Path::new("/sys/ampl-none/1"), Path::new(NODE)).expect_err("no place for directories");
        assert!(
            [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem].contains(&refused.kind()),
            "{refused}"
        );
    }

    #[test]
    fn jobs_that_come_and_go_do_each_other_no_harm() {
        let scratch = Scratch::new();
        std::thread::scope(|scope| {
            for job in 0..4 {
                let place = scratch.at("a/b");
                scope.spawn(move || {
                    for run in 0..100 {
                        let own = place.join(format!("{job}-{run}"));
                        make_in(&own, Path::new(NODE)).unwrap();
                        fs::write(own.join("rank"), "").expect("nobody else removes it");
                        fs::remove_file(own.join("rank")).unwrap();
                        leave_in(&own, Path::new(NODE));
                        assert!(!own.exists());
                    }
                });
            }
        });
        // The last to leave may have met another one that was about to.
        let left = scratch.at("a/b");
        make_in(&left.join("1"), Path::new(NODE)).unwrap();
        leave_in(&left.join("1"), Path::new(NODE));
        assert_eq!(fs::read_dir(scratch.0.path()).unwrap().count(), 0);
    }
}
