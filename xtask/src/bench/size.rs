//! `cargo xtask bench size`: bytes of two stencils' traces, beside what they may take and Pilgrim took.
//!
//! Structure is every call of every rank without its time. Timing is that of all calls with a relative
//! error of a tenth, without a floor and with one of 10 us; beside each is the adaptive (KT) code length of
//! what is stored, given rank and signature, and with one of 10 us what Pilgrim's best lossy mode took. Nothing
//! is asserted: a table is printed; the end-to-end tests hold the targets.

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

/// A program: the bytes that its structure may take, its numbers of ranks, and Pilgrim's bytes; with times, so many
/// iterations on that many ranks.
struct Stencil {
    program: &'static str,
    describes: &'static str,
    most: u64,
    ranks: [(usize, u64); 2],
    timed: Option<(usize, usize, u64)>,
}

const STENCILS: [Stencil; 2] = [
    Stencil {
        program: "stencil2",
        describes: "2-D, 5 points, not periodic",
        most: 700,
        ranks: [(16, 2988), (64, 3180)],
        timed: Some((16, 1000, 71_460)),
    },
    Stencil {
        program: "stencil3",
        describes: "3-D, 7 points, periodic",
        most: 900,
        ranks: [(27, 4556), (64, 4704)],
        timed: None,
    },
];

/// Measurements: name, settings, and the part of the sizes that is printed.
const MEASURES: [(&str, &[&str], &str); 3] = [
    ("structure", &["trace.timing=\"off\""], "structure"),
    ("timing", &["trace.timing=\"all\"", "trace.time_error=0.1", "trace.time_floor=\"0us\""], "timing"),
    ("floor 10 us", &["trace.timing=\"all\"", "trace.time_error=0.1", "trace.time_floor=\"10us\""], "timing"),
];

/// Setting by which nothing is left out, however busy the machine.
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
        let [structure, timing, floor] = MEASURES.map(|(name, ..)| name);
        println!(
            "{:>6} {:>10} {structure:>10} {:>8} {:>8} {timing:>10} {:>10} {floor:>12} {:>10} {:>8}",
            "ranks", "iterations", "at most", "Pilgrim", "KT", "KT", "Pilgrim"
        );
        for (ranks, pilgrim) in stencil.ranks {
            if !options.ranks.is_empty() && !options.ranks.contains(&ranks) {
                continue;
            }
            for &iterations in &options.iterations {
                let job = Job { setting: &setting, program: &program, ranks, iterations };
                let measured = MEASURES.iter().enumerate().map(|(index, &(_, set, part))| {
                    let run = format!("{}-{ranks}-{iterations}-{index}", stencil.program);
                    let run = setting.scratch.join(run);
                    let bytes = job.bytes(&run, set, part)?;
                    Ok((bytes, if part == "timing" { code_length(&run)? } else { 0 }))
                });
                let measured = measured.collect::<Result<Vec<(u64, u64)>>>()?;
                let timed = stencil.timed.filter(|&(most, long, _)| (most, long) == (ranks, iterations));
                println!(
                    "{ranks:>6} {iterations:>10} {:>10} {:>8} {pilgrim:>8} {:>10} {:>10} {:>12} {:>10} {:>8}",
                    measured[0].0,
                    stencil.most,
                    measured[1].0,
                    measured[1].1,
                    measured[2].0,
                    measured[2].1,
                    timed.map_or("-".into(), |(.., bytes)| bytes.to_string()),
                );
            }
        }
    }
    Ok(())
}

/// Bytes of the adaptive code of the times of a run, by `ampl-trace`'s example.
fn code_length(run: &Path) -> Result<u64> {
    let mut example = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    example.args(["run", "--quiet", "--release", "-p", "ampl-trace", "--example", "code_length", "--"]);
    let said = example.arg(run.join("trace.ampl")).current_dir(root()).output()?;
    let told: Value = serde_json::from_slice(&said.stdout)
        .with_context(|| format!("{example:?}: {}", String::from_utf8_lossy(&said.stderr)))?;
    told["ranks"].as_u64().with_context(|| format!("no code length in {told}"))
}

/// A run of a program.
#[derive(Clone, Copy)]
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
        let mut job = self.setting.crowd(self.ranks);
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
