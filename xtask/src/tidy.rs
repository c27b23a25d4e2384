//! `cargo xtask tidy`: house rules that the compiler does not check.

mod rings;
mod source;
mod words;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use toml_edit::{DocumentMut, TableLike};

use crate::shell::{output, root};
use source::tokens;

/// Crates of ours that each crate may depend on; a crate that is not listed may depend on none.
const EDGES: &[(&str, &[&str])] = &[
    ("ampl-analysis", &["ampl-client", "ampl-core", "ampl-reader", "ampl-trace"]),
    ("ampl-agent", &["ampl-core", "ampl-trace"]),
    (
        "ampl-cli",
        &[
            "ampl-analysis",
            "ampl-client",
            "ampl-core",
            "ampl-export",
            "ampl-html",
            "ampl-launch",
            "ampl-reader",
            "ampl-report",
            "ampl-trace",
        ],
    ),
    ("ampl-client", &["ampl-core"]),
    ("ampl-export", &["ampl-analysis", "ampl-client", "ampl-core", "ampl-reader", "ampl-trace"]),
    ("ampl-otf2", &["ampl-analysis", "ampl-core", "ampl-export", "ampl-reader", "ampl-trace"]),
    ("ampl-fuzzed", &["ampl-analysis", "ampl-client", "ampl-core", "ampl-export", "ampl-trace"]),
    ("ampl-html", &["ampl-analysis", "ampl-client", "ampl-core", "ampl-reader", "ampl-report"]),
    ("ampl-launch", &["ampl-core", "ampl-reader", "ampl-report", "ampl-trace"]),
    ("ampl-preload", &["ampl-agent", "ampl-client", "ampl-core", "ampl-trace"]),
    ("ampl-reader", &["ampl-core", "ampl-trace"]),
    ("ampl-replay", &["ampl-analysis", "ampl-core", "ampl-reader"]),
    ("ampl-report", &["ampl-analysis", "ampl-core", "ampl-reader"]),
    ("ampl-testkit", &["ampl-agent", "ampl-client", "ampl-core", "ampl-trace"]),
    ("ampl-tests", &["ampl-core"]),
    ("ampl-trace", &["ampl-core"]),
    ("xtask", &["ampl-core"]),
];

/// Crates that tests may use besides [`EDGES`].
const TESTING: &[&str] = &["ampl-testkit"];

/// Places where unsafe code is allowed.
const UNSAFE: &[&str] = &[
    "ampl-preload/",
    "ampl-agent/src/map.rs",
    "ampl-agent/src/prefetch.rs",
    "ampl-agent/src/floating.rs",
    "ampl-agent/src/uncancelled.rs",
    "ampl-launch/src/inherited.rs",
    "ampl-otf2/src/library.rs",
    "ampl-reader/src/map.rs",
    "ampl-replay/src/twin/ffi.rs",
    "integrations/rust/",
];

/// Names that decisions may not use, by token: decisions would no longer repeat.
const IMPURE: &[&str] = &["fs", "env", "net", "Instant", "SystemTime"];

/// Remaining rings of modules, by crate: number of modules in each. The list may only shrink.
const RINGS: &[(&str, &[usize])] = &[];

/// Longest file that a person writes.
const MOST_LINES: usize = 500;

/// Most lines of a folder's Rust files, tests among them: what is not an argument, an exit code or a JSON view belongs in
/// a library.
const MOST_TOGETHER: &[(&str, usize)] = &[("ampl-cli/src/", 6500)];

/// Prints every breach of the house rules.
///
/// # Errors
/// When there is one, or when the workspace cannot be read.
pub fn run() -> Result<()> {
    let mut breaches = Vec::new();
    for member in members()? {
        let manifest = read(&format!("{member}/Cargo.toml"))?;
        breaches.extend(check_manifest(&manifest).with_context(|| format!("{member}/Cargo.toml"))?);
    }
    let mut lengths = Vec::new();
    for path in files()? {
        // Files that are not text (or were just deleted) have no house style.
        if let Ok(text) = read(&path) {
            breaches.extend(check_file(&path, &text));
            lengths.push((path, text.lines().count()));
        }
    }
    breaches.extend(check_folders(&lengths));
    breaches.extend(check_rings()?);
    for breach in &breaches {
        eprintln!("tidy: {breach}");
    }
    if !breaches.is_empty() {
        bail!("{} breaches of the house rules", breaches.len());
    }
    Ok(())
}

