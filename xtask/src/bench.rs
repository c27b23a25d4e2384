//! `cargo xtask bench`: the benchmarks, each under a line with the source of its numbers.

mod history;
mod overhead;
mod promise;
mod query;
mod setting;
mod size;
mod spikes;
mod spread;
mod steps;

use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{cargo, output, root, run as run_command};

/// Runs the benchmark that `words` names, or all of them; words after `--` go to the benchmark.
///
/// # Errors
/// When there is no such benchmark, or one fails.
pub fn run(words: &[&str]) -> Result<()> {
    let (names, arguments) = match words.iter().position(|word| *word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[][..]),
    };
    let mut known = benches()?;
    // Not of one crate: they need the whole installation.
    known.extend(
        ["history", "overhead", "promise", "query", "size", "spikes", "steps"]
            .map(|name| ("xtask".to_owned(), name.to_owned())),
    );
    let listed = || known.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(", ");
    let chosen: Vec<&(String, String)> = match names {
        [] => known.iter().collect(),
        [wanted] => known.iter().filter(|(_, name)| name == wanted).collect(),
        _ => bail!("one benchmark at a time; there are: {}", listed()),
    };
    if chosen.is_empty() {
        bail!("no such benchmark; there are: {}", listed());
    }
    for (package, name) in chosen {
        println!("{}", header(name));
        if package == "xtask" {
            match name.as_str() {
                "history" => history::run(arguments)?,
                "overhead" => overhead::run(arguments)?,
                "promise" => promise::run(arguments)?,
                "query" => query::run(arguments)?,
                "size" => size::run(arguments)?,
                "spikes" => spikes::run(arguments)?,
                _ => steps::run(arguments)?,
            }
            continue;
        }
        let mut bench = cargo();
        bench
            .args(["bench", "--quiet", "-p", package, "--all-features", "--bench", name, "--"])
            .args(arguments);
        run_command(&mut bench)?;
    }
    Ok(())
}

/// Every `benches/NAME.rs` of a workspace member, as (package, name), sorted.
fn benches() -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for member in std::fs::read_dir(root())? {
        let member = member?;
        let Ok(files) = std::fs::read_dir(member.path().join("benches")) else {
            continue;
        };
        for file in files {
            let path = file?.path();
            if let (Some("rs"), Some(name)) = (
                path.extension().and_then(|text| text.to_str()),
                path.file_stem().and_then(|text| text.to_str()),
            ) {
                found.push((member.file_name().to_string_lossy().into_owned(), name.to_owned()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Machine, commit and command, so that a copied table still has its source.
fn header(name: &str) -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, model)| model.trim());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let in_root =
        |program: &str, arguments: &[&str]| output(Command::new(program).args(arguments).current_dir(root()));
    let commit = in_root("git", &["describe", "--always", "--dirty"]).unwrap_or_else(|| "no commit".into());
    let compiler = in_root("rustc", &["--version"]).unwrap_or_else(|| "unknown compiler".into());
    let kernel = output(Command::new("uname").arg("-sr")).unwrap_or_default();
    format!(
        "# {name}: {model}, {count} processors, {kernel}, {compiler}, commit {commit}\n# cargo xtask bench {name}"
    )
}
