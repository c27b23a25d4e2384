//! Detection of the launcher that a word starts on this machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Flavour;
use crate::environment;

/// Kind of program that the first word of a command line names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detected {
    /// A launcher we know.
    Launcher(Flavour),
    /// Not a launcher, or none we know.
    Unknown,
    /// Named like a launcher, but there is no such program.
    Missing,
}

/// Kind of program that running `word` would start. Only programs named like launchers are asked for their version.
pub fn detect(word: &OsStr) -> Detected {
    let path = Path::new(word);
    let Some(name) = path.file_name().and_then(OsStr::to_str) else { return Detected::Unknown };
    if !Flavour::may_be(name) {
        return Detected::Unknown;
    }
    let Some(file) = environment::which(path) else { return Detected::Missing };
    let resolved = file.canonicalize().unwrap_or(file);
    let target = resolved.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // The link's target decides: "mpirun" is whatever the administrator chose.
    let flavour = Flavour::by_name(target)
        .or_else(|| version(&resolved).and_then(|output| Flavour::by_version(&output)))
        .or_else(|| Flavour::by_name(name));
    flavour.map_or(Detected::Unknown, Detected::Launcher)
}

/// Output of `launcher --version`, of both streams.
pub fn version(launcher: &PathBuf) -> Option<String> {
    let mut asked = Command::new(launcher);
    // The user's preloaded libraries may need an MPI that the launcher lacks.
    asked.arg("--version").stdin(Stdio::null()).env_remove(environment::PRELOAD);
    let output = asked.output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some(String::from_utf8_lossy(&text).into_owned())
}