/// Rings of modules that are more or larger than the list allows, and lists that allow more than there is.
fn check_rings() -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    for member in members()? {
        let roots = ["lib.rs", "main.rs"].map(|file| root().join(&member).join("src").join(file));
        let Some(file) = roots.iter().find(|file| file.exists()) else { continue };
        let rings = rings::of_crate(file)?;
        let sizes: Vec<usize> = rings.iter().map(Vec::len).collect();
        let allowed = RINGS.iter().find(|(name, _)| *name == member).map_or(&[][..], |(_, sizes)| sizes);
        if sizes != allowed {
            breaches.push(format!("{member}: rings of {sizes:?} modules, where the list has {allowed:?}"));
            breaches.extend(rings.iter().map(|ring| format!("{member}: ring of {}", ring.join(", "))));
        }
    }
    Ok(breaches)
}

fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| path.to_owned())
}

/// The workspace members' directories.
fn members() -> Result<Vec<String>> {
    let workspace: DocumentMut = read("Cargo.toml")?.parse()?;
    let members = workspace["workspace"]["members"].as_array().context("workspace.members")?;
    Ok(members.iter().filter_map(|member| member.as_str().map(str::to_owned)).collect())
}

/// Every file that is tracked or would be.
///
/// # Errors
/// Errors of git.
pub fn files() -> Result<Vec<String>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(root());
    let listed = output(&mut git).context("tidy reads the list of files from git")?;
    Ok(listed.lines().map(str::to_owned).collect())
}

/// Breaches in a crate's manifest: edges between our crates, and the workspace's lints.
fn check_manifest(text: &str) -> Result<Vec<String>> {
    let manifest: DocumentMut = text.parse()?;
    let name = manifest["package"]["name"].as_str().context("package.name")?.to_owned();
    let mut breaches = Vec::new();
    let inherits =
        manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(|value| value.as_bool());
    if inherits != Some(true) {
        breaches.push(format!("{name}: [lints] needs `workspace = true`"));
    }
    let allowed = EDGES.iter().find(|(from, _)| *from == name).map_or(&[][..], |(_, to)| to);
    let mut scopes: Vec<&dyn TableLike> = vec![manifest.as_table()];
    if let Some(targets) = manifest.get("target").and_then(|item| item.as_table_like()) {
        scopes.extend(targets.iter().filter_map(|(_, item)| item.as_table_like()));
    }
    for scope in scopes {
        for (kind, extra) in
            [("dependencies", &[][..]), ("build-dependencies", &[][..]), ("dev-dependencies", TESTING)]
        {
            let Some(table) = scope.get(kind).and_then(|item| item.as_table_like()) else {
                continue;
            };
            for (dependency, _) in table.iter().filter(|(name, _)| name.starts_with("ampl-")) {
                // A test may also use the dependencies of the crate's own dependencies.
                if !allowed.contains(&dependency) && !extra.contains(&dependency) {
                    breaches.push(format!("{name}: {kind} may not name {dependency}"));
                }
            }
        }
    }
    Ok(breaches)
}

/// Folders with more lines than they may have; `lengths` are those of files.
fn check_folders(lengths: &[(String, usize)]) -> Vec<String> {
    let breach = |&(folder, most): &(&str, usize)| {
        let inside = lengths.iter().filter(|(path, _)| path.starts_with(folder) && path.ends_with(".rs"));
        let lines: usize = inside.map(|(_, lines)| lines).sum();
        (lines > most).then(|| format!("{folder}: {lines} lines; past {most}, move code to a library"))
    };
    MOST_TOGETHER.iter().filter_map(breach).collect()
}

