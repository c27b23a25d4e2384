//! One program, its MPI functions called by public and by profiling names in turns.

use anyhow::{Context as _, Result};

use super::job::{Bench, Finished, State};
use super::options::Options;
use super::program::Program;
use super::spread::Spread;

/// Runs per state; they take turns, too.
const RUNS: usize = 3;

/// Share of values left out at each end of a mean: other processes' turns on the processor.
const TRIMMED: f64 = 0.01;

/// Differences of one state: wrapped, bare, bare, wrapped.
#[derive(Debug, Default)]
struct Differences {
    /// Wrapped over bare, minus one.
    ratios: Vec<f64>,
    /// Nanoseconds per wrapped call.
    per_call: Vec<f64>,
    agent_ns: f64,
    calls: f64,
}

/// Prints what the public names cost more than the profiling names.
///
/// # Errors
/// When a job fails.
pub fn run(bench: &Bench, options: &Options, programs: &[Program]) -> Result<()> {
    for program in programs.iter().filter(|program| program.alternates) {
        let states = [State::Bare, State::Summaries, State::Structure, State::Kept, State::Default];
        let mut found = states.map(|_| Differences::default());
        let mut words = program.words.clone();
        words.push("alternate".to_owned());
        for _ in 0..RUNS {
            for (differences, state) in found.iter_mut().zip(states) {
                differences.take(&bench.run(&words, state)?)?;
            }
        }
        println!(
            "\n{}, alternating: processor time of wrapped over bare blocks in {RUNS} runs of {:.0} s; \
             without ampl (bare) the difference is noise",
            program.name, options.seconds
        );
        println!(
            "{:<10} {:>28} {:>12} {:>12} {:>14} {:>8}",
            "state", "median (quartiles)", "ns per call", "mean ns", "agent says ns", "factor"
        );
        for (differences, state) in found.iter().zip(states) {
            println!("{}", differences.row(state).context("no blocks were reported")?);
        }
    }
    Ok(())
}

impl Differences {
    fn take(&mut self, finished: &Finished) -> Result<()> {
        for rank in 0..finished.ranks.len() {
            let blocks = blocks(&finished.stdout, rank);
            let calls = calls(&finished.stdout, rank).context("no loop was reported")?;
            let wrapped_calls = 2.0 * calls / blocks.len() as f64;
            for four in blocks.chunks_exact(4) {
                let (wrapped, bare) = (four[0] + four[3], four[1] + four[2]);
                self.ratios.push(wrapped / bare - 1.0);
                self.per_call.push((wrapped - bare) / wrapped_calls);
            }
        }
        if let Some(own) = finished.own {
            self.agent_ns += own.agent_ns;
            self.calls += own.calls;
        }
        Ok(())
    }

    fn row(&self, state: State) -> Option<String> {
        let (ratio, per_call) = (Spread::of(&self.ratios)?, Spread::of(&self.per_call)?);
        let mean = trimmed_mean(&self.per_call);
        let own = (self.calls > 0.0).then(|| self.agent_ns / self.calls);
        let shown = |value: Option<f64>, decimals| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
        };
        Some(format!(
            "{:<10} {ratio:>28} {:>12.0} {mean:>12.0} {:>14} {:>8}",
            state.name(),
            per_call.median,
            shown(own, 0),
            shown(own.map(|own| own / mean), 2),
        ))
    }
}

/// Processor time of each block of `rank` in the order of time, nanoseconds.
fn blocks(stdout: &str, rank: usize) -> Vec<f64> {
    let mine = format!("block {rank} ");
    let lines = stdout.lines().filter(|line| line.starts_with(&mine));
    lines.filter_map(|line| line.split_whitespace().nth(3)?.parse().ok()).collect()
}

/// Calls of `rank`, wrapped or not.
fn calls(stdout: &str, rank: usize) -> Option<f64> {
    let mine = format!("loop {rank} ");
    stdout.lines().find(|line| line.starts_with(&mine))?.split_whitespace().nth(2)?.parse().ok()
}

fn trimmed_mean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = (TRIMMED * sorted.len() as f64) as usize;
    let kept = &sorted[cut..sorted.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::overhead::job::{RankCost, SelfTime};

    #[test]
    fn four_blocks_are_one_difference() {
        let stdout = "loop 0 260 0 0\nblock 0 1 130\nblock 0 0 100\nblock 0 0 100\nblock 0 1 135\n\
                      loop 1 0 0 0\nblock 1 1 7\n";
        let own = Some(SelfTime { agent_ns: 50.0, calls: 100.0 });
        let ranks = vec![RankCost::default(); 2];
        let mut found = Differences::default();
        found.take(&Finished { ranks, wall: 0.0, stdout: stdout.to_owned(), own }).unwrap();
        assert_eq!(found.per_call, [0.5]);
        assert!((found.ratios[0] - 0.325).abs() < 1e-12);
        let row = found.row(State::Kept).unwrap();
        assert!(row.contains("+32.50 %") && row.ends_with("1.00"), "{row}");
    }

    #[test]
    fn ends_are_trimmed() {
        let mut values = vec![1.0; 198];
        values.extend([1e9, -1e9]);
        assert_eq!(trimmed_mean(&values), 1.0);
        assert_eq!(trimmed_mean(&[3.0]), 3.0);
    }
}
