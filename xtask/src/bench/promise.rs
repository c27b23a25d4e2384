//! `cargo xtask bench promise`: sizes and costs that ampl promises, each beside what it must be.
//!
//! Every row is a job of `tests/programs`, or of a program that is named. Nothing is asserted: a table is printed, and what
//! was not measured says so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::setting::{Setting, settle};
use crate::shell::root;

const USAGE: &str = "\
options of promise (all optional):
  --only WORD   rows whose name has the word
  --sp PROGRAM  SP.S of NAS's parallel benchmarks, for 16 ranks
  --dist DIR    an installation to measure instead of building one";

#[derive(Debug, Default, PartialEq)]
struct Options {
    only: String,
    sp: Option<PathBuf>,
    dist: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self::default();
        for pair in arguments.chunks(2) {
            let &[name, value] = pair else { bail!("{} needs a value\n{USAGE}", pair[0]) };
            match name {
                "--only" => options.only = value.to_owned(),
                "--sp" => options.sp = Some(std::path::absolute(value)?),
                "--dist" => options.dist = Some(std::path::absolute(value)?),
                _ => bail!("no such option: {name} {value}\n{USAGE}"),
            }
        }
        Ok(options)
    }
}

/// Settings of a whole file without times and summaries.
const BARE: &[&str] = &["trace.timing=\"off\"", "output.rank_summaries=\"off\""];
/// Settings by which structure is all that costs.
const STRUCTURE: &[&str] =
    &["trace.timing=\"off\"", "output.rank_summaries=\"off\"", "agent.max_structure_overhead=\"99%\""];

/// A number that was measured, and what it must not exceed; a share of calls must reach it.
enum Found {
    Bytes(f64, f64),
    Number(f64, f64),
    Share(f64, f64),
}

impl Found {
    fn cells(&self) -> (String, String, bool) {
        match *self {
            Self::Bytes(is, must) => (format!("{is:.0} B"), format!("<= {must:.0} B"), is <= must),
            Self::Number(is, must) => (format!("{is:.2}"), format!("<= {must:.2}"), is <= must),
            Self::Share(is, must) => {
                (format!("{:.2} %", 100.0 * is), format!(">= {:.0} %", 100.0 * must), is >= must)
            }
        }
    }
}

/// The benchmark's programs and place.
struct Bench<'a> {
    setting: &'a Setting,
    programs: BTreeMap<&'static str, PathBuf>,
}

/// A run as it describes itself.
struct Run {
    info: Value,
    /// Numbers that the program printed, by the word before them.
    printed: BTreeMap<String, f64>,
}

impl Run {
    fn number(&self, pointer: &str) -> Result<f64> {
        self.info
            .pointer(pointer)
            .and_then(Value::as_f64)
            .with_context(|| format!("no {pointer} in {}", self.info))
    }

    fn bytes(&self, part: &str) -> Result<f64> {
        self.number(&format!("/trace_bytes/{part}"))
    }

    /// Structure, and where its buffers are.
    fn structure(&self) -> Result<f64> {
        Ok(self.bytes("structure")? + self.bytes("addresses")? + self.bytes("values")?)
    }

    fn printed(&self, word: &str) -> Result<f64> {
        self.printed.get(word).copied().with_context(|| format!("the program has not printed {word}"))
    }
}

/// A row: its name, and how it is measured.
type Row = (&'static str, fn(&Bench<'_>) -> Result<Vec<(String, Found)>>);

