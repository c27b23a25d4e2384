//! `cargo xtask bench query`: questions to runs with all times, with and without an index, beside DuckDB.
//!
//! Three runs are made: one exchange that repeats, messages that are drawn anew in each step, and regions in each other.
//! Nothing is asserted: a table is printed. Tests hold that answers with an index are those without.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::setting::{Setting, settle};
use crate::shell::{find, root, run as run_command, target};

const USAGE: &str = "\
options of query (all optional):
  --calls N    calls of each run, of all ranks (10000000)
  --ranks N    ranks (4)
  --dist DIR   an installation to measure instead of building one";

const PROGRAMS: [&str; 3] = ["regular", "irregular", "regions"];

/// Settings by which all times are kept, whatever they cost.
const ALL: [&str; 4] = [
    "--set=trace.timing=\"all\"",
    "--set=output.journal=\"run\"",
    "--set=agent.max_overhead=\"99%\"",
    "--set=agent.max_structure_overhead=\"99%\"",
];

#[derive(Debug, PartialEq)]
struct Options {
    calls: usize,
    ranks: usize,
    dist: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self { calls: 10_000_000, ranks: 4, dist: None };
        for pair in arguments.chunks(2) {
            let &[name, value] = pair else { bail!("{} needs a value\n{USAGE}", pair[0]) };
            let number = || match value.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => bail!("{name} {value}\n{USAGE}"),
            };
            match name {
                "--calls" => options.calls = number()?,
                "--ranks" => options.ranks = number()?,
                "--dist" => options.dist = Some(std::path::absolute(value)?),
                _ => bail!("no such option: {name} {value}\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

/// Prints sizes and times of each run.
///
/// # Errors
/// For unknown options, when a tool is missing or a job fails.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let setting = Setting::prepare("query", options.dist.as_deref())?;
    let program = setting.compile(&root().join("tests/programs/asked.c"))?;
    let readers = readers()?;
    let python = find(&["python3"]).unwrap_or_else(|| "python3".into());
    for name in PROGRAMS {
        let run = setting.scratch.join(name);
        let mut job = setting.crowd(options.ranks);
        settle(&mut job);
        job.arg(&setting.ampl).args(["exec", "-o"]).arg(&run).args(ALL).arg("--").arg(&program);
        run_command(job.args([name, &(options.calls / options.ranks).to_string()]))?;
        let mut asked = Command::new(&python);
        asked.arg(root().join("tests/python/bench_query.py")).arg(&setting.ampl).arg(&run).arg(name);
        run_command(asked.env("PYTHONPATH", &readers))?;
    }
    Ok(())
}

/// Directory with DuckDB for Python: that of the tests, or one that pip fills.
fn readers() -> Result<PathBuf> {
    let known = ["python-readers", "bench-duckdb"].map(|name| target().join(name));
    let has = |place: &&PathBuf| Path::new(place).join("duckdb/__init__.py").is_file();
    if let Some(place) = known.iter().find(has) {
        return Ok(place.clone());
    }
    let [_, place] = known;
    let python = find(&["python3"]).unwrap_or_else(|| "python3".into());
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target"]).arg(&place);
    run_command(pip.arg("duckdb"))?;
    Ok(place)
}
