//! Writes generated files: Rust sources from the table of MPI functions, documentation from that of keys.

mod configuration;
mod functions;
mod table;
mod wrappers;

use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::tidy;

const SPEC: &str = "ampl-preload/spec/mpi.toml";
const FUNCTIONS: &str = "ampl-core/src/mpi/functions.rs";
const CONFIGURATION: &str = "docs/configuration.md";
const WRAPPERS: &str = "ampl-preload/src/wrappers/generated.rs";

/// Writes the generated files, or with `check` only compares them with what would be written.
///
/// # Errors
/// If the table cannot be read or contradicts itself, a file cannot be written, or, with `check`,
/// a file is stale: the message names it.
pub fn run(check: bool) -> anyhow::Result<()> {
    let root = root();
    let spec = root.join(SPEC);
    let text = std::fs::read_to_string(&spec).with_context(|| format!("reading {}", spec.display()))?;
    let table = table::Table::parse(&text).with_context(|| format!("in {SPEC}"))?;
    for (path, content) in [
        (FUNCTIONS, functions::render(&table, &used_ids()?)),
        (WRAPPERS, wrappers::render(&table)?),
        (CONFIGURATION, configuration::render()?),
    ] {
        update(&root.join(path), path, &content, check)?;
    }
    Ok(())
}

/// Names behind `ids::` in all sources: the functions that some code names.
fn used_ids() -> anyhow::Result<BTreeSet<String>> {
    let mut used = BTreeSet::new();
    for path in tidy::files()?.into_iter().filter(|path| path.ends_with(".rs")) {
        let text = std::fs::read_to_string(root().join(&path)).with_context(|| path.clone())?;
        for rest in text.split("ids::").skip(1) {
            let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            used.insert(rest[..end.unwrap_or(rest.len())].to_owned());
        }
    }
    Ok(used)
}

fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

fn update(file: &Path, name: &str, content: &str, check: bool) -> anyhow::Result<()> {
    let present = std::fs::read_to_string(file).unwrap_or_default();
    if present == content {
        return Ok(());
    }
    if check {
        bail!("{name} is stale: run `cargo xtask codegen` and commit the result");
    }
    if let Some(directory) = file.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(file, content).with_context(|| format!("writing {name}"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn committed_files_are_current() {
        super::run(true).unwrap();
    }
}
