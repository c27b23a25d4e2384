//! Traps of other users in directories that anybody may write to.
//!
//! Anybody may make entries in `/tmp` and `/dev/shm`. A link that another user has made there leads where that user
//! wants, and a directory there belongs to the user who came first.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Most links on a path, as on Linux.
const MOST_LINKS: usize = 40;
/// Mode of a directory that anybody may write to.
const SHARED: u32 = 0o002;
const ROOT: u32 = 0;

/// Refuses `directory` where another user than `user` or root has made it, or a link on the way to it, in a directory that
/// anybody may write to. The owner of such a directory may have made it, too.
///
/// For links this is the rule of `fs.protected_symlinks` in Linux, proc(5), which is not switched on everywhere. An entry
/// of `user` stays the user's: the sticky bit keeps others from replacing it.
///
/// # Errors
/// `PermissionDenied`, which names the entry; errors of the current directory. What is not there is no error.
pub fn refuse(directory: &Path, user: u32) -> io::Result<()> {
    let mut here = PathBuf::from("/");
    let mut ahead = steps(&std::path::absolute(directory)?);
    let mut links = 0;
    while let Some(step) = ahead.pop() {
        if step == ".." {
            here.pop();
            continue;
        }
        let entry = here.join(&step);
        let (Ok(found), Ok(place)) = (fs::symlink_metadata(&entry), fs::symlink_metadata(&here)) else {
            return Ok(());
        };
        if (found.is_symlink() || ahead.is_empty()) && is_foreign(&found, &place, user) {
            let why = format!("{} belongs to another user ({})", entry.display(), found.uid());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        if !found.is_symlink() {
            here = entry;
            continue;
        }
        links += 1;
        let Some(target) = fs::read_link(&entry).ok().filter(|_| links <= MOST_LINKS) else { return Ok(()) };
        if target.is_absolute() {
            here = PathBuf::from("/");
        }
        ahead.extend(steps(&target));
    }
    Ok(())
}

fn is_foreign(entry: &Metadata, place: &Metadata, user: u32) -> bool {
    place.mode() & SHARED != 0 && ![user, ROOT, place.uid()].contains(&entry.uid())
}

/// Names on `path`, the first one last.
fn steps(path: &Path) -> Vec<OsString> {
    let named = |step: Component<'_>| match step {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().rev().filter_map(named).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};

    use super::*;

    const MINE: u32 = 4321;
    const ANOTHER: u32 = 4322;

    /// A directory with the entries `link`, which leads to `home` beside it, and `made`; both of `owner`. `None` without
    /// the right to give files away.
    fn shared(mode: u32, owner: u32) -> Option<tempfile::TempDir> {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        for name in ["shared", "shared/made", "home", "home/inner"] {
            fs::create_dir(at(name)).unwrap();
        }
        symlink("../home", at("shared/link")).unwrap();
        fs::set_permissions(at("shared"), Permissions::from_mode(mode)).unwrap();
        let given = chown(at("home"), Some(MINE), None)
            .and_then(|()| chown(at("home/inner"), Some(MINE), None))
            .and_then(|()| chown(at("shared/made"), Some(owner), None))
            .and_then(|()| lchown(at("shared/link"), Some(owner), None));
        if given.is_err() {
            eprintln!("SKIPPED: not root, so no file can be another user's");
        }
        given.is_ok().then_some(scratch)
    }

    #[test]
    fn entries_of_others_in_shared_directories_are_refused() {
        for (mode, owner, refused) in [
            (0o1777, ANOTHER, true),
            (0o777, ANOTHER, true),
            // Others cannot make entries there.
            (0o775, ANOTHER, false),
            (0o1777, MINE, false),
            (0o1777, ROOT, false),
        ] {
            let Some(scratch) = shared(mode, owner) else { return };
            for name in ["shared/link", "shared/link/inner", "shared/link/none/none", "shared/made"] {
                let found = refuse(&scratch.path().join(name), MINE);
                assert_eq!(found.is_err(), refused, "{mode:o} {owner} {name}: {found:?}");
                let why = found.map_or_else(|error| error.to_string(), |()| String::new());
                assert!(!refused || why.contains(&owner.to_string()), "{why}");
            }
        }
    }

    #[test]
    fn a_link_to_a_link_of_another_is_refused() {
        let Some(scratch) = shared(0o1777, ANOTHER) else { return };
        let at = |name: &str| scratch.path().join(name);
        symlink(at("shared/link"), at("way")).unwrap();
        assert!(refuse(&at("way/inner"), MINE).is_err() && refuse(&at("home/inner"), MINE).is_ok());
        // A directory within another's is where the user wants it.
        fs::create_dir(at("shared/made/inner")).unwrap();
        assert!(refuse(&at("shared/made/inner"), MINE).is_ok());
    }

    #[test]
    fn what_is_not_there_is_not_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let at = |name: &str| scratch.path().join(name);
        symlink("loop", at("loop")).unwrap();
        symlink("none", at("dangling")).unwrap();
        for name in ["none", "none/none", "loop/x", "dangling/x", "../none"] {
            assert!(refuse(&at(name), MINE).is_ok(), "{name}");
        }
    }
}
