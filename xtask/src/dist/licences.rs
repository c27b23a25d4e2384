//! Texts of the licences of what a package holds of others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell::{cargo, output};

/// Beginnings of names of files that licences ask to be passed on.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// Every text once, under the packages of `dependencies`, lines of `NAME vVERSION: LICENCE`, that have it.
///
/// # Errors
/// The sources of the packages are not there.
pub fn texts(dependencies: &str) -> Result<String> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let words = ["metadata", "--format-version", "1", "--all-features", "--filter-platform"];
    let metadata = output(cargo().args(words).arg(platform));
    let metadata: Value = serde_json::from_str(&metadata.context("cargo metadata")?)?;
    let mut places = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        let place = Path::new(text("manifest_path")).parent().context("a manifest lies in a directory")?;
        places.insert(format!("{} v{}", text("name"), text("version")), place.to_owned());
    }
    let (mut packages_of, mut without) = (BTreeMap::<String, BTreeSet<&str>>::new(), BTreeSet::new());
    for line in dependencies.lines() {
        let name = line.split([':', '(']).next().unwrap_or_default().trim();
        let place = places.get(name).with_context(|| format!("no sources of {name}"))?;
        let found = of_package(place)?;
        if found.is_empty() {
            without.insert(line);
        }
        for text in found {
            packages_of.entry(text).or_default().insert(name);
        }
    }
    let mut out = String::new();
    for (text, packages) in packages_of {
        let packages = packages.into_iter().collect::<Vec<_>>().join(", ");
        let _ = write!(out, "{}\n{packages}\n\n{}\n\n", "=".repeat(80), text.trim());
    }
    let _ = writeln!(out, "{}\nWithout a file of a licence, which is as named:\n", "=".repeat(80));
    without.iter().for_each(|line| _ = writeln!(out, "{line}"));
    Ok(out)
}

/// Texts of the files in `place` that have such names.
fn of_package(place: &Path) -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(place).with_context(|| place.display().to_string())? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_file() && NAMES.iter().any(|begins| name.starts_with(begins)) {
            let text = fs::read(&path).with_context(|| path.display().to_string())?;
            found.insert(String::from_utf8_lossy(&text).replace('\r', ""));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_there_once_under_all_that_have_it() {
        let lines = ["anyhow", "serde_json"].map(|name| {
            let lock = include_str!("../../../Cargo.lock");
            let at = lock.find(&format!("name = \"{name}\"\nversion = \"")).expect("it is used");
            let version = lock[at..].split('"').nth(3).expect("a version");
            format!("{name} v{version}: MIT OR Apache-2.0\n")
        });
        let text = texts(&lines.concat()).unwrap();
        assert_eq!(text.matches("TERMS AND CONDITIONS FOR USE").count(), 1, "{text}");
        assert!(text.contains("anyhow v") && text.contains(", serde_json v"), "{text}");
        assert!(texts("no-such-package v1.0.0: MIT\n").is_err());
    }
}
