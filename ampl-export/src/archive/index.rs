//! The index of an archive: a row for each record, so that only new records are read.

use std::collections::HashMap;
use std::fmt::{Display, Formatter};
use std::fs::{self, Metadata};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ampl_analysis::history::Row;
use ampl_analysis::record::{Fact, Record};
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

use super::parse;
use crate::place::Part;

/// The index in the archive, of the archive's owner.
const NAME: &str = ".ampl-history";
/// First line of an index of this version.
const HEAD: &str = "{\"ampl-history\":2}";
/// Directories inside each other that are looked into.
const DEEPEST: usize = 8;
/// Bytes of a file that may be a record; those of this version have less.
const LONGEST: u64 = 1 << 16;

/// A file of the archive.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    bytes: u64,
    changed_ns: u64,
    /// The row, or why the file is no record.
    row: Result<Row, String>,
}

/// Rows of an archive.
#[derive(Debug, Default)]
pub struct Archive {
    /// A row for each record.
    pub rows: Vec<Row>,
    /// Files that end in `.json` and are no records, and why.
    pub others: Vec<(String, String)>,
    /// Records that this user may not read.
    pub denied: u64,
    /// Directories that this user may not look into.
    pub closed: u64,
    /// Links, directories too deep inside others, and records whose names are no text.
    pub passed: u64,
    /// Files that had to be read, as the index did not have them.
    pub read: u64,
}

/// Reason why a file gives no record.
#[derive(Debug)]
pub enum NoRecord {
    /// It cannot be read, which says nothing of its contents.
    Unread(io::Error),
    /// It is another file.
    Other(String),
}

impl Display for NoRecord {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unread(error) => error.fmt(out),
            Self::Other(why) => why.fmt(out),
        }
    }
}

/// Rows of all records in `directory` and the directories in it. The archive's owner and root keep the index there; others
/// use it as far as it goes, and keep one in their `cache`.
///
/// # Errors
/// `directory` cannot be read.
pub fn open(directory: &Path, cache: Option<&Path>, mut progress: impl FnMut()) -> io::Result<Archive> {
    let owner = fs::metadata(directory)?.uid();
    let own = rustix::process::geteuid().as_raw();
    let shared = directory.join(NAME);
    let personal = cache.and_then(|cache| personal(directory, cache));
    let mut known = load(&shared, owner);
    let mut other = None;
    let before = known.as_ref().map(HashMap::len);
    let mut files = Files::default();
    walk(directory, directory, 0, true, &mut files)?;
    let mut archive = Archive { closed: files.closed, passed: files.passed, ..Archive::default() };
    let mut entries = Vec::with_capacity(files.found.len());
    for (name, metadata) in files.found {
        let (bytes, changed_ns) = (metadata.len(), changed_ns(&metadata));
        let same = |entry: &Entry| entry.bytes == bytes && entry.changed_ns == changed_ns;
        let mut entry = known.as_mut().and_then(|known| known.remove(&name)).filter(same);
        if entry.is_none() {
            // Only where the first does not do: reading one takes its time.
            let other: &mut HashMap<String, Entry> = other.get_or_insert_with(|| {
                let loaded = personal.as_deref().and_then(|place| load(place, own));
                loaded.unwrap_or_default()
            });
            entry = other.remove(&name).filter(same);
        }
        let entry = match entry {
            Some(entry) => entry,
            None => {
                archive.read += 1;
                progress();
                let row = match read(&directory.join(&name)) {
                    Ok(record) => Ok(Row::of(record, name.clone())),
                    Err(NoRecord::Other(why)) => Err(why),
                    Err(NoRecord::Unread(error)) => {
                        archive.denied += u64::from(error.kind() == io::ErrorKind::PermissionDenied);
                        continue;
                    }
                };
                Entry { bytes, changed_ns, row }
            }
        };
        entries.push((name, entry));
    }
    // Of an index that has what is there, nothing is written.
    let keeps = own == owner || own == 0;
    if archive.read > archive.denied || keeps && before != Some(entries.len()) {
        let in_archive = keeps.then_some((&shared, files.open));
        let places = in_archive.into_iter().chain(personal.iter().map(|place| (place, false)));
        let _ = places.into_iter().find(|(place, open)| store(place, &entries, *open).is_ok());
    }
    for (name, entry) in entries {
        match entry.row {
            Ok(row) => archive.rows.push(row),
            Err(why) => archive.others.push((name, why)),
        }
    }
    archive.rows.sort_by(|a, b| (a.started_ns, &a.record).cmp(&(b.started_ns, &b.record)));
    Ok(archive)
}

