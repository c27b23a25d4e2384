//! `cargo xtask package`: the release as a tarball that runs wherever it is unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use super::VERSION;
use super::files::write;
use crate::shell::{output, root, run as run_command, target};

/// Builds the release, and writes the tarball, its SHA-256 and the Spack recipe under `target/package`.
///
/// # Errors
/// When a step fails, or a file cannot be written.
pub fn run() -> Result<()> {
    let dist = super::run()?;
    // The same files give the same bytes, whoever packs them.
    let date = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()));
    let archive = pack(&dist, &target().join("package"), date.as_deref().unwrap_or("0"))?;
    println!("package: {}", archive.display());
    Ok(())
}

/// Packs the layout `dist` into `place`, with `date` in seconds since 1970 on every file. Returns the tarball.
fn pack(dist: &Path, place: &Path, date: &str) -> Result<PathBuf> {
    let name = format!("ampl-{VERSION}-{}-linux", std::env::consts::ARCH);
    let prefix = place.join(&name);
    if prefix.exists() {
        fs::remove_dir_all(&prefix).with_context(|| prefix.display().to_string())?;
    }
    fs::create_dir_all(place).with_context(|| place.display().to_string())?;
    run_command(Command::new("cp").arg("-a").arg(dist).arg(&prefix))?;
    strip(&prefix)?;
    let archive = format!("{name}.tar.gz");
    let options = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX,u+rw"];
    let mut tar = Command::new("tar");
    tar.current_dir(place)
        .args(options)
        .arg("--use-compress-program=gzip -n")
        .arg(format!("--mtime=@{date}"));
    run_command(tar.args(["-cf", &archive, &name]))?;
    fs::remove_dir_all(&prefix).with_context(|| prefix.display().to_string())?;
    let sum = output(Command::new("sha256sum").arg(&archive).current_dir(place)).context("sha256sum")?;
    let recipe = fs::read_to_string(root().join("integrations/packages/spack.py")).context("spack.py")?;
    let hash = sum.split_whitespace().next().unwrap_or_default();
    let recipe = recipe.replace("@VERSION@", VERSION).replace("@SHA256@", hash);
    write(&place.join("spack/packages/ampl/package.py"), &recipe)?;
    write(&place.join("spack/repo.yaml"), "repo:\n  namespace: ampl\n")?;
    write(&place.join(format!("{archive}.sha256")), &(sum + "\n"))?;
    Ok(place.join(archive))
}

/// Takes the numbers of source lines out of the programs in `prefix`, of which they are three quarters.
fn strip(prefix: &Path) -> Result<()> {
    for directory in ["bin", "lib", "libexec"].map(|name| prefix.join(name)) {
        for file in fs::read_dir(&directory).into_iter().flatten() {
            let file = file?.path();
            if file.is_file() && fs::read(&file)?.starts_with(b"\x7fELF") {
                run_command(Command::new("strip").arg("--strip-debug").arg(&file))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_give_the_same_tarball() {
        let scratch = target().join("tmp").join(format!("pack-{}", std::process::id()));
        let dist = scratch.join("dist");
        write(&dist.join("bin/ampl"), "a program").unwrap();
        let bytes = |place: &str| {
            let archive = pack(&dist, &scratch.join(place), "1700000000").unwrap();
            fs::read(archive).unwrap()
        };
        let first = bytes("one");
        write(&dist.join("bin/ampl"), "a program").unwrap();
        assert_eq!(first, bytes("two"));
        let archive = format!("ampl-{VERSION}-{}-linux.tar.gz", std::env::consts::ARCH);
        let mut check = Command::new("sha256sum");
        check.args(["-c", &format!("{archive}.sha256")]).current_dir(scratch.join("one"));
        assert_eq!(output(&mut check), Some(format!("{archive}: OK")));
        let recipe = fs::read_to_string(scratch.join("one/spack/packages/ampl/package.py")).unwrap();
        let sum = fs::read_to_string(scratch.join("one").join(format!("{archive}.sha256"))).unwrap();
        assert!(recipe.contains(&format!("version(\"{VERSION}\", sha256=\"{}\")", &sum[..64])), "{recipe}");
        fs::remove_dir_all(&scratch).unwrap();
    }
}