const ROWS: &[Row] = &[
    ("calls that are decoded or in gaps", |bench| {
        let run = bench.run("promise", 2, &["fast", "400000"], &[])?;
        let missing: f64 =
            run.info["gaps"].as_array().into_iter().flatten().filter_map(|gap| gap["calls"].as_f64()).sum();
        let only_counted: f64 = run.info["counted_only"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(_, calls)| calls.as_f64())
            .sum();
        let known = run.number("/recorded_calls")? + missing + only_counted;
        let share = known / run.number("/calls")?;
        Ok(vec![("fast, 2 ranks, defaults".into(), Found::Share(share, 1.0))])
    }),
    ("runs whose structure is whole", |bench| {
        let mut rows = Vec::new();
        for (program, ranks, steps) in [("stencil3", 27, "1000"), ("stencil2", 16, "1500")] {
            let mut whole = 0.0;
            for _ in 0..3 {
                let run = bench.run(program, ranks, &[steps], &[])?;
                whole += f64::from(u8::from(run.info["structure_complete"] == true)) / 3.0;
            }
            rows.push((format!("{program}, {ranks} ranks, defaults, of 3"), Found::Share(whole, 1.0)));
        }
        Ok(rows)
    }),
    ("whole file without times and summaries", |bench| {
        let mut rows = Vec::new();
        for (program, words) in [("stencil2", &["100"][..]), ("promise", &["idle", "1000"])] {
            for ranks in [16, 64] {
                for addresses in ["on", "off"] {
                    let of = format!("trace.addresses=\"{addresses}\"");
                    let run = bench.run(program, ranks, words, &[BARE, &[&of]].concat())?;
                    let rest = run.bytes("total")? - run.bytes("aggregates")? - run.bytes("metadata")?;
                    let must = 2048.0 + 4.0 * ranks as f64;
                    let name = format!("{} {}, {ranks} ranks, addresses {addresses}", program, words[0]);
                    rows.push((name, Found::Bytes(rest, must)));
                }
            }
        }
        Ok(rows)
    }),
    ("summaries per rank-window", |bench| {
        let run = bench.run("stencil2", 64, &["12000"], &["window.marker=\"period:100ms\""])?;
        let windows = run.number("/windows")?;
        let each = run.bytes("summaries")? / (64.0 * windows);
        Ok(vec![(format!("stencil2, 64 ranks, {windows} windows"), Found::Number(each, 6.0))])
    }),
    ("memory allocated for each message", |bench| {
        let sizes = ["500", "4000"].map(|steps| bench.run("promise", 4, &["churn", steps], STRUCTURE));
        let [short, long] = sizes;
        let (short, long) = (short?, long?);
        let one = bench.run("promise", 4, &["one", "4000"], STRUCTURE)?;
        Ok(vec![
            (
                "structure of 4,000 steps over that of 500".into(),
                Found::Number(long.bytes("structure")? / short.bytes("structure")?, 1.1),
            ),
            (
                "structure of 4,000 steps over one buffer's".into(),
                Found::Number(long.bytes("structure")? / one.bytes("structure")?, 2.0),
            ),
            (
                "signatures of 4,000 steps over one buffer's".into(),
                Found::Number(long.number("/signatures")? / one.number("/signatures")?, 2.0),
            ),
        ])
    }),
    ("4,096 places in one block", |bench| {
        let run = bench.run("promise", 4, &["offsets", "8192"], STRUCTURE)?;
        Ok(vec![("structure and addresses".into(), Found::Bytes(run.structure()?, 2048.0))])
    }),
    ("counts that depend on the rank", |bench| {
        let run = bench.run("promise", 64, &["counts", "50"], STRUCTURE)?;
        Ok(vec![("grammars, 64 ranks".into(), Found::Number(run.number("/grammars")?, 1.0))])
    }),
    ("counts that are drawn", |bench| {
        let run = bench.run("promise", 16, &["alltoallv", "500"], STRUCTURE)?;
        let least = run.printed("entropy")?;
        Ok(vec![(
            format!("structure over the entropy, {least:.0} B"),
            Found::Number(run.structure()? / least, 1.1),
        )])
    }),
    ("what completes first", |bench| {
        let run = bench.run("promise", 8, &["waitsome", "500"], STRUCTURE)?;
        let least = run.printed("entropy")?;
        Ok(vec![(
            format!("structure over the entropy, {least:.0} B"),
            Found::Number(run.structure()? / least, 2.0),
        )])
    }),
    ("NPB SP.S, 16 ranks", |bench| {
        let run = bench.run("sp", 16, &[], STRUCTURE)?;
        Ok(vec![("grammars".into(), Found::Number(run.number("/grammars")?, 1.0))])
    }),
    ("memory per rank", |bench| {
        let bare = bench.bare("promise", 8, &["idle", "1000"])?;
        let run = bench.run("promise", 8, &["idle", "1000"], &[])?;
        let more = run.printed("private")? - bare.get("private").copied().context("no private memory")?;
        Ok(vec![("private, before MPI_Finalize, 8 ranks".into(), Found::Bytes(more, 2.5e6))])
    }),
];

