//! Places of one machine that are to be as other machines: their own memory, names, clocks and networks.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// `words` where a file system of `size` is mounted on `place`, seen by them alone; `None`, which is said, where that
/// cannot be.
pub fn on_small(size: &str, place: &Path, words: &[OsString]) -> Option<Vec<OsString>> {
    let script = "mount -t tmpfs -o size=$0 ampl-test \"$1\" && shift && exec \"$@\"";
    let namespace = |words: &[OsString]| -> Vec<OsString> {
        let start = ["unshare", "--mount", "sh", "-c", script, size].map(OsString::from);
        [&start[..], &[place.into()], words].concat()
    };
    let probe = namespace(&["true".into()]);
    let made = Command::new(&probe[0]).args(&probe[1..]).output();
    if !made.is_ok_and(|made| made.status.success()) {
        eprintln!("SKIPPED: no file system can be mounted in a namespace here (root can)");
        return None;
    }
    Some(namespace(words))
}
