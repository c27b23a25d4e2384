//! Location of `libampl.so`.

use std::path::{Path, PathBuf};

use crate::failure::{Failure, Kind};

const NAME: &str = "libampl.so";

/// Absolute path of `libampl.so`, beside this program.
///
/// # Errors
/// A [`Failure`] naming the places searched.
pub fn find() -> Result<PathBuf, Failure> {
    let program = std::env::current_exe()?;
    let places = candidates(&program);
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        let found = found.canonicalize()?;
        // The dynamic linker splits LD_PRELOAD at both, and has no quoting.
        if found.to_string_lossy().contains([' ', ':']) {
            let fix = "install ampl under a path without spaces and colons";
            return Err(Failure::message(
                Kind::NotFound,
                "LD_PRELOAD cannot name this path",
                found.display(),
                fix,
            ));
        }
        return Ok(found);
    }
    let searched: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    Err(Failure::message(
        Kind::NotFound,
        format!("{NAME} is not there"),
        searched.join(", "),
        "build it with 'cargo build --release', or keep bin/ and lib/ of a distribution together",
    ))
}

/// An installation has `lib` beside `bin`; a build has both files in one directory.
fn candidates(program: &Path) -> Vec<PathBuf> {
    let bin = program.parent().unwrap_or(Path::new("."));
    let mut places = Vec::new();
    if let Some(prefix) = bin.parent() {
        places.push(prefix.join("lib").join(NAME));
        places.push(prefix.join("lib64").join(NAME));
    }
    places.push(bin.join(NAME));
    places
}
