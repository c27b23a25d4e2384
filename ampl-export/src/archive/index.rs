//! The index of an archive: a row for each record, so that only new records are read.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ampl_analysis::history::Row;
use serde::{Deserialize, Serialize};

use super::parse;
use crate::place::part_beside;

/// The index, in the archive; elsewhere where that takes no files.
const NAME: &str = ".ampl-history";
/// First line of an index of this version.
const HEAD: &str = "{\"ampl-history\":1}";
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
    /// Files that had to be read, as the index did not have them.
    pub read: u64,
}

/// Rows of all records in `directory` and the directories in it. The index is there, or in the user's `cache` where that
/// takes no files.
///
/// # Errors
/// `directory` cannot be read.
pub fn open(directory: &Path, cache: Option<&Path>, mut progress: impl FnMut()) -> std::io::Result<Archive> {
    let places = places(directory, cache);
    let (mut known, place) =
        places.iter().find_map(|place| Some((load(place)?, Some(place)))).unwrap_or_default();
    let before = known.len();
    let mut files = Vec::new();
    walk(directory, directory, 0, &mut files)?;
    let mut archive = Archive::default();
    let mut entries = Vec::with_capacity(files.len());
    let mut kept = 0;
    for (name, metadata) in files {
        let (bytes, changed_ns) = (metadata.len(), changed_ns(&metadata));
        let same = |entry: &Entry| entry.bytes == bytes && entry.changed_ns == changed_ns;
        let entry = match known.remove(&name).filter(same) {
            Some(entry) => {
                kept += 1;
                entry
            }
            None => {
                archive.read += 1;
                progress();
                let row = read(&directory.join(&name)).map(|record| Row::of(record, name.clone()));
                Entry { bytes, changed_ns, row }
            }
        };
        entries.push((name, entry));
    }
    // Of an index that has what is there, nothing is written.
    if archive.read > 0 || kept < before || place.is_none() {
        let _ = places.iter().find(|place| store(place, &entries).is_ok());
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

/// Places for the index of `directory`: there, or in the user's cache where the archive is another's.
fn places(directory: &Path, cache: Option<&Path>) -> Vec<PathBuf> {
    let mut places = vec![directory.join(NAME)];
    if let (Some(cache), Ok(path)) = (cache, directory.canonicalize()) {
        let plain = |c: char| if c.is_alphanumeric() || c == '.' { c } else { '_' };
        let name: String = path.to_string_lossy().chars().map(plain).collect();
        // Names of files have a limit.
        let from = name.char_indices().rev().nth(180).map_or(0, |(at, _)| at);
        places.push(cache.join("ampl").join(format!("history{}", &name[from..])));
    }
    places
}

/// Adds the files in `directory` that end in `.json`, by their names below `top`.
fn walk(
    top: &Path,
    directory: &Path,
    depth: usize,
    files: &mut Vec<(String, Metadata)>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)?.flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        let path = entry.path();
        // Links to directories may lead round in a ring.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            // Directories of others may be closed.
            if depth < DEEPEST {
                let _ = walk(top, &path, depth + 1, files);
            }
        } else if kind.is_file()
            && name.as_encoded_bytes().ends_with(b".json")
            && let (Ok(metadata), Ok(below)) = (entry.metadata(), path.strip_prefix(top))
            && let Some(name) = below.to_str()
        {
            files.push((name.to_owned(), metadata));
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
pub fn read(path: &Path) -> Result<ampl_analysis::record::Record, String> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LONGEST {
        return Err(format!("it has more than {} KiB", LONGEST >> 10));
    }
    parse(&bytes)
}

/// The index in `place`; `None` without one of this version. Lines that are damaged are left out: their files are read.
fn load(place: &Path) -> Option<HashMap<String, Entry>> {
    let mut lines = BufReader::with_capacity(1 << 20, fs::File::open(place).ok()?).lines();
    (lines.next()?.ok()? == HEAD).then_some(())?;
    Some(lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()).collect())
}

fn store(place: &Path, entries: &[(String, Entry)]) -> std::io::Result<()> {
    if place.file_name().is_some_and(|name| name != NAME) {
        fs::create_dir_all(place.parent().unwrap_or(Path::new(".")))?;
    }
    let mut part = part_beside(place)?;
    let mut out = BufWriter::with_capacity(1 << 20, part.as_file_mut());
    writeln!(out, "{HEAD}")?;
    for entry in entries {
        serde_json::to_writer(&mut out, entry)?;
        out.write_all(b"\n")?;
    }
    out.flush()?;
    drop(out);
    part.persist(place).map(|_| ()).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
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
}
