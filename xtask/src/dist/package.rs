//! `cargo xtask package`: the release as a tarball that runs wherever it is unpacked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{copy, licences};
use crate::shell::{cargo, output, root, run as run_command, target};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Version of glibc that every program of a package runs with. README.md of `integrations/packages` names it.
const OLDEST_GLIBC: (u32, u32) = (2, 34);

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
    let archive = format!("{name}.tar.gz");
    let options = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=go=rX,u+rw"];
    let mut tar = Command::new("tar");
    tar.current_dir(place).args(options).arg("--use-compress-program=gzip -n").arg(format!("--mtime=@{date}"));
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

/// Adds to the layout `prefix` what an installation has beside the programs.
///
/// # Errors
/// When a file cannot be read or written, or a program needs a later glibc than [`OLDEST_GLIBC`].
pub fn add_files(prefix: &Path) -> Result<()> {
    let from = root().join("integrations/packages");
    let module = format!("share/modulefiles/ampl/{VERSION}");
    for (file, to) in [
        ("modulefile", module.as_str()),
        ("ampl.pc", "share/pkgconfig/ampl.pc"),
        ("ampl-config.cmake", "lib/cmake/ampl/ampl-config.cmake"),
        ("ampl-config-version.cmake", "lib/cmake/ampl/ampl-config-version.cmake"),
    ] {
        let text = fs::read_to_string(from.join(file)).with_context(|| file.to_owned())?;
        write(&prefix.join(to), &text.replace("@VERSION@", VERSION))?;
    }
    let doc = prefix.join("share/doc/ampl");
    for file in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(file), &doc.join(file))?;
    }
    let words = ["tree", "-p", "ampl-cli", "-p", "ampl-preload", "-p", "ampl-otf2", "-p", "ampl-replay"];
    let form = ["-e", "normal", "--features", "ampl-replay/mpi", "--prefix", "none", "--no-dedupe"];
    let tree = output(cargo().args(words).args(form).args(["-f", "{p}: {l}"])).context("cargo tree")?;
    let dependencies = dependencies(&tree);
    write(&doc.join("DEPENDENCIES"), &dependencies)?;
    write(&doc.join("LICENCES"), &licences::texts(&dependencies)?)?;
    write(&doc.join("sbom.cdx.json"), &bill(&dependencies, VERSION).to_string())?;
    write(&doc.join("GLIBC"), &format!("{}.{}\n", OLDEST_GLIBC.0, OLDEST_GLIBC.1))?;
    for directory in ["bin", "lib", "libexec"] {
        for file in fs::read_dir(prefix.join(directory)).with_context(|| directory.to_owned())? {
            let file = file?.path();
            if !file.is_file() {
                continue;
            }
            let symbols = output(Command::new("objdump").arg("-T").arg(&file)).context("objdump -T")?;
            if let Some((needed, symbol)) = glibc(&symbols).filter(|(needed, _)| *needed > OLDEST_GLIBC) {
                let (major, minor) = needed;
                bail!("{} needs glibc {major}.{minor} for {symbol}", file.display());
            }
        }
    }
    Ok(())
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

/// The latest version of glibc that `symbols`, the output of `objdump -T`, ask for, and a symbol that does.
fn glibc(symbols: &str) -> Option<((u32, u32), &str)> {
    let asked = symbols.lines().filter_map(|line| {
        let (_, rest) = line.split_once("GLIBC_")?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
        let mut numbers = rest[..end].split('.').map(|number| number.parse().ok());
        let version = (numbers.next()??, numbers.next().flatten().unwrap_or(0));
        Some((version, line.split_whitespace().next_back()?))
    });
    asked.max_by_key(|(version, _)| *version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let symbols =
            "0 DF *UND* (GLIBC_2.2.5) free\n0 DF *UND* (GLIBC_2.34) dlsym\n0 DF *UND* (GLIBC_2.4) x\n";
        assert_eq!(glibc(symbols), Some(((2, 34), "dlsym")));
        assert_eq!(glibc("0 DF .text Base ampl_region_enter"), None);
    }

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