/// Rows that other benchmarks measure.
const ELSEWHERE: [(&str, &str); 2] = [
    ("instructions per call", "cargo xtask bench overhead"),
    ("Quicksilver, LAMMPS, NWChem, SNAP", "not measured: the programs are not here"),
];

/// Prints a line for each number.
///
/// # Errors
/// For unknown options, when a tool is missing or a job fails.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let setting = Setting::prepare("promise", options.dist.as_deref())?;
    let mut programs = BTreeMap::new();
    for name in ["promise", "stencil2", "stencil3"] {
        programs.insert(name, setting.compile(&root().join("tests/programs").join(format!("{name}.c")))?);
    }
    programs.extend(options.sp.map(|program| ("sp", program)));
    let bench = Bench { setting: &setting, programs };
    println!("{:<44} {:<48} {:>12} {:>14}", "promise", "of", "is", "must");
    for (name, measure) in ROWS.iter().filter(|(name, _)| name.contains(&options.only)) {
        match measure(&bench) {
            Ok(rows) => {
                for (of, found) in rows {
                    let (is, must, holds) = found.cells();
                    println!(
                        "{name:<44} {of:<48} {is:>12} {must:>14}{}",
                        if holds { "" } else { "  missed" }
                    );
                }
            }
            Err(error) => println!("{name:<44} not measured: {error:#}"),
        }
    }
    ELSEWHERE.iter().for_each(|(name, place)| println!("{name:<44} {place}"));
    Ok(())
}

impl Bench<'_> {
    fn job(&self, ranks: usize) -> Command {
        let mut job = self.setting.crowd(ranks);
        settle(&mut job);
        job
    }

    fn program(&self, name: &str) -> Result<&Path> {
        Ok(self.programs.get(name).with_context(|| format!("no program for {name} was named"))?)
    }

    /// Numbers that a job without ampl prints.
    fn bare(&self, program: &str, ranks: usize, words: &[&str]) -> Result<BTreeMap<String, f64>> {
        let mut job = self.job(ranks);
        let output = job.arg(self.program(program)?).args(words).output()?;
        Ok(printed(&String::from_utf8_lossy(&output.stdout)))
    }

    /// A job with ampl and these settings.
    fn run(&self, program: &str, ranks: usize, words: &[&str], set: &[&str]) -> Result<Run> {
        let directory = self.setting.run();
        let _ = std::fs::remove_dir_all(&directory);
        let mut job = self.job(ranks);
        job.arg(&self.setting.ampl).args(["exec", "-o"]).arg(&directory);
        for setting in set {
            job.args(["--set", setting]);
        }
        let output = job.arg("--").arg(self.program(program)?).args(words).output()?;
        if !output.status.success() {
            bail!("{job:?}: {}{}", output.status, String::from_utf8_lossy(&output.stderr));
        }
        let mut info = Command::new(&self.setting.ampl);
        let said = info.arg("info").arg(&directory).arg("--json").output()?;
        let info: Value = serde_json::from_slice(&said.stdout).with_context(|| format!("{info:?}"))?;
        if info["complete"] != true {
            bail!("not a whole trace in {}", directory.display());
        }
        Ok(Run { info, printed: printed(&String::from_utf8_lossy(&output.stdout)) })
    }
}

/// Numbers in lines of a word and a number.
fn printed(text: &str) -> BTreeMap<String, f64> {
    let pair = |line: &str| {
        let (word, number) = line.split_once(' ')?;
        Some((word.to_owned(), number.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_named() {
        let options = Options::parse(&["--only", "file", "--sp", "/tmp/sp.S.x"]).unwrap();
        assert_eq!((&*options.only, options.sp, options.dist), ("file", Some("/tmp/sp.S.x".into()), None));
        for wrong in [&["--only"][..], &["--loud", "1"]] {
            let error = Options::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong[0]) && error.contains("--dist"), "{error}");
        }
    }

    #[test]
    fn numbers_are_read_and_judged() {
        let found = printed("entropy 120\nhello\nprivate 7\nx y\n");
        assert_eq!((found["entropy"], found["private"], found.len()), (120.0, 7.0, 2));
        assert!(Found::Bytes(2048.0, 2048.0).cells().2 && !Found::Number(2.01, 2.0).cells().2);
        assert!(Found::Share(1.0, 1.0).cells().2 && !Found::Share(0.99, 1.0).cells().2);
    }
}
