//! An OTF2 archive, written by `libexec/ampl-otf2`: it loads the official library, which a program without a dynamic
//! linker cannot.

use std::path::{Path, PathBuf};
use std::process::Command;

use ampl_export::call_rows::Written;
use ampl_export::place::Place;
use ampl_launch::interrupted;
use ampl_report::human::count;

use super::{KEEP_TIMES, beside, notice, refuse_empty, refuse_existing};
use crate::failure::{Failure, NOT_FOUND, OTHER};

/// The program, beside the directory of this one.
const PROGRAM: &str = "libexec/ampl-otf2";

/// Bounds as they were given.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    /// Nanoseconds since the start.
    pub from_ns: Option<i64>,
    /// Nanoseconds since the start.
    pub until_ns: Option<i64>,
    /// Ranks.
    pub ranks: Option<&'a str>,
}

/// Writes `traces.otf2` and its files into a directory, whole or not at all, and prints its path to stderr.
///
/// # Errors
/// A [`Failure`] of status 2 where the directory exists, of status 4 where the program, the library or times of calls
/// are missing, of status 1 where it cannot be written.
pub fn write(run: &Path, output: Option<PathBuf>, cut: Cut<'_>) -> anyhow::Result<()> {
    let directory = output.unwrap_or_else(|| beside(run, "otf2"));
    refuse_existing(&directory, "directory")?;
    let program = std::env::current_exe()?;
    let program = program.parent().and_then(Path::parent).unwrap_or(Path::new("")).join(PROGRAM);
    if !program.is_file() {
        let fix = "install ampl as 'cargo xtask dist' lays it out";
        return Err(Failure::message(NOT_FOUND, "the writer of OTF2 is missing", program.display(), fix));
    }
    let unwritable = |error| super::unwritable(&directory, &error);
    let place = Place::new(&directory, Vec::new()).map_err(unwritable)?;
    let word = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), |ns| ns.to_string());
    let mut writer = Command::new(&program);
    writer.args([run, &place.path("")]);
    writer.args([word(cut.from_ns), word(cut.until_ns), cut.ranks.unwrap_or("-").to_owned()]);
    let (status, text) =
        interrupted::output(&mut writer).map_err(|error| super::unwritable(&program, &error))?;
    let numbers: Vec<u64> =
        String::from_utf8_lossy(&text).split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let ([rows, untimed, damaged, messages], true) = (&numbers[..], status.success()) else {
        let status = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(OTHER);
        let (what, fix) = ("no archive was written", "see the message above");
        return Err(Failure::message(status, what, directory.display(), fix));
    };
    let written = Written { rows: *rows, untimed: *untimed, damaged: *damaged };
    refuse_empty(&written, run)?;
    place.finish().map_err(unwritable)?;
    notice(&written, run, KEEP_TIMES);
    notice!(
        "ampl: {} calls and {} ends of messages in {}",
        count(written.rows),
        count(*messages),
        directory.join("traces.otf2").display()
    );
    Ok(())
}
