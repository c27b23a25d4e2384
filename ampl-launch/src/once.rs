//! Messages that every rank of a job could print: the first on its node does.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;

use crate::environment;

/// Age from which the marks of a failed start may be removed.
const STALE: Duration = Duration::from_secs(60);

/// True where no other process of this job has asked the same of `message` on this node. Without a launcher there
/// are no others.
pub fn is_first(message: &str) -> bool {
    let Some(launch) = environment::launch() else { return true };
    let user = rustix::process::getuid().as_raw();
    let mut hasher = DefaultHasher::new();
    (user, &launch.job, message).hash(&mut hasher);
    let begins = format!(".ampl-said-{user}-");
    let place = std::env::temp_dir();
    let mark = place.join(format!("{begins}{:016x}", hasher.finish()));
    match File::create_new(&mark) {
        Ok(_) => {
            // Alone on its node, no other process would remove the mark.
            if launch.on_node <= 1 {
                let _ = fs::remove_file(&mark);
            }
            sweep(&place, &begins, &mark);
            true
        }
        // Better twice than not at all.
        Err(error) => error.kind() != ErrorKind::AlreadyExists || leave(&mark, user, launch.on_node).is_err(),
    }
}

/// Counts this process; the last of the node removes the mark.
///
/// # Errors
/// Errors of opening the mark; another user's link or file, which is not written to.
fn leave(mark: &Path, user: u32, on_node: u64) -> io::Result<()> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let mut file = match OpenOptions::new().append(true).custom_flags(flags as i32).open(mark) {
        // The last of the node has come in between.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    let found = file.metadata()?;
    if found.uid() != user || !found.is_file() || found.nlink() > 1 {
        return Err(ErrorKind::PermissionDenied.into());
    }
    file.write_all(b"+")?;
    let others = file.metadata()?.len();
    if others + 1 >= on_node {
        let _ = fs::remove_file(mark);
    }
    Ok(())
}

/// Removes marks of jobs that ended before all ranks had asked.
fn sweep(place: &Path, begins: &str, own: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let name: OsString = entry.file_name();
        let old = || {
            let changed = entry.metadata().and_then(|data| data.modified()).ok()?;
            changed.elapsed().ok().filter(|&age| age > STALE)
        };
        if name.to_string_lossy().starts_with(begins) && entry.path() != own && old().is_some() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_own_file_is_counted_in() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        let user = rustix::process::getuid().as_raw();
        fs::write(at("precious"), "").unwrap();
        std::os::unix::fs::symlink(at("precious"), at("link")).unwrap();
        fs::write(at("mark"), "").unwrap();
        assert!(leave(&at("link"), user, 3).is_err() && leave(&at("mark"), user + 1, 3).is_err());
        fs::hard_link(at("precious"), at("second")).unwrap();
        assert!(leave(&at("second"), user, 3).is_err());
        assert_eq!((fs::read(at("precious")).unwrap(), fs::read(at("mark")).unwrap()), (vec![], vec![]));
        // Three processes: the first has made it.
        leave(&at("mark"), user, 3).unwrap();
        assert_eq!(fs::read(at("mark")).unwrap(), b"+");
        leave(&at("mark"), user, 3).unwrap();
        assert!(!at("mark").exists());
        leave(&at("mark"), user, 3).unwrap();
    }
}