/// Place for an index of `directory` in a user's `cache`.
fn personal(directory: &Path, cache: &Path) -> Option<PathBuf> {
    let path = directory.canonicalize().ok()?;
    let plain = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '_' };
    let name: String = path.to_string_lossy().chars().map(plain).collect();
    // Names of files have a limit.
    let from = name.char_indices().rev().nth(180).map_or(0, |(at, _)| at);
    Some(cache.join("ampl").join(format!("history{}", &name[from..])))
}

/// Files of an archive.
#[derive(Debug)]
struct Files {
    /// Files that end in `.json`, by their names below the archive.
    found: Vec<(String, Metadata)>,
    /// Directories that may not be looked into.
    closed: u64,
    /// Entries that are passed over.
    passed: u64,
    /// True where all users who can look into the archive may read them all.
    open: bool,
}

impl Default for Files {
    fn default() -> Self {
        Self { found: Vec::new(), closed: 0, passed: 0, open: true }
    }
}

/// Adds the files in `directory` that end in `.json`, by their names below `top`. The directory is `open` where all users
/// may reach them.
fn walk(top: &Path, directory: &Path, depth: usize, open: bool, files: &mut Files) -> io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        // Links may lead round in a ring, or to files that their maker may not read.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if depth == DEEPEST {
                files.passed += 1;
                continue;
            }
            // Directories of others may be closed.
            let open = open && entry.metadata().is_ok_and(|metadata| metadata.mode() & 0o1 != 0);
            let walked = walk(top, &path, depth + 1, open, files);
            files.closed += u64::from(walked.is_err());
        } else if kind.is_symlink() {
            files.passed += 1;
        } else if kind.is_file()
            && name.as_encoded_bytes().ends_with(b".json")
            && let (Ok(metadata), Ok(below)) = (entry.metadata(), path.strip_prefix(top))
        {
            let Some(name) = below.to_str() else {
                files.passed += 1;
                continue;
            };
            files.open &= open && metadata.mode() & 0o4 != 0;
            files.found.push((name.to_owned(), metadata));
        }
    }
    Ok(())
}

fn changed_ns(metadata: &Metadata) -> u64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// The record in the file `path`.
///
/// # Errors
/// Reason why there is none.
pub fn read(path: &Path) -> Result<Record, NoRecord> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(NoRecord::Unread)?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(NoRecord::Unread)?;
    if bytes.len() as u64 > LONGEST {
        return Err(NoRecord::Other(format!("it has more than {} KiB", LONGEST >> 10)));
    }
    parse(&bytes).map_err(NoRecord::Other)
}

/// Facts of the last finished run before row `at` of `rows`, and of that row's, from the records in `directory`; none where a
/// record has gone.
pub fn facts_around(directory: &Path, rows: &[Row], at: usize) -> (Vec<Fact>, Vec<Fact>) {
    let facts = |at: usize| -> Vec<Fact> {
        let record = rows.get(at).and_then(|row| read(&directory.join(&row.record)).ok());
        record.map(|record| record.metadata).unwrap_or_default()
    };
    let before = (0..at).rev().find(|&at| rows[at].complete).unwrap_or(at);
    (facts(before), facts(at))
}

/// The index in `place`; `None` without one of this version that `owner` or root has written, and only they can write.
/// Lines that are damaged are left out: their files are read.
fn load(place: &Path, owner: u32) -> Option<HashMap<String, Entry>> {
    // Anybody may have put a pipe there.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::File::from(rustix::fs::open(place, flags, Mode::empty()).ok()?);
    let metadata = file.metadata().ok()?;
    let is_safe = metadata.is_file() && [owner, 0].contains(&metadata.uid()) && metadata.mode() & 0o22 == 0;
    is_safe.then_some(())?;
    let mut lines = BufReader::with_capacity(1 << 20, file).lines();
    (lines.next()?.ok()? == HEAD).then_some(())?;
    Some(lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect())
}

