//! The agent's report of its own time, beside what whole jobs take more, start and end included.

use std::time::Instant;

use anyhow::{Context as _, Result};

use super::job::Bench;
use super::options::Options;
use super::program;

/// Factor by which the agent may be off where the difference is clear.
const FACTOR: f64 = 1.5;
/// Standard errors from which a difference is clear.
const CLEAR: f64 = 3.0;
/// Settings that make every call expensive.
const DEAR: [&str; 4] =
    ["trace.timing=\"all\"", "trace.time_error=0", "trace.call_path_depth=16", "agent.max_overhead=0.99"];
/// Calls per second of the program that calls most.
const RATE: f64 = 100_000.0;

/// A job that is compared.
struct Case {
    name: String,
    words: Vec<String>,
    settings: &'static [&'static str],
}

/// One round, nanoseconds of processor time.
#[derive(Clone, Copy, Debug)]
struct Round {
    bare: f64,
    watched: f64,
    says: f64,
}

/// Means over the rounds of a job, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Outcome {
    bare: f64,
    difference: f64,
    error: f64,
    /// Half of the difference's 95 % interval.
    half: f64,
    says: f64,
}

impl Outcome {
    /// Outcome of at least two rounds.
    fn of(rounds: &[Round]) -> Option<Self> {
        let n = rounds.len() as f64;
        let mean = |of: &dyn Fn(&Round) -> f64| rounds.iter().map(of).sum::<f64>() / n;
        let [bare, difference, says] =
            [mean(&|one| one.bare), mean(&|one| one.watched - one.bare), mean(&|one| one.says)];
        let squares = rounds.iter().map(|one| (one.watched - one.bare - difference).powi(2)).sum::<f64>();
        let error = (squares / (n - 1.0) / n).sqrt();
        let half = quantile(rounds.len().checked_sub(1)?)? * error;
        Some(Self { bare, difference, error, half, says })
    }

    fn is_clear(&self) -> bool {
        self.difference > CLEAR * self.error
    }

    /// True where the agent's report is right, as far as the rounds can show.
    fn holds(&self) -> bool {
        if self.is_clear() {
            let factor = self.says / self.difference;
            return (1.0 / FACTOR..=FACTOR).contains(&factor);
        }
        (self.says - self.difference).abs() <= self.half
    }
}

/// Student's t at 97.5 % (Abramowitz and Stegun, table 26.10), of the nearest smaller number of degrees of freedom.
fn quantile(freedom: usize) -> Option<f64> {
    const TABLE: [(usize, f64); 12] = [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (5, 2.571),
        (6, 2.447),
        (8, 2.306),
        (10, 2.228),
        (14, 2.145),
        (20, 2.086),
        (30, 2.042),
        (60, 2.0),
    ];
    TABLE.iter().rev().find(|(least, _)| *least <= freedom).map(|&(_, quantile)| quantile)
}

fn cases(bench: &Bench, options: &Options, ranks: usize) -> Result<Vec<Case>> {
    // As much work of each of two processors, however many ranks there are.
    let fewer = 2.0 / ranks as f64;
    let program = |name: &str, rate: f64| -> Result<Vec<String>> {
        let options = Options { program: Some(name.into()), rate, ..options.clone() };
        let chosen = program::choose(bench, &options)?;
        Ok(chosen.into_iter().next().context("it was chosen")?.words)
    };
    let mut busy = program("synthetic", RATE)?;
    let mut calm = program("synthetic", RATE / 20.0)?;
    for words in [&mut busy, &mut calm] {
        let steps: f64 = words[1].parse()?;
        words[1] = format!("{:.0}", (steps * fewer).max(1.0));
    }
    let case = |name: &str, words: Vec<String>, settings| Case { name: name.into(), words, settings };
    let mut cases = vec![
        case("100,000 calls/s", busy.clone(), &[][..]),
        case("5,000 calls/s", calm, &[]),
        case("dear: 100,000 calls/s", busy, &DEAR),
    ];
    // Its atoms are the same however many ranks share them.
    let lammps = Options { program: Some("lammps".into()), ..options.clone() };
    if let Some(lammps) = program::choose(bench, &lammps)?.into_iter().next() {
        cases.push(case("LAMMPS", lammps.words, &[]));
    }
    Ok(cases)
}

