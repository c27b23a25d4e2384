//! One job, its MPI functions called by public and by profiling names in turns (`alternate.c`).

use anyhow::{Context as _, Result};

use super::job::{Bench, State};
use super::options::Options;
use super::program::Program;
use super::spread::Spread;

/// Share of values left out at each end of a mean: other processes' turns on the processor.
const TRIMMED: f64 = 0.01;

/// What happens between two calls of a program's [`Program::block`].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    wrapped: bool,
    cpu_ns: f64,
    calls: f64,
}

impl Block {
    /// That of a line of `alternate.c`.
    fn parse(line: &str) -> Option<Self> {
        let numbers: Option<Vec<f64>> = line.split(' ').map(|word| word.parse().ok()).collect();
        let &[wrapped, cpu_ns, calls] = numbers?.as_slice() else { return None };
        Some(Self { wrapped: wrapped == 1.0, cpu_ns, calls })
    }
}

/// Runs the program once, the first block wrapped if `first` is 1: every rank's blocks, and the time that the agents
/// tell of.
fn blocks(bench: &Bench, program: &Program, state: State, first: u8) -> Result<(Vec<Vec<Block>>, f64)> {
    let directory = bench.scratch.join("blocks");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("of");
    let (function, every) = program.block;
    let front = "ALTERNATE=$0 LD_PRELOAD=$1:$LD_PRELOAD; export ALTERNATE LD_PRELOAD; shift; exec \"$@\"";
    let order = format!("{function} {every} {first} {}", file.display());
    let mut words = ["sh", "-c", front, &order].map(str::to_owned).to_vec();
    words.push(bench.alternate.display().to_string());
    words.extend(program.words.iter().cloned());
    let finished = bench.run(&words, state)?;
    let of_rank = |rank: usize| -> Result<Vec<Block>> {
        let text = std::fs::read_to_string(file.with_extension(rank.to_string()))?;
        text.lines().map(Block::parse).collect::<Option<_>>().context("no blocks")
    };
    let blocks = (0..finished.ranks.len()).map(of_rank).collect::<Result<_>>()?;
    Ok((blocks, finished.own.map_or(0.0, |own| own.agent_ns)))
}

/// Differences of one state: wrapped, bare, bare, wrapped, and the same work the other way round.
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
    for program in programs {
        let states = [State::Bare, State::Summaries, State::Structure, State::Kept, State::Default];
        let mut found = states.map(|_| Differences::default());
        for _ in 0..options.runs {
            for (differences, state) in found.iter_mut().zip(states) {
                // What is wrapped in one of them is bare in the other: the same work, and either is as often the later.
                let (first, one) = blocks(bench, program, state, 1)?;
                let (second, other) = blocks(bench, program, state, 0)?;
                differences.agent_ns += one + other;
                for (first, second) in first.iter().zip(&second) {
                    differences.take(first, second);
                }
            }
        }
        let (function, every) = program.block;
        println!(
            "\n{}, alternating: processor time of wrapped over bare blocks in {} pairs of runs, a block ends at every \
             call number {every} of {function}; without ampl (bare) the difference is noise",
            program.name, options.runs
        );
        println!(
            "{:<10} {:>44} {:>12} {:>12} {:>14} {:>8}",
            "state", "median [95 %] (quartiles)", "ns per call", "mean ns", "agent says ns", "factor"
        );
        for (differences, state) in found.iter().zip(states) {
            println!("{}", differences.row(state).context("no blocks were reported")?);
        }
    }
    Ok(())
}

impl Differences {
    /// Adds the same rank's blocks of two runs, each wrapped in one of them.
    fn take(&mut self, first: &[Block], second: &[Block]) {
        for (first, second) in first.chunks_exact(4).zip(second.chunks_exact(4)) {
            let sum = |wrapped: bool| {
                let those = first.iter().chain(second).filter(|block| block.wrapped == wrapped);
                those.fold((0.0, 0.0), |(cpu, calls), block| (cpu + block.cpu_ns, calls + block.calls))
            };
            let ((wrapped, calls), (bare, _)) = (sum(true), sum(false));
            self.ratios.push(wrapped / bare - 1.0);
            self.per_call.push((wrapped - bare) / calls);
            self.calls += calls;
        }
    }

    fn row(&self, state: State) -> Option<String> {
        let (ratio, per_call) = (Spread::of(&self.ratios)?, Spread::of(&self.per_call)?);
        let mean = trimmed_mean(&self.per_call);
        let own = (self.agent_ns > 0.0).then(|| self.agent_ns / self.calls);
        let shown = |value: Option<f64>, decimals| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
        };
        Some(format!(
            "{:<10} {ratio:>44} {:>12.0} {mean:>12.0} {:>14} {:>8}",
            state.name(),
            per_call.median,
            shown(own, 0),
            shown(own.map(|own| own / mean), 2),
        ))
    }
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
    #[test]
    fn four_blocks_are_one_difference() {
        let mut found = Differences { agent_ns: 50.0, ..Differences::default() };
        let block = |line: &&str| Block::parse(line).unwrap();
        // The second piece of work is twice the first, and the fifth has no other three.
        let first = ["1 130 20", "0 200 20", "0 100 20", "1 130 20", "1 9 9"].each_ref().map(block);
        let second = ["0 100 20", "1 260 30", "1 130 30", "0 100 20"].each_ref().map(block);
        found.take(&first, &second);
        assert_eq!((&found.per_call[..], found.calls), (&[1.5][..], 100.0));
        assert!((found.ratios[0] - 0.3).abs() < 1e-12);
        let row = found.row(State::Kept).unwrap();
        assert!(row.contains("+30.00 %") && row.ends_with("0.33"), "{row}");
        assert_eq!(Block::parse("1 130"), None);
    }

    #[test]
    fn ends_are_trimmed() {
        let mut values = vec![1.0; 198];
        values.extend([1e9, -1e9]);
        assert_eq!(trimmed_mean(&values), 1.0);
        assert_eq!(trimmed_mean(&[3.0]), 3.0);
    }
}
