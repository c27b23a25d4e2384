//! Processor time of whole jobs at each level of what ampl stores, over that of jobs without it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::job::{Bench, SelfTime};
use super::options::Options;
use super::program;
use crate::bench::spread::Spread;
use crate::shell::{find, root};

/// A limit would give up what a level is to store.
const UNLIMITED: [&str; 2] = ["agent.max_overhead=0.99", "agent.max_structure_overhead=0.99"];

/// Levels besides the first one, which is without ampl, and their settings.
const LEVELS: [(&str, &[&str]); 3] = [
    ("summaries", &["trace.structure=\"off\""]),
    // With a floor of 2, or so few ranks would all be kept whatever the bound.
    ("retrospective", &["sampling.selection=\"retrospective\"", "sampling.floor=2"]),
    ("everything", &["trace.timing=\"all\"", "trace.time_error=0"]),
];

/// A program on a number of ranks.
struct Case {
    name: String,
    words: Vec<String>,
}

/// One round: nanoseconds of the job without ampl, then of each level with what the agents say of themselves.
struct Round {
    off: f64,
    levels: Vec<(f64, SelfTime)>,
}

/// Prints a line per number of ranks, program and level.
///
/// # Errors
/// When a job fails, or its run is not complete.
pub fn run(bench: &Bench, options: &Options) -> Result<()> {
    println!(
        "\nlevels: processor time of whole jobs, launcher and start and end included, over that without ampl in the same \
         round; {} rounds, in turns, on processors 0 and 1",
        options.pairs
    );
    println!(
        "{:>5} {:<10} {:>8} {:<14} {:>44} {:>11}",
        "ranks", "program", "off s", "level", "median [95 %] (quartiles)", "agent says"
    );
    for ranks in [2, 8] {
        for case in cases(bench, options, ranks)? {
            let rounds: Vec<Round> =
                (0..options.pairs).map(|number| round(bench, ranks, &case, number)).collect::<Result<_>>()?;
            for line in lines(ranks, &case.name, &rounds).context("no rounds")? {
                println!("{line}");
            }
        }
    }
    Ok(())
}

fn cases(bench: &Bench, options: &Options, ranks: usize) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for mut program in program::choose(bench, options)? {
        // As much work of each of two processors, however many ranks there are.
        if program.name == "synthetic" {
            let steps: f64 = program.words[1].parse()?;
            program.words[1] = format!("{:.0}", (steps * 2.0 / ranks as f64).max(1.0));
        }
        cases.push(Case { name: program.name.into(), words: program.words });
    }
    let wanted = |name: &str| options.program.as_deref().is_none_or(|chosen| chosen == name);
    if wanted("steps") {
        let steps = format!("{:.0}", (1000.0 * options.seconds * 2.0 / ranks as f64).max(1.0));
        let words = vec![bench.steps.display().to_string(), steps, "1600".into()];
        cases.push(Case { name: "steps".into(), words });
    }
    match find(&["hpcc"]).filter(|_| wanted("hpcc")) {
        Some(hpcc) => {
            std::fs::write(input(&bench.scratch), hpcc_input(ranks)?)?;
            cases.push(Case { name: "HPCC".into(), words: vec![hpcc.display().to_string()] });
        }
        None if wanted("hpcc") => println!("HPCC is missing: run `cargo xtask setup`"),
        None => {}
    }
    Ok(cases)
}

/// The file that HPCC reads where it starts.
fn input(scratch: &Path) -> PathBuf {
    scratch.join("hpccinf.txt")
}

/// Input of the end-to-end tests, on a grid of `ranks`.
fn hpcc_input(ranks: usize) -> Result<String> {
    let text = std::fs::read_to_string(root().join("tests/hpcc/hpccinf.txt"))?;
    let rows = if ranks.is_multiple_of(4) { 2 } else { 1 };
    Ok(on_grid(&text, [rows, ranks / rows]))
}

/// The input `text` with the one grid of processes replaced.
fn on_grid(text: &str, [rows, columns]: [usize; 2]) -> String {
    let line = |line: &str| match line.split_whitespace().nth(1) {
        Some("Ps") => format!("{rows}            Ps\n"),
        Some("Qs") => format!("{columns}            Qs\n"),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn round(bench: &Bench, ranks: usize, case: &Case, number: usize) -> Result<Round> {
    let mut off = 0.0;
    let mut levels = vec![None; LEVELS.len()];
    let all = LEVELS.len() + 1;
    for turn in 0..all {
        // Each level is the first, the second … in turns.
        match (turn + number) % all {
            0 => off = bench.on_two(ranks, &case.words, None)?.0,
            at => {
                let settings = [LEVELS[at - 1].1, &UNLIMITED[..]].concat();
                let (took, own) = bench.on_two(ranks, &case.words, Some(&settings))?;
                levels[at - 1] = Some((took, own.context("it was watched")?));
            }
        }
        // HPCC appends to it.
        let _ = std::fs::remove_file(bench.scratch.join("hpccoutf.txt"));
    }
    Ok(Round { off, levels: levels.into_iter().flatten().collect() })
}

/// A line for each level; `None` without rounds.
fn lines(ranks: usize, name: &str, rounds: &[Round]) -> Option<Vec<String>> {
    let median =
        |of: &dyn Fn(&Round) -> f64| Some(Spread::of(&rounds.iter().map(of).collect::<Vec<_>>())?.median);
    let off = median(&|round| round.off / 1e9)?;
    let line = |(at, (level, _)): (usize, &(&str, _))| {
        let ratios: Vec<f64> = rounds.iter().map(|round| round.levels[at].0 / round.off - 1.0).collect();
        let own = median(&|round| 100.0 * round.levels[at].1.agent_ns / round.off)?;
        let more = Spread::of(&ratios)?;
        Some(format!("{ranks:>5} {name:<10} {off:>8.3} {level:<14} {more:>44} {own:>9.2} %"))
    };
    LEVELS.iter().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_one_round() {
        let own = SelfTime { agent_ns: 1e7, calls: 10.0 };
        // The second round is slower as a whole, and no worse.
        let round =
            |off: f64| Round { off, levels: [1.0, 1.1, 1.3].map(|times| (off * times, own)).to_vec() };
        let lines = lines(8, "one", &[round(1e9), round(2e9)]).unwrap();
        let shown: Vec<bool> = lines
            .iter()
            .zip(["+0.00 %", "+10.00 %", "+30.00 %"])
            .map(|(line, more)| line.contains(more))
            .collect();
        assert_eq!(shown, [true; 3], "{lines:?}");
        assert!(lines[1].contains("retrospective") && lines[1].ends_with("0.75 %"), "{lines:?}");
    }

    #[test]
    fn the_grid_has_as_many_processes_as_the_job() {
        let text = hpcc_input(8).unwrap();
        assert!(text.contains("\n2            Ps\n") && text.contains("\n4            Qs\n"), "{text}");
        assert!(hpcc_input(2).unwrap().contains("\n1            Ps\n2            Qs\n"));
        let lines = |text: &str| text.lines().count();
        assert_eq!(lines(&text), lines(&on_grid(&text, [1, 1])));
    }
}