/// Breaches in one file: its length, unsafe code, impure decisions, paths of one machine.
fn check_file(path: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let generated = text.lines().take(3).any(|line| line.contains("@generated"));
    let lines = text.lines().count();
    let extension = Path::new(path).extension().and_then(|text| text.to_str()).unwrap_or_default();
    if matches!(extension, "rs" | "c" | "f90") && !generated && lines > MOST_LINES {
        breaches.push(format!("{path}: {lines} lines; past {MOST_LINES}, look for two ideas"));
    }
    if extension == "rs" {
        let tokens: BTreeSet<&str> = tokens(text).collect();
        if tokens.contains("unsafe") && !UNSAFE.iter().any(|place| path.starts_with(place)) {
            breaches.push(format!("{path}: unsafe code belongs in ampl-preload"));
        }
        if path.starts_with("ampl-core/src/") || path.starts_with("ampl-client/src/") {
            for impure in IMPURE.iter().filter(|token| tokens.contains(*token)) {
                breaches.push(format!("{path}: `{impure}` has no place where decisions are made"));
            }
        }
        let crate_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
        let excused = UNSAFE.iter().any(|place| place.split('/').next() == path.split('/').next());
        if crate_root && !excused && !text.contains("#![forbid(unsafe_code)]") {
            breaches.push(format!("{path}: needs `#![forbid(unsafe_code)]`"));
        }
    }
    breaches.extend(words::of_name(path));
    if extension == "rs" && !generated {
        breaches.extend(words::of_file(path, text));
    }
    for (index, line) in text.lines().enumerate() {
        if let Some(home) = machine_path(line) {
            breaches.push(format!("{path}:{}: {home}… is a path of one machine", index + 1));
        }
    }
    breaches
}

/// The directory of one machine that `line` names, if it does.
fn machine_path(line: &str) -> Option<String> {
    ["work", "home", "root"].into_iter().map(|name| format!("/{name}/")).find(|home| {
        line.match_indices(home.as_str()).any(|(at, _)| {
            // In `tests/work/…` or a URL the name is not at the root of the file system.
            let before = line[..at].chars().next_back();
            before.is_none_or(|character| !character.is_alphanumeric() && !"._-/}".contains(character))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "\n[lints]\nworkspace = true\n";

    #[test]
    fn edges_against_the_grain_are_breaches() {
        let manifest = |rest: &str| format!("[package]\nname = \"ampl-trace\"\n{rest}{LINTS}");
        let breaches = |rest: &str| check_manifest(&manifest(rest)).unwrap().len();
        assert_eq!(breaches("[dependencies]\nampl-core = { workspace = true }\nserde = \"1\"\n"), 0);
        assert_eq!(breaches("[dependencies]\nampl-agent = { workspace = true }\n"), 1);
        assert_eq!(breaches("[dependencies.ampl-agent]\nworkspace = true\n"), 1);
        assert_eq!(breaches("[target.'cfg(unix)'.dependencies]\nampl-cli = \"0\"\n"), 1);
        assert_eq!(breaches("[dev-dependencies]\nampl-testkit = { workspace = true }\n"), 0);
        assert_eq!(breaches("[dependencies]\nampl-testkit = { workspace = true }\n"), 1);
    }

    #[test]
    fn crates_follow_the_workspace_lints() {
        assert_eq!(check_manifest("[package]\nname = \"ampl-core\"\n").unwrap().len(), 1);
    }

    #[test]
    fn unsafe_code_is_found_only_in_code() {
        let block = "fn f() { unsafe { g() } }";
        assert_eq!(check_file("ampl-trace/src/x.rs", block).len(), 1);
        assert_eq!(check_file("ampl-preload/src/x.rs", block).len(), 0);
        assert_eq!(check_file("ampl-agent/src/map.rs", block).len(), 0);
        assert_eq!(check_file("ampl-trace/src/x.rs", "// unsafe\nconst A: &str = \"unsafe\";").len(), 0);
        assert_eq!(check_file("ampl-trace/src/lib.rs", "//! Trace.").len(), 1);
    }

    #[test]
    fn decisions_stay_pure_and_files_short() {
        assert_eq!(check_file("ampl-core/src/x.rs", "use std::time::Instant;").len(), 1);
        let long = "//\n".repeat(MOST_LINES + 1);
        assert_eq!(check_file("ampl-trace/src/x.rs", &long).len(), 1);
        assert_eq!(check_file("ampl-trace/src/x.rs", &format!("// @generated\n{long}")).len(), 0);
    }

    #[test]
    fn folders_have_a_length_too() {
        let (folder, most) = MOST_TOGETHER[0];
        let of = |lines: usize| {
            let files = [("main.rs", 1), ("a/mod.rs", lines - 1), ("text.md", most)];
            let mut files: Vec<_> =
                files.iter().map(|(name, lines)| (format!("{folder}{name}"), *lines)).collect();
            files.push(("ampl-core/src/lib.rs".into(), most));
            check_folders(&files).len()
        };
        assert_eq!((of(most), of(most + 1)), (0, 1));
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let home = ["", "home", "me", "run"].join("/");
        assert!(machine_path(&format!("see {home}")).is_some());
        assert!(machine_path(&format!("tests{home}")).is_none());
        assert!(machine_path("see target/demo").is_none());
    }
}
