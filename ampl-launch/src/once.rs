//! Messages that every rank of a job could print: the first on its node does.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

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
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            leave(&mark, launch.on_node);
            false
        }
        // Better twice than not at all.
        Err(_) => true,
    }
}

/// Counts this process; the last of the node removes the mark.
fn leave(mark: &Path, on_node: u64) {
    let counted = OpenOptions::new().append(true).open(mark).and_then(|mut file| {
        file.write_all(b"+")?;
        Ok(file.metadata()?.len())
    });
    if counted.is_ok_and(|others| others + 1 >= on_node) {
        let _ = fs::remove_file(mark);
    }
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
