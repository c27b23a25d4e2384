//! Files that an installation has beside the programs: how other tools find it, and what it is made of.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{VERSION, copy, licences};
use crate::shell::{cargo, output, root};

/// Version of glibc that every program of a package runs with. README.md of `integrations/packages` names it.
const OLDEST_GLIBC: (u32, u32) = (2, 34);

/// Adds to the layout `prefix` what an installation has beside the programs.
///
/// # Errors
/// When a file cannot be read or written, or a program needs a later glibc than [`OLDEST_GLIBC`].
pub fn add(prefix: &Path) -> Result<()> {
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
    let compiler = output(Command::new("rustc").arg("--version")).context("rustc --version")?;
    let libc = output(Command::new("getconf").arg("GNU_LIBC_VERSION")).context("getconf")?;
    let [compiler, libc] = [&compiler, &libc].map(|said| said.split(' ').nth(1).unwrap_or_default());
    // What the linker takes into the files besides; glibc is in the command alone.
    let linked = format!("glibc v{libc}: LGPL-2.1-or-later\nrust-std v{compiler}: MIT OR Apache-2.0\n");
    write(&doc.join("DEPENDENCIES"), &(dependencies.clone() + &linked))?;
    write(&doc.join("LICENCES"), &(licences::texts(&dependencies)? + &linked))?;
    write(&doc.join("sbom.cdx.json"), &bill(&dependencies, &linked, VERSION).to_string())?;
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

/// Writes `path` and the directories above it.
///
/// # Errors
/// When it cannot be written.
pub fn write(path: &Path, text: &str) -> Result<()> {
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

/// Bill of materials of `dependencies` and what is `linked` besides, lines of `NAME vVERSION: LICENCE`, in CycloneDX's form.
fn bill(dependencies: &str, linked: &str, version: &str) -> Value {
    let component = |(registry, line): (&str, &str)| {
        let (package, licence) = line.split_once(": ")?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        // Some packages still have the form of old, with a stroke.
        let licences = json!([{ "expression": licence.replace('/', " OR ") }]);
        Some(json!({
            "type": "library",
            "name": name,
            "version": version,
            "purl": format!("pkg:{registry}/{name}@{version}"),
            "licenses": licences,
        }))
    };
    let lines = [("cargo", dependencies), ("generic", linked)];
    let lines = lines.iter().flat_map(|(registry, text)| text.lines().map(|line| (*registry, line)));
    let components: Vec<Value> = lines.filter_map(component).collect();
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
    fn dependencies_are_those_of_others() {
        let tree = "ampl-cli v0.1.0 (/src/ampl-cli): MIT\nlibc v0.2.1: MIT OR Apache-2.0\n\nlibc v0.2.1: MIT OR Apache-2.0\n";
        assert_eq!(dependencies(tree), "libc v0.2.1: MIT OR Apache-2.0\n");
        let bill = bill(
            "libc v0.2.1: MIT OR Apache-2.0\nserde_derive v1.0.0 (proc-macro): MIT/Apache-2.0\n",
            "glibc v2.36: LGPL-2.1-or-later\n",
            "0.1.0",
        );
        assert_eq!(bill["components"][0]["purl"], "pkg:cargo/libc@0.2.1");
        assert_eq!(bill["components"][2]["purl"], "pkg:generic/glibc@2.36");
        assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