/// Prints, per program and number of ranks, the agent's report beside the difference of jobs in turns, and a verdict.
///
/// # Errors
/// When a job fails, or there are too few rounds.
pub fn run(bench: &Bench, options: &Options) -> Result<()> {
    println!(
        "\nown: processor time of whole jobs, launcher and start and end included, watched less bare, mean of {} \
         rounds in turns on processors 0 and 1; holds: within a factor of {FACTOR} where the difference is larger than \
         {CLEAR} of its standard errors, in its 95 % interval elsewhere",
        options.pairs
    );
    println!(
        "{:>5} {:<22} {:>9} {:>22} {:>16} {:>7}  verdict",
        "ranks", "program", "bare s", "watched more, s", "agent says, s", "factor"
    );
    let (mut failed, begun) = (0, Instant::now());
    for ranks in [2, 8] {
        for case in cases(bench, options, ranks)? {
            let mut rounds = Vec::new();
            for round in 0..options.pairs {
                let (mut bare, mut watched, mut says) = (0.0, 0.0, 0.0);
                for turn in 0..2 {
                    if turn == round % 2 {
                        bare = bench.on_two(ranks, &case.words, None)?.0;
                    } else {
                        let (took, own) = bench.on_two(ranks, &case.words, Some(case.settings))?;
                        (watched, says) = (took, own.context("it was watched")?.agent_ns);
                    }
                }
                rounds.push(Round { bare, watched, says });
            }
            let outcome = Outcome::of(&rounds).context("own needs two rounds at least")?;
            failed += usize::from(!outcome.holds());
            println!("{}", row(ranks, &case.name, &outcome));
        }
    }
    println!("{failed} rows do not hold; it took {:.1} minutes", begun.elapsed().as_secs_f64() / 60.0);
    Ok(())
}

fn row(ranks: usize, name: &str, outcome: &Outcome) -> String {
    let Outcome { bare, difference, half, says, .. } = *outcome;
    let of_bare = |ns: f64| format!("{:.3} ({:+.1} %)", ns / 1e9, 100.0 * ns / bare);
    let more = format!("{:.3} ± {:.3} ({:+.1} %)", difference / 1e9, half / 1e9, 100.0 * difference / bare);
    let factor = if outcome.is_clear() { format!("{:.2}", says / difference) } else { "-".into() };
    let verdict = match (outcome.holds(), outcome.is_clear()) {
        (true, true) => "holds",
        (true, false) => "holds (no clear difference)",
        (false, _) => "DOES NOT HOLD",
    };
    format!(
        "{ranks:>5} {name:<22} {:>9.3} {more:>22} {:>16} {factor:>7}  {verdict}",
        bare / 1e9,
        of_bare(says)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(differences: &[f64], says: f64) -> Outcome {
        let rounds: Vec<Round> =
            differences.iter().map(|more| Round { bare: 1e9, watched: 1e9 + more, says }).collect();
        Outcome::of(&rounds).unwrap()
    }

    #[test]
    fn a_clear_difference_is_met_within_the_factor() {
        let clear = [90.0, 100.0, 110.0, 100.0];
        for (says, holds) in [(100.0, true), (68.0, true), (66.0, false), (149.0, true), (151.0, false)] {
            let outcome = outcome(&clear, says);
            assert!(outcome.is_clear() && outcome.holds() == holds, "{outcome:?}");
        }
        assert!(row(2, "one", &outcome(&clear, 66.0)).contains("DOES NOT HOLD"));
    }

    #[test]
    fn where_nothing_is_clear_its_interval_holds_what_is_said() {
        // Mean 50, standard error 50, three degrees of freedom.
        let unclear = [-50.0, 150.0, -50.0, 150.0];
        for (says, holds) in [(50.0, true), (230.0, true), (240.0, false)] {
            let outcome = outcome(&unclear, says);
            assert!(!outcome.is_clear() && outcome.holds() == holds, "{outcome:?}");
        }
        assert_eq!(Outcome::of(&[Round { bare: 1.0, watched: 1.0, says: 1.0 }]), None);
    }
}
