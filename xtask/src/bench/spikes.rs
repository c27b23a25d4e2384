//! `cargo xtask bench spikes`: windows that retrospective decisions keep of a program with planted spikes, and the
//! time of its steps meanwhile.
//!
//! Jobs follow each other in turns, and ratios are taken within a round. Nothing is asserted: tables
//! are printed; the end-to-end tests hold what must be kept.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::setting::Setting;
use super::spread::Spread;
use crate::shell::root;

const USAGE: &str = "\
options of spikes (all optional):
  --ranks N      ranks of a job (64)
  --rounds N     rounds of jobs, best a multiple of four (8)
  --steps N      steps of a job (40)
  --sweeps N     what a rank computes in a step, about half a microsecond each (30000)
  --sleep US     microseconds that a rank sleeps in a step (0)
  --seed N       ranks and steps of the spikes in the first round, each round has others (1)
  --dist DIR     an installation to measure instead of building one";

/// A window per step, with retrospective decisions; the agent does not step down where the machine is busy.
const CONFIGURATION: &str = r#"[sampling]
selection = "retrospective"

[window]
marker = "mpi:MPI_Allreduce"

[agent]
max_overhead = "99%"

[[metric]]
name = "work"
role = "guide"
"#;

/// States of ampl in jobs. `bare again` is the difference of two equal jobs.
const STATES: [&str; 4] = ["bare", "bare again", "default", "retrospective"];

#[derive(Debug, PartialEq)]
struct Options {
    ranks: u32,
    rounds: usize,
    steps: u64,
    sweeps: u64,
    sleep: u64,
    seed: u64,
    dist: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options =
            Self { ranks: 64, rounds: 8, steps: 40, sweeps: 30_000, sleep: 0, seed: 1, dist: None };
        for pair in arguments.chunks(2) {
            let &[name, value] = pair else { bail!("{} needs a value\n{USAGE}", pair[0]) };
            let wrong = || format!("{name} {value}\n{USAGE}");
            let number =
                |least: u64| value.parse().ok().filter(|&number| number >= least).with_context(wrong);
            match name {
                "--ranks" => options.ranks = u32::try_from(number(1)?)?,
                "--rounds" => options.rounds = usize::try_from(number(1)?)?,
                "--steps" => options.steps = number(1)?,
                "--sweeps" => options.sweeps = number(0)?,
                "--sleep" => options.sleep = number(0)?,
                "--seed" => options.seed = number(0)?,
                "--dist" => options.dist = Some(std::path::absolute(value)?),
                _ => bail!("no such option: {}", wrong()),
            }
        }
        Ok(options)
    }
}

/// Prints the number of spikes kept, of other rank-windows kept, and the times of steps over those of bare jobs.
///
/// # Errors
/// For unknown options, when a tool is missing or a job fails.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let setting = Setting::prepare("spikes", options.dist.as_deref())?;
    let program = setting.compile(&root().join("tests/programs/spiked.c"))?;
    let configuration = setting.scratch.join("ampl.toml");
    std::fs::write(&configuration, CONFIGURATION)?;
    let file = configuration.to_str().context("a path that is no text")?;
    let words: [Option<&[&str]>; STATES.len()] = [None, None, Some(&[]), Some(&["-c", file])];
    let job = Job { setting: &setting, program: &program, options: &options };
    let mut rounds = Vec::new();
    for round in 0..options.rounds {
        let mut steps = [Steps::default(); STATES.len()];
        for state in in_turn(round) {
            let finished = job.run(words[state], options.seed + round as u64)?;
            steps[state] = finished.steps;
            if STATES[state] == "retrospective" {
                println!("round {}: {}", round + 1, job.kept(&finished.spikes)?);
            }
        }
        rounds.push(steps);
    }
    print(&options, &rounds);
    Ok(())
}

/// The order of states in a round: in four rounds each comes at each place once, and once behind each other one
/// (Williams, Australian Journal of Scientific Research A 2, 1949).
fn in_turn(round: usize) -> [usize; STATES.len()] {
    [0, 1, 3, 2].map(|state| (state + round) % STATES.len())
}

/// Seconds of a job's steps, as rank 0 sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Steps {
    mean: f64,
    median: f64,
}

/// A rank and a step.
type Spikes = BTreeSet<(u32, u64)>;

/// Steps and spikes that a job printed.
#[derive(Debug, PartialEq)]
struct Finished {
    steps: Steps,
    spikes: Spikes,
}

impl Finished {
    /// Parses the program's output; `None` where it has no step.
    fn read(text: &str) -> Option<Self> {
        let times: Vec<f64> = text
            .lines()
            .filter_map(|line| line.strip_prefix("step ")?.parse().ok())
            .map(|ns: f64| ns / 1e9)
            .collect();
        let spike = |line: &str| {
            let (rank, step) = line.strip_prefix("spike ")?.split_once(' ')?;
            Some((rank.parse().ok()?, step.parse().ok()?))
        };
        let steps = Steps {
            mean: times.iter().sum::<f64>() / times.len() as f64,
            median: Spread::of(&times)?.median,
        };
        Some(Self { steps, spikes: text.lines().filter_map(spike).collect() })
    }
}

/// A number of a job's steps.
type Measure = fn(&Steps) -> f64;

