//! `cargo xtask package`: the release as a tarball that runs wherever it is unpacked.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::copy;
use crate::shell::{cargo, output, root, run as run_command, target};

/// Builds the release, and writes the tarball and its SHA-256 under `target/package`.
///
/// # Errors
/// When a step fails, or a file cannot be written.
pub fn run() -> Result<()> {
    let dist = super::run()?;
    let version = env!("CARGO_PKG_VERSION");
    let name = format!("ampl-{version}-{}-linux", std::env::consts::ARCH);
    let place = target().join("package");
    let prefix = place.join(&name);
    if prefix.exists() {
        fs::remove_dir_all(&prefix).with_context(|| prefix.display().to_string())?;
    }
    fs::create_dir_all(&place).with_context(|| place.display().to_string())?;
    run_command(Command::new("cp").arg("-a").arg(&dist).arg(&prefix))?;
    add_files(&prefix, version)?;
    let archive = format!("{name}.tar.gz");
    // The same files give the same bytes, whoever packs them.
    let date = output(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()));
    let options =
        ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--use-compress-program=gzip -n"];
    let mut tar = Command::new("tar");
    tar.current_dir(&place).args(options).arg(format!("--mtime=@{}", date.as_deref().unwrap_or("0")));
    run_command(tar.args(["-cf", &archive, &name]))?;
    let sum = output(Command::new("sha256sum").arg(&archive).current_dir(&place)).context("sha256sum")?;
    let beside = place.join(format!("{archive}.sha256"));
    let recipe = fs::read_to_string(root().join("integrations/packages/spack.py")).context("spack.py")?;
    let hash = sum.split_whitespace().next().unwrap_or_default();
    let recipe = recipe.replace("@VERSION@", version).replace("@SHA256@", hash);
    write(&place.join("spack/packages/ampl/package.py"), &recipe)?;
    write(&place.join("spack/repo.yaml"), "repo:\n  namespace: ampl\n")?;
    fs::write(&beside, sum + "\n").with_context(|| beside.display().to_string())?;
    println!("package: {}", place.join(archive).display());
    Ok(())
}

/// Adds what an installation has beside the programs.
fn add_files(prefix: &Path, version: &str) -> Result<()> {
    let from = root().join("integrations/packages");
    let module = format!("share/modulefiles/ampl/{version}");
    for (file, to) in [
        ("modulefile", module.as_str()),
        ("ampl.pc", "share/pkgconfig/ampl.pc"),
        ("ampl-config.cmake", "lib/cmake/ampl/ampl-config.cmake"),
        ("ampl-config-version.cmake", "lib/cmake/ampl/ampl-config-version.cmake"),
    ] {
        let text = fs::read_to_string(from.join(file)).with_context(|| file.to_owned())?;
        write(&prefix.join(to), &text.replace("@VERSION@", version))?;
    }
    let doc = prefix.join("share/doc/ampl");
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(file), &doc.join(file))?;
    }
    let words = ["tree", "-p", "ampl-cli", "-p", "ampl-preload", "-p", "ampl-otf2", "-e", "normal"];
    let form = ["--prefix", "none", "--no-dedupe", "-f", "{p}: {l}"];
    let tree = output(cargo().args(words).args(form)).context("cargo tree")?;
    let dependencies = dependencies(&tree);
    write(&doc.join("DEPENDENCIES"), &dependencies)?;
    write(&doc.join("sbom.cdx.json"), &bill(&dependencies, version).to_string())?;
    let library = prefix.join("lib/libampl.so");
    let symbols = output(Command::new("objdump").arg("-T").arg(&library)).context("objdump -T")?;
    let (major, minor) = glibc(&symbols).context("libampl.so names no version of glibc")?;
    write(&doc.join("GLIBC"), &format!("{major}.{minor}\n"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    let directory = path.parent().expect("a file lies in a directory");
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// The packages in `tree`, each once, without those of this workspace, which have a path.
fn dependencies(tree: &str) -> String {
    let mut lines: Vec<&str> =
        tree.lines().filter(|line| !line.is_empty() && !line.contains(" (/")).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Bill of materials of `dependencies`, lines of `NAME vVERSION: LICENCE`, in CycloneDX's form.
fn bill(dependencies: &str, version: &str) -> Value {
    let component = |line: &str| {
        let (package, licence) = line.split_once(": ")?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        // Some packages still have the form of old, with a stroke.
        let licences = json!([{ "expression": licence.replace('/', " OR ") }]);
        Some(json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": licences,
        }))
    };
    let components: Vec<Value> = dependencies.lines().filter_map(component).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": { "type": "application", "name": "ampl", "version": version } },
        "components": components,
    })
}

/// The latest version of glibc that a symbol in `symbols`, the output of `objdump -T`, asks for.
fn glibc(symbols: &str) -> Option<(u32, u32)> {
    let versions = symbols.split("GLIBC_").skip(1).filter_map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next().flatten().unwrap_or(0)))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let symbols =
            "0 DF *UND* (GLIBC_2.2.5) free\n0 DF *UND* (GLIBC_2.34) dlsym\n0 DF *UND* (GLIBC_2.4) x\n";
        assert_eq!(glibc(symbols), Some((2, 34)));
        assert_eq!(glibc("0 DF .text Base ampl_region_enter"), None);
    }

    #[test]
    fn dependencies_are_those_of_others() {
        let tree = "ampl-cli v0.1.0 (/src/ampl-cli): MIT\nlibc v0.2.1: MIT OR Apache-2.0\n\nlibc v0.2.1: MIT OR Apache-2.0\n";
        assert_eq!(dependencies(tree), "libc v0.2.1: MIT OR Apache-2.0\n");
        let bill = bill(
            "libc v0.2.1: MIT OR Apache-2.0\nserde_derive v1.0.0 (proc-macro): MIT/Apache-2.0\n",
            "0.1.0",
        );
        assert_eq!(bill["components"][0]["purl"], "pkg:cargo/libc@0.2.1");
        assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
