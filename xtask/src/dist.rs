//! `cargo xtask dist`: a release build laid out for installation.

mod files;
mod licences;
pub mod package;
mod replay;

pub use files::add as add_files;
pub use replay::clippy as clippy_of_replayer;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::shell::{cargo, output, root, run as run_command, target};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds the command and the library, and returns the directory they were laid out in.
///
/// `bin/ampl`, `bin/ampl-replay`, `lib/libampl.so`, `libexec/`, `include/ampl.h`; under `share/` recipes, the Fortran module,
/// man pages, completions, the environment module, licences; all under `target/dist`.
///
/// # Errors
/// When the build fails or a file cannot be copied.
pub fn run() -> Result<PathBuf> {
    whole(&["--release"], "release", "dist")
}

/// The command and the library alone, laid out in the same place.
///
/// # Errors
/// As [`run`].
pub fn for_demo() -> Result<PathBuf> {
    build_library()?;
    build_command(&["--release"])?;
    lay_out("release", "dist")
}

/// The same for the checks: the library is the one that is released, the command a debug build, which checks itself.
///
/// # Errors
/// As [`run`].
pub fn checked() -> Result<PathBuf> {
    whole(&[], "debug", "dist-checked")
}

/// All parts, those beside the library built with `profile`, into the directory of that name.
fn whole(profile: &[&str], command: &str, name: &str) -> Result<PathBuf> {
    build_library()?;
    build_command(profile)?;
    build_otf2(profile)?;
    let dist = lay_out(command, name)?;
    copy(&target().join(command).join("ampl-otf2"), &dist.join("libexec/ampl-otf2"))?;
    replay::build(&dist, command)?;
    add_files(&dist)?;
    Ok(dist)
}

/// The command without a dynamic linker, so that no `LD_PRELOAD` is loaded into `ampl exec`: libraries that are meant
/// for the program refer to an MPI, which the command lacks.
fn build_command(profile: &[&str]) -> Result<()> {
    let mut build = cargo();
    build.args(["rustc", "-p", "ampl-cli", "--bin", "ampl"]).args(profile);
    match has_static_libc() {
        true => _ = build.args(["--", "-C", "target-feature=+crt-static"]),
        false => eprintln!(
            "dist: no libc.a (package libc6-dev, or glibc-static): bin/ampl is linked dynamically, and libraries in \
             LD_PRELOAD that need an MPI keep 'ampl exec' from starting"
        ),
    }
    run_command(&mut build)
}

/// The program that loads the OTF2 library. The command is named for its features: what both need is built once.
fn build_otf2(profile: &[&str]) -> Result<()> {
    let words = ["build", "-p", "ampl-otf2", "-p", "ampl-cli", "--bin", "ampl-otf2"];
    run_command(cargo().args(words).args(profile))
}

fn has_static_libc() -> bool {
    // A compiler that does not find the file answers with its bare name.
    output(Command::new("cc").arg("-print-file-name=libc.a")).is_some_and(|path| path.contains('/'))
}

/// Builds the library as it is released.
///
/// Apart from the command: together, it would be built with every feature that the command asks for.
///
/// # Errors
/// As [`run`].
pub fn build_library() -> Result<()> {
    // By rustc itself: clippy's driver, which the checks may compile with, leaves optimisations out.
    let mut build = cargo();
    build.args(["build", "--release", "-p", "ampl-preload"]).env_remove("RUSTC_WORKSPACE_WRAPPER");
    run_command(&mut build)
}

fn lay_out(command: &str, name: &str) -> Result<PathBuf> {
    let dist = target().join(name);
    copy(&target().join(command).join("ampl"), &dist.join("bin/ampl"))?;
    copy(&target().join("release/libampl.so"), &dist.join("lib/libampl.so"))?;
    copy(&root().join("include/ampl.h"), &dist.join("include/ampl.h"))?;
    copy(&root().join("integrations/fortran/ampl.f90"), &dist.join("share/fortran/ampl.f90"))?;
    let recipes = dist.join("share/configs");
    if recipes.exists() {
        // A recipe that was renamed must not linger.
        std::fs::remove_dir_all(&recipes)?;
    }
    for recipe in std::fs::read_dir(root().join("configs")).context("configs")? {
        let recipe = recipe?.path();
        if recipe.extension().is_some_and(|extension| extension == "toml") {
            copy(&recipe, &recipes.join(recipe.file_name().expect("a directory entry has a name")))?;
        }
    }
    run_command(Command::new(dist.join("bin/ampl")).arg("pages").arg(dist.join("share")))?;
    println!("dist: {}", dist.display());
    Ok(dist)
}

/// Replaces `to`; written beside it first, because a running job may have the old file mapped.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let directory = to.parent().expect("a file lies in a directory");
    std::fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let mut beside = to.as_os_str().to_owned();
    beside.push(".new");
    std::fs::copy(from, &beside).with_context(|| from.display().to_string())?;
    std::fs::rename(&beside, to).with_context(|| to.display().to_string())
}
