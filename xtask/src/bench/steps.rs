//! `cargo xtask bench steps`: times of a program's steps with and without ampl, the slow ones above all.
//!
//! A library that waited for other ranks, or made them wait, would show in the 99th percentile first. Jobs follow
//! each other in turns, and ratios are taken within a round. Nothing is asserted: a table is printed.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::setting::Setting;
use crate::shell::root;

const USAGE: &str = "\
options of steps (all optional):
  --rounds N   rounds of jobs (9)
  --steps N    steps of a job (4000)
  --work ROWS  work per step, grid rows (400)
  --dist DIR   an installation to measure instead of building one";

/// States of ampl in jobs: name, and options.
const STATES: [(&str, Option<&[&str]>); 4] = [
    ("bare", None),
    // The difference of two equal jobs.
    ("bare again", None),
    ("default", Some(&[])),
    (
        "1 ms, all kept",
        Some(&[
            "--set=window.marker=\"period:1ms\"",
            "--set=sampling.windows_per_update=1",
            "--set=trace.timing=\"all\"",
        ]),
    ),
];

/// Percentiles that are compared.
const SHARES: [(&str, f64); 3] = [("p50", 0.50), ("p99", 0.99), ("p99.9", 0.999)];

#[derive(Debug, PartialEq)]
struct Options {
    rounds: usize,
    steps: usize,
    work: usize,
    dist: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self { rounds: 9, steps: 4000, work: 400, dist: None };
        for pair in arguments.chunks(2) {
            let &[name, value] = pair else { bail!("{} needs a value\n{USAGE}", pair[0]) };
            let number = || value.parse().ok().filter(|&number: &usize| number > 0);
            let wrong = || format!("{name} {value}\n{USAGE}");
            match name {
                "--rounds" => options.rounds = number().with_context(wrong)?,
                "--steps" => options.steps = number().with_context(wrong)?,
                "--work" => options.work = number().with_context(wrong)?,
                "--dist" => options.dist = Some(std::path::absolute(value)?),
                _ => bail!("no such option: {}", wrong()),
            }
        }
        Ok(options)
    }
}

/// Prints percentiles of step times for 2 ranks on processors of their own, and 8 that share them.
///
/// # Errors
/// For unknown options, when a tool is missing or a job fails.
pub fn run(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let setting = Setting::prepare("steps", options.dist.as_deref())?;
    let program = setting.compile(&root().join("ampl-preload/benches/steps.c"))?;
    let job = |ranks: usize, set: Option<&[&str]>| -> Result<Vec<f64>> {
        let mut job = if ranks == 2 {
            let mut job = Command::new(&setting.launcher);
            job.args(["-n", "2", "--bind-to", "core"]);
            job
        } else {
            setting.crowd(ranks)
        };
        setting.watch(&mut job, set);
        job.arg(&program).args([options.steps.to_string(), options.work.to_string()]);
        times(job.current_dir(&setting.scratch))
    };
    for ranks in [2, 8] {
        let mut rounds = Vec::new();
        for round in 0..options.rounds {
            // Forth and back: drift has no part in the ratios.
            let mut order: Vec<usize> = (0..STATES.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            let mut found = vec![[0.0; SHARES.len()]; STATES.len()];
            for state in order {
                let times = job(ranks, STATES[state].1)?;
                found[state] = SHARES.map(|(_, share)| quantile(&times, share));
            }
            rounds.push(found);
        }
        print(ranks, &options, &rounds);
    }
    Ok(())
}

/// Times of all steps, nanoseconds, ascending.
fn times(job: &mut Command) -> Result<Vec<f64>> {
    let output = job.output().context("the launcher does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut times: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
    if !output.status.success() || times.is_empty() {
        bail!("{job:?}: {}{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The smallest of the ascending `values` that at least `share` of them do not exceed.
fn quantile(values: &[f64], share: f64) -> f64 {
    let rank = (share * values.len() as f64).ceil() as usize;
    values[rank.clamp(1, values.len()) - 1]
}

/// Median and quartiles of `values`.
fn spread(values: &[f64]) -> [f64; 3] {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|share| quantile(&sorted, share))
}

fn print(ranks: usize, options: &Options, rounds: &[Vec<[f64; SHARES.len()]>]) {
    println!(
        "\n{ranks} ranks, {} rounds of {} steps; microseconds are medians over rounds, ratios are taken within a round",
        rounds.len(),
        options.steps
    );
    println!("{:<16} {:>6} {:>10}   over bare, median (quartiles)", "state", "", "us");
    for (state, (name, _)) in STATES.iter().enumerate() {
        for (index, (share, _)) in SHARES.iter().enumerate() {
            let values: Vec<f64> = rounds.iter().map(|found| found[state][index] / 1e3).collect();
            let ratios: Vec<f64> =
                rounds.iter().map(|found| 100.0 * (found[state][index] / found[0][index] - 1.0)).collect();
            let [_, value, _] = spread(&values);
            let [low, middle, high] = spread(&ratios);
            let over =
                if state == 0 { String::new() } else { format!("{middle:+.1} % ({low:+.1} .. {high:+.1})") };
            println!("{}", format!("{name:<16} {share:>6} {value:>10.1}   {over}").trim_end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(
            (quantile(&values, 0.5), quantile(&values, 0.99), quantile(&values, 0.999)),
            (50.0, 99.0, 100.0)
        );
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert_eq!(spread(&[3.0, 1.0, 2.0, 4.0]), [1.0, 2.0, 3.0]);
    }

    #[test]
    fn options_are_read_and_mistakes_named() {
        let expected = Options { rounds: 3, steps: 50, work: 400, dist: None };
        assert_eq!(Options::parse(&["--rounds", "3", "--steps", "50"]).unwrap(), expected);
        for wrong in [&["--rounds"][..], &["--steps", "0"], &["--loud", "1"]] {
            let error = Options::parse(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong[0]) && error.contains("--work"), "{error}");
        }
    }
}
