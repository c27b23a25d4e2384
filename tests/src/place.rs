//! Paths of the tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The workspace member that holds the tests.
pub fn home() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The installation under test, as `cargo xtask dist` lays it out.
pub fn dist() -> PathBuf {
    match std::env::var_os("AMPL_TEST_DIST") {
        Some(directory) => directory.into(),
        None => home().join("../target/dist"),
    }
}

/// Cargo's target directory, which holds the installation.
pub fn target() -> PathBuf {
    dist().parent().expect("dist lies in a directory").to_owned()
}

/// The command under test.
///
/// # Panics
/// When it has not been built.
pub fn ampl() -> PathBuf {
    let path = dist().join("bin/ampl");
    assert!(path.is_file(), "{} is missing: run `cargo xtask dist`", path.display());
    path
}

/// Length of the runs of tests that prove more the longer they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// `cargo xtask test --quick`
    Quick,
    /// `cargo xtask test`
    Usual,
    /// `cargo xtask test --all`
    All,
}

impl Extent {
    /// The extent that is asked for.
    pub fn get() -> Self {
        match std::env::var("AMPL_TEST_EXTENT").as_deref() {
            Ok("quick") => Self::Quick,
            Ok("all") => Self::All,
            _ => Self::Usual,
        }
    }

    /// Length of this extent among `lengths`: quick, usual, all.
    pub fn of<T>(self, lengths: [T; 3]) -> T {
        let [quick, usual, all] = lengths;
        match self {
            Self::Quick => quick,
            Self::Usual => usual,
            Self::All => all,
        }
    }
}

/// The first program of `names` that PATH leads to.
///
/// # Panics
/// When there is none; the message has the way to get one.
pub fn program(names: &[&str]) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    names
        .iter()
        .flat_map(|name| std::env::split_paths(&path).map(move |directory| directory.join(name)))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| panic!("no {} on this machine: run `cargo xtask setup`", names.join(" or ")))
}

/// A directory of one test's own; it goes when the test passes and stays when it fails.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new, empty directory with `name` in its name.
    pub fn new(name: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = target().join("tmp/e2e").join(format!("{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        // Ranks may be started elsewhere, so every path they get is absolute.
        Self(path.canonicalize().expect("it was just made"))
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file of that name in the directory, with `text` in it.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("left for inspection: {}", self.0.display());
        } else {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
