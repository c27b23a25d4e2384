//! Journals copied from a node's memory into the run directory, which all hosts see.

use std::fs;
use std::path::{Path, PathBuf};

use super::{alive, free};
use crate::failure::{Failure, Kind};
use ampl_reader::directory::{self, host, nodes};
use ampl_reader::map;
use ampl_report::human::{bytes, plural};
use ampl_trace::permissions::{as_directory, create_directory};

/// Copies the journals of `run` in this node's memory to the run directory, and frees that memory unless they are to
/// be `kept`.
///
/// # Errors
/// No such run, its job still runs, or the run directory cannot be written.
pub fn node(run: &Path, kept: bool) -> Result<(), Failure> {
    if !run.is_dir() {
        let fix = "name the run directory, which all hosts see";
        return Err(Failure::message(Kind::NotFound, "no such run", run.display(), fix));
    }
    let own = host();
    if !alive::have_ended(run)? {
        let what = "its processes cannot be seen from here: their numbers are another namespace's";
        let fix = "start this outside the container, or inside theirs";
        return Err(Failure::message(Kind::Other, what, run.display(), fix));
    }
    let files = directory::node_journals(run);
    if files.is_empty() {
        notice!("ampl: {own} has no journals of {} in its memory", run.display());
        return Ok(());
    }
    let held: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
    let brought = bring(run, &files, kept)?;
    notice!(
        "ampl: {own}: journals of {} ({}) are in {}: 'ampl recover {}' makes the trace once those of all hosts are",
        plural(brought.len() as u64, "rank"),
        bytes(held as f64),
        nodes::home(run, &own).display(),
        run.display()
    );
    Ok(())
}

/// Copies `files` into the run directory, reads them back, and removes the originals unless they are to be `kept`.
/// Returns the copies.
///
/// # Errors
/// Errors of writing the run directory.
pub fn bring(run: &Path, files: &[PathBuf], kept: bool) -> Result<Vec<PathBuf>, Failure> {
    let home = nodes::home(run, &host());
    let unwritable = |error: std::io::Error| {
        let fix = "make room there, or copy the journals by hand";
        Failure::message(Kind::Other, format!("cannot bring journals home: {error}"), home.display(), fix)
    };
    create_directory(&home).map_err(unwritable)?;
    let mut copies = Vec::new();
    for file in files {
        let copy = home.join(file.file_name().unwrap_or_default());
        // Several of these may run on a node at once: one copy is enough, and no process sees half of it.
        let part = copy.with_extension(format!("part-{}", std::process::id()));
        match copied(file, &part).and_then(|()| fs::rename(&part, &copy)) {
            Ok(()) => copies.push(copy),
            Err(_) if !file.exists() && copy.exists() => {}
            Err(error) => {
                let _ = fs::remove_file(&part);
                return Err(unwritable(error));
            }
        }
    }
    if !files.is_empty() {
        nodes::mark(run, &host(), nodes::Home::Journals).map_err(unwritable)?;
    }
    if !kept {
        free::journals(files);
    }
    Ok(copies)
}

/// Checks that `copy` equals `file`, by reading it back.
fn copied(file: &Path, copy: &Path) -> std::io::Result<()> {
    fs::copy(file, copy)?;
    as_directory(copy);
    let (original, again) = (map::file(file)?, map::file(copy)?);
    if original[..] == again[..] { Ok(()) } else { Err(std::io::Error::other("the copy differs")) }
}
