//! `cargo xtask bench size`: bytes of two stencils' traces, beside what they may take and Pilgrim took.
//!
//! Structure is every call of every rank without its time. Timing is that of all calls with a relative
//! error of a tenth, without a floor and with one of 10 us. Nothing is asserted: a table is printed; the
//! end-to-end tests hold the targets.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::setting::{Setting, settle};
use crate::shell::root;

const USAGE: &str = "\
options of size (all optional):
  --iterations N,N…  iterations of a run, several runs (100,1000)
  --ranks N,N…       only these numbers of ranks (16,64 and 27,64)
  --dist DIR         an installation to measure instead of building one";

/// A program, how many bytes its structure may take, and on how many ranks it runs, with what Pilgrim took.
struct Stencil {
    program: &'static str,
    describes: &'static str,
    most: u64,
    ranks: [(usize, u64); 2],
}

const STENCILS: [Stencil; 2] = [
    Stencil {
        program: "stencil2",
        describes: "2-D, 5 points, not periodic",
        most: 700,
        ranks: [(16, 2988), (64, 3180)],
    },
    Stencil {
        program: "stencil3",
        describes: "3-D, 7 points, periodic",
        most: 900,
        ranks: [(27, 4556), (64, 4704)],
    },
];

/// What is measured: name, settings, and the part of the sizes that is printed.
const MEASURES: [(&str, &[&str], &str); 3] = [
    ("structure", &["trace.timing=\"off\""], "structure"),
    ("timing", &["trace.timing=\"all\"", "trace.time_error=0.1", "trace.time_floor=\"0us\""], "timing"),
    ("floor 10 us", &["trace.timing=\"all\"", "trace.time_error=0.1", "trace.time_floor=\"10us\""], "timing"),
];

/// Nothing is left out, however busy the machine.
const ALWAYS: &str = "agent.max_overhead=\"99%\"";

#[derive(Debug, PartialEq)]
struct Options {
    iterations: Vec<usize>,
    ranks: Vec<usize>,
    dist: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self { iterations: vec![100, 1000], ranks: Vec::new(), dist: None };
        for pair in arguments.chunks(2) {
            let &[name, value] = pair else { bail!("{} needs a value\n{USAGE}", pair[0]) };
            let wrong = || format!("{name} {value}\n{USAGE}");
            let numbers = || -> Option<Vec<usize>> {
                value.split(',').map(|number| number.parse().ok().filter(|&number| number > 0)).collect()
            };
            match name {
                "--iterations" => options.iterations = numbers().with_context(wrong)?,
                "--ranks" => options.ranks = numbers().with_context(wrong)?,
                "--dist" => options.dist = Some(std::path::absolute(value)?),
                _ => bail!("no such option: {}", wrong()),
            }
        }
        Ok(options)
    }
}

/// Prints a line for each program, number of ranks and of iterations.
///
/// # Errors
/// For unknown options, when a tool is missing or a job fails.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let setting = Setting::prepare("size", options.dist.as_deref())?;
    for stencil in &STENCILS {
        let program =
            setting.compile(&root().join("tests/programs").join(format!("{}.c", stencil.program)))?;
        println!("\n{}: {}; bytes", stencil.program, stencil.describes);
        println!(
            "{:>6} {:>10} {:>10} {:>8} {:>8} {:>12} {:>12}",
            "ranks", "iterations", MEASURES[0].0, "at most", "Pilgrim", MEASURES[1].0, MEASURES[2].0
        );
        for (ranks, pilgrim) in stencil.ranks {
            if !options.ranks.is_empty() && !options.ranks.contains(&ranks) {
                continue;
            }
            for &iterations in &options.iterations {
                let bytes = MEASURES.iter().enumerate().map(|(index, &(_, set, part))| {
                    let run = format!("{}-{ranks}-{iterations}-{index}", stencil.program);
                    let run = setting.scratch.join(run);
                    let job = Job { setting: &setting, program: &program, ranks, iterations };
                    job.bytes(&run, set, part)
                });
                let bytes = bytes.collect::<Result<Vec<u64>>>()?;
                println!(
                    "{ranks:>6} {iterations:>10} {:>10} {:>8} {pilgrim:>8} {:>12} {:>12}",
                    bytes[0], stencil.most, bytes[1], bytes[2]
                );
            }
        }
    }
    Ok(())
}

/// A run of a program.
struct Job<'a> {
    setting: &'a Setting,
    program: &'a Path,
    ranks: usize,
    iterations: usize,
}

impl Job<'_> {
    /// Bytes of a part of the trace of a run with these settings.
    fn bytes(&self, run: &Path, set: &[&str], part: &str) -> Result<u64> {
        let ampl = &self.setting.ampl;
        let mut job = Command::new(&self.setting.launcher);
        job.args(["-n", &self.ranks.to_string(), "--bind-to", "none", "--oversubscribe"]);
        job.args(["--mca", "mpi_yield_when_idle", "1"]);
        settle(&mut job);
        job.arg(ampl).args(["exec", "-o"]).arg(run);
        for setting in set.iter().chain(&[ALWAYS]) {
            job.args(["--set", setting]);
        }
        let output = job.arg("--").arg(self.program).arg(self.iterations.to_string()).output()?;
        if !output.status.success() {
            bail!("{job:?}: {}{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        let mut info = Command::new(ampl);
        let said = info.arg("info").arg(run).arg("--json").output()?;
        let told: Value = serde_json::from_slice(&said.stdout).with_context(|| format!("{info:?}"))?;
        let calls = told["functions"]["MPI_Waitall"].as_u64();
        if calls != Some((self.ranks * self.iterations) as u64) || told["complete"] != true {
            bail!("not a whole trace in {}: {told}", run.display());
        }
        told["trace_bytes"][part].as_u64().with_context(|| format!("no sizes in {told}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_named() {
        let options = Options::parse(&["--iterations", "10,20", "--ranks", "64"]).unwrap();
        assert_eq!((options.iterations, options.ranks, options.dist), (vec![10, 20], vec![64], None));
        for wrong in [&["--ranks"][..], &["--iterations", "0"], &["--iterations", "1,x"], &["--loud", "1"]] {
            let error = Options::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong[0]) && error.contains("--dist"), "{error}");
        }
    }
}