struct Job<'a> {
    setting: &'a Setting,
    program: &'a Path,
    options: &'a Options,
}

impl Job<'_> {
    fn run(&self, words: Option<&[&str]>, seed: u64) -> Result<Finished> {
        let Options { ranks, steps, sweeps, sleep, .. } = self.options;
        let mut job = self.setting.crowd(*ranks as usize);
        self.setting.watch(&mut job, words);
        job.arg(self.program).args([*steps, *sleep, *sweeps, seed].map(|number| number.to_string()));
        let output = job.output().context("the launcher does not start")?;
        match Finished::read(&String::from_utf8_lossy(&output.stdout)) {
            Some(finished) if output.status.success() => Ok(finished),
            _ => bail!("{job:?}: {}{}", output.status, String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// Sentence on the last job: windows decided, and spikes and other windows kept.
    fn kept(&self, spikes: &Spikes) -> Result<String> {
        let decisions = self.tell(&["decisions"])?;
        let after = decisions.iter().filter(|row| row["selection"] == "retrospective");
        let decided: BTreeSet<u64> = after.filter_map(|row| row["window"].as_u64()).collect();
        let mut kept = Spikes::new();
        for rank in 0..self.options.ranks {
            let calls = self.tell(&["decode", "--rank", &rank.to_string()])?;
            kept.extend(calls.iter().filter_map(|call| Some((rank, call["window"].as_u64()?))));
        }
        // Behind the last step there is no work.
        kept.retain(|&(_, step)| step < self.options.steps);
        let found = kept.intersection(spikes).count();
        let others = u64::from(self.options.ranks) * self.options.steps - spikes.len() as u64;
        Ok(format!(
            "{} of {} windows decided, {found} of {} spikes kept, {} of {others} other rank-windows ({:.1} %)",
            decided.range(..self.options.steps).count(),
            self.options.steps,
            spikes.len(),
            kept.len() - found,
            100.0 * (kept.len() - found) as f64 / others as f64
        ))
    }

    /// Rows that the command prints of the last job.
    fn tell(&self, words: &[&str]) -> Result<Vec<Value>> {
        let mut ask = Command::new(&self.setting.ampl);
        ask.arg(words[0]).arg(self.setting.run()).args(&words[1..]).arg("--json");
        let said = ask.output()?;
        let rows: Result<Vec<Value>, _> =
            serde_json::Deserializer::from_slice(&said.stdout).into_iter().collect();
        match rows
            .with_context(|| format!("{ask:?}: {}", String::from_utf8_lossy(&said.stderr)))?
            .as_mut_slice()
        {
            // Decisions are an array, calls are a line each.
            [Value::Array(rows)] => Ok(std::mem::take(rows)),
            rows => Ok(rows.iter_mut().map(Value::take).collect()),
        }
    }
}

fn print(options: &Options, rounds: &[[Steps; STATES.len()]]) {
    let Options { ranks, steps, sweeps, sleep, .. } = options;
    println!(
        "\n{ranks} ranks, {} rounds of {steps} steps with {sweeps} sweeps and {sleep} us of sleep each; over bare \
         within a round",
        rounds.len(),
    );
    println!("{:<14} {:<7} {:>8} {:>44}", "state", "step", "ms", "median [95 %] (quartiles)");
    let measures: [(&str, Measure); 2] = [("mean", |steps| steps.mean), ("median", |steps| steps.median)];
    for (state, name) in STATES.iter().enumerate() {
        for (measure, value) in measures {
            let times: Vec<f64> = rounds.iter().map(|round| 1e3 * value(&round[state])).collect();
            let ratios: Vec<f64> =
                rounds.iter().map(|round| value(&round[state]) / value(&round[0]) - 1.0).collect();
            let (Some(times), Some(ratios)) = (Spread::of(&times), Spread::of(&ratios)) else { continue };
            let over = if state == 0 { String::new() } else { ratios.to_string() };
            println!("{}", format!("{name:<14} {measure:<7} {:>8.2} {over:>44}", times.median).trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_state_follows_each_other_one() {
        let mut pairs = BTreeSet::new();
        for order in (0..STATES.len()).map(in_turn) {
            pairs.extend(order.windows(2).map(|pair| (pair[0], pair[1])));
        }
        assert_eq!(pairs.len(), STATES.len() * (STATES.len() - 1));
    }

    #[test]
    fn output_is_read() {
        let finished =
            Finished::read("spike 3 17\nstep 1000000\nstep 3000000\nother\nstep 2000000\n").unwrap();
        let expected =
            Finished { steps: Steps { mean: 0.002, median: 0.002 }, spikes: Spikes::from([(3, 17)]) };
        assert_eq!(finished, expected);
        assert_eq!(Finished::read("spike 3 17\n"), None);
    }

    #[test]
    fn options_are_read_and_mistakes_named() {
        let options = Options::parse(&["--ranks", "8", "--sweeps", "0"]).unwrap();
        assert_eq!((options.ranks, options.sweeps, options.steps), (8, 0, 40));
        for wrong in [&["--rounds"][..], &["--steps", "0"], &["--loud", "1"]] {
            let error = Options::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong[0]) && error.contains("--sweeps"), "{error}");
        }
    }
}
