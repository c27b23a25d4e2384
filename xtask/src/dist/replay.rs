//! The replayer: built once for each MPI, since the bindings are those of one.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::copy;
use crate::setup;
use crate::shell::{cargo, find, root, run, succeeds, target};

/// An MPI and the names of its compiler.
const MPIS: [(&str, &[&str]); 2] = [("openmpi", &["mpicc.openmpi"]), ("mpich", &["mpicc.mpich"])];

/// Lints the replayer of the first MPI that is there; nothing without libclang.
pub fn clippy() -> Result<()> {
    let compiler = MPIS.iter().find_map(|(_, compilers)| find(compilers));
    let Some(compiler) = compiler.filter(|_| setup::libclang()) else { return Ok(()) };
    let words = ["clippy", "-p", "ampl-replay", "--features", "mpi", "--all-targets", "--", "-D", "warnings"];
    run(cargo().args(words).env("MPICC", compiler))
}

/// Builds the replayers, and lays them out in `dist`: `bin/ampl-replay` and `libexec/`. Leaves them out, and says so,
/// where there is no libclang or no compiler of an MPI.
pub fn build(dist: &Path, profile: &str) -> Result<()> {
    let found: Vec<_> = MPIS.iter().filter_map(|(name, compilers)| Some((*name, find(compilers)?))).collect();
    if found.is_empty() || !setup::libclang() {
        eprintln!(
            "dist: ampl-replay is left out: it needs libclang and the compiler of an MPI (cargo xtask setup)"
        );
        return Ok(());
    }
    // The checks have the whole workspace built: for one package, shared ones would be built again with fewer features.
    let (release, package): (&[&str], &[&str]) = match profile {
        "release" => (&["--release"], &["-p", "ampl-replay", "--features", "mpi"]),
        _ => (&[], &["--workspace", "--features", "ampl-replay/mpi"]),
    };
    for (name, compiler) in found {
        // Cargo does not see that the bindings depend on the compiler.
        run(cargo().args(["clean", "--quiet", "-p", "mpi-sys"]).args(release))?;
        run(cargo()
            .arg("build")
            .args(package)
            .args(["--bin", "ampl-replay", "--bin", "ampl-replay-twin"])
            .args(release)
            .env("MPICC", compiler))?;
        let built = target().join(profile);
        copy(&built.join("ampl-replay-twin"), &dist.join(format!("libexec/ampl-replay-{name}")))?;
        copy(&built.join("ampl-replay"), &dist.join("bin/ampl-replay"))?;
    }
    masks(dist)
}

/// The library that `bin/ampl-replay` preloads.
fn masks(dist: &Path) -> Result<()> {
    let compiler = ["cc", "gcc"].into_iter().find(|name| succeeds(Command::new(name).arg("--version")));
    let made = target().join("libampl-replay-masks.so");
    run(Command::new(compiler.unwrap_or("cc"))
        .args(["-O1", "-fPIC", "-shared", "-Wl,-z,lazy", "-o"])
        .arg(&made)
        .arg(root().join("ampl-replay/src/masks.c")))?;
    copy(&made, &dist.join("libexec/libampl-replay-masks.so"))
}