/// Writes the index to `place`, which others may read where it is `open`.
fn store(place: &Path, entries: &[(String, Entry)], open: bool) -> io::Result<()> {
    if place.file_name().is_some_and(|name| name != NAME) {
        fs::create_dir_all(place.parent().unwrap_or(Path::new(".")))?;
    }
    let mut part = Part::beside(place)?;
    let mut out = BufWriter::with_capacity(1 << 20, &mut part);
    writeln!(out, "{HEAD}")?;
    for entry in entries {
        serde_json::to_writer(&mut out, entry)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    drop(out);
    let mode = if open { 0o644 } else { 0o600 };
    part.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    part.replace(place)
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    fn record(started: u64, app: &str) -> String {
        format!("{{\"schema\": 1, \"started_ns\": {started}, \"app\": {app:?}, \"ranks\": 4}}")
    }

    #[test]
    fn only_what_the_index_lacks_is_read() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("ann/x")).unwrap();
        for number in 0..200_u64 {
            fs::write(at(&format!("ann/x/{number}.json")), record(1000 - number, "a")).unwrap();
        }
        fs::write(at("ann/broken.json"), "{").unwrap();
        fs::write(at("ann/notes.txt"), "no record").unwrap();
        let listed = || {
            let mut counted = 0;
            let archive = open(place.path(), None, || counted += 1).unwrap();
            assert_eq!(counted, archive.read);
            archive
        };
        let first = listed();
        assert_eq!((first.rows.len(), first.others.len(), first.read), (200, 1, 201));
        assert!(first.rows.is_sorted_by_key(|row| row.started_ns));
        let again = listed();
        assert_eq!((again.read, again.others.len()), (0, 1));
        assert_eq!(again.rows, first.rows);
        // New, changed and removed files.
        fs::write(at("new.json"), record(5, "b")).unwrap();
        fs::write(at("ann/x/7.json"), record(7, "changed")).unwrap();
        fs::remove_file(at("ann/x/8.json")).unwrap();
        let later = listed();
        assert_eq!((later.rows.len(), later.read), (200, 2));
        assert!(later.rows.iter().any(|row| row.app == "changed") && later.rows[0].app == "b");
        assert_eq!(listed().read, 0);
        // A damaged index costs time only.
        let text = fs::read_to_string(at(NAME)).unwrap();
        fs::write(at(NAME), &text[..text.len() / 2]).unwrap();
        let damaged = listed();
        assert_eq!(damaged.rows, later.rows);
        assert!(damaged.read > 0 && damaged.read < 201);
        fs::write(at(NAME), "\0").unwrap();
        assert_eq!((listed().read, listed().read), (201, 0));
        assert!(open(&at("none"), None, || ()).is_err());
    }

    #[test]
    fn what_is_passed_over_is_counted() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let deep = (0..DEEPEST + 1).fold(place.path().to_owned(), |path, at| path.join(format!("d{at}")));
        fs::create_dir_all(&deep).unwrap();
        for file in [at("0.json"), deep.join("1.json")] {
            fs::write(file, record(1, "a")).unwrap();
        }
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("2.json"), record(2, "a")).unwrap();
        std::os::unix::fs::symlink(other.path(), at("link")).unwrap();
        std::os::unix::fs::symlink(other.path().join("2.json"), at("link.json")).unwrap();
        std::os::unix::fs::symlink(at("none"), at("dangling")).unwrap();
        fs::write(at("x").with_file_name(std::ffi::OsStr::from_bytes(b"\xff.json")), record(3, "a")).unwrap();
        let archive = open(place.path(), None, || ()).unwrap();
        let listed: Vec<&str> = archive.rows.iter().map(|row| &*row.record).collect();
        assert_eq!((listed, archive.passed, archive.closed), (vec!["0.json"], 5, 0));
    }

    #[test]
    fn an_index_that_others_can_write_is_not_used() {
        let (place, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        (0..3).for_each(|at| fs::write(place.path().join(format!("{at}.json")), record(at, "a")).unwrap());
        let read = || open(place.path(), Some(cache.path()), || ()).unwrap().read;
        assert_eq!((read(), read()), (3, 0));
        let index = place.path().join(NAME);
        let mode = || fs::metadata(&index).unwrap().mode() & 0o777;
        fs::set_permissions(&index, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!((read(), mode()), (3, 0o644));
        // Not by all of the records either.
        fs::set_permissions(place.path().join("1.json"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(place.path().join("3.json"), record(3, "a")).unwrap();
        assert_eq!((read(), mode()), (1, 0o600));
        let moved = place.path().join("moved");
        fs::rename(&index, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &index).unwrap();
        assert_eq!(read(), 4);
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&index, Some(65_534), None).unwrap();
            assert_eq!((read(), read()), (4, 0));
        }
    }

    #[test]
    fn what_the_index_of_the_owner_lacks_is_in_the_own() {
        let (place, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        (0..3).for_each(|at| fs::write(place.path().join(format!("{at}.json")), record(at, "a")).unwrap());
        let read = || open(place.path(), Some(cache.path()), || ()).unwrap().read;
        assert_eq!(read(), 3);
        let old = fs::read(place.path().join(NAME)).unwrap();
        fs::write(place.path().join("3.json"), record(3, "a")).unwrap();
        assert_eq!(read(), 1);
        // The own one has all.
        let own = personal(place.path(), cache.path()).unwrap();
        fs::create_dir_all(own.parent().unwrap()).unwrap();
        fs::rename(place.path().join(NAME), &own).unwrap();
        fs::write(place.path().join(NAME), old).unwrap();
        assert_eq!(read(), 0);
    }
}
