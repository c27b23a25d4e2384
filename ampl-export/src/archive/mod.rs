//! Records of runs as files of an archive: written whole or not at all.

pub mod index;

use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ampl_analysis::record::{Origin, Record, SCHEMA};
use ampl_core::naming::Names;
use ampl_trace::Trace;

/// Bytes of a record's file at most.
pub const MOST_BYTES: usize = 8 << 10;
/// Files of one name that are told apart by numbers.
const MOST_ALIKE: u32 = 10_000;

/// The record of `trace`, which was read from `run`, and its text of at most [`MOST_BYTES`].
fn text(trace: &Trace, run: &Path, user: &str, job: &str) -> serde_json::Result<Vec<u8>> {
    let run = std::path::absolute(run).unwrap_or_else(|_| run.to_owned()).display().to_string();
    let mut record = Record::of(trace, Origin { run, user: user.to_owned(), job: job.to_owned() });
    loop {
        let mut text = serde_json::to_vec(&record)?;
        text.push(b'\n');
        if text.len() <= MOST_BYTES || !record.shorten() {
            return Ok(text);
        }
    }
}

/// Writes the record of `trace`, which `user` read from `run`, to the file that `template` names; returns its path. A
/// name that is taken gets `-2` before its ending.
///
/// # Errors
/// Reason why there is none, and the path it would have had.
pub fn write(
    trace: &Trace,
    run: &Path,
    template: &str,
    user: &str,
    job: &str,
) -> Result<PathBuf, (PathBuf, String)> {
    let program = ampl_core::program::program_of(&trace.run.command);
    let names = Names::new(program.as_ref(), job, trace.run.started_ns / 1_000_000_000);
    let path = PathBuf::from(names.fill_for(template, user));
    let fail = |error: &dyn std::fmt::Display| (path.clone(), error.to_string());
    if path.file_name().is_none() || path.is_dir() || path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(fail(&"it names no file, as \"{jobid}.json\" in a directory would"));
    }
    let text = text(trace, run, user, job).map_err(|error| fail(&error))?;
    put(&path, &text).map_err(|error| fail(&error))
}

/// Puts `text` into a new file, `path` or the first of `path-2`, … that is not taken.
fn put(path: &Path, text: &[u8]) -> std::io::Result<PathBuf> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(directory)?;
    let mut part = tempfile::Builder::new()
        .prefix(".ampl-record-")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(directory)?;
    part.write_all(text)?;
    part.as_file().sync_all()?;
    for number in 1..=MOST_ALIKE {
        let path = numbered(path, number);
        match part.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => part = error.file,
            Err(error) => return Err(error.error),
        }
    }
    Err(std::io::Error::new(ErrorKind::AlreadyExists, "too many files have this name"))
}

/// `path`, or with `-2` before its ending.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let part = |text: Option<&std::ffi::OsStr>| text.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, ending) = (part(path.file_stem()), part(path.extension()));
    let dot = if ending.is_empty() { "" } else { "." };
    path.with_file_name(format!("{stem}-{number}{dot}{ending}"))
}

/// The record in `bytes`.
///
/// # Errors
/// Reason why it is none.
pub fn parse(bytes: &[u8]) -> Result<Record, String> {
    // The fields of another version may be of other kinds.
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match value["schema"].as_u64() {
        None | Some(0) => Err("it has no schema".to_owned()),
        Some(schema) if schema == u64::from(SCHEMA) => {
            serde_json::from_value(value).map_err(|error| error.to_string())
        }
        Some(other) => Err(format!("its schema is {other}, and this version reads {SCHEMA}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_never_more_than_its_room_and_names_do_not_collide() {
        let mut trace = Trace::default();
        trace.run.ranks = 3;
        trace.run.command = (0..4000).map(|at| format!("{at}{}", "\u{1}x".repeat(100))).collect();
        trace.run.mpi_library = "m".repeat(9000);
        let bytes = text(&trace, Path::new("run"), &"u".repeat(9000), "7").unwrap();
        assert!(bytes.len() <= MOST_BYTES, "{}", bytes.len());
        let record = parse(&bytes).unwrap();
        assert!(record.left_out > 3900 && record.ranks == 3, "{record:?}");

        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a/b/7.json");
        let paths: Vec<PathBuf> = (0..3).map(|_| put(&path, &bytes).unwrap()).collect();
        let names: Vec<String> =
            paths.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["7.json", "7-2.json", "7-3.json"]);
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 3);
        assert!(put(&path.join("under-a-file.json"), &bytes).is_err());
    }

    #[test]
    fn a_name_of_a_directory_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| format!("{}/{name}", place.path().display());
        for template in [String::new(), at(""), at("new/"), at("new/.."), place.path().display().to_string()]
        {
            let (_, why) =
                write(&Trace::default(), Path::new("run"), &template, "ann", "7").expect_err(&template);
            assert!(why.contains("names no file"), "{template}: {why}");
        }
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
        assert!(write(&Trace::default(), Path::new("run"), &at("new/{jobid}.json"), "ann", "7").is_ok());
    }

    #[test]
    fn records_of_other_versions_are_refused() {
        for (text, why) in [
            ("{\"schema\": 2}", "schema is 2"),
            ("{\"schema\": 3, \"ranks\": \"many\"}", "schema is 3"),
            ("{}", "no schema"),
            ("[]", "no schema"),
            ("{\"schema\": 1, \"ranks\": -1}", "-1"),
        ] {
            assert!(parse(text.as_bytes()).is_err_and(|found| found.contains(why)), "{text}");
        }
        assert_eq!(parse(b"{\"schema\": 1, \"more\": [3]}").unwrap().schema, 1);
    }
}
