//! `cargo xtask compare`: output and files of two builds of `ampl`, of the same runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::shell::root;

/// Commands that are compared: a name, and the words before and behind the run.
const COMMANDS: &[(&str, &[&str], &[&str])] = &[
    ("info", &["info"], &["--json"]),
    ("summary", &["info"], &[]),
    ("calls", &["info"], &["--calls", "--json"]),
    ("decode", &["decode"], &["--json"]),
    ("decode 0", &["decode"], &["--rank", "0"]),
    ("estimate", &["estimate"], &["--json"]),
    ("decisions", &["decisions"], &["--json"]),
    ("efficiency", &["efficiency"], &["--json"]),
    ("strata", &["strata"], &["--json"]),
    ("plan", &["plan"], &["--json"]),
    ("call text", &["info"], &["--calls"]),
    ("estimate text", &["estimate"], &[]),
    ("decision text", &["decisions"], &[]),
    ("efficiency text", &["efficiency"], &[]),
    ("strata text", &["strata"], &[]),
    ("plan text", &["plan"], &[]),
    ("csv", &["export"], &["--to", "csv"]),
    ("parquet", &["export"], &["--to", "parquet"]),
    ("perfetto", &["export"], &["--to", "perfetto"]),
    ("simgrid", &["export"], &["--to", "simgrid"]),
    ("goal", &["export"], &["--to", "goal"]),
    ("decode text", &["decode"], &[]),
    ("topology", &["topology"], &["--json"]),
    ("topology text", &["topology"], &[]),
    ("matrix", &["topology"], &["--matrix"]),
    ("matrix json", &["topology"], &["--matrix", "--json"]),
    ("place", &["topology"], &["--place", "--ranks-per-node", "2", "-o", "run/placement", "--json"]),
    ("place text", &["topology"], &["--place", "--ranks-per-node", "2", "-o", "run/placement"]),
    ("logical", &["logical"], &["--json"]),
    ("logical text", &["logical"], &[]),
    ("logical 0", &["logical"], &["--rank", "0"]),
    ("logical 0 json", &["logical"], &["--rank", "0", "--json"]),
    ("logical check", &["logical"], &["--check", "--json"]),
    ("logical check text", &["logical"], &["--check"]),
    ("timesteps", &["timesteps"], &["--json"]),
    ("timesteps text", &["timesteps"], &[]),
    ("check", &["check"], &["--json"]),
    ("whatif", &["whatif"], &["--network", "ideal", "--json"]),
    ("summary of a part", &["query"], &["summary", "--ranks", "0"]),
    ("no such rank", &["decode"], &["--rank", "999999"]),
    ("no such ranks", &["query"], &["summary", "--ranks", "999999"]),
    ("no such time", &["export"], &["--to", "csv", "--from", "999999s"]),
    ("record", &["record"], &["--to", "run/record.json"]),
];

/// Output of one command: status, streams, and the files of the run directory afterwards.
#[derive(Debug, PartialEq)]
struct Output {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// Prints a table: a row for each of `runs`, a column for each command, `=` where both builds agree byte for byte.
///
/// # Errors
/// When they differ anywhere, with the first difference of each command; when a run cannot be copied.
pub fn run(old: &str, new: &str, runs: &[&str]) -> Result<()> {
    let builds = [old, new].map(|build| fs::canonicalize(build).with_context(|| build.to_owned()));
    let [old, new] = builds;
    let (old, new) = (old?, new?);
    let place = root().join("target/compare");
    let mut differences = Vec::new();
    for run in runs {
        let mut row = Vec::new();
        for (name, before, behind) in COMMANDS {
            let of = |build: &Path| -> Result<Output> {
                // The same name in both: messages and titles contain it.
                let _ = fs::remove_dir_all(&place);
                copy(Path::new(run), &place.join("run"))?;
                let mut command = Command::new(build);
                command.args(*before).arg("run").args(*behind).current_dir(&place).env("COLUMNS", "100");
                let output = command.output().with_context(|| build.display().to_string())?;
                let mut files = BTreeMap::new();
                read(&place.join("run"), &mut files)?;
                Ok(Output { code: output.status.code(), stdout: output.stdout, stderr: output.stderr, files })
            };
            let (one, other) = (of(&old)?, of(&new)?);
            row.push(format!("{name} {}", if one == other { "=" } else { "DIFFERS" }));
            if one != other {
                differences.push(format!("{run}, {name}: {}", first_difference(&one, &other)));
            }
        }
        println!("{run}: {}", row.join(", "));
    }
    let _ = fs::remove_dir_all(&place);
    if differences.is_empty() {
        println!("{} runs, {} commands: equal", runs.len(), COMMANDS.len());
        return Ok(());
    }
    bail!("{} differences:\n{}", differences.len(), differences.join("\n"))
}

/// The first difference, for people.
fn first_difference(one: &Output, other: &Output) -> String {
    if one.code != other.code {
        return format!("status {:?} and {:?}", one.code, other.code);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for (name, a, b) in [("stdout", &one.stdout, &other.stdout), ("stderr", &one.stderr, &other.stderr)] {
        let (a, b) = (text(a), text(b));
        if let Some((number, (a, b))) = (1..).zip(a.lines().zip(b.lines())).find(|(_, (a, b))| a != b) {
            let at = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
            let part = |line: &str| line.chars().skip(at.saturating_sub(30)).take(90).collect::<String>();
            return format!("{name}, line {number}: {:?} and {:?}", part(a), part(b));
        }
        if a != b {
            return format!("{name}: {} and {} bytes", a.len(), b.len());
        }
    }
    let differ = |path: &&PathBuf| one.files.get(*path) != other.files.get(*path);
    let path = one.files.keys().chain(other.files.keys()).find(differ);
    format!("file {}", path.map_or("?".into(), |path| path.display().to_string()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn read(directory: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            read(&path, files)?;
        } else {
            let bytes = fs::read(&path)?;
            files.insert(path, bytes);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let output = |code, stdout: &str, file: &[u8]| Output {
            code: Some(code),
            stdout: stdout.into(),
            stderr: Vec::new(),
            files: [("run/csv/a.csv".into(), file.to_vec())].into(),
        };
        let one = output(0, "a\nb 1\n", b"x");
        assert!(first_difference(&one, &output(3, "", b"x")).starts_with("status Some(0) and Some(3)"));
        assert!(first_difference(&one, &output(0, "a\nb 2\n", b"x")).starts_with("stdout, line 2"));
        assert_eq!(first_difference(&one, &output(0, "a\nb 1\n", b"y")), "file run/csv/a.csv");
    }
}
