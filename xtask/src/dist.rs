//! `cargo xtask dist`: a release build laid out for installation.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::shell::{cargo, root, run as run_command, target};

/// Builds the command and the library, and returns the directory they were laid out in.
///
/// `bin/ampl`, `lib/libampl.so`, `include/ampl.h` and `share/configs/` under `target/dist`.
///
/// # Errors
/// When the build fails or a file cannot be copied.
pub fn run() -> Result<PathBuf> {
    build_library()?;
    run_command(cargo().args(["build", "--release", "-p", "ampl-cli"]))?;
    lay_out("release", "dist")
}

/// The same for the checks: the library is the one that is released, the command the debug build of the tests
/// before, which checks itself and is there already.
///
/// # Errors
/// As [`run`], and where `cargo test` has not built the command.
pub fn checked() -> Result<PathBuf> {
    build_library()?;
    lay_out("debug", "dist-checked")
}

/// Apart from the command: together, the library would be built with every feature that the command asks for.
fn build_library() -> Result<()> {
    run_command(cargo().args(["build", "--release", "-p", "ampl-preload"]))
}

fn lay_out(command: &str, name: &str) -> Result<PathBuf> {
    let dist = target().join(name);
    copy(&target().join(command).join("ampl"), &dist.join("bin/ampl"))?;
    copy(&target().join("release/libampl.so"), &dist.join("lib/libampl.so"))?;
    copy(&root().join("include/ampl.h"), &dist.join("include/ampl.h"))?;
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
