//! One job, its MPI functions called by public and by profiling names in turns (`alternate.c`).

use anyhow::{Context as _, Result};

use super::job::{Bench, State};
use super::options::Options;
use super::program::Program;
use crate::bench::spread::Spread;

/// Share of values left out at each end of a mean: the rest is the middle half, which disturbances do not reach.
const TRIMMED: f64 = 0.25;

/// Time and calls between two calls of a program's [`Program::block`].
#[derive(Clone, Copy, Debug, PartialEq)]
struct Block {
    wrapped: bool,
    cpu_ns: f64,
    calls: f64,
}

impl Block {
    /// Parses a line that `alternate.c` wrote.
    fn parse(line: &str) -> Option<Self> {
        let numbers: Option<Vec<f64>> = line.split(' ').map(|word| word.parse().ok()).collect();
        let &[wrapped, cpu_ns, calls] = numbers?.as_slice() else { return None };
        Some(Self { wrapped: wrapped == 1.0, cpu_ns, calls })
    }
}

/// Number of blocks in a group, and of jobs: each block of a group is bare in one job.
const GROUP: usize = 4;

/// Runs the program once, with block `bare` of each [`GROUP`] without ampl. Returns every rank's blocks, and the time
/// that the agents report.
fn blocks(bench: &Bench, program: &Program, state: State, bare: usize) -> Result<(Vec<Vec<Block>>, f64)> {
    let directory = bench.scratch.join("blocks");
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("of");
    let (function, every) = program.block;
    let front = "ALTERNATE=$0 LD_PRELOAD=$1:$LD_PRELOAD; export ALTERNATE LD_PRELOAD; shift; exec \"$@\"";
    let order = format!("{function} {every} {bare} {}", file.display());
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

/// Differences of one state.
#[derive(Debug, Default)]
struct Differences {
    /// Wrapped over bare, minus one.
    ratios: Vec<f64>,
    /// Nanoseconds per wrapped call.
    per_call: Vec<f64>,
    agent_ns: f64,
    calls: f64,
}

/// Prints the extra cost of public names over profiling names.
///
/// # Errors
/// When a job fails.
pub fn run(bench: &Bench, options: &Options, programs: &[Program]) -> Result<()> {
    for program in programs {
        let watched =
            State::COUNTED.into_iter().filter(|&state| options.state.is_none_or(|one| one == state));
        let states: Vec<State> = [State::Bare].into_iter().chain(watched).collect();
        let mut found: Vec<Differences> = states.iter().map(|_| Differences::default()).collect();
        for _ in 0..options.runs {
            for (differences, &state) in found.iter_mut().zip(&states) {
                let jobs: Vec<_> =
                    (0..GROUP).map(|bare| blocks(bench, program, state, bare)).collect::<Result<_>>()?;
                differences.agent_ns += jobs.iter().map(|(_, agent_ns)| agent_ns).sum::<f64>();
                for rank in 0..jobs[0].0.len() {
                    let of_rank: Vec<_> = jobs.iter().map(|(ranks, _)| &ranks[rank][..]).collect();
                    differences.take(&of_rank);
                }
            }
        }
        let (function, every) = program.block;
        println!(
            "\n{}, alternating: processor time of wrapped over bare blocks, one in {GROUP} bare, in {} times {GROUP} \
             runs, a block ends at every call number {every} of {function}; without ampl (bare) the difference is noise",
            program.name, options.runs
        );
        println!(
            "{:<10} {:>44} {:>12} {:>12} {:>14} {:>8}",
            "state", "median [95 %] (quartiles)", "ns per call", "mean ns", "agent says ns", "factor"
        );
        for (differences, &state) in found.iter().zip(&states) {
            println!("{}", differences.row(state).context("no blocks were reported")?);
        }
    }
    Ok(())
}

impl Differences {
    /// Adds the same rank's blocks of [`GROUP`] jobs. A piece of work is bare in one of them, and is compared with
    /// the same piece two jobs later. Both sides have equally many blocks: otherwise the median would lean to the
    /// side with more disturbed ones.
    fn take(&mut self, jobs: &[&[Block]]) {
        let groups = jobs.iter().map(|blocks| blocks.len() / GROUP).min().unwrap_or(0);
        for group in 0..groups {
            let sum = |jobs_on: usize| {
                let those = (0..GROUP).map(|at| jobs[(at + jobs_on) % GROUP][group * GROUP + at]);
                those.fold((0.0, 0.0), |(cpu, calls), block| (cpu + block.cpu_ns, calls + block.calls))
            };
            let ((bare, _), (wrapped, calls)) = (sum(0), sum(GROUP / 2));
            self.ratios.push(wrapped / bare - 1.0);
            self.per_call.push((wrapped - bare) / calls);
            let all = jobs.iter().flat_map(|blocks| &blocks[group * GROUP..(group + 1) * GROUP]);
            self.calls += all.filter(|block| block.wrapped).map(|block| block.calls).sum::<f64>();
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
    fn a_piece_of_work_is_bare_in_one_of_four_jobs() {
        let mut found = Differences { agent_ns: 90.0, ..Differences::default() };
        let job = |bare: usize, rest: &[&str]| {
            // The second piece of work is twice the others; the last block has no other three.
            let blocks = (0..GROUP).map(|at| match (at == bare, at == 1) {
                (true, false) => "0 100 10",
                (true, true) => "0 200 20",
                (false, false) => "1 130 10",
                (false, true) => "1 260 20",
            });
            blocks.chain(rest.iter().copied()).map(|line| Block::parse(line).unwrap()).collect::<Vec<_>>()
        };
        let jobs = [job(0, &["1 9 9"]), job(1, &[]), job(2, &["1 9 9", "1 9 9"]), job(3, &[])];
        found.take(&jobs.each_ref().map(|blocks| &blocks[..]));
        assert_eq!((&found.per_call[..], found.calls), (&[3.0][..], 150.0));
        assert!((found.ratios[0] - 0.3).abs() < 1e-12);
        let row = found.row(State::Kept).unwrap();
        assert!(row.contains("+30.00 %") && row.ends_with("0.20"), "{row}");
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
